//! Each operator against its equation, walked position by position: the same elements, or an error for the same reason.

use crate::proto::attribute_proto::AttributeType;
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::source::{Source, element, fit};
use onnxref::{DType, Error, Kind, Model, Tensor};
use prost::Message;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Gather,
    GatherElements,
    GatherND,
    /// Gather of OpenVINO, whose axis is an input.
    OpenVino,
}

#[derive(Debug)]
struct Case {
    op: Op,
    /// For OpenVINO the operator's version.
    opset: i64,
    /// `axis` or `batch_dims`; `None` where it isn't given.
    attribute: Option<i64>,
    dtype: DType,
    data: Vec<usize>,
    index_type: DType,
    indices: Vec<usize>,
    values: Vec<i128>,
    seed: u8,
    /// The axis of OpenVINO's Gather, and its shape.
    axis: (i64, &'static [usize]),
    /// The data and the indices are initializers.
    constant: [bool; 2],
    /// Gather-1 takes negative indices.
    lenient: bool,
}

/// In place of an element of the data.
const ZERO: usize = usize::MAX;

/// What the equation gives.
#[derive(Debug)]
enum Expected {
    /// The shape, and for each element its place in the data, or [`ZERO`].
    Output(Vec<usize>, Vec<usize>),
    /// The first index that is out of range, by its place; the axis as it was given, and its size.
    Index(usize, i64, usize),
    /// The model or its feeds break another rule.
    Refused,
}

pub fn run(bytes: &[u8]) {
    let case = Case::draw(&mut Source::new(bytes));
    let expected = case.expected();
    match (case.run(), expected) {
        (Ok(output), Expected::Output(shape, places)) => {
            assert_eq!((output.dtype(), output.shape()), (case.dtype, &shape[..]), "{case:?}");
            assert!(output == case.tensor(&shape, places.iter().copied()), "{case:?}: {output:?}");
        }
        // An output too large is seen before an index out of range.
        (Err(error), Expected::Index(..) | Expected::Refused) if too_large(&error) => {
            crate::check_error(&error);
        }
        (Err(error), Expected::Index(at, axis, size)) => {
            crate::check_error(&error);
            let position = position_of(&case.indices, at);
            let value = case.values[at];
            let (place, text) = (error.place(), error.to_string());
            assert_eq!(error.kind(), Kind::Input, "{case:?}: {text}");
            assert_eq!(place.position.as_ref(), Some(&position), "{case:?}: {text}");
            assert_eq!(
                (place.value, place.axis, place.size),
                (Some(value), Some(axis), Some(size)),
                "{case:?}: {text}"
            );
            let named = if position.is_empty() { String::new() } else { format!("{position:?}") };
            assert!(text.contains(&format!("indices{named} = {value} ")), "{case:?}: {text}");
        }
        (Err(error), Expected::Refused) => {
            crate::check_error(&error);
            assert!(matches!(error.kind(), Kind::Input | Kind::Model), "{case:?}: {error}");
            assert!(error.place().position.is_none(), "{case:?}: {error}");
        }
        (got, expected) => panic!("{case:?} gives {got:?}, and should give {expected:?}"),
    }
}

fn too_large(error: &Error) -> bool {
    error.kind() == Kind::Limit || error.to_string().ends_with("more bytes than can be counted")
}

impl Case {
    fn draw(source: &mut Source<'_>) -> Case {
        let op = source.pick(&[Op::Gather, Op::GatherElements, Op::GatherND, Op::OpenVino]);
        let opset = match op {
            Op::Gather => source.pick(&[13, 11, 1, 10, 12, 28, 18]),
            Op::OpenVino => source.pick(&[8, 7, 1]),
            _ => source.pick(&[13, 11, 12, 28, 18]),
        };
        let types: Vec<DType> = DType::all().collect();
        let dtype = match source.below(64) {
            63 => types[source.below(types.len())],
            _ if op == Op::OpenVino => types[source.below(types.len())],
            n if opset < 13 => types[n % 15],
            n => types[n % 16],
        };
        let (data, indices, attribute, axis) = draw_shapes(source, op);
        let (data, indices) =
            if source.once_in(32) { stretched(source, dtype, data, indices) } else { (data, indices) };
        let attribute = if source.once_in(32) { Some(source.axis()) } else { attribute };
        let index_type = match source.below(128) {
            127 => types[source.below(types.len())],
            n if op == Op::OpenVino => INTEGERS[n % 8],
            n if op == Op::GatherND || n % 2 == 0 => DType::Int64,
            _ => DType::Int32,
        };
        let index_type = if INTEGERS.contains(&index_type) { index_type } else { DType::Int64 };
        let axis_shape: &[usize] = match source.below(64) {
            63 => &[2],
            62 => &[1, 1],
            61 => &[0],
            n => [&[][..], &[1]][n % 2],
        };
        let axis = (if source.once_in(32) { source.axis() } else { axis }, axis_shape);
        let wrong = source.once_in(3);
        let mut case = Case {
            op,
            opset,
            attribute,
            dtype,
            data,
            index_type,
            indices,
            values: Vec::new(),
            seed: source.byte(),
            axis,
            constant: [source.once_in(4), source.once_in(4)],
            lenient: source.once_in(4),
        };
        let (rank, b) = (case.data.len() as i64, case.attribute.unwrap_or(0));
        let width = case.indices.last().copied().unwrap_or(1).max(1);
        for k in 0..count(&case.indices) {
            let axis = match op {
                Op::GatherND => b.wrapping_add((k % width) as i64),
                Op::OpenVino => axis.0.wrapping_add(if axis.0 < 0 { rank } else { 0 }),
                _ => b.wrapping_add(if b < 0 { rank } else { 0 }),
            };
            let size = usize::try_from(axis).ok().and_then(|axis| case.data.get(axis)).copied().unwrap_or(3);
            let value = source.index(size, wrong);
            let unsigned = op == Op::Gather && opset < 11 || op == Op::OpenVino && opset < 8;
            let value = if unsigned && !source.once_in(64) { value.max(!value) } else { value };
            case.values.push(fitted(index_type, value));
        }
        // Indices that are too large for a file are fed.
        case.constant[1] &= count(&case.indices) * index_type.size() <= 1 << 19;
        case
    }

