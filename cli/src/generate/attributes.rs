//! Draws values of attributes that operators mostly accept.

use super::goals::Goal;
use super::maker::Maker;
use super::texts::element;
use crate::messages::{self, AttributeType};
use crate::proto::AttributeProto;
use onnxref::schema::{AttributeKind, AttributeSchema};
use onnxref::{DType, ValueType};

/// Values of strings and lists of strings, by the attribute's name.
const WORDS: &[(&str, &[&str])] = &[
    ("activations", &["Tanh", "Sigmoid", "Relu", "LeakyRelu", "Elu", "Softplus"]),
    ("aggregate_function", &["SUM", "AVERAGE", "MIN", "MAX"]),
    ("approximate", &["tanh", "none"]),
    ("attention_type", &["linear", "gated", "delta", "gated_delta"]),
    ("auto_pad", &["SAME_UPPER", "VALID", "SAME_LOWER", "NOTSET"]),
    ("case_change_action", &["LOWER", "UPPER", "NONE"]),
    ("cast_to", &["TO_FLOAT", "TO_INT64", "TO_STRING"]),
    ("coordinate_transformation_mode", &["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]),
    ("direction", &["forward", "reverse", "LEFT", "RIGHT"]),
    ("equation", &["ij,jk->ik", "i,i", "ij->ji", "...ij->...j", "bij,bjk->bik", "ij,ij->i"]),
    ("keep_aspect_ratio_policy", &["stretch", "not_larger", "not_smaller"]),
    ("kernel_type", &["LINEAR", "POLY", "RBF", "SIGMOID"]),
    ("map_form", &["DENSE", "SPARSE"]),
    ("nearest_mode", &["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
    ("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
    ("norm", &["L1", "L2", "MAX"]),
    ("padding_mode", &["zeros", "border", "reflection"]),
    ("pattern", &["a", "[a-z]*", "(a|b)c", "[0-9]+"]),
    ("pixel_format", &["RGB", "BGR", "Grayscale"]),
    ("post_transform", &["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]),
    ("reduction", &["none", "add", "mul", "max", "min", "sum", "mean"]),
    ("round_mode", &["up", "down", "nearest"]),
    ("string_vocabulary", &["0", "1", "2"]),
    (
        "to",
        &[
            "FLOAT", "INT64", "DOUBLE", "BOOL", "INT8", "FLOAT16", "INT32", "INT16", "UINT8", "UINT16", "UINT32",
            "UINT64",
        ],
    ),
    ("update_rule", &["linear", "gated", "delta", "gated_delta"]),
];

/// Modes, which many operators have.
const MODES: &[&str] = &[
    "constant", "nearest", "linear", "cubic", "reflect", "edge", "wrap", "DCR", "CRD", "bilinear", "bicubic", "avg",
    "max", "TF", "IDF", "TFIDF", "standard", "nesterov", "fmod",
];

/// Attributes that are the type of an output.
pub(super) const TYPES: [&str; 6] = ["to", "dtype", "output_dtype", "output_datatype", "cast_to", "stash_type"];

impl Maker<'_> {
    /// An attribute, unless values of its kind aren't made.
    pub(super) fn attribute(&mut self, formal: &AttributeSchema) -> Result<Option<AttributeProto>, String> {
        let mut proto = AttributeProto { name: Some(formal.name.clone()), ..AttributeProto::default() };
        let kind = match formal.kind {
            AttributeKind::Float => {
                proto.f = Some(self.float());
                AttributeType::Float
            }
            AttributeKind::Int => {
                proto.i = Some(self.int(&formal.name));
                AttributeType::Int
            }
            AttributeKind::String => {
                proto.s = Some(self.text(&formal.name).into());
                AttributeType::String
            }
            AttributeKind::Floats => {
                proto.floats = (0..self.length).map(|_| self.float()).collect();
                AttributeType::Floats
            }
            AttributeKind::Ints => {
                proto.ints = self.ints(&formal.name);
                AttributeType::Ints
            }
            AttributeKind::Strings => {
                proto.strings = (0..self.length).map(|_| self.text(&formal.name).into()).collect();
                AttributeType::Strings
            }
            AttributeKind::Tensor => {
                let own = [DType::Float, DType::Int64, DType::Double, DType::String];
                let any = own.get(self.source.below(own.len())).copied().unwrap_or(DType::Float);
                let keys = self.known("T1").filter(|_| formal.name == "keys_tensor").and_then(ValueType::dtype);
                let dtype = keys.or(self.output_type().map(element)).unwrap_or(any);
                let (rank, length) = match self.schema.name.as_str() {
                    "ConstantOfShape" => (1, 1),
                    "LabelEncoder" => (1, self.length),
                    _ => (self.source.below(3), self.length),
                };
                let tensor = self.tensor(dtype, &vec![length; rank])?;
                let tensor = messages::tensor("", &tensor).map_err(|_| "a tensor can't be written".to_string())?;
                proto.t = Some(Box::new(tensor));
                AttributeType::Tensor
            }
            AttributeKind::TypeProto => {
                let value_type = self.output_type().cloned().unwrap_or(ValueType::Tensor(DType::Float).sequence());
                proto.tp = Some(Box::new(messages::type_of(&value_type, None)));
                AttributeType::TypeProto
            }
            _ => return Ok(None),
        };
        proto.r#type = Some(kind.into());
        Ok(Some(proto))
    }

    /// The type that the goal is, if that is one of outputs only.
    pub(super) fn output_type(&self) -> Option<&ValueType> {
        let of_input = |key: &str| self.schema.inputs.iter().any(|input| super::goals::type_key(input) == key);
        match &self.goal {
            Goal::Type(key, value_type) if !of_input(key) => Some(value_type),
            _ => None,
        }
    }

    fn float(&mut self) -> f32 {
        self.source.pick(&[1.0, 0.5, 2.0, 0.0, -1.0, 1e-5, 0.25, 3.0, 0.1, -0.5, 4.0])
    }

    fn int(&mut self, name: &str) -> i64 {
        let rank = self.first.len();
        match name {
            "axis" | "batch_axis" | "time_axis" | "axis_w" => {
                let axis = self.source.below(rank) as i64;
                if self.source.once_in(3) && rank > 0 { axis - rank as i64 } else { axis }
            }
            "is_test" => 1,
            "batch_dims" => self.source.pick(&[0, 0, 1]),
            name if TYPES.contains(&name) => {
                let any = 1 + self.source.below(26) as i64;
                self.output_type().map_or(any, |of| element(of).code().into())
            }
            "hidden_size" => self.sizes.first().map_or(1, |size| *size as i64),
            "num_outputs" => self.outputs as i64,
            "q_num_heads" | "kv_num_heads" if self.schema.name == "LinearAttention" => self.sizes[0] as i64,
            "q_num_heads" | "kv_num_heads" | "num_heads" => self.size() as i64,
            "group" | "num_groups" => self.source.pick(&[1, 1, 2]),
            "blocksize" => self.source.pick(&[1, 2]),
            "p" | "size" | "k" | "sample_size" => self.source.pick(&[1, 2, 3]),
            _ => self.source.pick(&[0, 1, 1, 0, 2]),
        }
    }

    fn ints(&mut self, name: &str) -> Vec<i64> {
        let rank = self.first.len();
        let spatial = rank.saturating_sub(2);
        let (len, list): (usize, &[i64]) = match name {
            "kernel_shape" => (spatial, &[2, 1, 2, 3]),
            "strides" | "dilations" => (spatial, &[1, 2, 1]),
            "pads" if self.schema.name == "Pad" => (2 * rank, &[0, 1, 0, 2]),
            "pads" => (2 * spatial, &[0, 1, 0]),
            "output_padding" => (spatial, &[0]),
            "perm" => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                let (a, b) = (self.source.below(rank), self.source.below(rank));
                if rank > 0 {
                    perm.swap(a, b);
                }
                return perm;
            }
            "axes" => return (0..self.length.min(rank.max(1)) as i64).collect(),
            "pooled_shape" => (2, &[1, 2, 3]),
            "starts" => (self.length.min(rank), &[0, 0, 1]),
            "ends" => (self.length.min(rank), &[2, 9, -1]),
            "shape" | "output_shape" | "repeats" => (rank, &[1, 2, 3]),
            _ => (self.length, &[0, 1, 2, 3]),
        };
        (0..len).map(|_| self.source.pick(list)).collect()
    }

    fn text(&mut self, name: &str) -> String {
        let known = WORDS.iter().find(|(known, _)| *known == name).map(|(_, list)| *list);
        let list = known.unwrap_or(if name == "mode" { MODES } else { &["a", "", "bc", "1", "NONE", "none"] });
        self.source.pick(list).to_string()
    }
}
