//! What is written in boxes.

use super::describe;
use super::family::Family;
use super::scene::{Drawn, Look};
use super::text::{constant, short, typed};
use crate::{attributes, grouped};
use onnxref::inspect::{Fate, NodeDetails, Origin, ValueDetails};
use std::collections::BTreeMap;

/// Maximum number of constants and attributes that are listed in a box.
const MAX_LINES: usize = 4;

/// Maximum number of characters of a line.
pub(super) const MAX_LINE: usize = 30;

/// The attributes of a node that are no defaults.
pub(super) fn attributes(node: &NodeDetails) -> Vec<String> {
    let given = attributes::of(node).into_iter().filter(|given| !given.is_default);
    given.map(|given| format!("{} = {}", short(given.name, 16), given.text)).collect()
}

/// Adds lines, or the first ones and how many are left.
pub(super) fn push(lines: &mut Vec<String>, mut list: Vec<String>, what: &str) {
    let more = list.len().saturating_sub(MAX_LINES);
    if more > 1 {
        list.truncate(MAX_LINES);
        list.push(format!("and {more} more {what}"));
    }
    lines.extend(list.iter().map(|line| short(line, MAX_LINE + 16)));
}

/// A constant as its readers list it.
pub(super) fn constant_line(value: &ValueDetails) -> String {
    let name = short(&value.name, 20);
    match (&value.constant, value.origin) {
        (Some(of), _) => format!("{name}: {}", constant(of)),
        (None, Origin::Nothing) => format!("{name}: nothing produces it"),
        (None, _) => format!("{name}: {}", typed(value)),
    }
}

pub(super) fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_string() } else { format!("{} nodes", grouped(count as u64)) }
}

pub(super) fn group(name: &str, members: &[&NodeDetails]) -> Drawn {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let works = |node: &&&NodeDetails| matches!(node.fate, Fate::Runs | Fate::Fused | Fate::Missing);
    for node in members.iter().filter(works) {
        *counts.entry(&node.operator).or_default() += 1;
    }
    let running: usize = counts.values().sum();
    let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let text = |(operator, count): &(&str, usize)| {
        if *count == 1 { short(operator, 20) } else { format!("{count} {}", short(operator, 20)) }
    };
    let mut lines: Vec<String> =
        sorted.iter().take(6).map(text).collect::<Vec<_>>().chunks(2).map(|c| c.join(", ")).collect();
    let rest: usize = sorted.iter().skip(6).map(|(_, count)| count).sum();
    if rest > 0 {
        lines.push(format!("{rest} of other operators"));
    }
    let idle = members.len() - running;
    if idle > 0 {
        lines.push(format!("{} not run", nodes(idle)));
    }
    let all: Vec<String> = sorted.iter().take(describe::MAX_LISTED).map(text).collect();
    let numbers = || members.first().zip(members.last()).map(|(first, last)| (first.index, last.index));
    let heading = match numbers().filter(|_| name.is_empty()) {
        Some((first, last)) => format!("nodes #{first} to #{last}"),
        None => short(name, MAX_LINE + 10),
    };
    // The colour of the heaviest work.
    let families = members.iter().filter(works).map(|node| Family::of(&node.domain, &node.operator));
    let family = families.min().unwrap_or_default();
    Drawn {
        look: if members.iter().any(|node| node.fate == Fate::Missing) { Look::Missing } else { Look::Node(family) },
        quiet: running == 0,
        several: true,
        heading,
        version: format!(" ({})", nodes(members.len())),
        lines,
        title: format!("{}\n{}\n{}", short(name, 300), nodes(members.len()), all.join(", ")),
        ..Drawn::default()
    }
}