    /// The elements at some places of the data as a tensor.
    fn tensor(&self, shape: &[usize], places: impl Iterator<Item = usize>) -> Tensor {
        if self.dtype == DType::String {
            let text = |k| format!("{k}{}", &"é\0é"[..2 * usize::from(self.seed & 1)]);
            let strings = places.map(|k| if k == ZERO { String::new() } else { text(k) });
            return Tensor::from_strings(shape, strings).expect("as many as the shape takes");
        }
        let zero = || vec![0; self.dtype.size()];
        let element = |k| if k == ZERO { zero() } else { element(self.dtype, k, self.seed) };
        let bytes: Vec<u8> = places.flat_map(element).collect();
        Tensor::new(self.dtype, shape, bytes).expect("bytes of the type")
    }

    fn run(&self) -> Result<Tensor, Error> {
        let data = self.tensor(&self.data, 0..count(&self.data));
        let size = self.index_type.size();
        let bytes: Vec<u8> = self.values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
        let indices = Tensor::new(self.index_type, &self.indices, bytes).expect("as many as the shape takes");
        let axes: Vec<u8> = (0..count(self.axis.1)).flat_map(|_| self.axis.0.to_le_bytes()).collect();
        let axis = Tensor::new(DType::Int64, self.axis.1, axes).expect("as many as the shape takes");
        let (op, domain) = match self.op {
            Op::OpenVino => ("Gather".to_string(), "org.openvinotoolkit"),
            op => (format!("{op:?}"), ""),
        };
        let name = if matches!(self.op, Op::GatherND | Op::OpenVino) { "batch_dims" } else { "axis" };
        let attribute = self.attribute.map(|value| AttributeProto {
            name: Some(name.into()),
            r#type: Some(AttributeType::Int.into()),
            i: Some(value),
            ..AttributeProto::default()
        });
        let mut graph = GraphProto {
            name: Some("graph".into()),
            node: vec![NodeProto {
                op_type: Some(op),
                domain: Some(domain.into()),
                input: vec!["data".into(), "indices".into()],
                output: vec!["output".into()],
                attribute: attribute.into_iter().collect(),
                ..NodeProto::default()
            }],
            output: vec![declared("output", self.dtype)],
            ..GraphProto::default()
        };
        let mut feeds = Vec::new();
        for ((name, tensor), constant) in [("data", data), ("indices", indices)].into_iter().zip(self.constant) {
            if constant {
                let message = tensor.to_proto_bytes(name);
                graph.initializer.push(Message::decode(message.as_slice()).expect("what was encoded"));
            } else {
                graph.input.push(declared(name, tensor.dtype()));
                feeds.push((name.to_string(), tensor.into()));
            }
        }
        if self.op == Op::OpenVino {
            graph.node[0].input.push("axis".into());
            graph.input.push(declared("axis", DType::Int64));
            feeds.push(("axis".to_string(), axis.into()));
        }
        let model = ModelProto {
            ir_version: Some(8),
            opset_import: vec![OperatorSetIdProto { domain: Some(domain.into()), version: Some(self.opset) }],
            graph: Some(graph),
            ..ModelProto::default()
        };
        let options = Model::options().limits(crate::small_limits());
        let options = options.compatibility(|c| c.gather_1_negative_indices = self.lenient);
        let outputs = crate::run_model(&options.from_bytes(model.encode_to_vec())?, &feeds)?;
        assert_eq!(outputs.len(), 1);
        outputs.into_iter().next().expect("an output").1.into_tensor()
    }

