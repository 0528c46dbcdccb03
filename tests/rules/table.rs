//! Errors that follow from an operator's entry in the table: the number of values, their types, attributes. New operators
//! are covered automatically.

use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, ValueInfoProto};
use crate::common::{attribute, float, initializer, int, ints, node, string, tensor, type_of, typed};
use crate::{With, import, int64, iota, load};
use onnxref::schema::{self, Arity, AttributeKind, Parameter, Schema};
use onnxref::{DType, Error, Inputs, Kind, Model, Place, Tensor, ValueType};
use prost::Message;

/// The node of an operator version, as it should be: all its inputs are those of the graph.
struct Good {
    schema: Schema,
    /// The types of the inputs.
    types: Vec<ValueType>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attributes: Vec<AttributeProto>,
}

impl Good {
    fn new(schema: Schema) -> Good {
        let types = schema.inputs.iter().map(|p| p.types.iter().next().unwrap()).collect();
        let inputs = (0..schema.inputs.len()).map(|k| format!("x{k}")).collect();
        let outputs = (0..schema.outputs.len()).map(|k| format!("y{k}")).collect();
        // What an operator needs beyond its entry in the table.
        let needed = match (schema.name.as_str(), schema.since_version) {
            ("Constant", _) => vec![tensor("value", &iota(&[1]))],
            ("Reshape", 1) => vec![ints("shape", &[1])],
            ("Cast", 1) => vec![string("to", "FLOAT")],
            ("BatchNormalization", 14..) => vec![int("training_mode", 1)],
            ("LpPool", 1) => vec![ints("kernel_shape", &[1])],
            ("MaxRoiPool", _) => vec![ints("pooled_shape", &[1, 1])],
            ("Imputer", _) => vec![of_kind("imputed_value_floats", AttributeKind::Floats)],
            ("LabelEncoder", 2..) => {
                vec![of_kind("keys_floats", AttributeKind::Floats), of_kind("values_floats", AttributeKind::Floats)]
            }
            ("OneHotEncoder", _) => vec![of_kind("cats_int64s", AttributeKind::Ints)],
            ("TreeEnsembleClassifier" | "ZipMap", _) => vec![of_kind("classlabels_int64s", AttributeKind::Ints)],
            ("TreeEnsemble", _) => {
                let zeros = ["tree_roots", "nodes_truenodeids", "nodes_falsenodeids", "leaf_targetids"];
                let modes = tensor("nodes_modes", &Tensor::from(vec![0u8]));
                zeros.map(|name| ints(name, &[0])).into_iter().chain([modes]).collect()
            }
            ("DictVectorizer", _) => vec![of_kind("int64_vocabulary", AttributeKind::Ints)],
            ("LinearClassifier" | "SVMClassifier", _) => vec![of_kind("classlabels_ints", AttributeKind::Ints)],
            ("BitShift", _) => vec![string("direction", "LEFT")],
            ("RegexFullMatch", _) => vec![string("pattern", "a")],
            ("TfIdfVectorizer", _) => {
                let zeros = ["ngram_counts", "ngram_indexes", "pool_int64s"].map(|name| ints(name, &[0]));
                let lengths = ["min_gram_length", "max_gram_length"].map(|name| int(name, 1));
                zeros.into_iter().chain(lengths).chain([string("mode", "TF")]).collect()
            }
            ("Momentum", _) => vec![string("mode", "standard")],
            _ => vec![],
        };
        let required = schema.attributes.iter().filter(|formal| formal.required);
        let required = required.filter(|formal| needed.iter().all(|a| a.name.as_deref() != Some(&formal.name)));
        let attributes = required.map(|formal| of_kind(&formal.name, formal.kind)).chain(needed.clone()).collect();
        Good { schema, types, inputs, outputs, attributes }
    }

