//! The standard as data: inputs, outputs and attributes of every operator version, read from `standard.txt` on demand.
//!
//! The table is sorted by operator, so a look-up is a binary search in the text: only the operator versions that
//! a model uses are parsed. Its format, by example:
//!
//! ```text
//! Gather 13
//!   (data: T, indices: Tind) -> (output: T)
//!   axis: INT = 0
//!   T: @all bfloat16
//!   Tind: int32 int64
//! ```
//!
//! The head is the operator (`DOMAIN.NAME` outside of `ai.onnx`) and the version, then `deprecated REPLACEMENT` if
//! it is deprecated. `name?` is optional, `name*` and `name+` are variadic with at least 0 or 1 value, `each T` if these
//! may differ in type. An attribute is `name: KIND`, then `required` or `= DEFAULT`. `@name` is a set of types,
//! defined at the top of the table.

mod parse;
mod table;

use crate::error::{Error, Kind, Result, operator_label, quote};
use crate::tensor::Tensor;
use crate::value::{TypeSet, ValueType};
use table::{EXPERIMENTAL, OPENVINO, STANDARD, all_blocks, blocks_start, experimental, table};

pub(crate) use table::versions;

/// The domain of OpenVINO's operators.
pub(crate) const OPENVINO_DOMAIN: &str = "org.openvinotoolkit";

/// What the standard says about one version of one operator.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Schema {
    /// The operator's domain; empty for `ai.onnx`.
    pub domain: String,
    /// The operator's name.
    pub name: String,
    /// The opset version that brought this version of the operator.
    pub since_version: i64,
    /// The operator is removed as of this version; inside: its replacement, or empty.
    pub deprecated: Option<String>,
    /// The formal inputs.
    pub inputs: Vec<Parameter>,
    /// The formal outputs.
    pub outputs: Vec<Parameter>,
    /// The attributes.
    pub attributes: Vec<AttributeSchema>,
}

/// A formal input or output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// How many values it stands for.
    pub arity: Arity,
    /// The type variable that it shares with others; `None` if values may differ in type.
    pub variable: Option<String>,
    /// The allowed types.
    pub types: TypeSet,
}

/// How many values a formal input or output stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arity {
    /// Exactly one.
    One,
    /// One, or none (given by an empty name).
    Optional,
    /// At least this many; only for the last parameter.
    Variadic(usize),
}

/// A formal attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AttributeSchema {
    /// Its name.
    pub name: String,
    /// The kind of its value.
    pub kind: AttributeKind,
    /// Whether it must be given: it has no default.
    pub required: bool,
    /// The value if none is given.
    pub default: Option<Attribute>,
}

/// The kinds of attribute values, named and numbered as in `AttributeProto.AttributeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // the names are the standard's
pub enum AttributeKind {
    Float = 1,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensor,
    SparseTensors,
    TypeProto,
    TypeProtos,
}

impl AttributeKind {
    const NAMES: [(AttributeKind, &'static str); 14] = [
        (AttributeKind::Float, "FLOAT"),
        (AttributeKind::Int, "INT"),
        (AttributeKind::String, "STRING"),
        (AttributeKind::Tensor, "TENSOR"),
        (AttributeKind::Graph, "GRAPH"),
        (AttributeKind::Floats, "FLOATS"),
        (AttributeKind::Ints, "INTS"),
        (AttributeKind::Strings, "STRINGS"),
        (AttributeKind::Tensors, "TENSORS"),
        (AttributeKind::Graphs, "GRAPHS"),
        (AttributeKind::SparseTensor, "SPARSE_TENSOR"),
        (AttributeKind::SparseTensors, "SPARSE_TENSORS"),
        (AttributeKind::TypeProto, "TYPE_PROTO"),
        (AttributeKind::TypeProtos, "TYPE_PROTOS"),
    ];

    /// The kind with a number of `AttributeProto.AttributeType`.
    pub(crate) fn from_code(code: i32) -> Option<AttributeKind> {
        Self::NAMES.iter().map(|(kind, _)| *kind).find(|kind| *kind as i32 == code)
    }

    fn from_name(name: &str) -> Option<AttributeKind> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }

