//! Folds the nodes of a large graph into groups, by the scopes in their names.
//!
//! `/encoder/layer.0/attention/MatMul` is in the scopes `encoder`, `encoder/layer`, `encoder/layer.0`, ... Some exporters
//! name parameters alone by scope: a node is then in the scope of a parameter that it reads, or in that of the node
//! before it. Nodes in functions are in the scopes of their calls. If nothing has a scope, nodes are grouped as they
//! follow each other.

use onnxref::inspect::{GraphDetails, NodeDetails, Origin, ValueDetails};
use std::collections::HashMap;

/// Maximum number of scopes of a name that count.
const MAX_DEPTH: usize = 16;

/// The groups of the nodes.
#[derive(Debug, Default)]
pub(super) struct Folding {
    /// The group of each node; `None` for a node that is not shown.
    pub(super) of: Vec<Option<usize>>,
    /// The name of each group; empty for nodes that only follow each other.
    pub(super) names: Vec<String>,
}

/// Groups the shown nodes into at most `most` groups, as many as the scopes allow.
pub(super) fn fold(graph: &GraphDetails, shown: &[bool], most: usize) -> Folding {
    let scopes = scopes(graph, shown);
    let mut best: Option<Folding> = None;
    for depth in 1..=MAX_DEPTH {
        if scopes.iter().flatten().all(|scope| scope.len() < depth) {
            break;
        }
        let folding = at_depth(graph, &scopes, depth);
        let more = best.as_ref().is_none_or(|best| best.names.len() < folding.names.len());
        if more && folding.names.len() <= most {
            best = Some(folding);
        }
    }
    let mut folding = best.filter(|folding| folding.names.len() > 1).unwrap_or_else(|| runs(&scopes, most));
    drop_common(&mut folding.names);
    folding
}

type Scope<'a> = Vec<&'a str>;

/// The scope of each shown node.
fn scopes<'a>(graph: &'a GraphDetails, shown: &[bool]) -> Vec<Option<Scope<'a>>> {
    let own: Vec<Scope<'a>> = graph.nodes.iter().map(scope).collect();
    let is_shown = |k: usize| shown.get(k) == Some(&true);
    let named = own.iter().enumerate().filter(|(k, scope)| is_shown(*k) && !scope.is_empty()).count();
    // A few names with scopes among many without are no structure.
    let by_parameters = 2 * named < shown.iter().filter(|shown| **shown).count();
    let mut readers = vec![0; graph.values.len()];
    for at in graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten()) {
        readers.get_mut(*at).into_iter().for_each(|readers| *readers += 1);
    }
    let mut last = Vec::new();
    let scope_of = |(k, (node, own)): (usize, (&'a NodeDetails, Scope<'a>))| {
        if by_parameters && node.function.is_none() {
            if let Some(scope) = parameter_scope(graph, node, &readers) {
                last = scope;
            }
            return is_shown(k).then(|| last.clone());
        }
        is_shown(k).then_some(own)
    };
    graph.nodes.iter().zip(own).enumerate().map(scope_of).collect()
}

/// The scopes in a node's name, inside those of the calls around it.
fn scope(node: &NodeDetails) -> Scope<'_> {
    let calls = node.function.iter().flat_map(|calls| calls.split(": in "));
    let mut scope: Scope<'_> = calls.collect();
    scope.extend(split(&node.name));
    scope.truncate(MAX_DEPTH);
    scope
}

/// The scope of a parameter that no other node reads, which may be computed at load. One that several read has the name of
/// its first use.
fn parameter_scope<'a>(graph: &'a GraphDetails, node: &NodeDetails, readers: &[usize]) -> Option<Scope<'a>> {
    let own = node.inputs.iter().flatten().filter(|at| readers.get(**at) == Some(&1));
    let is_parameter = |value: &&ValueDetails| value.origin == Origin::Initializer || value.constant.is_some();
    let parameters = own.filter_map(|at| graph.values.get(*at)).filter(is_parameter);
    let mut scopes = parameters.map(|value| split(&value.name).take(MAX_DEPTH).collect::<Scope<'a>>());
    scopes.find(|scope| !scope.is_empty())
}

/// The parts of a name before its last one.
fn split(name: &str) -> impl Iterator<Item = &str> {
    let end = name.rfind('/').or_else(|| name.rfind('.')).unwrap_or(0);
    name.get(..end).unwrap_or("").split(['/', '.']).filter(|part| !part.is_empty())
}

