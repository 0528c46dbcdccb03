//! Multiply-accumulate operations of a node, from shapes alone.

/// The multiplications whose results a node adds up, as everybody counts them: those of products of matrices,
/// convolutions, attention and recurrent layers. 0 for every other operator; `None` if a shape that matters isn't known.
/// A shape of an omitted input is empty.
///
/// ```
/// let (a, b, y) = ([2, 3, 4].as_slice(), [4, 5].as_slice(), [2, 3, 5].as_slice());
/// assert_eq!(onnxref::inspect::macs("MatMul", &[Some(a), Some(b)], &[Some(y)]), Some(2 * 3 * 5 * 4));
/// assert_eq!(onnxref::inspect::macs("Relu", &[Some(a)], &[Some(a)]), Some(0));
/// ```
pub fn macs(operator: &str, inputs: &[Option<&[usize]>], outputs: &[Option<&[usize]>]) -> Option<u64> {
    let input = |k: usize| inputs.get(k).copied().flatten();
    let output = |k: usize| outputs.get(k).copied().flatten();
    match operator {
        "MatMul" | "MatMulInteger" | "QLinearMatMul" => Some(len(output(0)?).saturating_mul(*input(0)?.last()? as u64)),
        // However the operands are transposed: m k / m.
        "Gemm" => Some(len(output(0)?).saturating_mul(quotient(len(input(0)?), *output(0)?.first()?))),
        "Conv" | "ConvInteger" | "DeformConv" => convolution(input(1)?, output(0)?),
        "QLinearConv" => convolution(input(3)?, output(0)?),
        // Each element of the input meets each filter of its group.
        "ConvTranspose" => Some(len(input(0)?).saturating_mul(quotient(len(input(1)?), *input(1)?.first()?))),
        "Attention" => attention(input(0)?, input(1)?, inputs.get(4).map(|past| past.unwrap_or(&[])), output(0)?),
        // The gates of each step: X W and H R.
        "LSTM" | "GRU" | "RNN" => {
            let steps = input(0)?.iter().take(2).map(|size| *size as u64).product::<u64>();
            Some(steps.saturating_mul(len(input(1)?).saturating_add(len(input(2)?))))
        }
        _ => Some(0),
    }
}

/// Each element of the output adds up one filter.
fn convolution(filters: &[usize], output: &[usize]) -> Option<u64> {
    Some(len(output).saturating_mul(quotient(len(filters), *filters.first()?)))
}

/// `Q K^T`, then its product with `V`. Shapes are `[batch, heads, tokens, size]` or `[batch, tokens, heads * size]`.
fn attention(q: &[usize], k: &[usize], past: Option<&[usize]>, y: &[usize]) -> Option<u64> {
    let tokens = |shape: &[usize]| shape.get(shape.len().checked_sub(2)?).copied();
    let past = past.filter(|past| !past.is_empty()).map_or(Some(0), tokens)?;
    let keys = tokens(k)?.checked_add(past)? as u64;
    Some(keys.saturating_mul(len(q).saturating_add(len(y))))
}

fn len(shape: &[usize]) -> u64 {
    shape.iter().fold(1, |len: u64, size| len.saturating_mul(*size as u64))
}

fn quotient(len: u64, size: usize) -> u64 {
    len.checked_div(size as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::macs;

    #[test]
    fn products_of_known_shapes() {
        let count = |operator, inputs: &[&[usize]], output: &[usize]| {
            let inputs: Vec<Option<&[usize]>> = inputs.iter().map(|shape| Some(*shape)).collect();
            macs(operator, &inputs, &[Some(output)])
        };
        assert_eq!(count("Gemm", &[&[4, 2], &[4, 3]], &[2, 3]), Some(2 * 3 * 4));
        // ResNet's first convolution.
        let first = count("Conv", &[&[1, 3, 224, 224], &[64, 3, 7, 7]], &[1, 64, 112, 112]);
        assert_eq!(first, Some(118_013_952));
        // Depthwise: one filter a channel.
        assert_eq!(count("Conv", &[&[1, 8, 5, 5], &[8, 1, 3, 3]], &[1, 8, 5, 5]), Some(8 * 25 * 9));
        assert_eq!(count("ConvTranspose", &[&[1, 2, 3], &[2, 4, 5]], &[1, 4, 7]), Some(6 * 20));
        // 2 heads, 3 queries, 5 keys of size 4, values of size 6.
        let (q, k, v) = ([1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 6]);
        let scores = 2 * 3 * 5 * (4 + 6);
        assert_eq!(count("Attention", &[&q, &k, &v], &[1, 2, 3, 6]), Some(scores));
        assert_eq!(count("Attention", &[&[1, 3, 8], &[1, 5, 8], &[1, 5, 12]], &[1, 3, 12]), Some(scores));
        assert_eq!(count("LSTM", &[&[7, 2, 3], &[1, 16, 3], &[1, 16, 4]], &[7, 1, 2, 4]), Some(14 * (48 + 64)));
        assert_eq!(macs("MatMul", &[None, None], &[None]), None);
        assert_eq!(count("Gemm", &[&[0, 2], &[2, 3]], &[0, 3]), Some(0));
    }
}