    /// The name as the standard writes it: `INT`, `SPARSE_TENSOR`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// An attribute's value. Sparse tensors are dense.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the names are the standard's
pub enum Attribute {
    Float(f32),
    Int(i64),
    String(String),
    Tensor(Tensor),
    SparseTensor(Tensor),
    Type(ValueType),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<String>),
    Tensors(Vec<Tensor>),
    SparseTensors(Vec<Tensor>),
    Types(Vec<ValueType>),
}

impl Schema {
    /// Parses a block in the format of the table.
    ///
    /// # Errors
    /// [`Kind::Input`] with the line, if the text doesn't match the grammar.
    pub fn parse(block: &str) -> Result<Schema> {
        parse::schema(block)
    }

    /// The input that a node's `k`-th input stands for; the last one repeats if it is variadic.
    pub(crate) fn input(&self, k: usize) -> Option<&Parameter> {
        parameter(&self.inputs, k)
    }

    /// As [`Schema::input`], for an output.
    pub(crate) fn output(&self, k: usize) -> Option<&Parameter> {
        parameter(&self.outputs, k)
    }

    /// A formal attribute by its name.
    pub(crate) fn attribute(&self, name: &str) -> Result<&AttributeSchema> {
        self.attributes.iter().find(|formal| formal.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.attributes.iter().map(|formal| formal.name.as_str()).collect();
            let known =
                if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
            Error::model(format!("attribute {} is not one of the operator's: {known}", quote(name))).attribute(name)
        })
    }

    /// The operator as errors name it.
    pub(crate) fn label(&self) -> String {
        format!("{}-{}", operator_label(&self.domain, &self.name), self.since_version)
    }
}

fn parameter(parameters: &[Parameter], k: usize) -> Option<&Parameter> {
    parameters.get(k).or_else(|| parameters.last().filter(|last| matches!(last.arity, Arity::Variadic(_))))
}

/// The newest opset version of a standard domain; `None` for a domain that isn't in the standard.
pub fn newest(domain: &str) -> Option<i64> {
    let table = table(domain);
    let head = table.get(..blocks_start(table))?;
    let domain = if domain.is_empty() { "ai.onnx" } else { domain };
    head.lines()
        .filter_map(|line| line.strip_prefix("# newest ")?.split_once(' '))
        .find(|(d, _)| *d == domain)?
        .1
        .parse()
        .ok()
}

/// Every operator that has a schema here, as domain and name, sorted: those of the standard, then those of OpenVINO that
/// run here. The domain is empty for `ai.onnx`.
///
/// ```
/// assert!(onnxref::schema::operators().any(|(domain, name)| domain.is_empty() && name == "Gather"));
/// ```
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut last = "";
    all_blocks(STANDARD).chain(all_blocks(OPENVINO)).filter_map(move |block| {
        let key = block.split(' ').next().filter(|key| *key != last)?;
        last = key;
        Some(key.rsplit_once('.').unwrap_or(("", key)))
    })
}

/// The experimental operators that run here, below opset 10: ONNX dropped them in release 1.5, and the standard has at most
/// later versions of them.
///
/// ```
/// assert!(onnxref::schema::experimental_operators().any(|name| name == "ImageScaler"));
/// assert!(onnxref::schema::resolve("", "ImageScaler", 9).is_ok());
/// ```
pub fn experimental_operators() -> impl Iterator<Item = &'static str> {
    all_blocks(EXPERIMENTAL).filter_map(|block| block.split(' ').next())
}

/// Whether a version of an operator is that of an experimental one.
pub(crate) fn is_experimental(schema: &Schema) -> bool {
    let is_own = |&(since, _): &(i64, &str)| since == schema.since_version;
    let own = experimental(&schema.domain, &schema.name).filter(is_own);
    own.is_some() && !versions(&schema.domain, &schema.name).iter().any(is_own)
}

/// Every version of an operator, oldest first.
///
/// ```
/// let gather: Vec<i64> = onnxref::schema::history("", "Gather")?.iter().map(|schema| schema.since_version).collect();
/// assert_eq!(gather, [1, 11, 13]);
/// # Ok::<(), onnxref::Error>(())
/// ```
///
/// # Errors
/// [`Kind::Unsupported`] for a domain that isn't in the standard; [`Kind::Model`] for an operator that isn't.
pub fn history(domain: &str, name: &str) -> Result<Vec<Schema>> {
    known(domain, name)?.into_iter().map(|(_, block)| parsed(block)).collect()
}

