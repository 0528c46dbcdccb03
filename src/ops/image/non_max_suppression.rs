//! NonMaxSuppression: the boxes with the highest scores that don't overlap others too much.
//! <https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html>

use crate::ops::prelude::*;
use kernels::suppress::{self, Bounds, Choice, Room};

pub(super) const NON_MAX_SUPPRESSION: Implementation = Implementation::run("NonMaxSuppression", &[10, 11], load);

/// For each image and each class the numbers of the boxes with the highest scores, without those that overlap a selected one
/// by more than `iou_threshold`, or whose score is less than `score_threshold`. Of equal scores the lowest number comes
/// first.
///
/// The share of the overlap is computed in f64 and rounded to float, so that one that is equal to the threshold as a float
/// isn't more. A score of NaN comes last, and reaches no threshold.
#[derive(Debug)]
struct NonMaxSuppression {
    /// Boxes are given by center and size, not by two corners.
    center: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(NonMaxSuppression { center: node.flag("center_point_box")? }))
}

fn check(facts: &Inference<'_>) -> Result<()> {
    facts.sizes::<3>(0)?;
    facts.sizes::<3>(1)?;
    facts.needs_size(0, 2, 4)?;
    facts.same_size((0, 0), (1, 0))?;
    facts.same_size((0, 1), (1, 2))?;
    Ok(())
}

impl Operator for NonMaxSuppression {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(check)?;
        let (boxes, scores) = (call.tensor(0)?.as_slice::<f32>()?, call.tensor(1)?);
        let &[batch, classes, count] = scores.shape() else { return Err(Error::bug("scores have another rank")) };
        let choice = choice(call, count)?;
        call.charge(scores.len() as u64)?;
        // Of each class the number of the selected ones, and these.
        let lists = batch.saturating_mul(classes);
        let mut memory = call.scratch::<i64>(choice.most.saturating_add(1).saturating_mul(lists))?;
        let (counts, numbers) = memory.elements_mut::<i64>().split_at_mut(lists);
        let mut bounds = call.scratch::<Bounds>(count)?;
        let mut room = (call.scratch::<usize>(count)?, call.scratch::<Bounds>(choice.most)?);
        let (mut all, mut lookout) = (0, call.lookout());
        if choice.most > 0 {
            let each = scores.as_slice::<f32>()?.chunks(count.max(1)).zip(numbers.chunks_mut(choice.most));
            for (list, ((scores, numbers), selected)) in each.zip(&mut *counts).enumerate() {
                let bounds = bounds.elements_mut::<Bounds>();
                if list % classes == 0 {
                    let boxes = boxes.as_chunks::<4>().0.iter().skip(list / classes * count);
                    for (to, given) in bounds.iter_mut().zip(boxes) {
                        lookout.after(size_of_val(given) + size_of_val(to))?;
                        *to = self.bounds(given.map(f64::from));
                    }
                }
                let room = Room { candidates: room.0.elements_mut(), selected: room.1.elements_mut() };
                let charge = |comparisons: usize| call.charge(comparisons as u64);
                let found = suppress::select(bounds, scores, choice, room, numbers, &mut lookout, charge)?;
                (*selected, all) = (found as i64, all + found);
            }
        }
        let mut output = call.output::<i64>(&[all, 3])?;
        let mut rows = output.elements_mut::<i64>()?.as_chunks_mut::<3>().0.iter_mut();
        for (list, (found, numbers)) in counts.iter().zip(numbers.chunks(choice.most.max(1))).enumerate() {
            lookout.after(size_of_val(found))?;
            for (number, row) in numbers.iter().take(*found as usize).zip(&mut rows) {
                lookout.after(size_of_val(row))?;
                *row = [(list / classes) as i64, (list % classes) as i64, *number];
            }
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check(facts)?;
        // Without a number none is selected.
        let count = match facts.input(2) {
            None => Dim::Fixed(0),
            Some(_) => facts.number(2).filter(|most| most.number() == Some(0)).map_or(Dim::Unknown, |none| none.dim()),
        };
        facts.give(0, [count, Dim::Fixed(3)]);
        Ok(())
    }
}

impl NonMaxSuppression {
    /// The bounds of a box. Corners may be any two that are opposite.
    fn bounds(&self, [a, b, c, d]: [f64; 4]) -> Bounds {
        match self.center {
            true => [a - c / 2.0, a + c / 2.0, b - d / 2.0, b + d / 2.0],
            false => [a.min(c), a.max(c), b.min(d), b.max(d)],
        }
    }
}

