//! OpenVINO IR files, written by the openvino package: `tools/make_openvino_cases.py`. The wanted outputs come from
//! the index equation.

use anyhow::{Result, ensure};
use onnxref::conformance::{Case, Outcome};

const DATA: &str = "tests/openvino";

#[test]
fn every_case_passes_or_has_an_element_type_that_onnx_has_not() -> Result<()> {
    let cases = Case::find(DATA)?;
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
