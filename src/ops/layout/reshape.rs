//! Reshape: the same elements under a given shape.
//! <https://onnx.ai/onnx/operators/onnx__Reshape.html>

use crate::ops::prelude::*;

pub(super) const RESHAPE: Implementation = Implementation::run("Reshape", &[1, 5, 13, 14, 19, 21, 23, 24, 25], load);

/// -1 stands for what is left of the elements. 0 stands for the dimension of `data`, or for 0 if `zeros`.
#[derive(Debug)]
struct Reshape {
    /// In version 1 the shape is an attribute.
    shape: Option<Vec<i64>>,
    zeros: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let shape = if node.version() < 5 { Some(node.ints("shape")?.to_vec()) } else { None };
    Ok(Box::new(Reshape { shape, zeros: node.version() >= 14 && node.int("allowzero")? == 1 }))
}

impl Reshape {
    /// The shape of `count` elements of shape `data`.
    fn target(&self, data: &[usize], count: usize, given: &[i64]) -> Result<Shape> {
        let wrong = |k: usize, what: &str| {
            let value = given.get(k).copied().unwrap_or(0);
            let error = Error::input(format!("shape[{k}] = {value} {what}"));
            error.parameter("shape").position(vec![k]).value(value)
        };
        let (mut shape, mut rest) = (Shape::new(), None);
        for (k, &dim) in given.iter().enumerate() {
            shape.push(match (dim, data.get(k)) {
                (-1, _) if rest.is_some() => {
                    return Err(wrong(k, "is the second -1: only one dimension can be left open"));
                }
                (-1, _) => {
                    rest = Some(k);
                    1
                }
                (0, Some(&own)) if !self.zeros => own,
                (0, None) if !self.zeros => {
                    return Err(wrong(k, &format!("copies dimension {k} of \"data\", whose rank is {}", data.len())));
                }
                (..0, _) => return Err(wrong(k, "is out of range: allowed are sizes, 0 and -1")),
                _ => usize::try_from(dim).map_err(|_| wrong(k, "is too large"))?,
            });
        }
        if self.zeros && rest.is_some() && given.contains(&0) {
            return Err(wrong(rest.unwrap_or(0), "can't stand beside a 0 with allowzero: any size would do"));
        }
        let volume = kernels::volume(1, &shape);
        let fits = match rest {
            None => volume == count,
            Some(k) if volume == 0 => return Err(wrong(k, "can't be inferred: any size would do")),
            Some(k) => {
                shape.get_mut(k).into_iter().for_each(|dim| *dim = count / volume);
                count.is_multiple_of(volume)
            }
        };
        if fits {
            return Ok(shape);
        }
        let (from, to) = (ShapeText(data), given.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
        let text = format!("\"data\" of shape {from} has {count} elements, which don't fit the shape [{to}]");
        Err(Error::input(text).parameter("shape").size(count))
    }

    /// Whether an axis has the size that is given for it: one that may be -1, or copy another one as 0, is any.
    fn stands(&self, k: usize, given: &[Option<Formula>], data: Option<&[Dim]>) -> bool {
        let Some(Some(size)) = given.get(k).filter(|size| size.as_ref().is_some_and(Formula::is_size)) else {
            return false;
        };
        if self.zeros || size.is_positive() {
            return true;
        }
        let Some(data) = data else { return false };
        let Some(own) = data.get(k) else { return true };
        let vanishes = |what: &Dim| Formula::of(what).is_some_and(|what| what.vanishes_with(size));
        // There are no elements then, and nothing else makes their number 0.
        let others = || {
            let positive = |size: Option<Formula>| size.is_some_and(|size| size.is_positive());
            given.iter().enumerate().all(|(j, size)| {
                let copied =
                    || size.as_ref().is_some_and(Formula::is_size) && positive(data.get(j).and_then(Formula::of));
                j == k || positive(size.clone()) || copied()
            })
        };
        vanishes(own) || vanishes(&Dim::product(data)) && others()
    }
}

impl Operator for Reshape {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let given = match &self.shape {
            Some(shape) => shape,
            None => call.list(1)?,
        };
        call.check_rank(given.len())?;
        let shape = self.target(data.shape(), data.len(), given)?;
        call.reshaped(0, shape)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(1, 0..=1)?;
        let given = match &self.shape {
            Some(shape) => Some(shape.iter().map(|dim| Some(Formula::from(*dim))).collect()),
            None => facts.list(1),
        };
        let Some(given): Option<List> = given else {
            facts.give_known(0, facts.listed(1));
            return Ok(());
        };
        let data = facts.dims(0);
        let numbers: Option<Vec<i64>> = given.iter().map(|dim| dim.as_ref()?.number()).collect();
        if let (Some(sizes), Some(given)) = (data.and_then(Dim::sizes), numbers) {
            self.target(&sizes, kernels::volume(1, &sizes), &given)?;
        }
        let number = |dim: &Option<Formula>| dim.as_ref().and_then(Formula::number);
        let dim = |(k, dim): (usize, &Option<Formula>)| match number(dim) {
            Some(0) if !self.zeros => data.and_then(|data| data.get(k)).cloned().unwrap_or(Dim::Unknown),
            None if !self.stands(k, &given, data) => {
                let size = dim.as_ref().and_then(Formula::likely).filter(Formula::is_size);
                Dim::if_no_size_is_0(size)
            }
            _ => dim.as_ref().map_or(Dim::Unknown, Formula::dim),
        };
        let mut dims: Vec<Dim> = given.iter().enumerate().map(dim).collect();
        // A size that isn't known may be -1.
        let rest: Vec<usize> = given
            .iter()
            .enumerate()
            .filter(|(_, dim)| !dim.as_ref().is_some_and(Formula::is_size))
            .map(|(k, _)| k)
            .collect();
        if let ([rest], Some(data)) = (&*rest, data)
            && let Some(size) = given.get(*rest)
        {
            let others = || dims.iter().enumerate().filter(|(k, _)| k != rest).map(|(_, dim)| dim);
            // Beside 0 there is no -1, and any other size.
            let is_certain = number(size) == Some(-1)
                || Formula::of(&Dim::product(others())).is_some_and(|others| others.is_positive());
            let left = left_over(data, &others().cloned().collect::<Vec<_>>(), is_certain);
            dims.splice(*rest..=*rest, [left]);
        }
        facts.give(0, dims);
        if let Some(list) = facts.list(0) {
            facts.give_list_like(0, 0, &list);
        }
        Ok(())
    }
}