    fn expected(&self) -> Expected {
        match self.equation() {
            Expected::Output(shape, _) if !is_small(self.dtype, &shape) => Expected::Refused,
            expected => expected,
        }
    }

    fn equation(&self) -> Expected {
        let known = if self.opset < 13 { DType::Complex128 } else { DType::Bfloat16 };
        let right = match self.op {
            Op::OpenVino => true,
            Op::GatherND => self.dtype <= known && self.index_type == DType::Int64,
            _ => self.dtype <= known && matches!(self.index_type, DType::Int32 | DType::Int64),
        };
        if !right {
            return Expected::Refused;
        }
        match self.op {
            Op::Gather => self.gather(),
            Op::GatherElements => self.gather_elements(),
            Op::GatherND => self.gather_nd(),
            Op::OpenVino => self.openvino(),
        }
    }

    /// The axis that the attribute names.
    fn axis(&self) -> Option<usize> {
        let given = if self.op == Op::OpenVino { self.axis.0 } else { self.attribute.unwrap_or(0) };
        let (given, rank) = (i128::from(given), self.data.len() as i128);
        let axis = if given < 0 { given + rank } else { given };
        (0..rank).contains(&axis).then_some(axis as usize)
    }

    /// The entry of an axis of `size` that the index at a place names.
    fn entry(&self, at: usize, size: usize) -> Option<usize> {
        let (value, s) = (self.values[at], size as i128);
        let negative = match self.op {
            Op::Gather => self.opset >= 11 || self.lenient,
            Op::OpenVino => self.opset >= 8,
            _ => true,
        };
        let least = if negative { -s } else { 0 };
        (least..s).contains(&value).then(|| if value < 0 { value + s } else { value } as usize)
    }

    /// The first index that is out of range for its axis.
    fn first_bad(&self, axis: impl Fn(usize) -> usize) -> Option<(usize, usize)> {
        let bad = (0..self.values.len()).find(|&at| self.entry(at, self.data[axis(at)]).is_none())?;
        Some((bad, axis(bad)))
    }

