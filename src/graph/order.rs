//! The order of nodes: each after those that it reads from.

use super::draft::{By, Draft, DraftNode, Id};
use crate::error::{Error, Result, quote};
use crate::limits::Budget;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of nodes of a cycle that an error names.
const NAMED: usize = 8;

/// The outcome of sorting nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Each node comes after those that produce what it reads.
    Sorted,
    /// A node reads what no earlier one produces, or did so before the nodes were sorted.
    Unsorted,
    /// There is a cycle, which is reported.
    Cyclic,
}

/// Sorts the nodes if they are not sorted and need not be: of those whose inputs are there, the first one of the file
/// comes next. A cycle is a fault.
///
/// # Errors
/// Sorting takes more memory than is left.
pub(super) fn sort(draft: &mut Draft, budget: &Budget) -> Result<Order> {
    if is_sorted(draft) {
        return Ok(Order::Sorted);
    }
    let reads: usize = draft.nodes.iter().map(|node| node.reads().count()).sum();
    let bytes = ((size_of::<DraftNode>() + 96) * draft.nodes.len() + 32 * reads) as u64;
    budget.take(bytes)?;
    let producers = producers(draft);
    let order = order(&draft.nodes, &producers);
    let cyclic = order.len() < draft.nodes.len();
    if cyclic {
        let cycle = cycle(&draft.nodes, &producers, &order);
        if let Some((at, error)) = fault(draft, &producers, &cycle) {
            draft.faults.push_at(Some(at), error);
        }
    } else if draft.may_sort {
        let mut nodes: Vec<Option<DraftNode>> = std::mem::take(&mut draft.nodes).into_iter().map(Some).collect();
        draft.nodes.reserve_exact(nodes.len());
        draft.nodes.extend(order.iter().filter_map(|at| nodes.get_mut(*at)?.take()));
    }
    budget.give_back(bytes);
    Ok(if cyclic { Order::Cyclic } else { Order::Unsorted })
}

/// Whether all nodes come after what they read.
fn is_sorted(draft: &Draft) -> bool {
    let mut there: Vec<bool> = draft.entries.iter().map(|entry| entry.by != By::Nothing).collect();
    draft.nodes.iter().all(|node| {
        let sorted = node.reads().all(|id| there.get(id.at()) == Some(&true));
        for id in node.outputs.iter().flatten() {
            there.get_mut(id.at()).into_iter().for_each(|there| *there = true);
        }
        sorted
    })
}

/// For each value the place of the first node that produces it.
fn producers(draft: &Draft) -> Vec<u32> {
    let mut producers = vec![u32::MAX; draft.entries.len()];
    for (at, node) in (0..).zip(&draft.nodes) {
        for id in node.outputs.iter().flatten() {
            // A duplicate output is reported elsewhere.
            let new = draft.entries.get(id.at()).is_some_and(|entry| entry.by == By::Nothing);
            if let Some(producer) = producers.get_mut(id.at()).filter(|producer| new && **producer == u32::MAX) {
                *producer = at;
            }
        }
    }
    producers
}

/// The node that produces a value.
fn producer(producers: &[u32], id: Id) -> Option<usize> {
    producers.get(id.at()).filter(|producer| **producer != u32::MAX).map(|producer| *producer as usize)
}

/// The places of the nodes in an order in which they can run; without those in cycles and those that read from one.
fn order(nodes: &[DraftNode], producers: &[u32]) -> Vec<usize> {
    let mut waits = vec![0usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        for from in node.reads().filter_map(|id| producer(producers, id)) {
            if let (Some(waits), Some(readers)) = (waits.get_mut(at), readers.get_mut(from)) {
                *waits += 1;
                readers.push(at);
            }
        }
    }
    let ready = waits.iter().enumerate().filter(|(_, waits)| **waits == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(at, _)| Reverse(at)).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for reader in readers.get(at).into_iter().flatten() {
            if let Some(waits) = waits.get_mut(*reader) {
                *waits -= 1;
                if *waits == 0 {
                    ready.push(Reverse(*reader));
                }
            }
        }
    }
    order
}

/// The places of the nodes of a cycle, from the first one of the file on; the next one reads from each.
fn cycle(nodes: &[DraftNode], producers: &[u32], order: &[usize]) -> Vec<usize> {
    let mut left = vec![true; nodes.len()];
    order.iter().for_each(|at| left.get_mut(*at).into_iter().for_each(|left| *left = false));
    // Every node that is left reads from one that is left: going back from node to node ends in a cycle.
    let mut step = vec![None; nodes.len()];
    let (mut path, mut next) = (Vec::new(), left.iter().position(|left| *left));
    while let Some(at) = next {
        if let Some(Some(first)) = step.get(at) {
            let mut cycle: Vec<usize> = path.split_off(*first);
            cycle.reverse();
            let start = cycle.iter().enumerate().min_by_key(|(_, at)| **at).map_or(0, |(start, _)| start);
            cycle.rotate_left(start);
            return cycle;
        }
        step.get_mut(at).into_iter().for_each(|step| *step = Some(path.len()));
        path.push(at);
        let reads = nodes.get(at).into_iter().flat_map(DraftNode::reads);
        next = reads.filter_map(|id| producer(producers, id)).find(|from| left.get(*from) == Some(&true));
    }
    Vec::new()
}

/// The fault that a cycle is, and its place.
fn fault(draft: &Draft, producers: &[u32], cycle: &[usize]) -> Option<(usize, Error)> {
    let at = *cycle.first()?;
    let node = draft.nodes.get(at)?;
    if cycle.len() == 1 {
        let own = node.reads().find(|id| producer(producers, *id) == Some(at))?;
        let name = &draft.entries.get(own.at())?.name;
        let text = format!("input {} is produced by the node itself: a cycle", quote(name));
        return Some((at, node.place.fault(name, text)));
    }
    let name = |at: &usize| match draft.nodes.get(*at).map(|node| (&*node.place.name, node.place.index)) {
        Some(("", index)) => format!("#{index}"),
        Some((name, _)) => quote(name),
        None => String::new(),
    };
    let names: Vec<String> = cycle.iter().take(NAMED).map(name).collect();
    let end = if cycle.len() > NAMED { "…".to_string() } else { name(&at) };
    let text = format!("{} nodes form a cycle: {} -> {end}", cycle.len(), names.join(" -> "));
    Some((at, node.place.locate(Error::model(text))))
}