/// What the inputs say about the number of boxes and their thresholds.
fn choice(call: &Call<'_>, count: usize) -> Result<Choice> {
    let given = |k: usize| call.input(k).map(|_| call.scalar::<f32>(k)).transpose();
    let most = call.input(2).map_or(Ok(0), |_| call.scalar::<i64>(2))?;
    let wrong = |k: usize, value: String, allowed: &str| {
        let name = call.name(k);
        Error::input(format!("{name} is {value}: {allowed}")).parameter(name)
    };
    if most < 0 {
        return Err(wrong(2, most.to_string(), "it must be at least 0"));
    }
    let share = given(3)?.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&share) {
        return Err(wrong(3, share.to_string(), "it must be from 0 to 1"));
    }
    Ok(Choice { most: usize::try_from(most).unwrap_or(usize::MAX).min(count), share, least: given(4)? })
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;

    /// Of two images the same boxes, the second of them with opposite corners: the first two overlap by 2/3.
    fn boxes() -> Value {
        let boxes = [0f32, 0.0, 1.0, 10.0, 1.0, 12.0, 0.0, 2.0, 5.0, 5.0, 6.0, 6.0];
        tensor(&[2, 3, 4], [boxes, boxes].concat())
    }

    fn scores() -> Value {
        tensor(&[2, 2, 3], [0.9f32, 0.8, 0.7, 0.1, 0.3, 0.2, 0.5, 0.5, 0.5, 0.0, -1.0, f32::NAN])
    }

    fn rows(rows: &[[i64; 3]]) -> Value {
        tensor(&[rows.len(), 3], rows.concat())
    }

    fn most(count: i64) -> Value {
        tensor(&[1], [count])
    }

    fn float(value: f32) -> Value {
        tensor(&[], [value])
    }

    #[test]
    fn of_each_image_and_class() {
        run("NonMaxSuppression", 10, [], [&boxes(), &scores(), &most(9), &float(0.5)]).gives(rows(&[
            [0, 0, 0],
            [0, 0, 2],
            [0, 1, 1],
            [0, 1, 2],
            [1, 0, 0],
            [1, 0, 2],
            [1, 1, 0],
            [1, 1, 2],
        ]));
        run("NonMaxSuppression", 11, [], [&boxes(), &scores(), &most(1), &float(0.7)]).gives(rows(&[
            [0, 0, 0],
            [0, 1, 1],
            [1, 0, 0],
            [1, 1, 0],
        ]));
        // A score that is equal to the threshold isn't less.
        run("NonMaxSuppression", 11, [], [&boxes(), &scores(), &most(9), &float(1.0), &float(0.5)]).gives(rows(&[
            [0, 0, 0],
            [0, 0, 1],
            [0, 0, 2],
            [1, 0, 0],
            [1, 0, 1],
            [1, 0, 2],
        ]));
    }

    #[test]
    fn none() {
        run("NonMaxSuppression", 11, [], [&boxes(), &scores()]).gives(rows(&[]));
        run("NonMaxSuppression", 11, [], [&boxes(), &scores(), &most(0)]).gives(rows(&[]));
        let nothing = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        run("NonMaxSuppression", 11, [], [&nothing(&[2, 0, 4]), &nothing(&[2, 3, 0]), &most(9)]).gives(rows(&[]));
        run("NonMaxSuppression", 11, [], [&boxes(), &nothing(&[2, 0, 3]), &most(9)]).gives(rows(&[]));
    }

    #[test]
    fn boxes_by_their_center() {
        let boxes = tensor(&[1, 2, 4], [0.5f32, 5.0, 1.0, 10.0, 0.5, 7.0, 1.0, 10.0]);
        let scores = tensor(&[1, 1, 2], [1f32, 2.0]);
        let ran = |share| {
            run("NonMaxSuppression", 10, [int("center_point_box", 1)], [&boxes, &scores, &most(9), &float(share)])
        };
        ran(2.0 / 3.0).gives(rows(&[[0, 0, 1], [0, 0, 0]]));
        ran(0.66).gives(rows(&[[0, 0, 1]]));
    }

    #[test]
    fn refusals() {
        let ran = |count, share| run("NonMaxSuppression", 11, [], [&boxes(), &scores(), &most(count), &float(share)]);
        ran(-1, 0.0).fails("max_output_boxes_per_class is -1: it must be at least 0");
        ran(1, 1.5).fails("iou_threshold is 1.5: it must be from 0 to 1");
        ran(1, f32::NAN).fails("iou_threshold is NaN: it must be from 0 to 1");
        run("NonMaxSuppression", 11, [], [&boxes(), &tensor(&[2, 1, 2], [0f32; 4]), &most(1)])
            .fails("dimension 1 of \"boxes\" of shape [2, 3, 4] is 3");
        run("NonMaxSuppression", 11, [], [&boxes(), &scores(), &tensor(&[2], [1i64, 2])]).fails("one value is needed");
    }

    #[test]
    fn shapes() {
        let (boxes, scores) = ("float[B, S, 4]", "float[B, C, S]");
        infer("NonMaxSuppression", 10, [], [boxes, scores, "int64"]).gives("[?, 3]");
        infer("NonMaxSuppression", 11, [], ["float", "float", "{3}"]).gives("[?, 3]");
        infer("NonMaxSuppression", 11, [], [boxes, scores, "{0}"]).gives("[0, 3]");
        infer("NonMaxSuppression", 11, [], [boxes, scores]).gives("[0, 3]");
    }

    #[test]
    fn faults() {
        let (boxes, scores) = ("float[1, 6, 4]", "float[1, 2, 6]");
        infer("NonMaxSuppression", 11, [], ["float[1, 6, 5]", scores])
            .fails("dimension 2 of \"boxes\" of shape [1, 6, 5] is 5: it must be 4");
        infer("NonMaxSuppression", 11, [], [boxes, "float[1, 2, 5]"])
            .fails("dimension 1 of \"boxes\" of shape [1, 6, 4] is 6, and dimension 2 of \"scores\"");
        infer("NonMaxSuppression", 11, [], [boxes, "float[2, 6]"]).fails("\"scores\" has shape [2, 6] of rank 2");
        infer("NonMaxSuppression", 11, [int("center_point_box", 2)], [boxes, scores]).fails("center_point_box is 2");
    }
}
