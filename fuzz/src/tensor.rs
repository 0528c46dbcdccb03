//! Bytes as the message of a tensor or another value: a value that is read, written and read again stays the same, and
//! prints as bounded text.

use half::{bf16, f16};
use num_complex::Complex;
use onnxref::{DType, Element, Map, Optional, Scalar, Sequence, Tensor, Value, ValueType};

pub fn run(bytes: &[u8]) {
    for value_type in other_types() {
        match Value::from_proto_bytes(bytes.to_vec(), &value_type) {
            Ok(value) => {
                assert!(value.is_of(&value_type));
                goes_round(&value, &value_type);
            }
            Err(error) => crate::check_error(&error),
        }
    }
    let tensor = match Tensor::from_proto_bytes(bytes.to_vec()) {
        Ok(tensor) => tensor,
        Err(error) => return crate::check_error(&error),
    };
    assert_eq!(tensor.len(), tensor.shape().iter().product::<usize>());
    let again = Tensor::from_proto_bytes(tensor.to_proto_bytes("again")).expect("what was written");
    assert_eq!(again, tensor);
    within_others(&tensor);

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

/// Types of values that are not tensors.
fn other_types() -> Vec<ValueType> {
    let (float, text) = (ValueType::Tensor(DType::Float), ValueType::Tensor(DType::String));
    let map = |key, value: &ValueType| ValueType::Map(key, Box::new(value.clone()));
    let mut types = vec![float.clone(), text.clone(), map(DType::Int64, &float), map(DType::String, &text)];
    types.extend([float.clone().sequence(), float.clone().optional()]);
    let outer = types.clone().into_iter().flat_map(|element| [element.clone().sequence(), element.optional()]);
    let maps = [DType::Int32, DType::Uint64].map(|key| map(key, &float.clone().sequence()));
    outer.chain(types[2..4].to_vec()).chain(maps).collect()
}

/// What is written is read again as the same.
fn goes_round(value: &Value, value_type: &ValueType) {
    let again = Value::from_proto_bytes(value.to_proto_bytes("again"), value_type);
    assert_eq!(&again.expect("what was written"), value);
    let text = value.to_string();
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// A tensor in values of the other kinds.
fn within_others(tensor: &Tensor) {
    let element = ValueType::Tensor(tensor.dtype());
    let sequence = Sequence::new(element.clone(), [tensor.into(), tensor.into()]).expect("tensors of the type");
    let optional = Optional::some(sequence.clone().into());
    goes_round(&sequence.clone().into(), &element.clone().sequence());
    goes_round(&optional.into(), &element.clone().sequence().optional());
    let none = Sequence::new(element.clone(), []).expect("nothing of the type");
    goes_round(&Optional::some(none.clone().into()).into(), &element.clone().sequence().optional());
    let nothings = Sequence::new(element.clone().sequence(), [none.into()]).expect("a sequence of the type");
    goes_round(&nothings.into(), &element.clone().sequence().sequence());
    let values = Sequence::new(element.clone(), vec![tensor.into(); tensor.len().min(8)]).expect("tensors of the type");
    if let Ok(map) = Map::new(tensor.clone(), values) {
        goes_round(&map.into(), &ValueType::Map(tensor.dtype(), Box::new(element)));
    }
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
