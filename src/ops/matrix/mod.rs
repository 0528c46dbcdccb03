//! Products of matrices and of tensors, determinants.

mod bytes;
mod contraction;
mod det;
mod einsum;
mod gemm;
mod matmul;
mod weighing;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[matmul::MATMUL, gemm::GEMM, einsum::EINSUM, det::DET];