/// What other sizes leave of the elements of a shape: that may hold only if none is 0.
fn left_over(data: &[Dim], others: &[Dim], is_certain: bool) -> Dim {
    let quotient = Dim::quotient(data, others);
    if is_certain && quotient != Dim::Unknown {
        return quotient;
    }
    let likely = |dims: &[Dim]| dims.iter().map(|dim| Some(dim.likely()?.dim())).collect::<Option<Vec<Dim>>>();
    let sizes = likely(data).zip(likely(others));
    Dim::if_no_size_is_0(sizes.and_then(|(data, others)| Formula::of(&Dim::quotient(&data, &others))))
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;

    fn data() -> Value {
        tensor(&[2, 3], [1i8, 2, 3, 4, 5, 6])
    }

    fn shape(dims: &[i64]) -> Value {
        tensor(&[dims.len()], dims)
    }

    #[test]
    fn shapes() {
        let given = |dims: &[usize]| tensor(dims, [1i8, 2, 3, 4, 5, 6]);
        run("Reshape", 5, [], [&data(), &shape(&[3, 2])]).gives(given(&[3, 2]));
        run("Reshape", 13, [], [&data(), &shape(&[0, -1, 1])]).gives(given(&[2, 3, 1]));
        run("Reshape", 25, [int("allowzero", 1)], [&data(), &shape(&[-1])]).gives(given(&[6]));
        run("Reshape", 14, [], [&tensor(&[1], [7i8]), &shape(&[])]).gives(tensor(&[], [7i8]));
        run("Reshape", 1, [("shape", Attribute::Ints(vec![-1]))], [&tensor(&[1, 1], [2f32])])
            .gives(tensor(&[1], [2f32]));
        let empty = |dims: &[usize]| tensor(dims, Vec::<i8>::new());
        run("Reshape", 14, [int("allowzero", 1)], [&empty(&[0, 3]), &shape(&[3, 0])]).gives(empty(&[3, 0]));
        run("Reshape", 14, [], [&empty(&[0, 3]), &shape(&[0, 5])]).gives(empty(&[0, 5]));
        // Only 1 allows zeros.
        run("Reshape", 14, [int("allowzero", 2)], [&data(), &shape(&[0, -1])]).gives(given(&[2, 3]));
    }

    /// What may be 0 copies another size, or stands beside a -1 that is 0; what may be below 0 is any size.
    #[test]
    fn inferred() {
        let gives = |data: &str, shape: &str, want: &str| infer("Reshape", 13, [], [data, shape]).gives(want);
        gives("float[B, S, 768]", "{B, S, 12, 64}", "[B, S, 12, 64]");
        gives("float[B, S, 768]", "{B*S, 768}", "[B*S, 768]");
        gives("float[B, S, 768]", "{0, 0, 12, -1}", "[B, S, 12, 64]");
        gives("float[B, 12, S, 64]", "{12*B, -1, 64}", "[12*B, S, 64]");
        gives("float[B, 64, 7, 7]", "{B, 8, 8, 49}", "[B, 8, 8, 49]");
        gives("float[6*N, 5]", "{N, 6, 5}", "[N, 6, 5]");
        let likely = |data: &str, shape: &str, want: &str| infer("Reshape", 13, [], [data, shape]).likely(want);
        likely("float[B, 12, S, 64]", "{-1, S, 64}", "[12*B, S, 64]");
        likely("float[B, S, 8]", "{B*S, -1}", "[B*S, 8]");
        likely("float[B, 2]", "{B, N - 2}", "[B, 2]");
        likely("float[B, 2]", "{B, ?}", "[B, 2]");
        gives("float[3, 4]", "{N}", "[?]");
        gives("float[7, 3]", "{N, 0}", "[?, 3]");
        gives("float[B, 12, S, 64]", "{12*B, S, 64}", "[12*B, ?, 64]");
        gives("float[B, 12, S, 64]", "{-1, S, 64}", "[?, ?, 64]");
        gives("float[B, S, 8]", "{B*S, -1}", "[?, ?]");
        gives("float[8, 2]", "{4, N - 2}", "[4, 4]");
        gives("float[B, 2]", "{B, N - 2}", "[B, ?]");
        gives("float[B, 2]", "{B, ?}", "[B, ?]");
        gives("float", "{N, 3}", "[?, 3]");
        infer("Reshape", 14, [int("allowzero", 1)], ["float[3, 4]", "{N, M}"]).gives("[N, M]");
    }

    #[test]
    fn refusals() {
        let fails = |dims: &[i64], zeros: i64, text: &str| {
            let error = run("Reshape", 14, [int("allowzero", zeros)], [&data(), &shape(dims)]).fails(text);
            assert_eq!(error.place().parameter.as_deref(), Some("shape"));
        };
        fails(&[4], 0, "\"data\" of shape [2, 3] has 6 elements, which don't fit the shape [4]");
        fails(&[-1, 4], 0, "don't fit the shape [-1, 4]");
        fails(&[-1, -1], 0, "shape[1] = -1 is the second -1");
        fails(&[2, 3, 0], 0, "shape[2] = 0 copies dimension 2 of \"data\", whose rank is 2");
        fails(&[-2, 3], 0, "shape[0] = -2 is out of range");
        fails(&[-1, 0], 1, "shape[0] = -1 can't stand beside a 0");
        fails(&[i64::MAX, i64::MAX], 0, "don't fit");
        let empty = tensor(&[0, 3], Vec::<i8>::new());
        run("Reshape", 14, [], [&empty, &shape(&[0, -1])]).fails("can't be inferred");
    }
}
