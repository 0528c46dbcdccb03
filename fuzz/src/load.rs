//! Bytes as a model file: an inspection and loading terminate, and a loaded model runs on zeros.

use onnxref::{DType, Dim, Map, Model, Optional, Sequence, Tensor, Value, ValueType};

pub fn run(bytes: &[u8]) {
    let options = Model::options().limits(crate::small_limits()).threads(1);
    if let Some(error) = options.inspect_bytes(bytes.to_vec()).map_or_else(Some, |found| found.error) {
        crate::check_error(&error);
    }
    let model = match options.from_bytes(bytes.to_vec()) {
        Ok(model) => model,
        Err(error) => return crate::check_error(&error),
    };
    crate::check_notes(model.report());
    let _ = (model.metadata(), model.opsets(), model.ir_version(), model.node_count());
    let mut feeds = Vec::new();
    for info in model.inputs() {
        let shape: Vec<usize> = match &info.shape {
            Some(dims) => dims
                .iter()
                .map(|dim| match dim {
                    Dim::Fixed(size) => *size,
                    Dim::Symbol(_) => 2,
                    _ => 1,
                })
                .collect(),
            None => vec![2],
        };
        let value_type = info.value_type.clone().unwrap_or(DType::Int64.into());
        let Some(value) = empty(value_type, &shape) else { return };
        if !model.has_default(&info.name) {
            feeds.push((info.name.clone(), value));
        }
    }
    let _ = crate::run_model(&model, &feeds);
}

/// A tensor of zeros, or what holds nothing.
fn empty(value_type: ValueType, shape: &[usize]) -> Option<Value> {
    Some(match value_type {
        ValueType::Tensor(dtype) => zeros(dtype, shape)?.into(),
        ValueType::Sequence(element) => Sequence::new(*element, []).ok()?.into(),
        ValueType::Optional(element) => Optional::none(*element).into(),
        ValueType::Map(key, value) => Map::new(zeros(key, &[0])?, Sequence::new(*value, []).ok()?).ok()?.into(),
        _ => return None,
    })
}

fn zeros(dtype: DType, shape: &[usize]) -> Option<Tensor> {
    let count = shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim))?;
    if count > 1 << 14 {
        return None;
    }
    // A shape whose size overflows is not a tensor.
    if dtype == DType::String {
        Tensor::from_strings(shape, vec![""; count]).ok()
    } else {
        Tensor::new(dtype, shape, vec![0; count * dtype.size()]).ok()
    }
}