/// The version of an operator under an opset: the newest one up to the opset, or below opset 10 an experimental one.
///
/// # Errors
/// [`Kind::Unsupported`] for a domain that isn't in the standard; [`Kind::Model`] for an operator that isn't,
/// for one that came later and for one that was removed.
pub fn resolve(domain: &str, name: &str, opset: i64) -> Result<Schema> {
    let old = || experimental(domain, name).filter(|_| opset < EXPERIMENTAL_UNTIL).map(|(_, block)| parsed(block));
    let versions = match known(domain, name) {
        Ok(versions) => versions,
        Err(error) => return old().unwrap_or(Err(error)),
    };
    let label = operator_label(domain, name);
    let first = versions.first().map_or(1, |(first, _)| *first);
    let Some((_, block)) = versions.iter().rev().find(|(since, _)| *since <= opset) else {
        let later = || Error::model(format!("{label} is not in opset {opset}: it came with opset {first}"));
        return old().unwrap_or_else(|| Err(later()));
    };
    let schema = parsed(block)?;
    match &schema.deprecated {
        // An operator's first version is valid, even if it was deprecated later.
        Some(by) if schema.since_version > first => {
            let since = schema.since_version;
            let by = match versions.iter().find(|(later, _)| *later > since) {
                Some((later, _)) => format!(" and came back with opset {later}"),
                None if by.is_empty() => String::new(),
                None => format!(" and replaced by {by}"),
            };
            Err(Error::model(format!("{label} is not in opset {opset}: it was removed in opset {since}{by}")))
        }
        _ => Ok(schema),
    }
}

/// The versions of an operator that exists.
fn known(domain: &str, name: &str) -> Result<Vec<(i64, &'static str)>> {
    if newest(domain).is_none() {
        return Err(Error::unsupported(format!(
            "domain {} is not in the standard and has no operators here",
            quote(domain)
        )));
    }
    let versions = versions(domain, name);
    let label = operator_label(domain, name);
    if versions.is_empty() {
        if domain == OPENVINO_DOMAIN {
            // Its table has only the operators that run here: others may exist.
            return Err(Error::unsupported(format!("{label} is not implemented")));
        }
        if was_experimental(domain, name) {
            let text = format!("{label} was an experimental operator, which ONNX dropped in release 1.5");
            return Err(Error::unsupported(text));
        }
        return Err(Error::model(format!("{label} is not an ONNX operator")));
    }
    Ok(versions)
}

fn parsed(block: &str) -> Result<Schema> {
    Schema::parse(block).map_err(|e| Error::new(Kind::Unsupported, format!("the table of the standard: {e}")))
}

/// The first opset without experimental operators: that of release 1.5.
const EXPERIMENTAL_UNTIL: i64 = 10;

