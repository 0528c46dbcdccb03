//! Committed tables of where we are behind: the test makes all columns but the last, which gives the reason.

use crate::FOLDER;
use anyhow::{Context, Result, ensure};
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
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let old = old.lines().filter(|line| !line.starts_with('#')).map(|line| split(line, keys));
    let mut old = old.collect::<Result<HashMap<_, _>>>().with_context(|| path.clone())?;
    if std::env::var_os("UPDATE").is_some() {
        let mut text = format!("# Where we are behind; UPDATE=1 writes all but the reasons.\n# {columns}\twhy\n");
        for line in lines {
            let why = old.get(&line[..keys].join("\t")).map_or("", |(_, why)| why.as_str());
            text += &format!("{}\t{why}\n", line.join("\t"));
        }
        std::fs::write(&path, &text)?;
        let new = text.lines().filter(|line| !line.starts_with('#')).map(|line| split(line, keys));
        old = new.collect::<Result<_>>()?;
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

/// A line's key, and what is behind it: the other columns, and the reason.
fn split(line: &str, keys: usize) -> Result<(String, (String, String))> {
    let columns: Vec<&str> = line.split('\t').collect();
    ensure!(columns.len() > keys, "too few columns: {line}");
    let (why, rest) = columns[keys..].split_last().context("no columns")?;
    Ok((columns[..keys].join("\t"), (rest.join("\t"), (*why).to_string())))
}
