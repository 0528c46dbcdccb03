//! Bytes as a model file: loading ends, and what was loaded runs on zeros.

use onnxref::{DType, Dim, Model, Tensor};

pub fn run(bytes: &[u8]) {
    let options = Model::options().limits(crate::small_limits()).threads(1);
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
                    Dim::Unknown => 1,
                })
                .collect(),
            None => vec![2],
        };
        let Some(tensor) = zeros(info.dtype.unwrap_or(DType::Int64), &shape) else { return };
        if !model.has_default(&info.name) {
            feeds.push((info.name.clone(), tensor));
        }
    }
    let _ = crate::run_model(&model, &feeds);
}

fn zeros(dtype: DType, shape: &[usize]) -> Option<Tensor> {
    let count = shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim))?;
    if count > 1 << 14 {
        return None;
    }
    // What can't be counted is no tensor.
    if dtype == DType::String {
        Tensor::from_strings(shape, vec![""; count]).ok()
    } else {
        Tensor::new(dtype, shape, vec![0; count * dtype.size()]).ok()
    }
}
