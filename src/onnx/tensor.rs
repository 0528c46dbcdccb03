//! Tensors from their messages.

use super::external::External;
use super::proto::{StringStringEntryProto, TensorProto, tensor_proto::DataLocation};
use super::scan;
use crate::dtype::{DType, Field, ShapeText, byte_count};
use crate::error::{Error, Kind, Result, quote};
use crate::files::ModelFiles;
use crate::tensor::{Shape, Tensor, packed_size, unpack};
use crate::value::{Dim, Fact};
use bytes::Bytes;
use prost::Message;

/// The tensor in a message. External data comes from `files`.
pub(crate) fn read(mut proto: TensorProto, files: &ModelFiles) -> Result<Tensor> {
    let name = proto.name.take().unwrap_or_default();
    read_unnamed(proto, files)
        .map_err(|error| error.within(&format!("tensor {}", quote(&name))).at(|place| place.value_name = Some(name)))
}

/// What a message says of a tensor whose data is in another file, which may be missing.
pub(crate) fn declared(proto: &TensorProto, files: &ModelFiles) -> Result<Fact> {
    let dtype = proto.data_type.and_then(DType::from_code);
    let external = proto.data_location() == DataLocation::External && proto.dims.len() <= files.limits.rank;
    let Some(dtype) = dtype.filter(|_| external) else { return Ok(Fact::default()) };
    files.budget.take(32 * proto.dims.len() as u64)?;
    let dims = shape(&proto.dims).ok().map(|sizes| sizes.into_iter().map(Dim::Fixed).collect());
    Ok(Fact::of(Some(dtype.into()), dims))
}

fn read_unnamed(proto: TensorProto, files: &ModelFiles) -> Result<Tensor> {
    let code = proto.data_type.ok_or_else(|| Error::model("data_type is missing"))?;
    let dtype = dtype_of("data_type", code)?;
    if proto.segment.is_some() {
        return Err(Error::model("it is a segment of a tensor: segments can't be joined"));
    }
    files.limits.check_rank("a shape has", proto.dims.len())?;
    let shape = shape(&proto.dims)?;
    byte_count(dtype, &shape).map_err(|e| e.with_kind(Kind::Model))?;
    let count = count(&shape);

    let given = present_fields(&proto);
    let external = DataLocation::try_from(proto.data_location.unwrap_or(0));
    let external = external.map_err(|e| Error::model(format!("data_location {} is not 0 or 1", e.0)))?;
    if external == DataLocation::External {
        if let Some(field) = given.first() {
            return Err(Error::model(format!("its data is external, but it also has {field}")));
        }
        if dtype == DType::String {
            return Err(Error::model("strings can't be external data"));
        }
        let need = packed_size(dtype, count);
        let data = External::parse(&pairs(&proto.external_data))?.read(need, files)?;
        return files.tensor(dtype, &shape, data);
    }
    if !proto.external_data.is_empty() {
        return Err(Error::model("it has external_data, but its data_location is not EXTERNAL"));
    }
    match given.as_slice() {
        [] if count == 0 => empty(dtype, &shape),
        [] => Err(Error::model(format!("it has no data, but its shape {} takes {count} elements", ShapeText(&shape)))),
        ["raw_data"] if dtype == DType::String => Err(Error::model("strings can't be raw_data")),
        ["raw_data"] => files.tensor(dtype, &shape, proto.raw_data.unwrap_or_default()),
        [field] if *field == field_name(dtype.field()) => {
            files.budget.take(typed_cost(dtype, count, &proto))?;
            from_typed(dtype, &shape, count, proto)
        }
        [field] => {
            let raw = if dtype == DType::String { "" } else { "raw_data or " };
            Err(Error::model(format!("its data is in {field}: {dtype} takes {raw}{}", field_name(dtype.field()))))
        }
        [first, second, ..] => {
            Err(Error::model(format!("its data is in {first} and in {second}: only one is allowed")))
        }
    }
}

/// The number of elements. It can't overflow: see [`byte_count`].
fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().product() }
}

/// The element type with a number, read from `field` of a message.
pub(super) fn dtype_of(field: &str, code: i32) -> Result<DType> {
    DType::from_code(code).ok_or_else(|| {
        Error::model(format!("{field} {code} is not an element type")).at(|place| place.value = Some(code.into()))
    })
}

pub(super) fn shape(dims: &[i64]) -> Result<Shape> {
    dims.iter().enumerate().map(|(axis, &dim)| size_of_dim(axis, dim)).collect()
}

