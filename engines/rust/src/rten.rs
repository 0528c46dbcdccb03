//! rten as an engine of `onnxref test`. It has four element types: int64 and bool are int32 there.

use onnxref_engines::{BOOL, Case, FLOAT, INT8, INT32, INT64, Tensor, Trouble, UINT8, serve};
use rten::{Model, Value};
use rten_tensor::prelude::*;

fn main() {
    serve(run);
}

fn run(case: &Case) -> Result<Vec<Tensor>, Trouble> {
    // What can't be loaded isn't supported.
    let model = Model::load_file(&case.model).map_err(Trouble::unsupported)?;
    let mut inputs = Vec::new();
    for tensor in &case.inputs {
        let id = model.find_node(&tensor.name).ok_or_else(|| Trouble::failed(format!("no input {:?}", tensor.name)))?;
        inputs.push((id, value(tensor)?.into()));
    }
    let outputs = model.run(inputs, model.output_ids(), None).map_err(|error| {
        let text = error.to_string();
        if text.contains("nsupported") { Trouble::unsupported(text) } else { Trouble::failed(text) }
    })?;
    outputs.iter().zip(&case.outputs).map(|(output, declared)| tensor(output, *declared)).collect()
}

fn value(tensor: &Tensor) -> Result<Value, Trouble> {
    let shape: Vec<usize> = tensor.dims.iter().map(|size| *size as usize).collect();
    let bytes = &tensor.raw_data;
    let value = match tensor.data_type {
        FLOAT => Value::from_shape(shape, words(bytes, f32::from_le_bytes)).map_err(Trouble::failed)?,
        INT32 => Value::from_shape(shape, words(bytes, i32::from_le_bytes)).map_err(Trouble::failed)?,
        INT64 => {
            let numbers = words(bytes, i64::from_le_bytes).into_iter().map(i32::try_from);
            let numbers = numbers.collect::<Result<Vec<i32>, _>>();
            let numbers = numbers.map_err(|_| Trouble::unsupported("an int64 beyond int32"))?;
            Value::from_shape(shape, numbers).map_err(Trouble::failed)?
        }
        BOOL => Value::from_shape(shape, bytes.iter().map(|b| i32::from(*b)).collect()).map_err(Trouble::failed)?,
        UINT8 => Value::from_shape(shape, bytes.clone()).map_err(Trouble::failed)?,
        INT8 => Value::from_shape(shape, words(bytes, i8::from_le_bytes)).map_err(Trouble::failed)?,
        other => return Err(Trouble::unsupported(format!("element type {other}"))),
    };
    Ok(value)
}

fn words<T, const N: usize>(bytes: &[u8], word: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|chunk| word(chunk.try_into().unwrap())).collect()
}

fn tensor(value: &Value, declared: i32) -> Result<Tensor, Trouble> {
    let (shape, data_type, raw_data): (Vec<usize>, i32, Vec<u8>) = match value {
        Value::FloatTensor(t) => (t.shape().to_vec(), FLOAT, t.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Value::Int32Tensor(t) => {
            let (shape, numbers) = (t.shape().to_vec(), t.iter().copied());
            match declared {
                INT64 => (shape, INT64, numbers.flat_map(|v| i64::from(v).to_le_bytes()).collect()),
                BOOL => (shape, BOOL, numbers.map(|v| u8::from(v != 0)).collect()),
                _ => (shape, INT32, numbers.flat_map(i32::to_le_bytes).collect()),
            }
        }
        Value::Int8Tensor(t) => (t.shape().to_vec(), INT8, t.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Value::UInt8Tensor(t) => (t.shape().to_vec(), UINT8, t.iter().copied().collect()),
        _ => return Err(Trouble::unsupported("only tensors are supported")),
    };
    let dims = shape.into_iter().map(|size| size as i64).collect();
    Ok(Tensor { dims, data_type, name: String::new(), raw_data })
}
