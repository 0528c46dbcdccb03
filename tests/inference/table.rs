//! Committed tables of where we are behind: the test makes all columns but the last, which gives the reason.

use crate::FOLDER;
use anyhow::{Result, ensure};
use std::collections::{HashMap, HashSet};

/// Maximum number of lines that an error shows.
const SHOWN: usize = 20;

/// Compares the lines with those of a table: each line of one must be in the other. The first `keys` columns say what a
/// line is about. With `UPDATE` set, writes the table first; reasons of lines that stay are kept.
pub(crate) fn compare(name: &str, columns: &str, keys: usize, lines: &[Vec<String>]) -> Result<()> {
    settle(name, columns, keys, lines, false)
}

/// As [`compare`], and each line needs a reason.
pub(crate) fn compare_reasoned(name: &str, columns: &str, keys: usize, lines: &[Vec<String>]) -> Result<()> {
    settle(name, columns, keys, lines, true)
}

fn settle(name: &str, columns: &str, keys: usize, lines: &[Vec<String>], reasoned: bool) -> Result<()> {
    let path = format!("{FOLDER}/{name}");
    let width = columns.split('\t').count();
    let mut old = parse(&std::fs::read_to_string(&path).unwrap_or_default(), keys, width)?;
    if std::env::var_os("UPDATE").is_some() {
        let mut text = format!("# Where we are behind; UPDATE=1 writes all but the reasons.\n# {columns}\twhy\n");
        for line in lines {
            let why = old.get(&line[..keys].join("\t")).map_or("", |(_, why)| why.as_str());
            text += format!("{}\t{why}", line.join("\t")).trim_end();
            text += "\n";
        }
        std::fs::write(&path, &text)?;
        old = parse(&text, keys, width)?;
    }
    let mut faults = Vec::new();
    for line in lines {
        let (key, rest) = (line[..keys].join("\t"), line[keys..].join("\t"));
        match old.get(&key) {
            None => faults.push(format!("not in the table: {key}\t{rest}")),
            Some((then, _)) if *then != rest => faults.push(format!("{key}\n  now       {rest}\n  committed {then}")),
            Some((_, why)) if reasoned && why.is_empty() => faults.push(format!("without a reason: {key}\t{rest}")),
            Some(_) => {}
        }
    }
    let keys: HashSet<String> = lines.iter().map(|line| line[..keys].join("\t")).collect();
    ensure!(keys.len() == lines.len(), "two lines are of the same model and value");
    faults.extend(old.keys().filter(|key| !keys.contains(*key)).map(|key| format!("no longer true: {key}")));
    faults.sort_unstable();
    let (count, shown) = (faults.len(), faults.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n"));
    ensure!(faults.is_empty(), "{path} differs in {count} lines; if this is progress, run with UPDATE=1:\n{shown}");
    Ok(())
}

/// By the key of each line: the other columns, and the reason, which may be left out.
fn parse(text: &str, keys: usize, width: usize) -> Result<HashMap<String, (String, String)>> {
    let mut lines = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        ensure!([width, width + 1].contains(&columns.len()), "{} columns: {line}", columns.len());
        let why = columns.get(width).copied().unwrap_or_default().to_string();
        lines.insert(columns[..keys].join("\t"), (columns[keys..width].join("\t"), why));
    }
    Ok(lines)
}
