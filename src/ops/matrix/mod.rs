//! Products of matrices.

mod gemm;
mod matmul;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[matmul::MATMUL, gemm::GEMM];
