//! The fuzz targets without libFuzzer, on stable Rust: known files, and inputs that look random and are always the same.
//!
//! ```text
//! cargo run -- 20000          so many inputs for each target, after the known ones
//! cargo run -- 20000 tensor   of one target
//! cargo run -- 20000:7 tensor other inputs than without :7
//! cargo run -- tensor FILE..  these files
//! ```

#![cfg_attr(fuzzing, no_main)]

// What builds all programs for fuzzing builds this one too; it does nothing then.
#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|_bytes: &[u8]| {});

use onnxref_fuzz::TARGETS;
use onnxref_fuzz::replay::replay;
use std::path::PathBuf;
use std::process::ExitCode;

#[cfg_attr(fuzzing, allow(dead_code))]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let of = |name: &str| TARGETS.into_iter().find(|(target, _)| *target == name);
    let number = |text: &str| match text.split_once(':') {
        Some((count, seed)) => Some((count.parse::<u64>().ok()?, seed.parse::<u64>().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let (count, targets, files) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ((20_000, 1), TARGETS.to_vec(), None),
        [first, ref rest @ ..] => match (number(first), of(first)) {
            (Some(count), _) if rest.is_empty() => (count, TARGETS.to_vec(), None),
            (Some(count), _) if rest.iter().all(|name| of(name).is_some()) => {
                (count, rest.iter().filter_map(|name| of(name)).collect(), None)
            }
            (_, Some(target)) => ((0, 1), vec![target], Some(rest.iter().map(PathBuf::from).collect::<Vec<_>>())),
            _ => {
                eprintln!("usage: replay [COUNT[:SEED] [TARGET..] | TARGET FILE..]");
                return ExitCode::from(2);
            }
        },
    };
    let good = targets.into_iter().all(|target| replay(target, count, files.as_deref()));
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
