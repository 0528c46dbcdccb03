//! Values of all kinds: strings, sequences, maps, optional values, integers that share bytes, copies.

use super::*;

#[test]
fn strings() -> Result<()> {
    let words = Wanted::from_strings(&[2], ["", ""])?;
    let mut session = session(&one_node("StringConcat", 20, vec![], &[("a", &words), ("b", &words)], DType::String))?;
    let a = Tensor::from_string_array(([2usize], &["left ", "längs"][..]))?;
    let b = Tensor::from_string_array(([2usize], &["right", ""][..]))?;
    let outputs = session.run(ort::inputs!["a" => a, "b" => b])?;
    let (shape, given) = outputs["output"].try_extract_strings()?;
    assert_eq!((shape.to_vec(), given), (vec![2], vec!["left right".to_string(), "längs".to_string()]));
    Ok(())
}

/// The outputs of classifiers of scikit-learn: labels, and a sequence of maps or a tensor.
#[test]
fn classifiers() -> Result<()> {
    let files = files("learned-models.tar.xz", "random_forest_zip_map");
    let mut session = session(file(&files, "model.onnx"))?;
    let fed = Wanted::from_proto_bytes(file(&files, "input_0.pb").to_vec())?;
    let model = Model::from_bytes(file(&files, "model.onnx").to_vec())?;
    let wanted = model.run(onnxref::inputs![&fed])?;
    assert_eq!(session.outputs()[1].dtype().to_string(), "Sequence<Map<i64, f32>>");
    let x = Tensor::from_array((fed.shape().to_vec(), fed.as_slice::<f32>()?.to_vec()))?;
    let outputs = session.run(ort::inputs![x])?;
    let maps = outputs[1].try_extract_sequence::<DynMapValueType>()?;
    let expected = wanted.iter().nth(1).unwrap().1.sequence()?;
    assert_eq!(maps.len(), expected.values().len());
    assert!(maps.len() > 1);
    for (map, expected) in maps.iter().zip(expected.values()) {
        let pairs = map.try_extract_key_values::<i64, f32>()?;
        let (keys, scores): (Vec<i64>, Vec<f32>) = pairs.into_iter().unzip();
        assert_eq!(keys, expected.map()?.keys().as_slice::<i64>()?);
        let known: Vec<f32> = expected
            .map()?
            .values()
            .iter()
            .map(|value| value.tensor().unwrap().as_slice::<f32>().unwrap()[0])
            .collect();
        assert_eq!(scores, known);
    }
    Ok(())
}

#[test]
fn sequences_and_maps_are_fed() -> Result<()> {
    let of_tensors = ValueType::Tensor(DType::Float).sequence();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("SequenceAt", &["list", "at"], &["output"], vec![])],
        input: vec![typed("list", &of_tensors), value("at", DType::Int64, None)],
        output: vec![value("output", DType::Float, None)],
        ..Default::default()
    };
    let mut session = session(&common::model(21, 10, graph))?;
    let tensor = |elements: Vec<f32>| Tensor::from_array(([elements.len()], elements));
    let list = Sequence::new([tensor(vec![1.0])?, tensor(vec![2.0, 3.0])?])?;
    let kept = list.extract_sequence();
    assert_eq!(kept[1].extract_tensor().1, [2.0, 3.0]);
    let outputs = session.run(ort::inputs!["list" => list, "at" => Tensor::from_array(([0usize; 0], vec![-1i64]))?])?;
    assert_eq!(outputs["output"].try_extract_tensor::<f32>()?.1, [2.0, 3.0]);

    let map = Map::<String, f32>::new([("one".to_string(), 1.0), ("two".to_string(), 2.0)])?;
    assert_eq!(map.extract_key_values(), [("one".to_string(), 1.0), ("two".to_string(), 2.0)]);
    let vectorizer = GraphProto {
        name: Some("graph".into()),
        node: vec![common::proto::NodeProto {
            domain: Some("ai.onnx.ml".into()),
            ..node(
                "DictVectorizer",
                &["map"],
                &["output"],
                vec![common::proto::AttributeProto {
                    strings: ["two", "three", "one"].map(|word| word.into()).to_vec(),
                    ..common::attribute("string_vocabulary", common::proto::attribute_proto::AttributeType::Strings)
                }],
            )
        }],
        input: vec![typed("map", &ValueType::Map(DType::String, Box::new(ValueType::Tensor(DType::Float))))],
        output: vec![value("output", DType::Float, None)],
        ..Default::default()
    };
    let mut model = ModelProto::decode(&*common::model(21, 10, vectorizer))?;
    let ml = common::proto::OperatorSetIdProto { domain: Some("ai.onnx.ml".into()), version: Some(1) };
    model.opset_import.push(ml);
    let mut session = self::session(&model.encode_to_vec())?;
    let outputs = session.run(ort::inputs!["map" => map])?;
    assert_eq!(outputs["output"].try_extract_tensor::<f32>()?.1, [2.0, 0.0, 1.0]);
    Ok(())
}

#[test]
fn optional_inputs() -> Result<()> {
    let optional = ValueType::Tensor(DType::Float).optional();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("OptionalHasElement", &["given"], &["output"], vec![])],
        input: vec![typed("given", &optional)],
        output: vec![value("output", DType::Bool, None)],
        ..Default::default()
    };
    let mut session = session(&common::model(21, 10, graph))?;
    assert_eq!(session.inputs()[0].dtype().to_string(), "Option<Tensor<f32>()>");
    let outputs = session.run(ort::inputs!["given" => Tensor::from_array(([1usize], vec![1f32]))?])?;
    assert!(outputs["output"].try_extract_scalar::<bool>()?);
    Ok(())
}

#[test]
fn tensors_are_copied() -> Result<()> {
    onnxref();
    let tensor = Tensor::from_array(([1usize, 3], vec![1f32, -0.0, f32::EPSILON]))?;
    let copy = tensor.clone();
    assert_eq!(tensor.extract_tensor(), copy.extract_tensor());
    assert_ne!(tensor.data_ptr(), copy.data_ptr());
    let whole = Tensor::from_array(([2usize], vec![7i64, 8]))?;
    assert_eq!(whole.clone().extract_tensor().1, [7, 8]);
    let mut other = Tensor::<i64>::new(&Allocator::default(), [2usize])?;
    whole.copy_into(&mut other)?;
    assert_eq!(other.extract_tensor().1, [7, 8]);
    assert!(whole.copy_into(&mut Tensor::<i64>::new(&Allocator::default(), [3usize])?).is_err());
    Ok(())
}

/// Types of fewer than 8 bits share bytes in the API.
#[test]
#[allow(unsafe_code)]
fn small_integers() -> Result<()> {
    use onnxref::bytes::Bytes;
    onnxref();
    let four = Wanted::new(DType::Int4, &[3], Bytes::from_static(&[0xff, 0x1, 0x7]))?;
    let mut session = session(&one_node("Identity", 21, vec![], &[("x", &four)], DType::Int4))?;
    let mut fed = ort::value::DynTensor::new(&Allocator::default(), TensorElementType::Int4, [3usize])?;
    // -1, 1 and 7.
    unsafe { fed.data_ptr_mut().cast::<[u8; 2]>().write([0x1f, 0x07]) };
    let outputs = session.run(ort::inputs![fed])?;
    let given = outputs[0].downcast_ref::<DynTensorValueType>()?;
    assert_eq!(given.data_type(), &TensorElementType::Int4);
    assert_eq!(unsafe { given.data_ptr().cast::<[u8; 2]>().read() }, [0x1f, 0x07]);
    Ok(())
}