    /// `output[a.., i.., b..] = data[a.., indices[i..], b..]`
    fn gather(&self) -> Expected {
        let Some(axis) = self.axis() else { return Expected::Refused };
        if let Some((at, _)) = self.first_bad(|_| axis) {
            return Expected::Index(at, self.attribute.unwrap_or(0), self.data[axis]);
        }
        let q = self.indices.len();
        let shape = [&self.data[..axis], &self.indices, &self.data[axis + 1..]].concat();
        let places = walk(&shape, |position| {
            let (a, i, b) = (&position[..axis], &position[axis..axis + q], &position[axis + q..]);
            let entry = self.entry(place(&self.indices, i), self.data[axis]).expect("checked");
            place(&self.data, &[a, &[entry], b].concat())
        });
        Expected::Output(shape, places)
    }

    /// `output[i, j, k] = data[i, indices[i, j, k], k]` for axis 1 of three; and so on.
    fn gather_elements(&self) -> Expected {
        let Some(axis) = self.axis() else { return Expected::Refused };
        let beyond = |d: usize| d != axis && self.indices[d] > self.data[d];
        if self.data.len() != self.indices.len() || (0..self.data.len()).any(beyond) {
            return Expected::Refused;
        }
        if let Some((at, _)) = self.first_bad(|_| axis) {
            return Expected::Index(at, self.attribute.unwrap_or(0), self.data[axis]);
        }
        let places = walk(&self.indices, |position| {
            let mut source = position.to_vec();
            source[axis] = self.entry(place(&self.indices, position), self.data[axis]).expect("checked");
            place(&self.data, &source)
        });
        Expected::Output(self.indices.clone(), places)
    }

