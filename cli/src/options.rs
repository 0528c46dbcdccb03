//! The flags for loading a model, and how errors refer to them.

use crate::bounded::{self, OUTPUT_BYTES};
use crate::failure::Failure;
use crate::{print, report};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command};
use onnxref::bytes::Bytes;
use onnxref::inspect::Inspection;
use onnxref::{Cancel, Compatibility, Error, Limits, LoadOptions, Model, quote};
use std::ffi::OsStr;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct Loading {
    /// Accept a departure from the standard
    #[arg(long, value_name = "NAME", long_help = departures(), value_parser = Completed(departure_names), hide_possible_values = true)]
    allow: Vec<String>,

    /// Lower all limits, for models of strangers
    ///
    /// A load takes at most about 1 GiB of memory; a run 1 GiB, and minutes of work; the arrays of a .npz file 1 GiB, and a
    /// picture. `--limit` changes single limits; `--timeout` bounds the time of a run, not of reading what is fed.
    /// SECURITY.md lists the values.
    #[arg(long)]
    untrusted: bool,

    /// Set a limit on the cost of loading and running
    #[arg(long, value_name = "NAME=VALUE", long_help = limits(), value_parser = Completed(limit_names), hide_possible_values = true)]
    limit: Vec<String>,

    /// Allow links to external data in this folder, such as the cache of a model hub
    #[arg(long, value_name = "DIR")]
    external_root: Vec<PathBuf>,

    /// Accept external data that has more than one hard link
    ///
    /// Package managers and backups create such links. So may an attacker, to have a file from elsewhere read.
    #[arg(long)]
    hard_links: bool,

    /// Sum quantized products in integers alone: sooner, not bit by bit
    ///
    /// Products of dequantized integers are summed as integers, also where floats would give another one. The outputs and
    /// their hashes are no longer those of the model as it is written: each product may differ by 1 in an integer of 8
    /// bits, and what follows by more.
    #[arg(long)]
    pub(crate) fast_math: bool,

    /// Map the model's files into memory instead of reading them
    ///
    /// A large model is then ready at once, and only the weights that are used take memory. Nobody may change the files
    /// meanwhile.
    #[arg(long)]
    pub(crate) mmap: bool,
}

/// The flags of every verb that runs a model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct Running {
    #[command(flatten)]
    pub(crate) loading: Loading,

    /// Run on at most N threads instead of all processors
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// Stop a run, and the writing of its values, after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

impl Running {
    /// Loads a model with further options: a file, or `-` for standard input. Prints its notes.
    pub(crate) fn load_as(
        &self,
        path: &Path,
        change: impl FnOnce(LoadOptions) -> LoadOptions,
    ) -> Result<Model, Failure> {
        let options = change(self.options()?);
        let loaded = if is_standard_input(path) { options.from_bytes(standard_input()?) } else { options.load(path) };
        let model = loaded.map_err(|error| report::load(&shown(path), error))?;
        model.report().iter().for_each(|text| print::note(text));
        Ok(model)
    }

    pub(crate) fn options(&self) -> Result<LoadOptions, Failure> {
        let options = self.loading.options()?;
        Ok(self.threads.iter().fold(options, |options, threads| options.threads(threads.get())))
    }

    /// What stops a run: the time, if one is given.
    pub(crate) fn cancel(&self) -> Cancel {
        self.timeout.map_or_else(Cancel::new, Cancel::after)
    }
}

impl Loading {
    /// What a model holds: a file, or `-` for standard input.
    pub(crate) fn inspect_as(
        &self,
        path: &Path,
        change: impl FnOnce(LoadOptions) -> LoadOptions,
    ) -> Result<Inspection, Failure> {
        self.inspected(path, change)?.map_err(|error| report::load(&shown(path), error))
    }

    /// As [`Loading::inspect_as`], with the library's error.
    pub(crate) fn inspected(
        &self,
        path: &Path,
        change: impl FnOnce(LoadOptions) -> LoadOptions,
    ) -> Result<Result<Inspection, Error>, Failure> {
        let options = change(self.options()?);
        Ok(if is_standard_input(path) { options.inspect_bytes(standard_input()?) } else { options.inspect(path) })
    }

