//! The program, as a user calls it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

mod bench;
mod check;
mod compare;
mod corpus;
mod diff;
mod edit;
mod edit_files;
mod edit_names;
mod edit_proof;
#[cfg(unix)]
mod engine;
mod errors;
mod external;
mod fast_math;
mod generate;
mod hash;
mod inputs;
mod inspect;
#[cfg(unix)]
mod kept;
mod ops;
mod paths;
#[cfg(unix)]
mod places;
mod quantized;
mod record;
#[cfg(unix)]
mod reduce;
mod run;
mod stats;
mod test;
mod values;
mod writing;
