//! A picture as SVG.

use super::Mark;
use super::layout::{Piece, layout};
use super::scene::{Drawn, Look, Scene};
use super::text::{escape, width};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Font sizes of headings and lines.
const HEADING: f64 = 13.0;
/// That of the name is 16, but bold letters are wider.
const NAME: f64 = 17.5;
const SMALL: f64 = 10.5;

const LINE: f64 = 14.5;
const PADDING: f64 = 9.0;
const MARGIN: f64 = 20.0;
/// Above the picture: its name, its caption, the legend.
const TOP: f64 = 62.0;

const STYLE: &str = include_str!("style.css");

/// Draws a scene. The places in it follow a prefix, that of the subgraph that it shows.
pub(super) fn draw(scene: &Scene, name: &str, prefix: &str) -> String {
    let sheet = Sheet::new(scene);
    let legend = legend(scene);
    let least = width(name, NAME).max(legend.1).max(width(&scene.caption, SMALL));
    let (full, height) = (sheet.width.max(least) + 2.0 * MARGIN, sheet.height + TOP + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{full:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {full:.0} {height:.0}\">\n"
    );
    let _ = writeln!(out, "<title>{}</title>\n<style>\n{STYLE}</style>", escape(name));
    out.push_str("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.5 8 4 0 7.5z\" class=\"tip\"/></marker></defs>\n");
    let _ = writeln!(out, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>");
    out.push_str("<g class=\"frame\">\n");
    let _ = writeln!(out, "<text class=\"name\" x=\"{MARGIN}\" y=\"28\">{}</text>", escape(name));
    let _ =
        writeln!(out, "<text class=\"small\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>", TOP + 4.0, escape(&scene.caption));
    out.push_str(&legend.0);
    out.push_str("</g>\n<g class=\"graph\">\n");
    sheet.write(&mut out, prefix, MARGIN + (full - 2.0 * MARGIN - sheet.width) / 2.0, TOP + MARGIN);
    out + "</g>\n</svg>\n"
}

/// A scene with the places of its boxes.
struct Sheet<'a> {
    scene: &'a Scene,
    boxes: Vec<Framed<'a>>,
    places: Vec<(f64, f64)>,
    pieces: Vec<Piece>,
    width: f64,
    height: f64,
}

/// A box with its size and its subgraphs.
struct Framed<'a> {
    drawn: &'a Drawn,
    width: f64,
    height: f64,
    bodies: Vec<(&'a str, Sheet<'a>)>,
}

impl<'a> Sheet<'a> {
    fn new(scene: &'a Scene) -> Sheet<'a> {
        let boxes: Vec<Framed<'_>> = scene.boxes.iter().map(Framed::new).collect();
        // A label stands right of the line that leaves the middle of the box.
        let room = |framed: &Framed<'_>| framed.width.max(2.0 * width(&framed.drawn.leaving, SMALL) + 16.0);
        let sizes: Vec<(f64, f64)> = boxes.iter().map(|framed| (room(framed), framed.height)).collect();
        let edges: Vec<(usize, usize)> = scene.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let inputs: Vec<bool> =
            scene.boxes.iter().map(|drawn| matches!(drawn.look, Look::Input | Look::Captured)).collect();
        let done = layout(&sizes, &edges, &inputs);
        Sheet { scene, boxes, places: done.places, pieces: done.pieces, width: done.width, height: done.height }
    }

    fn write(&self, out: &mut String, prefix: &str, left: f64, top: f64) {
        let mut titles = vec![String::new(); self.boxes.len()];
        // The boxes and the values that the edges of each box lead to and carry.
        let mut leaving: Vec<(BTreeSet<usize>, BTreeSet<usize>)> = vec![Default::default(); self.boxes.len()];
        for edge in &self.scene.edges {
            if let Some((to, values)) = leaving.get_mut(edge.from) {
                to.insert(edge.to);
                values.extend(&edge.values);
            }
            if let Some(title) =
                titles.get_mut(edge.from).filter(|title| title.len() < 2000 && !title.contains(&edge.title))
            {
                title.push_str(&edge.title);
            }
        }
        for (k, (title, (to, values))) in titles.iter().zip(&leaving).enumerate() {
            let mut pieces = self.pieces.iter().filter(|piece| piece.source == k).peekable();
            if pieces.peek().is_none() {
                continue;
            }
            let (to, values, title) = (places(prefix, to), places(prefix, values), escape(title.trim_end()));
            let _ = writeln!(
                out,
                "<g class=\"edge\" data-from=\"{prefix}{k}\" data-to=\"{to}\" data-values=\"{values}\"><title>{title}</title>"
            );
            pieces.for_each(|piece| path(out, piece, left, top));
            out.push_str("</g>\n");
        }
        for (k, (framed, (x, y))) in self.boxes.iter().zip(&self.places).enumerate() {
            framed.write(out, prefix, k, left + x - framed.width / 2.0, top + y);
            if !framed.drawn.leaving.is_empty() && self.scene.edges.iter().any(|edge| edge.from == k) {
                let (x, y) = (left + x + 5.0, top + y + framed.height + 12.0);
                let _ = writeln!(
                    out,
                    "<text class=\"flow\" data-from=\"{prefix}{k}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                    escape(&framed.drawn.leaving)
                );
            }
        }
    }
}

/// Places after a prefix, with spaces between them.
fn places<'a>(prefix: &str, list: impl IntoIterator<Item = &'a usize>) -> String {
    list.into_iter().map(|at| format!("{prefix}{at}")).collect::<Vec<_>>().join(" ")
}

