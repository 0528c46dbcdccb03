//! What onnxref finds, for programs and people: JSON of values, errors and models, pictures of graphs. The program
//! `onnxref` and the web page show the same.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod attributes;
pub mod difference;
pub mod differences;
pub mod document;
pub mod error;
pub mod histogram;
pub mod inspection;
pub mod json;
pub mod literal;
mod names;
pub mod npy;
pub mod picture;
pub mod statistics;
pub mod totals;

pub use names::{bounds_of, counted, dtype_name, grouped, plain, type_name};