    /// The inputs of the graph, but for one of another type; the last one is for the graph's output alone.
    fn infos(&self, other: Option<(usize, Option<&ValueType>)>) -> Vec<ValueInfoProto> {
        let info = |(k, own): (usize, &ValueType)| match other {
            Some((at, value_type)) if at == k => match value_type {
                Some(value_type) => typed(&format!("x{k}"), value_type),
                None => ValueInfoProto { r#type: None, ..typed(&format!("x{k}"), own) },
            },
            _ => typed(&format!("x{k}"), own),
        };
        self.types.iter().enumerate().map(info).chain([typed("free", &ValueType::Tensor(DType::Float))]).collect()
    }

    fn model(&self, node: NodeProto, inputs: Vec<ValueInfoProto>) -> ModelProto {
        // Whether the node's outputs are there is another matter.
        let output = vec![inputs.last().unwrap().clone()];
        let graph =
            GraphProto { name: Some("graph".into()), node: vec![node], input: inputs, output, ..Default::default() };
        let opset_import = vec![import(&self.schema.domain, self.schema.since_version)];
        ModelProto { ir_version: Some(14), opset_import, graph: Some(graph), ..Default::default() }
    }

    fn node(&self, inputs: &[String], outputs: &[String], attributes: &[AttributeProto]) -> NodeProto {
        NodeProto {
            name: Some("node".into()),
            domain: Some(self.schema.domain.clone()),
            input: inputs.to_vec(),
            output: outputs.to_vec(),
            ..node(&self.schema.name, &[], &[], attributes.to_vec())
        }
    }

    fn load(&self, inputs: &[String], outputs: &[String], attributes: &[AttributeProto]) -> Result<(), Error> {
        load(&self.model(self.node(inputs, outputs, attributes), self.infos(None))).map(drop)
    }

    fn load_typed(&self, k: usize, value_type: &ValueType) -> Result<(), Error> {
        let node = self.node(&self.inputs, &self.outputs, &self.attributes);
        load(&self.model(node, self.infos(Some((k, Some(value_type)))))).map(drop)
    }

    fn place(&self) -> Place {
        Place::default().with(|p| {
            (p.node_index, p.node) = (Some(0), Some("node".into()));
            (p.operator, p.domain) = (Some(self.schema.name.clone()), Some(self.schema.domain.clone()));
            p.version = Some(self.schema.since_version);
        })
    }

    fn label(&self) -> String {
        format!("{}.{}-{}", self.schema.domain, self.schema.name, self.schema.since_version)
    }
}

/// An attribute with a value of a kind.
fn of_kind(name: &str, kind: AttributeKind) -> AttributeProto {
    let sparse = || SparseTensorProto {
        values: Some(Box::new(initializer("", &iota(&[1])))),
        indices: Some(Box::new(initializer("", &int64(&[1], &[0])))),
        dims: vec![2],
    };
    let float_type = || type_of(&ValueType::Tensor(DType::Float));
    let empty = |kind| attribute(name, kind);
    match kind {
        AttributeKind::Float => float(name, 1.0),
        AttributeKind::Int => int(name, 1),
        AttributeKind::String => string(name, "a"),
        AttributeKind::Tensor => tensor(name, &iota(&[1])),
        AttributeKind::Ints => ints(name, &[1]),
        AttributeKind::Floats => AttributeProto { floats: vec![1.0], ..empty(AttributeType::Floats) },
        AttributeKind::Strings => AttributeProto { strings: vec!["a".into()], ..empty(AttributeType::Strings) },
        AttributeKind::Tensors => {
            AttributeProto { tensors: vec![initializer("", &iota(&[1]))], ..empty(AttributeType::Tensors) }
        }
        AttributeKind::Graph => AttributeProto { g: Some(Box::default()), ..empty(AttributeType::Graph) },
        AttributeKind::Graphs => AttributeProto { graphs: vec![GraphProto::default()], ..empty(AttributeType::Graphs) },
        AttributeKind::SparseTensor => {
            AttributeProto { sparse_tensor: Some(Box::new(sparse())), ..empty(AttributeType::SparseTensor) }
        }
        AttributeKind::SparseTensors => {
            AttributeProto { sparse_tensors: vec![sparse()], ..empty(AttributeType::SparseTensors) }
        }
        AttributeKind::TypeProto => {
            AttributeProto { tp: Some(Box::new(float_type())), ..empty(AttributeType::TypeProto) }
        }
        AttributeKind::TypeProtos => {
            AttributeProto { type_protos: vec![float_type()], ..empty(AttributeType::TypeProtos) }
        }
        other => panic!("an attribute of another kind: {other:?}"),
    }
}

const KINDS: [AttributeKind; 14] = [
    AttributeKind::Float,
    AttributeKind::Int,
    AttributeKind::String,
    AttributeKind::Tensor,
    AttributeKind::Graph,
    AttributeKind::Floats,
    AttributeKind::Ints,
    AttributeKind::Strings,
    AttributeKind::Tensors,
    AttributeKind::Graphs,
    AttributeKind::SparseTensor,
    AttributeKind::SparseTensors,
    AttributeKind::TypeProto,
    AttributeKind::TypeProtos,
];

/// Types of every kind, those of tensors first.
fn every_type() -> Vec<ValueType> {
    let float = || ValueType::Tensor(DType::Float);
    let map = ValueType::Map(DType::Int64, Box::new(float()));
    let others = [float().sequence(), float().optional(), map.clone(), map.sequence(), float().sequence().optional()];
    DType::all().map(ValueType::Tensor).chain(others).collect()
}

/// Refusals that were tried, and how they differ from what should be.
#[derive(Default)]
struct Tried {
    count: usize,
    wrong: Vec<String>,
}

impl Tried {
    fn refused<T>(&mut self, what: &str, good: &Good, kind: Kind, place: Place, result: Result<T, Error>) {
        self.count += 1;
        let what = format!("{}: {what}", good.label());
        match result {
            Ok(_) => self.wrong.push(format!("{what}: is no error")),
            Err(error) if error.kind() != kind || error.place() != &place || error.causes().len() != 1 => {
                self.wrong.push(format!("{what}: {error:?}\n  at  {:?}\n  not {kind} at {place:?}", error.place()));
            }
            Err(_) => {}
        }
    }