    /// `output[b.., i.., s..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., s..]`
    fn gather_nd(&self) -> Expected {
        // Version 11 has no batch_dims.
        let b = match self.attribute {
            Some(_) if self.opset < 12 => return Expected::Refused,
            given => given.unwrap_or(0),
        };
        let least = self.data.len().min(self.indices.len()) as i64;
        if !(0..least).contains(&b) {
            return Expected::Refused;
        }
        let b = b as usize;
        let Some((&width, outer)) = self.indices.split_last() else { return Expected::Refused };
        if self.data[..b] != self.indices[..b] || !(1..=self.data.len() - b).contains(&width) {
            return Expected::Refused;
        }
        if let Some((at, axis)) = self.first_bad(|at| b + at % width) {
            return Expected::Index(at, axis as i64, self.data[axis]);
        }
        let shape = [outer, &self.data[b + width..]].concat();
        let places = walk(&shape, |position| {
            let (tuple, s) = position.split_at(outer.len());
            let mut source = position[..b].to_vec();
            for k in 0..width {
                let at = place(&self.indices, &[tuple, &[k]].concat());
                source.push(self.entry(at, self.data[b + k]).expect("checked"));
            }
            source.extend(s);
            place(&self.data, &source)
        });
        Expected::Output(shape, places)
    }
}

impl Case {
    /// `output[b.., a.., i.., c..] = data[b.., a.., indices[b.., i..], c..]`; from version 8 on zero where the index is
    /// out of range.
    fn openvino(&self) -> Expected {
        let (r, q) = (self.data.len() as i128, self.indices.len() as i128);
        let (Some(axis), 1, 0..2) = (self.axis(), count(self.axis.1), self.axis.1.len()) else {
            return Expected::Refused;
        };
        if self.opset < 7 && self.attribute.is_some() {
            return Expected::Refused;
        }
        let b = i128::from(self.attribute.unwrap_or(0));
        let b = if b < 0 { b + q } else { b };
        if !(0..=r.min(q).min(axis as i128)).contains(&b) {
            return Expected::Refused;
        }
        let b = b as usize;
        if self.data[..b] != self.indices[..b] {
            return Expected::Refused;
        }
        if self.opset < 8
            && let Some((at, _)) = self.first_bad(|_| axis)
        {
            return Expected::Index(at, self.axis.0, self.data[axis]);
        }
        let own = self.indices.len() - b;
        let shape = [&self.data[..axis], &self.indices[b..], &self.data[axis + 1..]].concat();
        if !is_small(self.dtype, &shape) {
            return Expected::Refused;
        }
        let places = walk(&shape, |position| {
            let (before, i, after) = (&position[..axis], &position[axis..axis + own], &position[axis + own..]);
            match self.entry(place(&self.indices, &[&position[..b], i].concat()), self.data[axis]) {
                Some(entry) => place(&self.data, &[before, &[entry], after].concat()),
                None => ZERO,
            }
        });
        Expected::Output(shape, places)
    }
}

/// The types of indices: ONNX takes two of them.
const INTEGERS: [DType; 8] =
    [DType::Int64, DType::Int32, DType::Uint64, DType::Uint8, DType::Int8, DType::Uint16, DType::Int16, DType::Uint32];

/// The value that is left of a number in a type.
fn fitted(dtype: DType, value: i64) -> i128 {
    match dtype {
        DType::Int8 => i128::from(value as i8),
        DType::Int16 => i128::from(value as i16),
        DType::Int32 => i128::from(value as i32),
        DType::Uint8 => i128::from(value as u8),
        DType::Uint16 => i128::from(value as u16),
        DType::Uint32 => i128::from(value as u32),
        DType::Uint64 => i128::from(value as u64),
        _ => i128::from(value),
    }
}

/// Shapes of data and of indices that mostly go together, the attribute, and an axis. The output is not large.
fn draw_shapes(source: &mut Source<'_>, op: Op) -> (Vec<usize>, Vec<usize>, Option<i64>, i64) {
    let mut data = source.dims(5, 400);
    if data.is_empty() && !source.once_in(8) {
        data.push(source.dim());
    }
    // Now and then an axis that is longer than a byte counts.
    if source.once_in(16) {
        data = vec![source.pick(&[255, 256, 257, 300, 127, 128, 129, 63, 64, 65]), source.pick(&[1, 2, 3])];
        if source.once_in(2) {
            data.reverse();
        }
    }
    let rank = data.len();
    if op == Op::GatherND {
        let b = if rank > 1 && source.once_in(3) { source.below(rank) } else { 0 };
        let mut indices = data[..b].to_vec();
        let mut tuples = source.dims(2, 16);
        let slice: usize = data[b..].iter().skip(1).product();
        fit(&mut tuples, (4000 / indices.iter().product::<usize>().max(1) / slice.max(1)).max(1));
        indices.extend(tuples);
        indices.push(if source.once_in(32) { source.below(8) } else { 1 + source.below(rank.max(1) - b.min(rank)) });
        if source.once_in(32) {
            let at = source.below(indices.len());
            indices[at] = source.dim();
        }
        let attribute = if b == 0 && !source.once_in(4) { None } else { Some(b as i64) };
        bounded(&mut indices);
        return (data, indices, attribute, 0);
    }
    let axis = if rank == 0 { 0 } else { source.below(rank) };
    let given = if source.once_in(2) { axis as i64 - rank as i64 } else { axis as i64 };
    let attribute = if given == 0 && source.once_in(2) { None } else { Some(given) };
    if op == Op::OpenVino {
        let b = if source.once_in(2) { source.below(axis + 1) } else { 0 };
        let mut own = source.dims(3, 64);
        let entry = data.iter().product::<usize>() / data.get(axis).copied().unwrap_or(1).max(1);
        fit(&mut own, (4000 / entry.max(1)).max(1));
        let mut indices = [&data[..b], &own].concat();
        if source.once_in(32) && !indices.is_empty() {
            let at = source.below(indices.len());
            indices[at] = source.dim();
        }
        let batch_dims = if source.once_in(3) { b as i64 - indices.len() as i64 } else { b as i64 };
        let attribute = if batch_dims == 0 && source.once_in(2) { None } else { Some(batch_dims) };
        return (data, indices, attribute, given);
    }
    let mut indices = match op {
        Op::Gather => {
            let size = data.get(axis).copied().unwrap_or(1).max(1);
            let mut indices = source.dims(3, 64);
            fit(&mut indices, 4000 * size / data.iter().product::<usize>().max(1));
            indices
        }
        _ => {
            let whole = source.once_in(2);
            let mut indices = data.clone();
            for (d, dim) in indices.iter_mut().enumerate() {
                if d == axis || !whole && source.once_in(3) {
                    let drawn = source.dim();
                    *dim = if d == axis || source.once_in(64) { drawn } else { drawn.min(*dim) };
                }
            }
            if source.once_in(64) {
                indices.push(source.dim());
            }
            indices
        }
    };
    bounded(&mut indices);
    (data, indices, attribute, 0)
}

/// Shapes without elements whose other dimensions are huge, or shapes of high rank.
fn stretched(
    source: &mut Source<'_>,
    dtype: DType,
    mut data: Vec<usize>,
    mut indices: Vec<usize>,
) -> (Vec<usize>, Vec<usize>) {
    const MOST: usize = usize::BITS as usize;
    const HUGE: [usize; 6] =
        [1 << 20, 1 << (MOST / 2 - 1), 1 << (MOST / 2), 1 << (MOST - 24), (1 << (MOST / 2 + 1)) + 1, 1 << (MOST - 4)];
    let before = (data.clone(), indices.clone());
    for dims in [&mut data, &mut indices] {
        match source.below(4) {
            0 => {}
            1 => dims.extend([1; 7]),
            2 => dims.splice(0..0, [1; 9]).for_each(drop),
            _ if dims.len() < 2 => dims.extend([source.pick(&HUGE), 0]),
            _ => {
                let at = source.below(dims.len());
                dims[at] = 0;
                for _ in 0..1 + source.below(2) {
                    let at = source.below(dims.len());
                    if dims[at] != 0 {
                        dims[at] = source.pick(&HUGE);
                    }
                }
            }
        }
    }
    if source.once_in(2) && data.contains(&0) {
        indices.clone_from(&data);
    }
    // There are such tensors.
    if countable(dtype, &data) && countable(DType::Int64, &indices) { (data, indices) } else { before }
}

/// The number of elements.
fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().product() }
}

