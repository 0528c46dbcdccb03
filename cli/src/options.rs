//! The flags for loading a model, and how errors refer to them.

use crate::failure::Failure;
use clap::Args;
use onnxref::{Compatibility, Limits, LoadOptions, Model};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct Loading {
    /// Accept a departure from the standard
    #[arg(long, value_name = "NAME", long_help = departures())]
    allow: Vec<String>,

    /// Set a limit on the cost of loading and running
    #[arg(long, value_name = "NAME=VALUE", long_help = limits())]
    limit: Vec<String>,

    /// Allow links to external data in this folder, such as the cache of a model hub
    #[arg(long, value_name = "DIR")]
    external_root: Vec<PathBuf>,

    /// Accept external data that has more than one hard link
    ///
    /// Package managers and backups create such links. So may an attacker, to have a file from elsewhere read.
    #[arg(long)]
    hard_links: bool,

    /// Run on at most N threads instead of all processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Loading {
    pub(crate) fn options(&self) -> Result<LoadOptions, Failure> {
        let wrong = |flag: &str, text: &str, why: String| Failure::usage(format!("{flag} {text}: {why}"));
        let (mut limits, mut compatibility) = (Limits::default(), Compatibility::default());
        for text in &self.limit {
            set(&mut limits, text).map_err(|why| wrong("--limit", text, why))?;
        }
        for text in &self.allow {
            let allowed = compatibility.allow(&text.replace('-', "_"));
            allowed.map_err(|_| wrong("--allow", text, format!("no such departure; known: {}", names())))?;
        }
        let options = Model::options().limits(limits).compatibility(|all| *all = compatibility);
        let options = self.external_root.iter().fold(options.hard_links(self.hard_links), LoadOptions::external_root);
        Ok(self.threads.iter().fold(options, |options, threads| options.threads(threads.get())))
    }
}

/// Sets a limit: `NAME=VALUE`.
fn set(limits: &mut Limits, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is needed")?;
    let size = size(value).ok_or("VALUE must be a number below 2^64, such as 500 or 16G")?;
    limits.set(&name.replace('-', "_"), size).map_err(|error| format!("{error:#}"))
}

/// A number with an optional suffix K, M, G or T.
fn size(text: &str) -> Option<u64> {
    let units = ["K", "M", "G", "T"].iter().zip([10, 20, 30, 40]);
    let (digits, shift) =
        units.filter_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift))).next().unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn departures() -> String {
    let rows =
        Compatibility::NAMES.iter().map(|(name, accepted)| format!("\n- {}: {accepted}", name.replace('_', "-")));
    format!("Accept a departure from the standard:{}", rows.collect::<String>())
}

fn limits() -> String {
    let names = Limits::NAMES.join(", ");
    format!(
        "Set a limit on the cost of loading and running. VALUE may end with K, M, G or T (2^10, 2^20, ..)\n\nLimits: {names}"
    )
}

fn names() -> String {
    Compatibility::NAMES.iter().map(|(name, _)| name.replace('_', "-")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = ["0", "500", "2K", "3M", "16G", "1T"].map(size);
        assert_eq!(sizes, [0, 500, 2 << 10, 3 << 20, 16 << 30, 1 << 40].map(Some));
        for wrong in ["", "K", "-1", "1.5", "1k", "1KK", "18446744073709551616", "16777216T"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
