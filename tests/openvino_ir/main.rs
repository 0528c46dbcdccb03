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
use onnxref::{DType, Error, Kind, Place, Tensor};
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
            Outcome::Passed => {}
            Outcome::Unsupported(error) => {
                ensure!(error.to_string().contains("the element type"), "{}: {error}", case.name);
                unsupported.push(case.name);
            }
            Outcome::Failed(why) => anyhow::bail!("{}: {why}", case.name),
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

/// How a result differs from the error that it should be.
fn difference<T>(name: &str, result: Result<T, Error>, kind: Kind, text: &str) -> Option<String> {
    let error = match result {
        Ok(_) => return Some(format!("{name}\n  is no error\n  and not     {text}")),
        Err(error) => error,
    };
    let mut lines = Vec::new();
    if error.kind() != kind {
        lines.push(format!("  is of kind  {}\n  and not     {kind}", error.kind()));
    }
    if error.to_string() != text {
        lines.push(format!("  says        {error}\n  and not     {text}"));
    }
    (!lines.is_empty()).then(|| format!("{name}\n{}", lines.join("\n")))
}

/// As [`difference`], of one cause at a place.
fn difference_at<T>(name: &str, result: Result<T, Error>, kind: Kind, text: &str, place: &Place) -> Option<String> {
    let at = match &result {
        Err(error) if error.place() != place => {
            Some(format!("{name}\n  is at       {:?}\n  and not     {place:?}", error.place()))
        }
        Err(error) if error.causes().len() != 1 => Some(format!("{name}\n  has several causes: {:?}", error.causes())),
        _ => None,
    };
    let text = difference(name, result, kind, text);
    if text.is_some() || at.is_some() {
        Some([text, at].into_iter().flatten().collect::<Vec<_>>().join("\n"))
    } else {
        None
    }
}

/// All cases of a table are checked before it fails.
fn assert_as_expected(differences: impl IntoIterator<Item = Option<String>>) {
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
