//! Look-ups in the text of the tables.

use super::OPENVINO_DOMAIN;
use std::sync::OnceLock;

pub(super) static STANDARD: &str = include_str!("standard.txt");

/// Operators of OpenVINO: another table in the same format.
pub(super) static OPENVINO: &str = include_str!("openvino.txt");

/// Experimental operators of old releases: another table in the same format.
pub(super) static EXPERIMENTAL: &str = include_str!("experimental.txt");

/// The table that a domain is in.
pub(super) fn table(domain: &str) -> &'static str {
    if domain == OPENVINO_DOMAIN { OPENVINO } else { STANDARD }
}

/// The versions of an operator in the standard, oldest first: `since_version` and block of each.
pub(crate) fn versions(domain: &str, name: &str) -> Vec<(i64, &'static str)> {
    let key = if domain.is_empty() { name.to_string() } else { format!("{domain}.{name}") };
    versions_in(table(domain), &key)
}

/// The only version of an experimental operator.
pub(super) fn experimental(domain: &str, name: &str) -> Option<(i64, &'static str)> {
    if domain.is_empty() { versions_in(EXPERIMENTAL, name).first().copied() } else { None }
}

fn versions_in(table: &'static str, key: &str) -> Vec<(i64, &'static str)> {
    let mut found = Vec::new();
    let mut rest = first_block(table, key);
    while let Some((head, block, next)) = split_block(rest) {
        match head.split_once(' ') {
            Some((k, version)) if k == key => {
                if let Some(version) = version.split(' ').next().and_then(|v| v.parse().ok()) {
                    found.push((version, block));
                }
            }
            _ => break,
        }
        rest = next;
    }
    found
}

/// Every operator version of a table.
pub(super) fn all_blocks(table: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = table.get(blocks_start(table)..).unwrap_or("");
    std::iter::from_fn(move || {
        let (_, block, next) = split_block(rest)?;
        rest = next;
        Some(block)
    })
}

/// The start of the first block: after the comments and the sets of types.
pub(super) fn blocks_start(table: &'static str) -> usize {
    static STANDARD_START: OnceLock<usize> = OnceLock::new();
    let find = || next_block(table).unwrap_or(0);
    if std::ptr::eq(table, STANDARD) { *STANDARD_START.get_or_init(find) } else { find() }
}

/// The start of the next block: after an empty line.
fn next_block(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        // Faster than a search for both at once.
        let at = from + text.get(from..)?.find('\n')?;
        if text.as_bytes().get(at + 1) == Some(&b'\n') {
            return Some(at + 2);
        }
        from = at + 1;
    }
}

/// The table from the first block on whose operator is not below `key`.
fn first_block(table: &'static str, key: &str) -> &'static str {
    let text = table.get(blocks_start(table)..).unwrap_or("");
    // Invariant: blocks that start before `low` are below the key, those that start at or after `high` are not.
    let (mut low, mut high) = (0, text.len());
    while low < high {
        // The table is plain ASCII: every place is a boundary.
        let middle = low + (high - low) / 2;
        // The first block that starts after the middle, or else the one that `low` starts.
        let after = text.get(middle..high).and_then(next_block).map(|at| middle + at);
        let start = after.filter(|&at| at < high).unwrap_or(low);
        let head = text.get(start..).and_then(|t| t.split(' ').next()).unwrap_or("");
        if head < key {
            low = text.get(start..).and_then(next_block).map_or(text.len(), |at| start + at);
        } else {
            high = start;
        }
    }
    text.get(low..).unwrap_or("")
}

/// The head line and the whole of the first block, and what follows it.
fn split_block(text: &str) -> Option<(&str, &str, &str)> {
    let split = next_block(text).and_then(|next| Some((text.get(..next - 2)?, text.get(next..)?)));
    let (block, rest) = split.unwrap_or((text.trim_end(), ""));
    let head = block.lines().next().filter(|head| !head.is_empty())?;
    Some((head, block, rest))
}
