//! tract as an engine of `onnxref test`.

use onnxref_engines::{BOOL, Case, FLOAT, INT8, INT32, INT64, Tensor as File, Trouble, UINT8, serve};
use tract_onnx::prelude::*;

/// Element types by their numbers in ONNX.
const TYPES: [(i32, DatumType); 12] = [
    (FLOAT, DatumType::F32),
    (UINT8, DatumType::U8),
    (INT8, DatumType::I8),
    (4, DatumType::U16),
    (5, DatumType::I16),
    (INT32, DatumType::I32),
    (INT64, DatumType::I64),
    (BOOL, DatumType::Bool),
    (10, DatumType::F16),
    (11, DatumType::F64),
    (12, DatumType::U32),
    (13, DatumType::U64),
];

fn main() {
    serve(run);
}

fn run(case: &Case) -> Result<Vec<File>, Trouble> {
    let names: Vec<&str> = case.inputs.iter().map(|input| input.name.as_str()).collect();
    let inputs = case.inputs.iter().map(array).collect::<Result<Vec<_>, _>>()?;
    // What can't be loaded isn't supported.
    let load = || -> TractResult<_> {
        let mut model = tract_onnx::onnx().model_for_path(&case.model)?;
        let mut fed = tvec![];
        for (k, outlet) in model.input_outlets()?.to_vec().into_iter().enumerate() {
            let name = &model.node(outlet.node).name;
            let place = names.iter().position(|other| other == name).unwrap_or(k);
            let input = &inputs[place];
            model.set_input_fact(k, InferenceFact::dt_shape(input.datum_type(), input.shape()))?;
            fed.push(input.clone().into());
        }
        Ok((model.into_optimized()?.into_runnable()?, fed))
    };
    let (model, fed) = load().map_err(|error| Trouble::unsupported(format!("{error:#}")))?;
    let outputs = model.run(fed).map_err(|error| Trouble::failed(format!("{error:#}")))?;
    outputs.iter().zip(&case.outputs).map(|(output, declared)| file(output, *declared)).collect()
}

fn array(file: &File) -> Result<Tensor, Trouble> {
    let of = TYPES.iter().find(|(number, _)| *number == file.data_type);
    let (_, of) = of.ok_or_else(|| Trouble::unsupported(format!("element type {}", file.data_type)))?;
    let shape: Vec<usize> = file.dims.iter().map(|size| *size as usize).collect();
    // SAFETY: the types are those of numbers, and bools are 0 or 1.
    unsafe { Tensor::from_raw_dt(*of, &shape, &file.raw_data) }.map_err(Trouble::failed)
}

/// Sizes, which tract has as expressions, are int64.
fn file(tensor: &Tensor, declared: i32) -> Result<File, Trouble> {
    let sizes = tensor.datum_type() == DatumType::TDim;
    let of = if sizes { DatumType::I64 } else { tensor.datum_type() };
    let tensor = tensor.cast_to_dt(of).map_err(Trouble::failed)?;
    let number = TYPES.iter().find(|(_, other)| *other == of).map(|(number, _)| *number);
    let wrong = || Trouble::failed(format!("an output is {of:?}, and type {declared} is declared"));
    let dims = tensor.shape().iter().map(|size| *size as i64).collect();
    let (data_type, raw_data) = (number.ok_or_else(wrong)?, tensor.as_bytes().to_vec());
    Ok(File { dims, data_type, name: String::new(), raw_data })
}
