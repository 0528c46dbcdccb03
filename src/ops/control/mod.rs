//! Operators that run subgraphs: one of two, or one many times.

mod batch;
mod r#if;
mod r#loop;
mod parts;
mod scan;
#[cfg(test)]
mod testing;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[r#if::IF, r#loop::LOOP, scan::SCAN];