    fn finish(self, least: usize) {
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
        assert!(self.count >= least, "only {} were tried", self.count);
    }
}

/// Every operator version that runs, with a node of it that loads.
fn every_version() -> Vec<Good> {
    let (mut goods, mut wrong) = (Vec::new(), Vec::new());
    for support in onnxref::supported() {
        for version in support.versions {
            let schema = schema::resolve(support.domain, support.name, version).unwrap();
            if schema.attributes.iter().any(|attribute| attribute.kind == AttributeKind::Graph) {
                // What a subgraph must be is in bodies.rs.
                continue;
            }
            let good = Good::new(schema);
            if let Err(error) = good.load(&good.inputs, &good.outputs, &good.attributes) {
                wrong.push(format!("{}: {error}", good.label()));
            }
            goods.push(good);
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(goods.len() >= 60);
    goods
}

#[test]
fn the_number_of_inputs_and_outputs() {
    let mut tried = Tried::default();
    for good in every_version() {
        let (inputs, outputs, attributes) = (&good.inputs, &good.outputs, &good.attributes);
        for (what, formal, given) in
            [("inputs", &good.schema.inputs, inputs), ("outputs", &good.schema.outputs, outputs)]
        {
            let load = |list: &[String]| match what {
                "inputs" => good.load(list, outputs, attributes),
                _ => good.load(inputs, list, attributes),
            };
            let counted = |count: usize| good.place().with(|p| p.value = Some(count as i128));
            // Up to the last that is required.
            let needed = |p: &Parameter| matches!(p.arity, Arity::One | Arity::Variadic(1..));
            let least = formal.iter().rposition(needed).map_or(0, |last| last + 1);
            for count in 0..least {
                tried.refused(&format!("{count} {what}"), &good, Kind::Model, counted(count), load(&given[..count]));
            }
            if !formal.last().is_some_and(|last| matches!(last.arity, Arity::Variadic(_))) {
                for more in ["free", ""] {
                    let more = if what == "inputs" || more.is_empty() { more } else { "more" };
                    let list = [given.as_slice(), &[more.to_string()]].concat();
                    tried.refused(
                        &format!("{} {what}", list.len()),
                        &good,
                        Kind::Model,
                        counted(list.len()),
                        load(&list),
                    );
                }
            }
            for (k, parameter) in formal.iter().enumerate() {
                let mut list = given.clone();
                list[k] = String::new();
                match parameter.arity {
                    // Without its input Optional needs the attribute `type`; LinearAttention's update rules need theirs.
                    Arity::Optional if ["Optional", "LinearAttention"].contains(&good.schema.name.as_str()) => {}
                    Arity::Optional => load(&list).unwrap_or_else(|e| panic!("{}: {e}", good.label())),
                    _ => {
                        let place = good.place().parameter(&parameter.name);
                        tried.refused(&format!("no {}", parameter.name), &good, Kind::Model, place, load(&list));
                    }
                }
            }
        }
    }
    tried.finish(110);
}

#[test]
fn the_names_and_kinds_of_attributes() {
    let mut tried = Tried::default();
    for good in every_version() {
        let load = |attributes: &[AttributeProto]| good.load(&good.inputs, &good.outputs, attributes);
        let at = |name: &str| good.place().with(|p| p.attribute = Some(name.into()));
        let own: Vec<&str> = good.schema.attributes.iter().map(|formal| formal.name.as_str()).collect();
        let wrong_case: Vec<String> = own.iter().map(|name| name.to_uppercase()).collect();
        let unknown = ["", "no_such", "axis", "batch_dims", "keepdims"].into_iter();
        let unknown = unknown.chain(wrong_case.iter().map(String::as_str)).filter(|name| !own.contains(name));
        for name in unknown {
            let attributes = [good.attributes.as_slice(), &[int(name, 0)]].concat();
            tried.refused(&format!("attribute {name:?}"), &good, Kind::Model, at(name), load(&attributes));
        }
        for formal in &good.schema.attributes {
            let others = good.attributes.iter().filter(|other| other.name.as_deref() != Some(&formal.name));
            let others: Vec<AttributeProto> = others.cloned().collect();
            for kind in KINDS.into_iter().filter(|kind| *kind != formal.kind) {
                let attributes = [others.as_slice(), &[of_kind(&formal.name, kind)]].concat();
                let what = format!("{} as {}", formal.name, kind.name());
                tried.refused(&what, &good, Kind::Model, at(&formal.name), load(&attributes));
            }
            if formal.required {
                tried.refused(&format!("no {}", formal.name), &good, Kind::Model, at(&formal.name), load(&others));
            }
            let twice = [others.as_slice(), &[of_kind(&formal.name, formal.kind), of_kind(&formal.name, formal.kind)]];
            tried.refused("twice", &good, Kind::Model, at(&formal.name), load(&twice.concat()));
        }
    }
    tried.finish(180);
}

#[test]
fn the_types_of_inputs() {
    let mut tried = Tried::default();
    for good in every_version() {
        for (k, formal) in good.schema.inputs.iter().enumerate() {
            let place = || good.place().parameter(&formal.name);
            let shared = |other: &Parameter| formal.variable.is_some() && other.variable == formal.variable;
            let alone = good.schema.inputs.iter().filter(|other| shared(other)).count() < 2;
            for value_type in every_type() {
                let what = format!("{} of {value_type}", formal.name);
                if !formal.types.contains(&value_type) {
                    let result = good.load_typed(k, &value_type);
                    tried.refused(&what, &good, Kind::Model, place(), result);
                } else if alone {
                    good.load_typed(k, &value_type).unwrap_or_else(|e| panic!("{}: {what}: {e}", good.label()));
                } else if value_type != good.types[k] {
                    // Two types of one variable: the second one is at fault.
                    let mut with = (0..good.schema.inputs.len()).filter(|at| shared(&good.schema.inputs[*at]));
                    let second = if with.next() == Some(k) { with.next().unwrap() } else { k };
                    let place = good.place().parameter(&good.schema.inputs[second].name);
                    tried.refused(&what, &good, Kind::Model, place, good.load_typed(k, &value_type));
                }
            }
        }
    }
    tried.finish(550);
}

#[test]
fn the_types_of_inputs_that_only_a_run_shows() {
    let mut tried = Tried::default();
    let zero = |dtype: DType| match dtype {
        DType::String => Tensor::from_strings(&[1], [""]).unwrap(),
        _ => Tensor::new(dtype, &[1], vec![0; dtype.size()]).unwrap(),
    };
    for good in every_version() {
        let dtypes: Option<Vec<DType>> = good.types.iter().map(ValueType::dtype).collect();
        let Some(dtypes) = dtypes else { continue };
        for (k, formal) in good.schema.inputs.iter().enumerate() {
            let node = good.node(&good.inputs, &good.outputs, &good.attributes);
            // Nobody reads the outputs.
            let bytes = good.model(node, good.infos(Some((k, None)))).encode_to_vec();
            let model = Model::options().optimize(false).from_bytes(bytes).unwrap();
            for other in DType::all().filter(|dtype| !formal.types.contains(&ValueType::Tensor(*dtype))) {
                let feed = |(at, dtype): (usize, &DType)| zero(if at == k { other } else { *dtype });
                let feeds = dtypes.iter().enumerate().map(feed).chain([zero(DType::Float)]);
                let feeds = feeds.fold(Inputs::new(), Inputs::next);
                let place = good.place().parameter(&formal.name).named(&format!("x{k}"));
                tried.refused(&format!("{} of {other}", formal.name), &good, Kind::Input, place, model.run(feeds));
            }
        }
    }
    tried.finish(430);
}

/// The words of each refusal, once; those about attributes are in the file of that name.
#[test]
fn what_refusals_say() {
    let good = every_version().into_iter().find(|good| good.label() == ".GatherND-12").unwrap();
    let names = |list: &[&str]| list.iter().map(|name| name.to_string()).collect::<Vec<String>>();
    let both = names(&["x0", "x1"]);
    let cases = [
        (good.load(&[], &good.outputs, &[]), "0 inputs given: the operator has (data, indices)"),
        (good.load(&both[..1], &good.outputs, &[]), "1 input given: the operator has (data, indices)"),
        (good.load(&both, &names(&["y", "z"]), &[]), "2 outputs given: the operator has (output)"),
        (good.load(&names(&["x0", ""]), &good.outputs, &[]), "input 1, \"indices\", is left out, but required"),
        (good.load(&both, &names(&[""]), &[]), "output 0, \"output\", is left out, but required"),
        (good.load_typed(1, &DType::Int32.into()), "\"indices\" has element type int32: allowed int64"),
        (
            good.load_typed(1, &ValueType::Tensor(DType::Int64).sequence()),
            "\"indices\" has type seq(int64): allowed int64",
        ),
    ];
    for (result, text) in cases {
        assert_eq!(result.unwrap_err().to_string(), format!("node \"node\" (GatherND-12): {text}"));
    }
}
