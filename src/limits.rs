//! What a model may cost: every limit by name, with its default.

use crate::error::{Error, Kind};

/// What loading and running a model may cost. A limit is strict: what exceeds it is an error of kind
/// [`Kind::Limit`] that names it, before the cost arises.
///
/// ```
/// use onnxref::{Kind, Limits, Model};
///
/// let mut limits = Limits::default();
/// limits.file_bytes = 10;
/// let error = Model::options().limits(limits).load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx");
/// assert_eq!(error.unwrap_err().kind(), Kind::Limit);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes read when a model is loaded: the file and its external data, counted each time they are read. What is
    /// only mapped does not count. Default: 8 GiB.
    pub file_bytes: u64,
    /// Bytes of memory that loading may take, whatever the size of the file. Default: 64 MiB.
    pub load_bytes: u64,
    /// Bytes of memory that loading may take for each byte read (or mapped), in addition. Default: 4.
    pub load_bytes_per_byte: u64,
    /// Nested messages in a model file: a graph in an attribute of a node in a graph is three. Default: 60.
    pub nesting: usize,
    /// Nodes, those of subgraphs and functions included. Default: 10 million.
    pub nodes: usize,
    /// Bytes of a name. Default: 64 KiB.
    pub name_bytes: usize,
    /// Dimensions of a tensor or of a declared shape. Default: 64.
    pub rank: usize,
    /// Bytes of a tensor that an operator produces. Default: 8 GiB.
    pub tensor_bytes: u64,
    /// Bytes of all tensors that a run holds at one time, without what was fed and the model's own. Default: 8 GiB.
    pub run_bytes: u64,
    /// Elements that a run may produce in all. Default: 2^40.
    pub run_elements: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: 8 << 30,
            load_bytes: 64 << 20,
            load_bytes_per_byte: 4,
            nesting: 60,
            nodes: 10_000_000,
            name_bytes: 64 << 10,
            rank: 64,
            tensor_bytes: 8 << 30,
            run_bytes: 8 << 30,
            run_elements: 1 << 40,
        }
    }
}

impl Limits {
    /// So many bytes of faults are kept, so that all are reported and their memory is bounded.
    pub(crate) fn fault_bytes(&self) -> usize {
        usize::try_from(self.load_bytes / 32).unwrap_or(usize::MAX).min(1 << 20)
    }
}

/// The error for what exceeds a limit: `what` is so much, in `unit`.
#[cold]
pub(crate) fn exceeded(limit: &'static str, what: &str, value: u128, unit: &str, allowed: u64) -> Error {
    Error::new(
        Kind::Limit,
        format!("{what} {value} {unit}: the limit is {allowed} (Limits::{limit}, which LoadOptions::limits can raise)"),
    )
    .at(|place| {
        place.limit = Some(limit);
        place.value = i128::try_from(value).ok();
        place.size = usize::try_from(allowed).ok();
    })
}