/// A dimension of a message as a size.
pub(super) fn size_of_dim(axis: usize, dim: i64) -> Result<usize> {
    usize::try_from(dim).map_err(|_| {
        let allowed = if dim < 0 { "allowed 0 or more" } else { "more than can be counted" };
        Error::model(format!("dimension {axis} is {dim}: {allowed}")).at(|place| place.value = Some(dim.into()))
    })
}

fn field_name(field: Field) -> &'static str {
    match field {
        Field::Float => "float_data",
        Field::Int32 => "int32_data",
        Field::String => "string_data",
        Field::Int64 => "int64_data",
        Field::Double => "double_data",
        Field::Uint64 => "uint64_data",
    }
}

/// The value fields that a message has. An empty `raw_data` counts: it was given.
fn present_fields(proto: &TensorProto) -> Vec<&'static str> {
    let fields = [
        ("raw_data", proto.raw_data.is_some()),
        ("float_data", !proto.float_data.is_empty()),
        ("int32_data", !proto.int32_data.is_empty()),
        ("string_data", !proto.string_data.is_empty()),
        ("int64_data", !proto.int64_data.is_empty()),
        ("double_data", !proto.double_data.is_empty()),
        ("uint64_data", !proto.uint64_data.is_empty()),
    ];
    // Some writers add an empty raw_data to a typed field: this is not ambiguous.
    let typed = fields.iter().skip(1).any(|(_, present)| *present);
    let empty_raw = proto.raw_data.as_ref().is_some_and(Bytes::is_empty);
    fields
        .into_iter()
        .filter(|(name, present)| *present && !(*name == "raw_data" && empty_raw && typed))
        .map(|(name, _)| name)
        .collect()
}

fn pairs(entries: &[StringStringEntryProto]) -> Vec<(&str, &str)> {
    entries.iter().map(|e| (e.key.as_deref().unwrap_or(""), e.value.as_deref().unwrap_or(""))).collect()
}

fn empty(dtype: DType, shape: &[usize]) -> Result<Tensor> {
    if dtype == DType::String { Tensor::from_strings(shape, [""; 0]) } else { Tensor::new(dtype, shape, Bytes::new()) }
}

/// Memory of a tensor whose elements are not raw, excluding lists that move into it.
fn typed_cost(dtype: DType, count: usize, proto: &TensorProto) -> u64 {
    match (dtype, dtype.field()) {
        (DType::Int32 | DType::Uint64, _) | (_, Field::Float | Field::Double | Field::Int64) => 0,
        _ => {
            // Strings are copied into one text, which is moved once.
            let text: usize = proto.string_data.iter().map(Bytes::len).sum();
            count.saturating_mul(dtype.size()).saturating_add(2 * text) as u64
        }
    }
}

fn from_typed(dtype: DType, shape: &[usize], count: usize, proto: TensorProto) -> Result<Tensor> {
    let check = |got: usize, need: usize| {
        if got == need {
            return Ok(());
        }
        let (field, shape) = (field_name(dtype.field()), ShapeText(shape));
        Err(Error::model(format!("its {field} has {got} entries: {dtype} of shape {shape} takes {need}")).at(|place| {
            place.value = Some(got as i128);
            place.size = Some(need);
        }))
    };
    let complex = if matches!(dtype, DType::Complex64 | DType::Complex128) { 2 } else { 1 };
    let bytes: Vec<u8> = match dtype.field() {
        // Numbers with the same layout in memory and in the message move without a copy.
        Field::Float => {
            check(proto.float_data.len(), count * complex)?;
            return Ok(Tensor::from_words(dtype, shape, proto.float_data));
        }
        Field::Double => {
            check(proto.double_data.len(), count * complex)?;
            return Ok(Tensor::from_words(dtype, shape, proto.double_data));
        }
        Field::Int64 => {
            check(proto.int64_data.len(), count)?;
            return Ok(Tensor::from_words(dtype, shape, proto.int64_data));
        }
        Field::Int32 if dtype == DType::Int32 => {
            check(proto.int32_data.len(), count)?;
            return Ok(Tensor::from_words(dtype, shape, proto.int32_data));
        }
        Field::Uint64 => {
            check(proto.uint64_data.len(), count)?;
            if dtype == DType::Uint64 {
                return Ok(Tensor::from_words(dtype, shape, proto.uint64_data));
            } else {
                narrowed(proto.uint64_data.iter().map(|&v| (v.into(), v.to_le_bytes())), 0..=u32::MAX.into(), dtype)?
            }
        }
        Field::String => {
            check(proto.string_data.len(), count)?;
            let text_bytes = proto.string_data.iter().map(Bytes::len).sum();
            let strings = proto.string_data.iter().enumerate().map(|(k, bytes)| {
                std::str::from_utf8(bytes).map_err(|e| {
                    Error::model(format!("string {k} is not UTF-8: {e}")).at(|place| place.position = Some(vec![k]))
                })
            });
            return Tensor::try_from_strings(shape, text_bytes, strings).map_err(|e| e.with_kind(Kind::Model));
        }
        Field::Int32 => {
            // For 2- and 4-bit types each entry holds a whole byte of elements.
            let packs = matches!(dtype.bits(), 2 | 4);
            check(proto.int32_data.len(), if packs { packed_size(dtype, count) as usize } else { count })?;
            let range = match dtype {
                DType::Int16 => i16::MIN.into()..=i16::MAX.into(),
                DType::Int8 => i8::MIN.into()..=i8::MAX.into(),
                DType::Bool => 0..=1,
                DType::Float6e2m3 | DType::Float6e3m2 => 0..=63,
                _ if dtype.size() == 2 => 0..=u16::MAX.into(),
                _ => 0..=u8::MAX.into(),
            };
            let entries = proto.int32_data.iter().map(|&v| (v.into(), i64::from(v).to_le_bytes()));
            let bytes = narrowed(entries, range, dtype)?;
            if packs { unpack(dtype, count, &bytes)? } else { bytes }
        }
    };
    Tensor::new(dtype, shape, bytes).map_err(|e| e.with_kind(Kind::Model))
}