    fn options(&self) -> Result<LoadOptions, Failure> {
        let wrong = |flag: &str, text: &str, why: String| Failure::usage(format!("{flag} {text}: {why}"));
        let mut limits = if self.untrusted { Limits::untrusted() } else { Limits::default() };
        let mut compatibility = Compatibility::default();
        for text in &self.limit {
            set(&mut limits, text).map_err(|why| wrong("--limit", text, why))?;
        }
        for text in &self.allow {
            let allowed = compatibility.allow(&text.replace('-', "_"));
            allowed.map_err(|_| {
                wrong("--allow", text, format!("no such departure; known: {}", departure_names().join(", ")))
            })?;
        }
        let options =
            Model::options().limits(limits).compatibility(|all| *all = compatibility).fast_math(self.fast_math);
        for folder in &self.external_root {
            let why = match std::fs::metadata(folder) {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => "it is not a folder".to_string(),
                Err(error) => error.to_string(),
            };
            return Err(wrong("--external-root", &print::path(&folder.to_string_lossy()), why));
        }
        let options = self.external_root.iter().fold(options.hard_links(self.hard_links), LoadOptions::external_root);
        // SAFETY: the caller asked for it, and was told that nobody may change the files.
        #[allow(unsafe_code)]
        Ok(if self.mmap { unsafe { options.mmap() } } else { options })
    }
}

/// Whether a path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// All of standard input. It is read once, and then kept.
pub(crate) fn standard_input() -> Result<Bytes, Failure> {
    static READ: Mutex<Option<Bytes>> = Mutex::new(None);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = &*read {
        return Ok(bytes.clone());
    }
    let mut bytes = Vec::new();
    let ended = std::io::stdin().lock().read_to_end(&mut bytes);
    ended.map_err(|e| Failure::usage(format!("standard input: {e}")))?;
    Ok(read.insert(bytes.into()).clone())
}

/// How errors name a file.
pub(crate) fn shown(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_string() } else { path.to_string_lossy().into_owned() }
}

/// A time: at most a hundred years or so, after which a clock still tells it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds, such as 0.5".to_string())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
    Ok(time.min(Duration::from_secs(u32::MAX.into())))
}

/// Sets a limit, of the library or of the program: `NAME=VALUE`.
fn set(limits: &mut Limits, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is needed")?;
    let size = size(value).ok_or("VALUE must be a number below 2^64, such as 500 or 16G")?;
    match name.replace('-', "_").as_str() {
        OUTPUT_BYTES => bounded::allow(size),
        name if Limits::NAMES.contains(&name) => limits.set(name, size).map_err(|error| format!("{error:#}"))?,
        name => return Err(format!("there is no limit {}: the limits are {}", quote(name), limit_list())),
    }
    Ok(())
}

fn limit_list() -> String {
    format!("{}, {OUTPUT_BYTES}", Limits::NAMES.join(", "))
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
    format!(
        "Set a limit on the cost of loading and running. VALUE may end with K, M, G or T (2^10, 2^20, ..)\n\n\
        Limits: {} (bytes written in files and as JSON, 64G by default)",
        limit_list()
    )
}

fn departure_names() -> Vec<String> {
    Compatibility::NAMES.iter().map(|(name, _)| name.replace('_', "-")).collect()
}

fn limit_names() -> Vec<String> {
    Limits::NAMES.iter().chain(&[OUTPUT_BYTES]).map(|name| format!("{name}=")).collect()
}

/// Any text; a shell completes it to one of these.
#[derive(Clone)]
pub(crate) struct Completed(pub(crate) fn() -> Vec<String>);

impl TypedValueParser for Completed {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, text: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        // A clock can still tell when that is.
        for long in ["1e10", "1e19"] {
            let time = seconds(long).unwrap();
            assert!(time > Duration::from_secs(1 << 31) && std::time::Instant::now().checked_add(time).is_some());
        }
        for wrong in ["", "-1", "1s", "NaN", "1e20"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        let sizes = ["0", "500", "2K", "3M", "16G", "1T"].map(size);
        assert_eq!(sizes, [0, 500, 2 << 10, 3 << 20, 16 << 30, 1 << 40].map(Some));
        for wrong in ["", "K", "-1", "1.5", "1k", "1KK", "18446744073709551616", "16777216T"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
