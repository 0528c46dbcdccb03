//! Loop: runs a subgraph again and again.
//! <https://onnx.ai/onnx/operators/onnx__Loop.html>

use super::parts::{Parts, keep};
use crate::ops::prelude::*;

pub(super) const LOOP: Implementation = Implementation::control("Loop", &[1, 11, 13, 16, 19, 21, 23, 24, 25], load);

/// `cond, v = v_initial`; for `i` from 0 to `M` - 1, while `cond`: `cond, v, scan = body(i, cond, v)`. The outputs are
/// the last `v`, and the `scan` of all trips, stacked along a new axis 0.
///
/// Without `M` there is no limit on the trips. Without the input `cond`, what the body returns for it ends nothing: the
/// next trip gets it, the first one true.
#[derive(Debug)]
struct Loop {
    body: usize,
    /// The number of values that each trip hands to the next.
    carried: usize,
    /// The body takes the trip's number and the condition as tensors of this rank: 0 or 1.
    ranks: [usize; 2],
    /// What is known about the outputs of a trip that are stacked.
    scans: Arc<[Fact]>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let carried = node.input_count().saturating_sub(2);
    let (body, facts) = node.body("body")?;
    facts.check_counts(2 + carried, 1 + node.output_count())?;
    let rank = |k: usize| facts.inputs.get(k).and_then(Fact::dims).map_or(0, <[Dim]>::len).min(1);
    let scans = facts.outputs.iter().skip(1 + carried).cloned().collect();
    Ok(Box::new(Loop { body, carried, ranks: [rank(0), rank(1)], scans }))
}

