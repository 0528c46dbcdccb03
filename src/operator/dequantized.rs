//! Constants of small integers that products read in the place of the floats that DequantizeLinear makes of them.

use crate::dtype::DType;
use crate::tensor::Tensor;
use kernels::gemm::{Bits, Blocked};

/// A matrix of small integers, and what makes floats of them.
#[derive(Debug, Clone)]
pub(crate) struct Dequantized {
    pub(crate) sizes: Blocked,
    pub(crate) signed: bool,
    /// Whether the product reads the matrix transposed.
    pub(crate) turned: bool,
    pub(crate) scales: Tensor,
    pub(crate) zeros: Option<Tensor>,
    /// How far the scales of blocks and of columns are apart.
    pub(crate) apart: [usize; 2],
    /// The type of the floats.
    pub(crate) dtype: DType,
}

impl Dequantized {
    /// Fewer columns of a product don't fill what integers are packed in, nor do blocks of fewer rows.
    const LEAST: (usize, usize) = (16, 8);

    /// What a DequantizeLinear node with this axis, block size and inputs gives in this type, as the second operand of a
    /// product, if that can read integers: blocks go along the rows of its matrix, and lists have an element for each column.
    pub(crate) fn of(
        [axis, block]: [i64; 2],
        [x, scales]: [&Tensor; 2],
        zeros: Option<&Tensor>,
        dtype: DType,
        turned: bool,
    ) -> Option<Dequantized> {
        let (bits, signed) = match x.dtype() {
            DType::Int4 | DType::Int2 => (Bits::Four, true),
            DType::Uint4 | DType::Uint2 => (Bits::Four, false),
            DType::Int8 => (Bits::Eight, true),
            DType::Uint8 => (Bits::Eight, false),
            _ => return None,
        };
        let (&[rows, columns], size) = (x.shape(), usize::try_from(block).ok()?) else { return None };
        let (k, n, k_axis) = if turned { (columns, rows, 1) } else { (rows, columns, 0) };
        let axis = match axis {
            axis @ (0 | 1) => axis as usize,
            axis @ (-2 | -1) => (axis + 2) as usize,
            _ => return None,
        };
        let (least_columns, least_rows) = Dequantized::LEAST;
        let is_float = |dtype: DType| matches!(dtype, DType::Float | DType::Float16 | DType::Bfloat16);
        if n < least_columns || k == 0 || !is_float(dtype) || !is_float(scales.dtype()) {
            return None;
        }
        let (block, apart) = match scales.shape() {
            shape if shape.iter().all(|size| *size == 1) => (k, [0, 0]),
            [count] if axis != k_axis && *count == n => (k, [0, 1]),
            shape if size >= least_rows && axis == k_axis => {
                let blocks = k.div_ceil(size);
                if *shape != if turned { [n, blocks] } else { [blocks, n] } {
                    return None;
                }
                (size.min(k), if turned { [1, blocks] } else { [n, 1] })
            }
            _ => return None,
        };
        let fits = |zeros: &Tensor| {
            let single = zeros.len() == 1 && scales.len() == 1;
            zeros.dtype() == x.dtype() && (zeros.shape() == scales.shape() || single)
        };
        zeros.is_none_or(fits).then(|| Dequantized {
            sizes: Blocked { bits, k, n, block },
            signed,
            turned,
            scales: scales.clone(),
            zeros: zeros.cloned(),
            apart,
            dtype,
        })
    }
}
