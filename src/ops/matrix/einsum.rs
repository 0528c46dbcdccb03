//! Einsum: sums of products, over the indices of an equation that its output doesn't have.
//! <https://onnx.ai/onnx/operators/onnx__Einsum.html>

use super::contraction::{Label, Multiplied, Term, product};
use crate::ops::prelude::*;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

pub(super) const EINSUM: Implementation = Implementation::run("Einsum", &[12, 28], load);

/// `output[output indices] = sum over the other indices of inputs[0][its indices] * inputs[1][its indices] * ..`
///
/// Operands are multiplied from left to right, and added up along an index once no later one has it. Integers wrap, and
/// floats of 16 bits are computed in f32 and rounded once.
#[derive(Debug)]
struct Einsum {
    equation: Equation,
    text: String,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let text = node.string("equation")?;
    Ok(Box::new(Einsum { equation: text.parse()?, text: text.to_string() }))
}

/// The indices of each input and of the output: `ij,jk->ik`.
#[derive(Debug, PartialEq)]
struct Equation {
    inputs: Vec<Vec<Index>>,
    output: Vec<Index>,
}

/// What runs along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Index {
    /// As many dimensions as are left.
    Ellipsis,
    Letter(char),
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Index::Ellipsis => f.write_str("..."),
            Index::Letter(letter) => letter.fmt(f),
        }
    }
}

impl FromStr for Equation {
    type Err = Error;

    /// Without an arrow the output has the ellipsis, and then the letters that occur once, in their order.
    fn from_str(equation: &str) -> Result<Equation> {
        let text: String = equation.chars().filter(|letter| *letter != ' ').collect();
        let (left, right) = text.split_once("->").map_or((&*text, None), |(left, right)| (left, Some(right)));
        let inputs = left.split(',').map(|term| indices(term, equation)).collect::<Result<Vec<_>>>()?;
        let mut counts = BTreeMap::new();
        inputs.iter().flatten().for_each(|index| *counts.entry(*index).or_insert(0) += 1);
        let Some(right) = right else {
            let once = |(index, count): (Index, usize)| (count == 1 || index == Index::Ellipsis).then_some(index);
            return Ok(Equation { inputs, output: counts.into_iter().filter_map(once).collect() });
        };
        let output = indices(right, equation)?;
        if let Some((_, index)) =
            output.iter().enumerate().find(|(k, index)| output.iter().take(*k).any(|o| o == *index))
        {
            return Err(fault(equation, &format!("its output has {index} twice")));
        }
        match output.iter().find(|index| **index != Index::Ellipsis && !counts.contains_key(index)) {
            Some(Index::Letter(letter)) => {
                Err(fault(equation, &format!("its output has {letter}, but no input has it")))
            }
            _ => Ok(Equation { inputs, output }),
        }
    }
}

/// The indices of an input or of the output.
fn indices(term: &str, equation: &str) -> Result<Vec<Index>> {
    let (mut indices, mut rest) = (Vec::new(), term);
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = match rest.strip_prefix("...") {
            Some(_) if indices.contains(&Index::Ellipsis) => {
                return Err(fault(equation, &format!("{} has two ellipses", quote(term))));
            }
            Some(after) => {
                indices.push(Index::Ellipsis);
                after
            }
            None if letter.is_ascii_alphabetic() => {
                indices.push(Index::Letter(letter));
                after
            }
            None => {
                let allowed = "allowed are letters, \"...\", commas, spaces and one \"->\"";
                return Err(fault(equation, &format!("{} is not an index: {allowed}", quote(&letter.to_string()))));
            }
        };
    }
    Ok(indices)
}

#[cold]
fn fault(equation: &str, what: &str) -> Error {
    Error::model(format!("equation {}: {what}", quote(equation))).attribute("equation")
}