impl Control for Loop {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let most = if call.input(0).is_some() { call.scalar::<i64>(0)? } else { i64::MAX };
        let obeys = call.input(1).is_some();
        let cond = !obeys || call.scalar::<bool>(1)?;
        let carried = (0..self.carried).map(|k| call.taken(2 + k)).collect::<Result<Values>>()?;
        let parts = self.scans.iter().map(|_| Parts::default()).collect();
        let Loop { body, ranks, .. } = *self;
        let mut trips = Trips { body, ranks, scans: self.scans.clone(), most, obeys, trip: 0, parts };
        Ok((trips.next(cond, carried, call.context())?, Box::new(trips)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let body = facts.body("body")?.1;
        for (k, fact) in body.inferred.iter().skip(1).take(self.carried).enumerate() {
            if let (Some(after @ ValueType::Tensor(_)), Some(before @ ValueType::Tensor(_))) =
                (fact.value_type(), facts.input_type(2 + k))
                && after != before
            {
                let text = format!("input {} is {before}, and a trip makes {after} of it: they must be equal", 2 + k);
                return Err(Error::model(text));
            }
            facts.give_fact(k, facts.input(2 + k).map_or_else(Fact::default, |initial| fact.common(initial)));
        }
        // Without a trip the outputs have what is declared.
        let is_true = |cond: &Value| cond.tensor().is_ok_and(|cond| cond.bytes() == [1]);
        let begins = facts.input(1).is_none_or(|cond| cond.value().is_some_and(is_true));
        let runs = begins && facts.known(0).is_some_and(|most| most.iter().all(|most| *most > 0));
        for (k, fact) in body.stacked(runs).skip(1).enumerate().skip(self.carried) {
            facts.give_fact(k, fact.stacked());
        }
        Ok(())
    }
}

/// A running loop.
#[derive(Debug)]
struct Trips {
    body: usize,
    ranks: [usize; 2],
    scans: Arc<[Fact]>,
    /// Maximum number of trips.
    most: i64,
    /// The condition ends the loop.
    obeys: bool,
    /// The number of the next trip.
    trip: i64,
    /// The outputs of the trips that are stacked at the end.
    parts: Vec<Parts>,
}

impl Trips {
    /// Starts the next trip, or ends the loop.
    fn next(&mut self, cond: bool, carried: Values, context: &Context) -> Result<Step> {
        if (cond || !self.obeys) && self.trip < self.most {
            let one = |k: usize| Shape::from_elem(1, self.ranks.get(k).copied().unwrap_or(0));
            let mut trip = context.output_of(DType::Int64, one(0))?;
            trip.elements_mut::<i64>()?.fill(self.trip);
            let mut before = context.output_of(DType::Bool, one(1))?;
            before.elements_mut::<bool>()?.fill(cond);
            self.trip += 1;
            let first: [Value; 2] = [trip.finish().into(), before.finish().into()];
            return Ok(Step::Enter { body: self.body, feeds: first.into_iter().chain(carried).collect() });
        }
        let mut outputs = carried;
        for (parts, fact) in self.parts.drain(..).zip(&*self.scans) {
            outputs.push(parts.stacked(0, false, fact, context)?);
        }
        Ok(Step::Done(outputs))
    }
}

impl Resume for Trips {
    fn resume(&mut self, mut results: Values, context: &Context) -> Result<Step> {
        keep(&mut self.parts, &mut results, context)?;
        let cond = one_element::<bool>(results.take_first()?.tensor()?, "the condition that the body returns")?;
        self.next(cond, results, context)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{body, graph, int, run};
    use super::*;
    use crate::ops::testing::tensor;

    /// `last, all = ` the sums of `x` over the trips, while they are below `most`.
    fn sums(m: Option<i64>, cond: Option<bool>, most: f32) -> Result<Vec<Value>> {
        let (m, has_m) = (Tensor::scalar(m.unwrap_or(0)).into(), m.is_some());
        let (cond, has_cond) = (Tensor::scalar(cond.unwrap_or(true)).into(), cond.is_some());
        let trip = graph(
            "i: int64, go: bool, before: float",
            ["after = Add(before, x)", "each = Identity(after)", "on = Less(after, most)"],
            "on, after, each",
        );
        let text = format!(
            "last, all = Loop({}, {}, zero)",
            ["-", "m"][usize::from(has_m)],
            ["-", "c"][usize::from(has_cond)]
        );
        let (zero, x, most) = (Tensor::scalar(0f32).into(), Tensor::scalar(2f32).into(), Tensor::scalar(most).into());
        run(
            13,
            &text,
            vec![body("body", trip)],
            &[("m", &m), ("c", &cond), ("zero", &zero), ("x", &x), ("most", &most)],
        )
    }

    #[test]
    fn as_many_trips_as_both_allow() {
        let gives = |ran: Result<Vec<Value>>, all: &[f32]| {
            let last = Tensor::scalar(all.last().copied().unwrap_or(0.0)).into();
            assert_eq!(ran.unwrap(), [last, tensor(&[all.len()], all)]);
        };
        gives(sums(Some(3), None, 100.0), &[2.0, 4.0, 6.0]);
        gives(sums(Some(3), Some(true), 100.0), &[2.0, 4.0, 6.0]);
        gives(sums(Some(3), Some(true), 3.0), &[2.0, 4.0]);
        gives(sums(None, Some(true), 5.0), &[2.0, 4.0, 6.0]);
        // Without a condition at first, that of the body ends nothing.
        gives(sums(Some(4), None, 3.0), &[2.0, 4.0, 6.0, 8.0]);
        for (m, cond) in [(0, None), (-1, None), (i64::MIN, None), (3, Some(false)), (0, Some(true))] {
            gives(sums(Some(m), cond, 100.0), &[]);
        }
    }

    #[test]
    fn the_trip_and_the_condition_are_given_to_the_body() {
        let trip = graph("i: int64, go: bool", ["on = Identity(go)", "n = Mul(i, i)"], "on, n, go");
        let m = Tensor::scalar(4i64).into();
        let ran = run(13, "squares, conditions = Loop(m, -)", vec![body("body", trip)], &[("m", &m)]);
        assert_eq!(ran.unwrap(), [tensor::<i64>(&[4], [0, 1, 4, 9]), tensor(&[4], [true; 4])]);
    }

    #[test]
    fn results_of_trips_must_be_alike() {
        let mut trip = graph("i: int64, go: bool, a: float", ["on = Identity(go)", "b = Concat(a, a)"], "on, b, b");
        trip.node[1].attribute.push(int("axis", 0));
        let (m, x) = (Tensor::scalar(2i64).into(), tensor::<f32>(&[1], [1.0]));
        let error = run(13, "y, all = Loop(m, -, x)", vec![body("body", trip)], &[("m", &m), ("x", &x)]).unwrap_err();
        let text = "outputs of all trips are stacked, so they must be alike: \
            trip 0 returns float32 of shape [2], trip 1 float32 of shape [4]";
        assert!(error.to_string().ends_with(text), "{error}");
    }
}
