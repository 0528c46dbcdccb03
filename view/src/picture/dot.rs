//! A picture in the language of Graphviz.

use super::scene::{Look, Scene};
use super::text::{escape, short};
use std::fmt::Write;

/// Maximum number of characters of a tooltip.
const MAX_TITLE: usize = 1000;

pub(super) fn write(scene: &Scene, name: &str) -> String {
    let mut out = format!("digraph {} {{\n", quoted(name));
    out.push_str("  compound = true;\n  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", fontsize=11];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=9];\n");
    if !scene.caption.is_empty() {
        let _ = writeln!(out, "  label = {};", quoted(&scene.caption));
    }
    level(&mut out, scene, "n");
    out + "}\n"
}

/// The boxes of a scene, with names that start with a prefix. Subgraphs are clusters.
fn level(out: &mut String, scene: &Scene, prefix: &str) {
    for (k, drawn) in scene.boxes.iter().enumerate() {
        let head = format!("<b>{}</b>{}", escape(&drawn.heading), escape(&drawn.version));
        let lines: String = drawn.lines.iter().map(|line| format!("<br/>{}", escape(line))).collect();
        let title = quoted(&short_title(&drawn.title));
        let style = style(drawn.look, drawn.quiet);
        let several = if drawn.several { ", peripheries=2" } else { "" };
        let _ = writeln!(out, "  {prefix}{k} [label=<{head}{lines}>, tooltip={title}{style}{several}];");
        for (b, (attribute, body)) in drawn.bodies.iter().enumerate() {
            let inner = format!("{prefix}{k}_{b}_");
            let _ = writeln!(out, "  subgraph cluster_{inner} {{\n  label = {};", quoted(attribute));
            level(out, body, &inner);
            out.push_str("  }\n");
            if !body.boxes.is_empty() {
                let _ =
                    writeln!(out, "  {prefix}{k} -> {inner}0 [style=dashed, arrowhead=none, lhead=cluster_{inner}];");
            }
        }
    }
    for edge in &scene.edges {
        let (label, title) = (quoted(&edge.label), quoted(&short_title(&edge.title)));
        let _ = writeln!(out, "  {prefix}{} -> {prefix}{} [label={label}, edgetooltip={title}];", edge.from, edge.to);
    }
}

fn style(look: Look, quiet: bool) -> String {
    let color = match look {
        Look::Input | Look::Output => ", fillcolor=\"#dde7f5\", style=\"rounded,filled\"",
        Look::Captured => ", style=\"rounded,dashed\"",
        Look::Missing => ", fillcolor=\"#f8c8c8\", color=\"#b00020\"",
        Look::Node(_) if quiet => ", style=\"dashed\", fontcolor=\"#666666\"",
        Look::Node(_) => "",
    };
    color.to_string()
}

fn short_title(title: &str) -> String {
    title.trim_end().lines().map(|line| short(line, MAX_TITLE)).collect::<Vec<_>>().join("\n")
}

/// A string of the language.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for line in text.split('\n').enumerate() {
        if line.0 > 0 {
            quoted.push_str("\\n");
        }
        quoted.push_str(&short(line.1, usize::MAX).replace('\\', "\\\\").replace('"', "\\\""));
    }
    quoted + "\""
}