fn path(out: &mut String, piece: &Piece, left: f64, top: f64) {
    let ((x0, y0), (x1, y1)) = (piece.from, piece.to);
    let (x0, y0, x1, y1) = (x0 + left, y0 + top, x1 + left, y1 + top);
    let arrow = if piece.arrow { " marker-end=\"url(#arrow)\"" } else { "" };
    if (x0 - x1).abs() < 0.5 {
        let _ = writeln!(out, "<path d=\"M{x0:.1} {y0:.1} {x1:.1} {y1:.1}\"{arrow}/>");
        return;
    }
    let reach = ((y1 - y0).abs() * 0.55).max(20.0);
    let (c0, c1) = (y0 + reach, y1 - reach);
    let _ = writeln!(out, "<path d=\"M{x0:.1} {y0:.1}C{x0:.1} {c0:.1} {x1:.1} {c1:.1} {x1:.1} {y1:.1}\"{arrow}/>");
}

impl<'a> Framed<'a> {
    fn new(drawn: &'a Drawn) -> Framed<'a> {
        let bodies: Vec<(&str, Sheet<'_>)> =
            drawn.bodies.iter().map(|(name, scene)| (name.as_str(), Sheet::new(scene))).collect();
        let heading = width(&drawn.heading, HEADING) * 1.1 + width(&drawn.version, SMALL);
        let lines = drawn.lines.iter().map(|line| width(line, SMALL)).fold(heading, f64::max);
        let inner: f64 =
            bodies.iter().map(|(name, sheet)| sheet.width.max(width(name, SMALL)) + 2.0 * PADDING + GAP).sum();
        let deep = bodies.iter().map(|(_, sheet)| sheet.height + 2.0 * PADDING + LINE + GAP).fold(0.0, f64::max);
        let height = 2.0 * PADDING + HEADING + 2.0 + LINE * drawn.lines.len() as f64 + deep;
        Framed { drawn, width: (lines + 2.0 * PADDING).max(inner + GAP).max(64.0), height, bodies }
    }

    /// Writes the box with its number, and the places of what it stands for: a node, or values.
    fn write(&self, out: &mut String, prefix: &str, number: usize, x: f64, y: f64) {
        let drawn = self.drawn;
        let quiet = if drawn.quiet { " quiet" } else { "" };
        let what = match drawn.nodes.as_slice() {
            [] => format!(" data-values=\"{}\"", places(prefix, &drawn.values)),
            [only] => format!(" data-node=\"{prefix}{only}\""),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "<g class=\"box {}{quiet}\" data-box=\"{prefix}{number}\"{what}><title>{}</title>",
            drawn.mark.map_or(class(drawn.look), marked),
            escape(drawn.title.trim_end())
        );
        let radius = if matches!(drawn.look, Look::Input | Look::Output | Look::Captured) { 14 } else { 4 };
        let (w, h) = (self.width, self.height);
        // Several nodes are a stack.
        for shift in if drawn.several { &[4.0, 0.0][..] } else { &[0.0] } {
            let (x, y) = (x + shift, y + shift);
            let _ =
                writeln!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{radius}\"/>");
        }
        let middle = x + w / 2.0;
        let mut line = y + PADDING + HEADING - 1.0;
        let (heading, version) = (escape(&drawn.heading), escape(&drawn.version));
        let _ = writeln!(
            out,
            "<text class=\"head\" x=\"{middle:.1}\" y=\"{line:.1}\">{heading}<tspan class=\"version\">{version}</tspan></text>"
        );
        for text in &drawn.lines {
            line += LINE;
            let _ = writeln!(out, "<text class=\"line\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>", escape(text));
        }
        out.push_str("</g>\n");
        let mut left = x + GAP;
        let node = drawn.nodes.first().copied().unwrap_or_default();
        for (body, (name, sheet)) in self.bodies.iter().enumerate() {
            let (top, w) = (line + GAP, sheet.width.max(width(name, SMALL)) + 2.0 * PADDING);
            let h = sheet.height + LINE + 2.0 * PADDING;
            let _ = writeln!(
                out,
                "<rect class=\"body\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"4\"/>"
            );
            let (tx, ty) = (left + PADDING, top + LINE);
            let _ = writeln!(out, "<text class=\"small\" x=\"{tx:.1}\" y=\"{ty:.1}\">{}</text>", escape(name));
            let inner = format!("{prefix}{node}.{body}.");
            sheet.write(out, &inner, left + PADDING, top + LINE + PADDING);
            left += w + GAP;
        }
    }
}

/// Space between the subgraphs of a box.
const GAP: f64 = 8.0;

fn class(look: Look) -> &'static str {
    match look {
        Look::Input => "input",
        Look::Output => "output",
        Look::Captured => "captured",
        Look::Missing => "missing",
        Look::Node(family) => family.names().0,
    }
}