/// Whether an operator was experimental in releases before 1.5. Some of these don't run, and have no schema.
fn was_experimental(domain: &str, name: &str) -> bool {
    let others = ["ATen", "ConstantFill", "GRUUnit", "GivenTensorFill"];
    experimental(domain, name).is_some() || domain.is_empty() && others.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn every_block_parses_and_is_found() {
        let mut count = 0;
        let mut last = (String::new(), 0);
        for block in all_blocks(STANDARD) {
            let schema = Schema::parse(block).unwrap_or_else(|e| panic!("{e}\n{block}"));
            let head = block.split(' ').next().unwrap().to_string();
            assert!((&last.0, last.1) < (&head, schema.since_version), "{head} is out of order");
            assert!(
                versions(&schema.domain, &schema.name).contains(&(schema.since_version, block)),
                "{} is not found",
                schema.label()
            );
            last = (head, schema.since_version);
            count += 1;
        }
        assert_eq!(count, 659);
    }

    #[test]
    fn experimental_operators_end_with_opset_9() {
        let names: Vec<&str> = experimental_operators().collect();
        assert!(names.is_sorted() && names.len() == 9, "{names:?}");
        for name in names {
            for opset in 1..=28 {
                let (found, first) = (resolve("", name, opset), versions("", name).first().map(|(first, _)| *first));
                match first {
                    _ if opset < first.unwrap_or(EXPERIMENTAL_UNTIL) => assert!(is_experimental(&found.unwrap())),
                    Some(_) => assert!(!is_experimental(&found.unwrap())),
                    None => assert_eq!(found.unwrap_err().kind(), Kind::Unsupported),
                }
            }
        }
        assert!(!is_experimental(&resolve("", "Gather", 1).unwrap()));
    }

    #[test]
    fn operators_have_their_history() {
        let all: Vec<(&str, &str)> = operators().collect();
        assert_eq!(all.len(), 228);
        assert_eq!((all[0], all[227]), (("", "Abs"), ("org.openvinotoolkit", "Gather")));
        let count: usize = all.iter().map(|(domain, name)| history(domain, name).unwrap().len()).sum();
        assert_eq!(count, 659 + 3);
        let gather = history("", "Gather").unwrap();
        assert_eq!(gather[1], resolve("", "Gather", 12).unwrap());
        let error = |domain, name| history(domain, name).unwrap_err();
        assert_eq!(error("", "Nonsense").to_string(), "Nonsense is not an ONNX operator");
        assert_eq!(error("com.example", "Gather").kind(), Kind::Unsupported);
    }

    #[test]
    fn every_parameter_has_types() {
        for block in all_blocks(STANDARD) {
            let schema = Schema::parse(block).unwrap();
            for parameter in schema.inputs.iter().chain(&schema.outputs) {
                assert!(!parameter.types.is_empty(), "{}: {}", schema.label(), parameter.name);
            }
        }
        let types = |name, k: usize| resolve("", name, 28).unwrap().inputs[k].types.clone();
        assert_eq!(types("SequenceInsert", 0).iter().count(), 15);
        assert!(types("SequenceInsert", 0).contains(&ValueType::Tensor(DType::String).sequence()));
        assert!(types("SequenceInsert", 1).contains(&ValueType::Tensor(DType::String)));
        let optional = ValueType::Tensor(DType::Float).sequence().optional();
        assert!(types("OptionalHasElement", 0).contains(&optional));
        let zip = resolve("ai.onnx.ml", "ZipMap", 5).unwrap();
        assert_eq!(zip.outputs[0].types.to_string(), "seq(map(int64,float32)), seq(map(string,float32))");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for name in ["", "A", "Gathe", "Gatherx", "Zzz", "ai", "ai.onnx.ml.Binarizer.x", "~"] {
            assert!(versions("", name).is_empty(), "{name}");
        }
        assert!(versions("ai.onnx.ml", "Gather").is_empty());
        assert!(!versions("ai.onnx.ml", "Binarizer").is_empty());
    }

    #[test]
    fn gather() {
        let schema = resolve("", "Gather", 12).unwrap();
        assert_eq!((schema.name.as_str(), schema.since_version), ("Gather", 11));
        let inputs: Vec<_> = schema.inputs.iter().map(|p| (p.name.as_str(), p.arity, p.types.iter().count())).collect();
        assert_eq!(inputs, [("data", Arity::One, 15), ("indices", Arity::One, 2)]);
        assert_eq!(schema.attributes.len(), 1);
        assert_eq!(schema.attributes[0].default, Some(Attribute::Int(0)));
        let bfloat16 = ValueType::Tensor(DType::Bfloat16);
        assert!(!schema.inputs[0].types.contains(&bfloat16));
        assert!(resolve("", "Gather", 28).unwrap().inputs[0].types.contains(&bfloat16));
    }

    #[test]
    fn each_failure_has_its_sentence() {
        let error = |domain, name, opset| resolve(domain, name, opset).unwrap_err().to_string();
        assert_eq!(error("", "Nonsense", 13), "Nonsense is not an ONNX operator");
        assert_eq!(error("", "GatherElements", 10), "GatherElements is not in opset 10: it came with opset 11");
        assert_eq!(
            error("", "Upsample", 10),
            "Upsample is not in opset 10: it was removed in opset 10 and replaced by Resize"
        );
        assert_eq!(
            error("com.example", "Gather", 1),
            "domain \"com.example\" is not in the standard and has no operators here"
        );
    }
}
