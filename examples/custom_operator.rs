//! Adds a custom operator, by domain, name and version, and runs a model that uses it.
//!
//!     cargo run --example custom_operator

#![allow(clippy::indexing_slicing)]

use ndarray::array;
use onnxref::operator::{Call, Node, Operator, Values};
use onnxref::{Model, Result, Tensor, inputs};

/// The operator's schema: a block in the format of the standard's table.
const SCALE: &str = "\
com.example.Scale 1
  (x: T) -> (y: T)
  factor: FLOAT = 2.0
  T: float";

/// `y = factor x`
#[derive(Debug)]
struct Scale {
    factor: f32,
}

/// A node is read once, when a model is loaded. Defaults of its attributes are filled in, names and kinds are checked.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Scale { factor: node.float("factor")? }))
}

impl Operator for Scale {
    /// The number and the types of inputs are checked before this is called. Memory comes from the call, so that the
    /// run counts it.
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let mut y = call.output::<f32>(x.shape())?;
        for (y, x) in y.elements_mut()?.iter_mut().zip(x.as_slice::<f32>()?) {
            *y = self.factor * x;
        }
        Ok([y.finish().into()].into())
    }
}

fn main() -> anyhow::Result<()> {
    let model = Model::options().operator(SCALE, load)?.from_bytes(MODEL)?;
    let outputs = model.run(inputs! { "x" => array![1.0f32, -2.5] })?;
    println!("{}", outputs["y"]);
    assert_eq!(outputs["y"], Tensor::from_array(array![2.0f32, -5.0]));
    Ok(())
}

/// One node `Scale(x) -> y` of domain com.example, which the model imports in version 1; `x` and `y` are float.
const MODEL: &[u8] = b"\
    \x08\x08:C\x0a\x1a\x0a\x01x\x12\x01y\x22\x05Scale:\x0bcom.example\x12\x01gZ\x10\x0a\x01x\x12\x0b\x0a\
    \x09\x08\x01\x12\x05\x0a\x03\x12\x01nb\x10\x0a\x01y\x12\x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\
    B\x0f\x0a\x0bcom.example\x10\x01";
