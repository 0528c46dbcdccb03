//! What a model holds, and what was made of it.

use crate::error::Error;
use crate::files::{FunctionInfo, LoadedModel};
use crate::graph::{Details, GraphDetails, MemoryPlan};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a model holds, and what was made of it: [`LoadOptions::inspect`](crate::LoadOptions::inspect).
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The version of the format.
    pub ir_version: i64,
    /// The imported opsets: domain (empty for `ai.onnx`) and version.
    pub opsets: Vec<(String, i64)>,
    /// `producer_name`, `doc_string`, .. and the model's `metadata_props`.
    pub metadata: Vec<(String, String)>,
    /// The model's functions.
    pub functions: Vec<FunctionInfo>,
    /// Its graph, with calls of functions expanded.
    pub graph: GraphDetails,
    /// The memory of a run, if the model can run.
    pub memory: Option<MemoryPlan>,
    /// Harmless departures from the standard, and parts of the model that are not used, one line each.
    pub notes: Vec<String>,
    /// Why the model can't run: its faults, and operators that are not implemented.
    pub error: Option<Error>,
    /// What the standard forbids, and runs show only when they get there: values of nodes whose shape is not the declared
    /// one, and nodes that can only fail, because shapes don't fit.
    pub mismatches: Vec<Error>,
    /// The document that it is of, if it is of one.
    pub(crate) state: Option<State>,
}

impl Inspection {
    pub(super) fn new(loaded: LoadedModel, details: Details) -> Inspection {
        let LoadedModel { ir_version, opsets, metadata, functions, .. } = loaded;
        let Details { graph, memory, notes, error, mismatches } = details;
        Inspection { ir_version, opsets, metadata, functions, graph, memory, notes, error, mismatches, state: None }
    }
}

/// What a document holds, as a number: each change makes another one. A clone has that of its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u64);

impl State {
    pub(crate) fn new() -> State {
        static LAST: AtomicU64 = AtomicU64::new(0);
        State(LAST.fetch_add(1, Ordering::Relaxed))
    }
}
