//! Bytes as a tensor's message: what is read is written and read again as the same, and shows as bounded text.

use half::{bf16, f16};
use num_complex::Complex;
use onnxref::{DType, Element, Scalar, Tensor};

pub fn run(bytes: &[u8]) {
    let tensor = match Tensor::from_proto_bytes(bytes.to_vec()) {
        Ok(tensor) => tensor,
        Err(error) => return crate::check_error(&error),
    };
    assert_eq!(tensor.len(), tensor.shape().iter().product::<usize>());
    let again = Tensor::from_proto_bytes(tensor.to_proto_bytes("again")).expect("what was written");
    assert_eq!(again, tensor);

    // At most 200 elements and what is after them at the end of each axis.
    const ELEMENTS: usize = 400;
    let element = match tensor.dtype() {
        DType::String => 60 * 10 + 8,
        DType::Complex64 => 2 * 60,
        DType::Complex128 => 2 * 350,
        _ => 32,
    };
    let text = tensor.to_string();
    assert!(text.len() <= 512 + ELEMENTS * element, "a text of {} bytes: {text:.200}", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");

    assert_eq!(tensor.scalars().len(), tensor.len());
    for scalar in tensor.scalars().take(64) {
        assert!(scalar.to_string().len() <= element);
        if let (Scalar::String(_), dtype) = (&scalar, tensor.dtype()) {
            assert_eq!(dtype, DType::String);
        }
    }
    if let Ok(strings) = tensor.strings() {
        let list: Vec<&str> = strings.collect();
        assert_eq!(Tensor::from_strings(tensor.shape(), &list).expect("as many"), tensor);
    }
    let typed = [
        typed::<f32>,
        typed::<f64>,
        typed::<f16>,
        typed::<bf16>,
        typed::<i8>,
        typed::<i16>,
        typed::<i32>,
        typed::<i64>,
        typed::<u8>,
        typed::<u16>,
        typed::<u32>,
        typed::<u64>,
        typed::<bool>,
        typed::<Complex<f32>>,
        typed::<Complex<f64>>,
    ];
    let fits = typed.into_iter().filter(|as_type| as_type(&tensor)).count();
    assert!(fits <= 1);
}

/// As an array and back, if the tensor has this type.
fn typed<T: Element>(tensor: &Tensor) -> bool {
    if tensor.dtype() != T::DTYPE {
        assert!(tensor.view::<T>().is_err());
        assert!(tensor.clone().into_array::<T>().is_err());
        return false;
    }
    match (tensor.view::<T>(), tensor.clone().into_array::<T>()) {
        (Ok(view), Ok(array)) => {
            assert_eq!(view.shape(), tensor.shape());
            assert_eq!(&Tensor::from_array(array), tensor);
            assert_eq!(&Tensor::from_array(view), tensor);
        }
        (Err(one), Err(other)) => {
            crate::check_error(&one);
            crate::check_error(&other);
        }
        _ => panic!("either both a view and an array, or none"),
    }
    true
}
