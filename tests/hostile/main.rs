//! Models, files and feeds that mean harm: each is refused with an error of the right kind at the right place, within
//! the memory that is promised, on a small stack, and leaves everything as it was.
//!
//! `cargo test --test hostile -- --nocapture` prints how many cases there are, what the worst of them took for each
//! byte that came in, and the slowest refusal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod billing;
mod bytes;
mod case;
mod documents;
mod external;
mod graphs;
mod ir;
mod memory;
mod names;
mod nesting;
// Its numbers are those of 64 bits.
#[cfg(target_pointer_width = "64")]
mod operators;
mod runs;
mod tensors;
mod trips;
mod untrusted;
mod valid;
mod wire;
