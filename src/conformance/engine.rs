//! Cases on another engine.

use super::compare::Agreement;
use super::{Case, DataSet, Failure, NOT_REFUSED, Outcome, Source, decoded, ramp, refuses};
use crate::error::{Kind, Result, quote};
use crate::graph::{GraphDetails, ValueDetails, ValueInfo};
use crate::model::LoadOptions;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What another engine gets of a data set: [`Case::run_on`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Task<'a> {
    /// The model.
    pub model: &'a Source,
    /// The inputs by their positions, each as [`Value::to_proto_bytes`](crate::Value::to_proto_bytes) writes it: numbers
    /// in `raw_data`, with the name of the graph's input.
    pub inputs: BTreeMap<usize, Vec<u8>>,
    /// The positions of the outputs that are compared.
    pub outputs: BTreeSet<usize>,
}

impl Case {
    /// As [`Case::run_with`], on another engine. It gives encoded outputs by their positions; others than those that the
    /// task names don't count. The options are for reading the model's declarations: it need not run here.
    ///
    /// An error of [`Kind::Unsupported`] makes the case unsupported; any other error fails it. A case that must be refused
    /// passes with one of [`Kind::Model`] or [`Kind::Input`].
    ///
    /// ```
    /// use onnxref::conformance::{Case, Outcome};
    /// use onnxref::{Error, Kind, Model};
    ///
    /// let case = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_0";
    /// for case in Case::find(case)? {
    ///     let outcome = case.run_on(&Model::options(), |task| {
    ///         assert_eq!((task.inputs.len(), task.outputs.len()), (2, 1));
    ///         Err(Error::new(Kind::Unsupported, "Gather has no kernel"))
    ///     });
    ///     assert!(matches!(outcome, Outcome::Unsupported(_)));
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn run_on(
        &self,
        options: &LoadOptions,
        mut engine: impl FnMut(&Task<'_>) -> Result<BTreeMap<usize, Bytes>>,
    ) -> Outcome {
        // A model that can't be read has no declarations.
        let found = self.inspect(options).ok();
        let declared = Declared(found.as_ref().map(|found| &found.graph));
        let outcome = self.each_set(|set| {
            let inputs = if set.light { declared.light_inputs()? } else { declared.inputs(set)? };
            let outputs: BTreeSet<usize> = set.outputs.keys().copied().collect();
            if outputs.is_empty() && set.error.is_none() {
                return Err("it has no outputs to compare".to_string().into());
            }
            let given = match engine(&Task { model: &self.model, inputs, outputs }) {
                Err(error) if set.error.is_some() && refuses(&error) => return Ok(Agreement::EXACT),
                given => given?,
            };
            if set.error.is_some() {
                return Err(NOT_REFUSED.to_string().into());
            }
            let mut all = Agreement::EXACT;
            for (k, want) in &set.outputs {
                let (name, file) = (declared.output(*k).map_or("", |value| &value.name), format!("output_{k}.pb"));
                let of = declared.output(*k).and_then(|value| value.value_type.as_ref());
                let want = want.value(of).map_err(|why| format!("{file}: {why}"))?;
                let got = given.get(k).ok_or_else(|| format!("the engine gives no {file}"))?;
                let got = decoded(got.clone(), of).map_err(|why| format!("{file} of the engine: {why}"))?;
                let agreement = self.tolerance.agree(&got, &want);
                all = all.and(agreement.map_err(|difference| Failure::of_output(name, difference))?);
            }
            Ok(all)
        });
        match outcome {
            Outcome::Failed(Failure { error: Some(error), .. }) if error.kind() == Kind::Unsupported => {
                Outcome::Unsupported(error)
            }
            outcome => outcome,
        }
    }
}

/// What a graph declares, if it could be read.
pub(super) struct Declared<'a>(pub(super) Option<&'a GraphDetails>);

