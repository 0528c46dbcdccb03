//! How far expected outputs are from the exact result of the formula, at most.

use super::sums;
use crate::ops::greatest_error;
use onnxref::schema::Schema;
use onnxref::{DType, Value, ValueType};

/// Operators that move, choose or compare elements, or compute with integers, and conversions, which round once and by a
/// rule of the standard: every engine must give the same bits.
const EXACT: &[&str] = &[
    "Abs",
    "And",
    "ArrayFeatureExtractor",
    "ArgMax",
    "ArgMin",
    "BitCast",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "CastLike",
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
    "Equal",
    "Expand",
    "EyeLike",
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
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
];

/// Operators whose floats are rounded once.
const ROUNDED_ONCE: &[&str] = &["Add", "Div", "Mul", "Reciprocal", "Sqrt", "Sub"];

/// The greatest distance between an expected output and the exact result, in units of the last place: 0 if the output is
/// exact. `None` if none is known.
pub(super) fn ulp(schema: &Schema, outputs: &[(String, Value)]) -> Option<f64> {
    let name = schema.name.as_str();
    if EXACT.contains(&name) {
        return Some(0.0);
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