/// Whether a tensor is within the limits of these runs.
fn is_small(dtype: DType, shape: &[usize]) -> bool {
    countable(dtype, shape) && count(shape) * dtype.size() <= 1 << 20
}

/// Whether the bytes of a tensor can be counted: one without elements has none.
fn countable(dtype: DType, shape: &[usize]) -> bool {
    let bytes = shape.iter().try_fold(dtype.size(), |n, dim| n.checked_mul(*dim));
    shape.contains(&0) || bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

fn bounded(indices: &mut [usize]) {
    fit(indices, 1000);
}

fn declared(name: &str, dtype: DType) -> ValueInfoProto {
    let tensor = type_proto::Tensor { elem_type: Some(dtype.code()), shape: None };
    let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(r#type), ..ValueInfoProto::default() }
}

/// Calls `at` for every position of a shape, in row-major order: an odometer.
pub(crate) fn walk(shape: &[usize], mut at: impl FnMut(&[usize]) -> usize) -> Vec<usize> {
    let mut found = Vec::new();
    if shape.contains(&0) {
        return found;
    }
    let mut position = vec![0; shape.len()];
    loop {
        found.push(at(&position));
        let Some(turned) = (0..shape.len()).rev().find(|&d| position[d] + 1 < shape[d]) else { return found };
        position[turned] += 1;
        position[turned + 1..].fill(0);
    }
}

/// The place of a position in row-major order.
pub(crate) fn place(shape: &[usize], position: &[usize]) -> usize {
    assert_eq!(shape.len(), position.len());
    assert!(position.iter().zip(shape).all(|(c, dim)| c < dim), "{position:?} lies outside of {shape:?}");
    position.iter().zip(shape).fold(0, |place, (c, dim)| place * dim + c)
}

/// The position at a place.
fn position_of(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut position: Vec<usize> = shape.iter().rev().map(|dim| (at % dim, at /= dim).0).collect();
    position.reverse();
    position
}
