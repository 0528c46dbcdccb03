//! Bounds of how far expected outputs are from the exact result of the formula.

use super::maker::Made;
use super::{steps, sums};
use crate::ops::greatest_error;
use onnxref::schema::Schema;
use onnxref::{DType, Value, ValueType};

/// Operators that move, choose or compare elements, or compute with integers, and conversions, which round once and by a
/// rule of the standard: every engine must give the same bits.
const EXACT: &[&str] = &[
    "Abs",
    "And",
    "ArgMax",
    "ArgMin",
    "ArrayFeatureExtractor",
    "Binarizer",
    "BitCast",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "CastLike",
    "CastMap",
    "CategoryMapper",
    "Ceil",
    "CenterCropPad",
    "Clip",
    "Compress",
    "Concat",
    "ConcatFromSequence",
    "Constant",
    "ConstantOfShape",
    "ConvInteger",
    "DepthToSpace",
    "DictVectorizer",
    "Dropout",
    "Equal",
    "Expand",
    "EyeLike",
    "FeatureVectorizer",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "Hardmax",
    "Identity",
    "Imputer",
    "IsInf",
    "IsNaN",
    "LabelEncoder",
    "Less",
    "LessOrEqual",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "MaxUnpool",
    "Min",
    "Neg",
    "NonZero",
    "Not",
    "OneHot",
    "OneHotEncoder",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "Or",
    "Pad",
    "ReduceMax",
    "ReduceMin",
    "RegexFullMatch",
    "Relu",
    "Reshape",
    "ReverseSequence",
    "Round",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "Shape",
    "Sign",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "SplitToSequence",
    "Squeeze",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "TensorScatter",
    "ThresholdedRelu",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
    "ZipMap",
];

/// Operators whose floats are rounded once.
const ROUNDED_ONCE: &[&str] = &["Add", "Div", "LeakyRelu", "Mod", "Mul", "PRelu", "Reciprocal", "Sqrt", "Sub"];

/// Operators that move elements, unless they are asked to join them.
const JOIN: &[&str] = &["ScatterElements", "ScatterND"];

/// How far each element of the outputs may be from the expected one, one output after the other.
pub(super) fn absolute(schema: &Schema, made: &Made, outputs: &[(String, Value)]) -> Option<Vec<Option<f64>>> {
    let sums = sums::bounds(schema, made, outputs).or_else(|| sums::products(schema, made, outputs));
    sums.or_else(|| steps::bounds(schema, made, outputs))
}

/// The greatest distance between an expected output and the exact result, in units of the last place: 0 if the output is
/// exact. `None` if none is known.
pub(super) fn ulp(schema: &Schema, made: &Made, outputs: &[(String, Value)]) -> Option<f64> {
    let name = schema.name.as_str();
    let text = |name: &str| made.node.attribute.iter().find(|attribute| attribute.name() == name)?.s.as_deref();
    let joins = matches!(text("reduction"), Some(b"add" | b"mul"));
    let is_set =
        |name: &str| made.node.attribute.iter().any(|attribute| attribute.name() == name && attribute.i() == 1);
    if EXACT.contains(&name) || JOIN.contains(&name) && !joins || name == "Mod" && is_set("fmod") {
        return Some(0.0);
    }
    // A difference of numbers of up to 16 bits is exact.
    let first = made.inputs.first().and_then(|given| given.value.tensor().ok());
    if name == "DequantizeLinear" && first.is_some_and(|tensor| tensor.dtype().bits() <= 16) {
        let single = outputs.iter().all(|(_, value)| value.value_type() == Some(DType::Float.into()));
        return Some(if single { 0.5 } else { 0.51 });
    }
    let each = outputs.iter().map(|(_, value)| of_type(schema, value.value_type()?));
    each.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn of_type(schema: &Schema, value_type: ValueType) -> Option<f64> {
    let once = ROUNDED_ONCE.contains(&schema.name.as_str());
    let stated = greatest_error(&schema.domain, &schema.name);
    match value_type.dtype()? {
        DType::Float | DType::Double | DType::Float16 | DType::Bfloat16 if once => Some(0.5),
        DType::Float => Some(stated?.0),
        DType::Double => Some(stated?.1),
        // Computed in float32, then rounded.
        DType::Float16 | DType::Bfloat16 => stated.map(|_| 0.51),
        DType::Complex64 | DType::Complex128 => None,
        dtype if once || sums::is_exact(schema, dtype) => Some(0.0),
        _ => None,
    }
}
