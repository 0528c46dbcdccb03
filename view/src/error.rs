//! Errors as JSON.

use onnxref::{Error, Missing, Needs, Place};
use serde::Serialize;

/// What went wrong: `{"kind": .., "message": .., "faults": N, "causes": [..], "needs": ..}`. Each cause has a kind, a
/// message and the known parts of its [`Place`].
#[derive(Serialize)]
pub struct Fault<'a> {
    kind: String,
    message: String,
    faults: usize,
    causes: Vec<Cause<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Needed<'a>>,
}

impl<'a> Fault<'a> {
    /// An error of the library. `explain` writes the text of each cause.
    pub fn new(error: &'a Error, message: impl Into<String>, explain: impl Fn(&Error) -> String) -> Fault<'a> {
        Fault {
            kind: error.kind().to_string(),
            message: message.into(),
            faults: error.fault_count(),
            causes: error.causes().iter().map(|cause| Cause::new(cause, explain(cause))).collect(),
            needs: error.needs().map(Needed::new),
        }
    }

    /// An error that is not the library's.
    pub fn other(kind: &str, message: impl Into<String>) -> Fault<'a> {
        let (kind, message) = (kind.to_string(), message.into());
        let cause = Cause { kind: kind.clone(), message: message.clone(), place: None };
        Fault { kind, message, faults: 1, causes: vec![cause], needs: None }
    }
}

/// One cause: `{"kind": .., "message": .., "node": .., ..}`.
#[derive(Serialize)]
pub struct Cause<'a> {
    kind: String,
    message: String,
    #[serde(flatten)]
    place: Option<At<'a>>,
}

impl<'a> Cause<'a> {
    /// With the text for it.
    pub fn new(error: &'a Error, message: String) -> Cause<'a> {
        Cause { kind: error.kind().to_string(), message, place: Some(At::new(error.place())) }
    }
}

/// The known parts of an error's place.
#[derive(Serialize)]
struct At<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<&'a [usize]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
}

impl<'a> At<'a> {
    fn new(place: &'a Place) -> At<'a> {
        At {
            function: place.function.as_deref(),
            node_index: place.node_index,
            node: place.node.as_deref(),
            operator: place.operator.as_deref(),
            domain: place.domain.as_deref(),
            version: place.version,
            value_name: place.value_name.as_deref(),
            parameter: place.parameter.as_deref(),
            attribute: place.attribute.as_deref(),
            axis: place.axis,
            size: place.size,
            value: place.value,
            position: place.position.as_deref(),
            limit: place.limit,
        }
    }
}

/// The operators that a model needs.
#[derive(Serialize)]
struct Needed<'a> {
    operators: usize,
    nodes: usize,
    missing_operators: usize,
    missing_nodes: usize,
    missing: Vec<Lacking<'a>>,
}

#[derive(Serialize)]
struct Lacking<'a> {
    domain: &'a str,
    operator: &'a str,
    version: Option<i64>,
    reason: &'a str,
    nodes: usize,
    first: At<'a>,
}

impl<'a> Needed<'a> {
    fn new(needs: &'a Needs) -> Needed<'a> {
        let Needs { operators, nodes, missing_operators, missing_nodes, .. } = *needs;
        let missing = needs.missing.iter().map(Lacking::new).collect();
        Needed { operators, nodes, missing_operators, missing_nodes, missing }
    }
}

impl<'a> Lacking<'a> {
    fn new(missing: &'a Missing) -> Lacking<'a> {
        let Missing { domain, operator, version, reason, nodes, first, .. } = missing;
        Lacking { domain, operator, version: *version, reason, nodes: *nodes, first: At::new(first) }
    }
}
