//! Operators that do similar work have the same colour.

/// What kind of work an operator does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    Product,
    Normalization,
    Lookup,
    Layout,
    Control,
    #[default]
    Elementwise,
    Other,
}

impl Family {
    pub(super) fn of(domain: &str, operator: &str) -> Family {
        if !matches!(domain, "" | "org.openvinotoolkit") {
            return Family::Other;
        }
        match operator {
            "MatMul" | "Gemm" | "Conv" | "ConvTranspose" | "Attention" | "Einsum" | "LSTM" | "GRU" | "RNN"
            | "MatMulInteger" | "QLinearMatMul" | "ConvInteger" | "QLinearConv" | "DeformConv" | "Convolution" => {
                Family::Product
            }
            "Gather" | "GatherElements" | "GatherND" | "ScatterElements" | "ScatterND" | "Scatter" | "OneHot"
            | "TensorScatter" => Family::Lookup,
            "Reshape" | "Transpose" | "Concat" | "Split" | "Slice" | "Squeeze" | "Unsqueeze" | "Flatten" | "Expand"
            | "Identity" | "Shape" | "Size" | "Pad" | "Tile" | "Cast" | "CastLike" | "DepthToSpace"
            | "SpaceToDepth" | "Constant" | "ConstantOfShape" | "Range" => Family::Layout,
            "If" | "Loop" | "Scan" | "SequenceMap" => Family::Control,
            name if name.contains("Normalization") || name.contains("Pool") || name.starts_with("Reduce") => {
                Family::Normalization
            }
            "Softmax" | "LogSoftmax" | "Hardmax" | "ArgMax" | "ArgMin" | "TopK" | "CumSum" | "LRN" => {
                Family::Normalization
            }
            name if name.starts_with("Sequence") || name.starts_with("Optional") || name.starts_with("Random") => {
                Family::Other
            }
            _ => Family::Elementwise,
        }
    }

    /// The class of the style sheet, and what the legend says.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Family::Product => ("product", "products"),
            Family::Normalization => ("norm", "normalization, reduction"),
            Family::Lookup => ("lookup", "gather, scatter"),
            Family::Layout => ("shape", "shape, type"),
            Family::Control => ("control", "control flow"),
            Family::Elementwise => ("element", "elementwise"),
            Family::Other => ("other", "other"),
        }
    }
}
