//! OpenVINO: its Gather as an operator, and its IR files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod constants;
mod equation;
mod file;
mod layers;
mod network;
mod refusals;
mod strings;
mod text;

use anyhow::ensure;
use common::{model, one_node_graph};
use onnxref::conformance::{Case, Outcome};
use onnxref::{DType, Tensor};
use prost::Message;

const DOMAIN: &str = "org.openvinotoolkit";

/// The files are written by the openvino package: `tools/make_openvino_cases.py`. The wanted outputs come from the
/// index equation.
#[test]
fn every_case_passes_or_has_an_element_type_that_onnx_has_not() -> anyhow::Result<()> {
    let cases = Case::find("tests/openvino")?;
    let mut unsupported = Vec::new();
    let total = cases.len();
    for case in cases {
        match case.run() {
            Outcome::Passed { exact: true, .. } => {}
            Outcome::Unsupported(error) => {
                ensure!(error.to_string().contains("the element type"), "{}: {error}", case.name);
                unsupported.push(case.name);
            }
            other => anyhow::bail!("{}: {other:?}", case.name),
        }
    }
    ensure!(unsupported == ["type_nf4_const", "type_u1_const", "type_u3_const", "type_u6_const"], "{unsupported:?}");
    println!("{total} cases");
    ensure!(total >= 120, "{total} cases");
    Ok(())
}

/// The bytes of an `.onnx` model of one node of OpenVINO's domain, called "node". `change` may make it another.
fn onnx(
    opset: i64,
    attributes: Vec<common::proto::AttributeProto>,
    inputs: &[(&str, &Tensor)],
    output: DType,
    change: impl FnOnce(&mut common::proto::GraphProto),
) -> Vec<u8> {
    let mut graph = one_node_graph("Gather", attributes, inputs, output);
    graph.node[0].domain = Some(DOMAIN.into());
    change(&mut graph);
    let mut model = common::proto::ModelProto::decode(&*model(13, 8, graph)).unwrap();
    model.opset_import[0].domain = Some(DOMAIN.into());
    model.opset_import[0].version = Some(opset);
    model.encode_to_vec()
}