impl Einsum {
    /// The sizes of each index, given the dimensions of each input. Sizes of 1 are repeated: the text says so of an ellipsis,
    /// and engines do it for letters too.
    fn sizes(&self, inputs: &[Option<Vec<Dim>>]) -> Result<BTreeMap<Index, Option<Vec<Dim>>>> {
        let (text, terms) = (&self.text, &self.equation.inputs);
        if terms.len() != inputs.len() {
            let what = format!("it has {} terms, and there are {} inputs", terms.len(), inputs.len());
            return Err(fault(text, &what));
        }
        let mut sizes: BTreeMap<Index, Option<Vec<Dim>>> = BTreeMap::new();
        for (k, (indices, dims)) in terms.iter().zip(inputs).enumerate() {
            let letters = indices.iter().filter(|index| **index != Index::Ellipsis).count();
            let (dims, open) = (dims.as_deref(), indices.len() > letters);
            let left = dims.map_or(0, <[Dim]>::len).saturating_sub(letters);
            if let Some(dims) = dims.filter(|dims| dims.len() < letters || left > 0 && !open) {
                let term: String = indices.iter().map(Index::to_string).collect();
                let what = format!("input {k} has shape {}, which {} doesn't fit", DimsText(dims), quote(&term));
                return Err(fault(text, &what));
            }
            let mut rest = dims.unwrap_or_default();
            for index in indices {
                let own = match (index, dims) {
                    (Index::Letter(_), None) => Some(vec![Dim::Unknown]),
                    (Index::Ellipsis, None) => None,
                    _ => {
                        let count = if *index == Index::Ellipsis { left } else { 1 };
                        let (own, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                        rest = after;
                        Some(own.to_vec())
                    }
                };
                let size = match sizes.remove(index) {
                    None => own,
                    Some(before) => both(&before, &own)
                        .map_err(|what| fault(text, &format!("{} {what} in input {k}", quote(&index.to_string()))))?,
                };
                sizes.insert(*index, size);
            }
        }
        Ok(sizes)
    }

    /// The labels of dimensions, of which an ellipsis has `left`.
    fn labels(indices: &[Index], left: usize) -> Vec<Label> {
        let each = indices.iter().flat_map(|index| {
            let count = if *index == Index::Ellipsis { left } else { 1 };
            (0..count).rev().map(|k| (*index, k))
        });
        each.collect()
    }

    fn contract(
        &self,
        call: &Call<'_>,
        tensors: Vec<Tensor>,
        ellipsis: usize,
        multiplied: &Multiplied<'_>,
    ) -> Result<Tensor> {
        let labels = |(indices, tensor): (&Vec<Index>, &Tensor)| {
            let letters = indices.iter().filter(|index| **index != Index::Ellipsis).count();
            Einsum::labels(indices, tensor.rank().saturating_sub(letters))
        };
        let terms: Vec<Vec<Label>> = self.equation.inputs.iter().zip(&tensors).map(labels).collect();
        let output = Einsum::labels(&self.equation.output, ellipsis);
        // The last input that has a label; those of the output are never done with.
        let mut last: BTreeMap<Label, usize> = BTreeMap::new();
        for (k, labels) in terms.iter().enumerate() {
            last.extend(labels.iter().map(|label| (*label, k)));
        }
        last.extend(output.iter().map(|label| (*label, usize::MAX)));
        let needed_after = |label: Label, k: usize| last.get(&label).is_some_and(|last| *last > k);
        let mut product: Option<Term> = None;
        for (k, (tensor, labels)) in tensors.into_iter().zip(&terms).enumerate() {
            let term = Term::new(tensor, labels);
            product = Some(match product {
                None => term.summed(call, &|label| needed_after(label, k), multiplied)?,
                Some(before) => {
                    let alone = |label: Label| needed_after(label, k) || before.has(label);
                    let term = term.summed(call, &alone, multiplied)?;
                    // Sizes of 1 are no labels: what only the product has left is added up here.
                    let kept = |label: Label| needed_after(label, k) || term.has(label);
                    let before = before.summed(call, &kept, multiplied)?;
                    before.times(term, call, &|label| needed_after(label, k), multiplied)?
                }
            });
        }
        let product = product.ok_or_else(|| Error::bug("an equation without terms"))?;
        product.finish(call, &output)
    }
}

impl Operator for Einsum {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let inputs = (0..call.input_count()).map(|k| call.tensor(k).cloned()).collect::<Result<Vec<_>>>()?;
        let dims = |input: &Tensor| Some(input.shape().iter().map(|size| Dim::Fixed(*size)).collect());
        let sizes = self.sizes(&inputs.iter().map(dims).collect::<Vec<_>>())?;
        let of = |index: &Index| sizes.get(index).cloned().flatten().unwrap_or_default();
        let fixed = |dim: Dim| if let Dim::Fixed(size) = dim { size } else { 1 };
        let shape: Shape = self.equation.output.iter().flat_map(of).map(fixed).collect();
        let dtype = inputs.first().map_or(DType::Float, Tensor::dtype);
        call.context().check_output(dtype, &shape)?;
        // Of integers the lowest bits are the same in wider types.
        let wide = match dtype {
            DType::Float16 | DType::Bfloat16 => DType::Float,
            DType::Int8 | DType::Int16 | DType::Uint8 | DType::Uint16 => DType::Int32,
            other => other,
        };
        let tensors = inputs.into_iter().map(|input| of_type(call, input, wide)).collect::<Result<Vec<_>>>()?;
        let ellipsis = of(&Index::Ellipsis).len();
        let multiplied = |a: &Tensor, b: Option<&Tensor>, sizes| match wide {
            DType::Float => product::<f32>(call, 1.0, a, b, sizes),
            DType::Double => product::<f64>(call, 1.0, a, b, sizes),
            DType::Int32 => product::<i32>(call, 1, a, b, sizes),
            DType::Int64 => product::<i64>(call, 1, a, b, sizes),
            DType::Uint32 => product::<u32>(call, 1, a, b, sizes),
            DType::Uint64 => product::<u64>(call, 1, a, b, sizes),
            other => Err(Error::bug(&format!("a sum of products of {other}"))),
        };
        let sum = self.contract(call, tensors, ellipsis, &multiplied)?;
        Ok(of_type(call, sum, dtype)?.reshaped(shape)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let inputs: Vec<_> = (0..facts.input_count()).map(|k| facts.dims(k).map(<[Dim]>::to_vec)).collect();
        let sizes = self.sizes(&inputs)?;
        // An ellipsis of the output alone stands for nothing.
        let size = |index| sizes.get(index).cloned().unwrap_or(Some(Vec::new()));
        if let Some(dims) = self.equation.output.iter().map(size).collect::<Option<Vec<_>>>() {
            facts.give(0, dims.concat());
        }
        Ok(())
    }
}

/// The elements in another type.
fn of_type(call: &Call<'_>, tensor: Tensor, to: DType) -> Result<Tensor> {
    if tensor.dtype() == to {
        return Ok(tensor);
    }
    call.charge(tensor.len() as u64)?;
    let (shape, len) = (Shape::from_slice(tensor.shape()), tensor.len().saturating_mul(to.size()));
    let mut new = NewTensor::new(to, shape, len, None, &call.context().memory)?;
    converted(&tensor, to, new.bytes_mut(), call.context())?;
    Ok(new.finish())
}

/// The sizes that two uses of an index have in common; or what is wrong with them.
fn both(one: &Option<Vec<Dim>>, other: &Option<Vec<Dim>>) -> std::result::Result<Option<Vec<Dim>>, String> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let both = Some(one.len()).filter(|len| *len == other.len()).and_then(|_| broadcast(&[one, other]).ok());
            both.map(Some).ok_or_else(|| format!("stands for {}, and for {}", DimsText(one), DimsText(other)))
        }
        // The other one may have larger sizes.
        (Some(known), None) | (None, Some(known)) => both(&Some(known.clone()), &Some(vec![Dim::Unknown; known.len()])),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Equation, Index};
    use crate::ops::testing::{Inferred, Ran, infer, run, string, tensor};
    use crate::value::Value;
    use half::bf16;

    fn ran<const I: usize>(equation: &str, inputs: [&Value; I]) -> Ran {
        run("Einsum", 28, [string("equation", equation)], inputs)
    }

    /// The numbers from 1 on.
    fn iota(shape: &[usize]) -> Value {
        tensor(shape, (1..=shape.iter().product()).map(|k| k as f32).collect::<Vec<_>>())
    }

    fn floats(shape: &[usize], elements: &[f32]) -> Value {
        tensor(shape, elements)
    }

    #[test]
    fn one_input() {
        let x = iota(&[2, 3]);
        ran("ij->ji", [&x]).gives(floats(&[3, 2], &[1., 4., 2., 5., 3., 6.]));
        ran("ij->i", [&x]).gives(floats(&[2], &[6., 15.]));
        ran("ij->j", [&x]).gives(floats(&[3], &[5., 7., 9.]));
        ran("ij->", [&x]).gives(floats(&[], &[21.]));
        ran("ji", [&x]).gives(floats(&[3, 2], &[1., 4., 2., 5., 3., 6.]));
        ran("...i -> ...", [&x]).gives(floats(&[2], &[6., 15.]));
        ran("ii->i", [&iota(&[3, 3])]).gives(floats(&[3], &[1., 5., 9.]));
        ran("ii", [&iota(&[3, 3])]).gives(floats(&[], &[15.]));
        ran("...ii->...i", [&iota(&[2, 2, 2])]).gives(floats(&[2, 2], &[1., 4., 5., 8.]));
        ran("iji->j", [&iota(&[2, 2, 2])]).gives(floats(&[2], &[7., 11.]));
        ran("->", [&iota(&[])]).gives(iota(&[]));
        ran("ij->", [&floats(&[2, 0], &[])]).gives(floats(&[], &[0.]));
        ran("ij->ji", [&floats(&[2, 0], &[])]).gives(floats(&[0, 2], &[]));
        ran("i->...i", [&iota(&[2])]).gives(iota(&[2]));
    }

    #[test]
    fn products_of_inputs() {
        let (a, b) = (iota(&[2, 3]), iota(&[3, 2]));
        let product = floats(&[2, 2], &[22., 28., 49., 64.]);
        ran("ij,jk->ik", [&a, &b]).gives(&product);
        ran("ij,jk", [&a, &b]).gives(&product);
        ran("ij,jk->ki", [&a, &b]).gives(floats(&[2, 2], &[22., 49., 28., 64.]));
        ran("ij,kj->ik", [&a, &a]).gives(floats(&[2, 2], &[14., 32., 32., 77.]));
        ran("ji,jk->ik", [&a, &a]).gives(floats(&[3, 3], &[17., 22., 27., 22., 29., 36., 27., 36., 45.]));
        ran("ij,ij->ij", [&a, &a]).gives(floats(&[2, 3], &[1., 4., 9., 16., 25., 36.]));
        ran("ij,ij->", [&a, &a]).gives(floats(&[], &[91.]));
        ran("i,j->ij", [&iota(&[2]), &iota(&[3])]).gives(floats(&[2, 3], &[1., 2., 3., 2., 4., 6.]));
        ran("i,I->Ii", [&iota(&[2]), &iota(&[3])]).gives(floats(&[3, 2], &[1., 2., 2., 4., 3., 6.]));
        ran("ij,k->i", [&a, &iota(&[2])]).gives(floats(&[2], &[18., 45.]));
        ran("...ij,...jk->...ik", [&iota(&[2, 1, 2]), &iota(&[1, 2, 1])]).gives(floats(&[2, 1, 1], &[5., 11.]));
        ran("...ij,...jk", [&iota(&[2, 1, 1, 2]), &iota(&[2, 2, 1])]).fails("\"...\" stands for [2, 1], and for [2]");
        ran(",i->i", [&floats(&[], &[3.]), &iota(&[2])]).gives(floats(&[2], &[3., 6.]));
        // Sizes of 1 are repeated: also along an index that is added up.
        ran("i,i->i", [&floats(&[1], &[3.]), &iota(&[2])]).gives(floats(&[2], &[3., 6.]));
        ran("i,i->", [&floats(&[1], &[3.]), &iota(&[2])]).gives(floats(&[], &[9.]));
        ran("i,i->", [&iota(&[2]), &floats(&[1], &[3.])]).gives(floats(&[], &[9.]));
        ran("ij,jk->ik", [&floats(&[2, 0], &[]), &floats(&[0, 1], &[])]).gives(floats(&[2, 1], &[0., 0.]));
        ran("i,i->", [&floats(&[0], &[]), &floats(&[0], &[])]).gives(floats(&[], &[0.]));
    }

    #[test]
    fn many_inputs() {
        let x = iota(&[2]);
        ran("i,j,k->kij", [&x, &x, &x]).gives(floats(&[2, 2, 2], &[1., 2., 2., 4., 2., 4., 4., 8.]));
        ran("i,i,i->", [&x, &x, &x]).gives(floats(&[], &[9.]));
        ran("i,j,i->j", [&x, &x, &x]).gives(floats(&[2], &[5., 10.]));
        ran("ij,jk,kl->il", [&iota(&[1, 2]), &iota(&[2, 2]), &iota(&[2, 1])]).gives(floats(&[1, 1], &[27.]));
        ran("i,i,i->", [&x, &floats(&[1], &[2.]), &x]).gives(floats(&[], &[10.]));
    }

    #[test]
    fn types() {
        // Integers wrap.
        let x = tensor(&[2], [100u8, 200]);
        ran("i,i->", [&x, &x]).gives(tensor(&[], [80u8]));
        ran("i->", [&x]).gives(tensor(&[], [44u8]));
        let x = tensor(&[2], [i64::MAX, 1]);
        ran("i->", [&x]).gives(tensor(&[], [i64::MIN]));
        ran("i,i->i", [&tensor(&[1], [-3i16]), &tensor(&[1], [5i16])]).gives(tensor(&[1], [-15i16]));
        let x = tensor(&[3], [256f32, 1., 1.].map(bf16::from_f32));
        // Rounded once: 256 + 1 is 256 in bfloat16.
        ran("i->", [&x]).gives(tensor(&[], [bf16::from_f32(258.)]));
        run("Einsum", 12, [string("equation", "i,i")], [&tensor(&[1], [2f64]), &tensor(&[1], [3f64])])
            .gives(tensor(&[], [6f64]));
    }

    fn einsum<const I: usize>(equation: &str, inputs: [&str; I]) -> Inferred {
        infer("Einsum", 12, [string("equation", equation)], inputs)
    }

    #[test]
    fn equations() {
        let parsed = |text: &str| {
            let Equation { inputs, output } = text.parse().unwrap();
            let term = |term: &Vec<Index>| term.iter().map(Index::to_string).collect::<String>();
            format!("{} -> {}", inputs.iter().map(term).collect::<Vec<_>>().join(" "), term(&output))
        };
        assert_eq!(parsed("ij,jk->ik"), "ij jk -> ik");
        assert_eq!(parsed(" i j , j k -> k "), "ij jk -> k");
        assert_eq!(parsed("ba...,bAc"), "ba... bAc -> ...Aac");
        assert_eq!(parsed("ii"), "ii -> ");
        assert_eq!(parsed("...i->i..."), "...i -> i...");
        assert_eq!(parsed(",ij->"), " ij -> ");
        let fails = |text: &str, what: &str| {
            let error = text.parse::<Equation>().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        fails("i1->i", "equation \"i1->i\": \"1\" is not an index: allowed are letters, \"...\", commas");
        fails("i..j", "\".\" is not an index");
        fails("i->j->k", "\"-\" is not an index");
        fails("ä", "\"ä\" is not an index");
        fails("...i...", "\"...i...\" has two ellipses");
        fails("i->ii", "its output has i twice");
        fails("ij->ik", "its output has k, but no input has it");
    }

    #[test]
    fn shapes() {
        einsum("ij,jk->ik", ["float[N, 3]", "float[3, M]"]).gives("[N, M]");
        einsum("ij,kj", ["float[N, 3]", "float"]).gives("[N, ?]");
        einsum("ij,jk->ijk", ["float[N, 3]", "float[?, M]"]).gives("[N, 3, M]");
        einsum("ij,jk->ijk", ["float[N, S]", "float"]).gives("[N, ?, ?]");
        einsum("ii->i", ["float[3, ?]"]).gives("[3]");
        einsum("ii", ["float[N, N]"]).gives("[]");
        einsum("...ij,...jk", ["float[B, 1, 2, 3]", "float[1, H, 3, 4]"]).gives("[B, H, 2, 4]");
        einsum("i...,j->...j", ["float[2, N, 5]", "float[7]"]).gives("[N, 5, 7]");
        einsum("i...,...", ["float[2, N, 5]", "float"]).gives("[?, 5, 2]");
        einsum("...,i...", ["float", "float[2, N, 5]"]).gives("[?, 5, 2]");
        einsum("i...->i", ["float[2, 3]"]).gives("[2]");
        einsum("...->...", ["float"]).gives("");
        einsum("i->...i", ["float[N]"]).gives("[N]");
        einsum("i,i->i", ["float[1]", "float[N]"]).gives("[N]");
        einsum("i,->i", ["float[N]", "float[]"]).gives("[N]");
    }

    #[test]
    fn faults() {
        einsum("ij,jk", ["float[2, 3]", "float[4, 5]"])
            .fails("equation \"ij,jk\": \"j\" stands for [3], and for [4] in input 1");
        einsum("...i,...i", ["float[2, 3]", "float[2, 2, 3]"])
            .fails("\"...\" stands for [2], and for [2, 2] in input 1");
        einsum("ii", ["float[3, 4]"]).fails("\"i\" stands for [3], and for [4] in input 0");
        einsum("ij", ["float[3]"]).fails("input 0 has shape [3], which \"ij\" doesn't fit");
        einsum("i,j", ["float[3]", "float[3, 4]"]).fails("input 1 has shape [3, 4], which \"j\" doesn't fit");
        einsum("i,j", ["float[3]"]).fails("it has 2 terms, and there are 1 inputs");
    }
}