/// The low bytes of the entries, which must all be in range.
fn narrowed(
    entries: impl Iterator<Item = (i128, [u8; 8])>,
    range: std::ops::RangeInclusive<i128>,
    dtype: DType,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(entries.size_hint().0 * dtype.size());
    for (k, (value, word)) in entries.enumerate() {
        if !range.contains(&value) {
            let (low, high) = (range.start(), range.end());
            return Err(Error::model(format!("entry {k} is {value}: {dtype} takes {low} to {high}")).at(|place| {
                place.value = Some(value);
                place.position = Some(vec![k]);
            }));
        }
        bytes.extend(word.iter().take(dtype.size()));
    }
    Ok(bytes)
}

impl Tensor {
    /// The tensor that an encoded `TensorProto` holds: the content of a test case's `input_0.pb`.
    ///
    /// # Errors
    /// If the bytes are not a valid `TensorProto`, or its data is external.
    pub fn from_proto_bytes(bytes: impl Into<Bytes>) -> Result<Tensor> {
        let (bytes, files) = (bytes.into(), ModelFiles::none());
        scan::check_data(scan::Message::Tensor, &bytes, &files)?;
        let proto = TensorProto::decode(bytes).map_err(|e| Error::model(format!("not a TensorProto: {e}")))?;
        read(proto, &files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::extended;

    fn proto(dtype: DType, dims: &[i64]) -> TensorProto {
        TensorProto {
            data_type: Some(dtype.code()),
            dims: dims.to_vec(),
            name: Some("t".into()),
            ..TensorProto::default()
        }
    }

    fn error(proto: TensorProto) -> String {
        let error = read(proto, &ModelFiles::none()).unwrap_err();
        assert_eq!(error.kind(), Kind::Model, "{error}");
        assert_eq!(error.place().value_name.as_deref(), Some("t"));
        error.to_string().strip_prefix("tensor \"t\": ").unwrap().to_string()
    }

    #[test]
    fn every_type_goes_out_and_in() {
        for dtype in DType::all().filter(|dtype| *dtype != DType::String) {
            let codes: Vec<u8> = match dtype.bits() {
                bits @ 1..8 => (0..13u8).map(|k| extended(dtype, (k * 5) & ((1 << bits) - 1))).collect(),
                _ if dtype == DType::Bool => (0..13).map(|k| k % 2).collect(),
                _ => (0..13 * dtype.size()).map(|k| (k * 37) as u8).collect(),
            };
            let tensor = Tensor::new(dtype, &[13], codes).unwrap();
            let bytes = tensor.to_proto_bytes("t");
            assert_eq!(Tensor::from_proto_bytes(bytes).unwrap(), tensor, "{dtype}");
        }
        let strings = Tensor::from_strings(&[2, 1], ["é", ""]).unwrap();
        assert_eq!(Tensor::from_proto_bytes(strings.to_proto_bytes("")).unwrap(), strings);
    }

    #[test]
    fn typed_fields() {
        let read_int32 = |dtype, dims: &[i64], data: &[i32]| {
            let tensor =
                read(TensorProto { int32_data: data.to_vec(), ..proto(dtype, dims) }, &ModelFiles::none()).unwrap();
            tensor.bytes().to_vec()
        };
        assert_eq!(read_int32(DType::Int8, &[2], &[-1, 5]), [255, 5]);
        assert_eq!(read_int32(DType::Float16, &[1], &[0x3c00]), [0, 0x3c]);
        assert_eq!(read_int32(DType::Int4, &[3], &[0x8f, 7]), [255, 0xf8, 7]);
        assert_eq!(read_int32(DType::Uint2, &[4], &[0b11_10_01_00]), [0, 1, 2, 3]);
        assert_eq!(read_int32(DType::Float6e3m2, &[2], &[63, 1]), [63, 1]);
        assert_eq!(read_int32(DType::Bool, &[2], &[0, 1]), [0, 1]);
        let complex = TensorProto { float_data: vec![1.0, -1.0], ..proto(DType::Complex64, &[1]) };
        assert_eq!(read(complex, &ModelFiles::none()).unwrap().to_string(), "complex64[1] [1-1i]");
        let uint32 = TensorProto { uint64_data: vec![u32::MAX.into()], ..proto(DType::Uint32, &[]) };
        assert_eq!(read(uint32, &ModelFiles::none()).unwrap().view::<u32>().unwrap().first(), Some(&u32::MAX));
        assert_eq!(read(proto(DType::Int64, &[2, 0]), &ModelFiles::none()).unwrap().shape(), [2, 0]);
    }

    #[test]
    fn what_departs_is_refused() {
        use DType::*;
        assert_eq!(
            error(TensorProto { data_type: Some(99), ..proto(Float, &[]) }),
            "data_type 99 is not an element type"
        );
        assert_eq!(error(proto(Float, &[2])), "it has no data, but its shape [2] takes 2 elements");
        assert_eq!(error(proto(Float, &[2, -1])), "dimension 1 is -1: allowed 0 or more");
        assert_eq!(
            error(TensorProto { raw_data: Some(vec![0; 3].into()), ..proto(Float, &[1]) }),
            "its raw data has 3 bytes: float32 of shape [1] takes 4"
        );
        assert_eq!(
            error(TensorProto { int64_data: vec![1], ..proto(Float, &[1]) }),
            "its data is in int64_data: float32 takes raw_data or float_data"
        );
        assert_eq!(
            error(TensorProto { float_data: vec![1.0], raw_data: Some(vec![0; 4].into()), ..proto(Float, &[1]) }),
            "its data is in raw_data and in float_data: only one is allowed"
        );
        assert_eq!(
            error(TensorProto { float_data: vec![1.0; 3], ..proto(Float, &[2]) }),
            "its float_data has 3 entries: float32 of shape [2] takes 2"
        );
        assert_eq!(
            error(TensorProto { int32_data: vec![0, 300], ..proto(Uint8, &[2]) }),
            "entry 1 is 300: uint8 takes 0 to 255"
        );
        assert_eq!(error(TensorProto { int32_data: vec![2], ..proto(Bool, &[1]) }), "entry 0 is 2: bool takes 0 to 1");
        assert_eq!(
            error(TensorProto { raw_data: Some(vec![2].into()), ..proto(Bool, &[1]) }),
            "element [0] is the byte 2, which is not a valid bool"
        );
        assert_eq!(
            error(TensorProto { uint64_data: vec![1 << 32], ..proto(Uint32, &[1]) }),
            "entry 0 is 4294967296: uint32 takes 0 to 4294967295"
        );
        assert!(
            error(TensorProto { string_data: vec![vec![0xff].into()], ..proto(String, &[1]) })
                .starts_with("string 0 is not UTF-8")
        );
        assert_eq!(
            error(TensorProto { raw_data: Some(vec![0x10].into()), ..proto(Uint4, &[1]) }),
            "the bits after the last of 1 uint4 elements are not 0"
        );
        assert!(error(proto(Float, &[i64::MAX, i64::MAX])).contains("than can be counted"));
        assert_eq!(
            error(TensorProto { raw_data: Some(vec![1].into()), ..proto(String, &[1]) }),
            "strings can't be raw_data"
        );
        let segment = Some(Box::new(crate::onnx::proto::tensor_proto::Segment { begin: Some(0), end: Some(1) }));
        assert!(
            error(TensorProto { segment, float_data: vec![1.0], ..proto(Float, &[1]) }).starts_with("it is a segment")
        );
    }
}