/// The groups if scopes count up to a depth. The groups form no cycle, unless the nodes do.
fn at_depth(graph: &GraphDetails, scopes: &[Option<Scope<'_>>], depth: usize) -> Folding {
    let mut groups: HashMap<&[&str], usize> = HashMap::new();
    let mut folding = Folding::default();
    for scope in scopes {
        let group = scope.as_ref().map(|scope| {
            let prefix = scope.get(..depth.min(scope.len())).unwrap_or(&[]);
            *groups.entry(prefix).or_insert_with(|| {
                folding.names.push(name(prefix));
                folding.names.len() - 1
            })
        });
        folding.of.push(group);
    }
    let cyclic = cyclic(&folding, graph);
    if cyclic.contains(&true) { split_cycles(&folding, &cyclic) } else { folding }
}

/// The name of a scope, with the numbers of layers as exporters write them: `encoder/layer.0`.
fn name(scope: &[&str]) -> String {
    let mut name = String::new();
    for part in scope {
        if !name.is_empty() {
            name.push(if part.bytes().all(|byte| byte.is_ascii_digit()) { '.' } else { '/' });
        }
        name.push_str(part);
    }
    name
}

/// Drops the scope that all names are in.
fn drop_common(names: &mut [String]) {
    let first = |name: &str| name.split_once('/').map(|(first, _)| first.len() + 1);
    while let Some(len) = names.first().and_then(|name| first(name)) {
        let common = names.first().and_then(|name| name.get(..len)).unwrap_or("").to_string();
        let (inside, scope) = (|name: &String| name.starts_with(&common), common.trim_end_matches('/').to_string());
        if !names.iter().all(|name| inside(name) || *name == scope) || names.contains(&scope) {
            return;
        }
        names.iter_mut().for_each(|name| _ = name.drain(..len));
    }
}

/// The edges between groups.
fn edges(folding: &Folding, graph: &GraphDetails) -> Vec<(usize, usize)> {
    let group = |node: usize| folding.of.get(node).copied().flatten();
    let mut edges = Vec::new();
    for (k, node) in graph.nodes.iter().enumerate() {
        let captured = node.bodies.iter().flat_map(|(_, body)| body.captured.iter().map(|(_, outer)| outer));
        for value in node.inputs.iter().flatten().chain(captured).filter_map(|at| graph.values.get(*at)) {
            if let (Origin::Node(from), Some(to)) = (value.origin, group(k))
                && value.constant.is_none()
                && let Some(from) = group(from).filter(|from| *from != to)
            {
                edges.push((from, to));
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Whether each group may be in a cycle: it stays when groups without readers or without inputs are taken away.
fn cyclic(folding: &Folding, graph: &GraphDetails) -> Vec<bool> {
    let edges = edges(folding, graph);
    let mut stays = vec![true; folding.names.len()];
    for forward in [true, false] {
        let (mut waiting, mut next) = (vec![0usize; stays.len()], vec![Vec::new(); stays.len()]);
        let is_left = |k: &usize| stays.get(*k) == Some(&true);
        for (a, b) in edges.iter().filter(|(a, b)| is_left(a) && is_left(b)) {
            let (from, to) = if forward { (*a, *b) } else { (*b, *a) };
            waiting.get_mut(to).into_iter().for_each(|waiting| *waiting += 1);
            next.get_mut(from).into_iter().for_each(|next| next.push(to));
        }
        let mut ready: Vec<usize> = (0..stays.len()).filter(|k| is_left(k) && waiting.get(*k) == Some(&0)).collect();
        while let Some(k) = ready.pop() {
            stays.get_mut(k).into_iter().for_each(|stays| *stays = false);
            for to in next.get(k).into_iter().flatten() {
                if let Some(waiting) = waiting.get_mut(*to) {
                    *waiting -= 1;
                    if *waiting == 0 {
                        ready.push(*to);
                    }
                }
            }
        }
    }
    stays
}

/// Splits groups in cycles into runs of nodes that follow each other.
fn split_cycles(folding: &Folding, cyclic: &[bool]) -> Folding {
    let mut split = Folding::default();
    let (mut kept, mut last) = (HashMap::new(), None);
    for group in folding.of.iter().copied() {
        let new = group.map(|group| {
            let is_cyclic = cyclic.get(group) == Some(&true);
            let known = if is_cyclic {
                last.filter(|(of, _)| *of == group).map(|(_, new)| new)
            } else {
                kept.get(&group).copied()
            };
            let new = known.unwrap_or_else(|| {
                split.names.push(folding.names.get(group).cloned().unwrap_or_default());
                split.names.len() - 1
            });
            if is_cyclic {
                last = Some((group, new));
            } else {
                kept.insert(group, new);
            }
            new
        });
        split.of.push(new);
    }
    split
}

/// Groups of nodes that follow each other.
fn runs(scopes: &[Option<Scope<'_>>], most: usize) -> Folding {
    let shown = scopes.iter().flatten().count();
    let size = shown.div_ceil(most.max(1)).max(1);
    let mut seen = 0..;
    let of = scopes.iter().map(|scope| scope.as_ref().and_then(|_| seen.next()).map(|k: usize| k / size)).collect();
    Folding { of, names: vec![String::new(); shown.div_ceil(size)] }
}