fn marked(mark: Mark) -> &'static str {
    match mark {
        Mark::Same => "same",
        Mark::Changed => "changed",
        Mark::Added => "added",
        Mark::Removed => "removed",
    }
}

/// What the colours mean, of those that occur, and its width.
fn legend(scene: &Scene) -> (String, f64) {
    let (mut looks, mut quiet) = (BTreeSet::new(), false);
    collect(scene, &mut looks, &mut quiet);
    let mut entries: Vec<(&str, &str)> = looks.into_iter().filter_map(entry).collect();
    let marks: BTreeSet<Mark> = scene.boxes.iter().filter_map(|drawn| drawn.mark).collect();
    entries.extend(marks.into_iter().map(|mark| (marked(mark), marked(mark))));
    entries.extend(quiet.then_some(("quiet", "not run: computed, forwarded or dropped at load")));
    let (mut out, mut x) = (String::new(), MARGIN);
    for (class, text) in entries {
        let _ = writeln!(
            out,
            "<g class=\"box {class}\"><rect x=\"{x:.1}\" y=\"38\" width=\"12\" height=\"12\" rx=\"3\"/></g>"
        );
        let _ = writeln!(out, "<text class=\"small\" x=\"{:.1}\" y=\"48\">{text}</text>", x + 17.0);
        x += 17.0 + width(text, SMALL) + 16.0;
    }
    (out, x - MARGIN)
}

fn collect(scene: &Scene, looks: &mut BTreeSet<Look>, quiet: &mut bool) {
    for drawn in &scene.boxes {
        if drawn.mark.is_none() {
            looks.insert(drawn.look);
        }
        *quiet |= drawn.quiet;
        drawn.bodies.iter().for_each(|(_, body)| collect(body, looks, quiet));
    }
}

fn entry(look: Look) -> Option<(&'static str, &'static str)> {
    match look {
        Look::Input => Some(("input", "input")),
        Look::Output => Some(("output", "output")),
        Look::Captured => Some(("captured", "from the graph around it")),
        Look::Missing => Some(("missing", "can't run here")),
        Look::Node(family) => Some(family.names()),
    }
}
