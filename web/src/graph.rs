//! Pictures of a model's graph, its subgraphs, and the groups of their nodes.

use crate::opened::{Opened, title};
use crate::print::{plain, safe};
use onnxref::inspect::GraphDetails;
use onnxref_view::picture::{self, Part};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// A step from a picture into one of a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// The box of this number, which stands for several nodes.
    Group(usize),
    /// The subgraph of this number of the node at a place.
    Body(usize, usize),
}

/// Where steps lead.
struct View<'a> {
    graph: &'a GraphDetails,
    prefix: String,
    nodes: Option<Vec<usize>>,
    /// What was entered, a name each.
    names: Vec<String>,
}

/// Which nodes of a graph have boxes of their own.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Shown {
    /// Those that are computed at load too.
    computed: bool,
    /// All, if they aren't too many.
    #[serde(default)]
    unfolded: bool,
}

/// `{"svg": .., "caption": .., "steps": [..], "names": [..], "groups": {NUMBER: [PLACE, ..], ..}, ..}`. With `show`, the steps
/// go on until the node at that place has a box of its own.
pub(crate) fn draw(opened: &Opened, steps: Vec<Step>, shown: Shown, show: Option<&str>) -> Result<Json, Json> {
    let mut steps = match show {
        Some(place) => to_graph(place),
        None => steps,
    };
    let mut view = View { graph: &opened.found.graph, prefix: String::new(), nodes: None, names: Vec::new() };
    for step in &steps {
        enter(&mut view, step, shown).ok_or_else(|| plain("there is no such part of the graph"))?;
    }
    if let Some(at) = show.and_then(|place| place.rsplit('.').next()?.parse::<usize>().ok()) {
        // Each group has fewer nodes than what it is in.
        while let Some((group, name, nodes)) = groups(&view, shown).into_iter().find(|(.., nodes)| nodes.contains(&at))
        {
            if view.nodes.as_ref().is_some_and(|before| before.len() <= nodes.len()) {
                break;
            }
            steps.push(Step::Group(group));
            view.names.push(name);
            view.nodes = Some(nodes);
        }
    }
    let drawn = picture::draw(view.graph, part(&view, shown), &view.prefix);
    let groups: serde_json::Map<String, Json> = drawn
        .groups
        .iter()
        .map(|(number, _, nodes)| {
            let places: Vec<String> = nodes.iter().map(|at| format!("{}{at}", view.prefix)).collect();
            (format!("{}{number}", view.prefix), json!(places))
        })
        .collect();
    Ok(json!({
        "svg": drawn.svg, "caption": drawn.caption, "steps": steps, "names": view.names, "groups": groups,
        "prefix": view.prefix, "foldable": drawn.foldable,
    }))
}

/// The steps to the graph of a place.
fn to_graph(place: &str) -> Vec<Step> {
    let numbers: Vec<usize> = place.split('.').filter_map(|number| number.parse().ok()).collect();
    numbers
        .chunks_exact(2)
        .map(|pair| Step::Body(pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0)))
        .collect()
}

fn part<'a>(view: &'a View<'_>, shown: Shown) -> Part<'a> {
    Part { nodes: view.nodes.as_deref(), without_computed: !shown.computed, unfolded: shown.unfolded }
}

/// The boxes of several nodes.
fn groups(view: &View<'_>, shown: Shown) -> Vec<(usize, String, Vec<usize>)> {
    picture::groups(view.graph, part(view, shown))
}

fn enter(view: &mut View<'_>, step: &Step, shown: Shown) -> Option<()> {
    match *step {
        Step::Group(number) => {
            let (_, name, nodes) = groups(view, shown).into_iter().find(|(own, ..)| *own == number)?;
            view.names.push(name);
            view.nodes = Some(nodes);
        }
        Step::Body(at, body) => {
            let node = view.graph.nodes.get(at)?;
            let (name, graph) = node.bodies.get(body)?;
            view.names.push(format!("{} of {}", safe(name), title(node)));
            view.prefix += &format!("{at}.{body}.");
            (view.graph, view.nodes) = (graph, None);
        }
    }
    Some(())
}