impl Declared<'_> {
    fn value(&self, places: impl Fn(&GraphDetails) -> &[usize], position: usize) -> Option<&ValueDetails> {
        let graph = self.0?;
        graph.values.get(*places(graph).get(position)?)
    }

    fn input(&self, position: usize) -> Option<&ValueDetails> {
        self.value(|graph| &graph.inputs, position)
    }

    fn output(&self, position: usize) -> Option<&ValueDetails> {
        self.value(|graph| &graph.outputs, position)
    }

    /// The files of a data set, encoded anew.
    fn inputs(&self, set: &DataSet) -> Result<BTreeMap<usize, Vec<u8>>, String> {
        let encoded = |(k, source): (&usize, &Source)| {
            let (input, wrong) = (self.input(*k), |why| format!("input_{k}.pb: {why}"));
            let value = source.value(input.and_then(|input| input.value_type.as_ref())).map_err(wrong)?;
            Ok((*k, value.to_proto_bytes(input.map_or("", |input| &input.name))))
        };
        set.inputs.iter().map(encoded).collect()
    }

    /// What the official runner feeds light models.
    pub(super) fn light_inputs(&self) -> Result<BTreeMap<usize, Vec<u8>>, String> {
        let inputs = (0..).map_while(|k| Some((k, self.input(k)?))).filter(|(_, input)| input.default.is_none());
        let encoded = |(k, input): (usize, &ValueDetails)| {
            let (name, value_type, shape) = (input.name.clone(), input.value_type.clone(), input.shape.clone());
            let tensor = ramp(&ValueInfo { name, value_type, shape });
            let tensor = tensor.map_err(|why| format!("input {} {why}", quote(&input.name)))?;
            Ok((k, tensor.to_proto_bytes(&input.name)))
        };
        inputs.map(encoded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::error::Error;
    use crate::model::Model;
    use crate::tensor::Tensor;

    fn gather() -> Case {
        Case::find("onnx-test-data/gather/onnx-1.12.0/node/test_gather_0").unwrap().remove(0)
    }

    /// What a failure of an engine says that gives these outputs.
    fn failure(given: impl Fn(&Task<'_>) -> Result<BTreeMap<usize, Bytes>>) -> String {
        match gather().run_on(&Model::options(), given) {
            Outcome::Failed(why) => why.to_string(),
            outcome => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn an_engine_gets_inputs_and_gives_outputs() {
        let case = gather();
        let outcome = case.run_on(&Model::options(), |task| {
            let Source::Path(model) = task.model else { panic!("{task:?}") };
            let input = |k| Tensor::from_proto_bytes(task.inputs[&k].clone()).unwrap();
            assert_eq!((input(0).dtype(), input(1).dtype()), (DType::Float, DType::Int64));
            let inputs = crate::Inputs::new().with("data", input(0)).with("indices", input(1));
            let outputs = Model::load(model)?.run(inputs)?;
            let extra = (7, Bytes::new());
            Ok([(0, outputs.get("y").unwrap().to_proto_bytes("z").into()), extra].into())
        });
        assert!(matches!(outcome, Outcome::Passed { exact: true, ulps: 0 }), "{outcome:?}");
    }

    #[test]
    fn what_is_wrong_is_told() {
        let gives = |bytes: Vec<u8>| failure(|_| Ok([(0, bytes.clone().into())].into()));
        assert_eq!(failure(|_| Ok(BTreeMap::new())), "test_data_set_0: the engine gives no output_0.pb");
        let none = Tensor::from_elements(&[0], Vec::<f32>::new()).unwrap().to_proto_bytes("");
        assert_eq!(gives(none), "test_data_set_0: output \"y\" is float32[0], expected float32[3, 4, 3, 2]");
        let garbage = gives(b"\xff\xff".to_vec());
        assert!(garbage.starts_with("test_data_set_0: output_0.pb of the engine: "), "{garbage}");
        assert_eq!(failure(|_| Err(Error::new(Kind::Io, "it died"))), "test_data_set_0: it died");
    }

    /// A case that must be refused passes if the engine says no, but not if it dies, runs or lacks something.
    #[test]
    fn what_must_be_refused() {
        let mut case = gather();
        let set = case.sets.values_mut().next().unwrap();
        (set.error, set.outputs) = (Some(Source::Bytes(Bytes::from_static(b"{}"))), BTreeMap::new());
        let outcome = |given: fn() -> Result<BTreeMap<usize, Bytes>>| match case.run_on(&Model::options(), |_| given())
        {
            Outcome::Failed(why) => why.to_string(),
            outcome => format!("{outcome:?}"),
        };
        assert_eq!(outcome(|| Err(Error::model("no"))), "Passed { exact: true, ulps: 0 }");
        assert_eq!(outcome(|| Err(Error::new(Kind::Io, "it died"))), "test_data_set_0: it died");
        assert_eq!(outcome(|| Ok(BTreeMap::new())), "test_data_set_0: it must be refused, but it runs");
        assert!(outcome(|| Err(Error::new(Kind::Unsupported, "later"))).starts_with("Unsupported("));
    }

    #[test]
    fn a_model_that_cannot_be_read_is_fed_too() {
        let mut case = gather();
        case.model = Source::Bytes(Bytes::from_static(b"no model"));
        let outcome = case.run_on(&Model::options(), |task| {
            assert_eq!(task.inputs.len(), 2);
            Err(Error::new(Kind::Unsupported, "no"))
        });
        assert!(matches!(outcome, Outcome::Unsupported(error) if error.to_string() == "no"));
    }
}
