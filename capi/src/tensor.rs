//! Functions on values.
#![allow(unsafe_code)]

use crate::crossing::{Allocator, Array, Change, Handle, In, Out, Raw, Result, Space, Text, entries, releases};
use crate::failure::Failure;
use crate::memory::{Memory, MemoryInfo};
use crate::types;
use crate::value::{self, Content, Held};
use onnxref::DType;
use ort_sys::{ONNXType, OrtEnv, OrtMemoryInfo, OrtSyncStream, OrtTensorTypeAndShapeInfo, OrtTypeInfo, OrtValue};
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;

impl Handle for OrtValue {
    type Value = Held;
}

releases!(ReleaseValue: OrtValue);

entries! {
    fn CreateTensorAsOrtValue(
        allocator: Allocator, shape: Raw<*const i64>, rank: usize, dtype: i32, out: Out<*mut OrtValue>,
    ) lists(shape[rank]) {
        out.give(Content::empty(types::dtype(dtype)?, &shape)?.into());
        Ok(())
    }

    fn CreateTensorWithDataAsOrtValue(
        info: In<OrtMemoryInfo>, data: Space, bytes: usize, shape: Raw<*const i64>, rank: usize, dtype: i32,
        out: Out<*mut OrtValue>,
    ) lists(shape[rank]) {
        let (dtype, shape) = (types::dtype(dtype)?, shape.to_vec());
        let (at, need) = place(dtype, &shape, data, bytes)?;
        out.give(Content::Numbers { dtype, shape, memory: Memory::of_program(at, need) }.into());
        Ok(())
    }

    /// The same, of memory that the value frees. If it isn't made, the program keeps it.
    fn CreateTensorWithDataAndDeleterAsOrtValue(
        deleter: Allocator, data: Space, bytes: usize, shape: Raw<*const i64>, rank: usize, dtype: i32,
        out: Out<*mut OrtValue>,
    ) lists(shape[rank]) {
        let (dtype, shape) = (types::dtype(dtype)?, shape.to_vec());
        let (at, need) = place(dtype, &shape, data, bytes)?;
        let memory = if data.is_null() { Memory::of_program(at, need) } else { Memory::freed_by(deleter, at, need) };
        out.give(Content::Numbers { dtype, shape, memory }.into());
        Ok(())
    }

    /// Copies tensors over others of the same types and shapes.
    fn CopyTensors(
        env: Change<OrtEnv>, from: Raw<*const *const OrtValue>, to: Raw<*mut *const OrtValue>,
        stream: Raw<*mut OrtSyncStream>, count: usize,
    ) lists(from[count]) {
        if !stream.is_null() {
            return Err(Failure::missing("onnxref has no streams: copies are made at once"));
        }
        // SAFETY: as many values are there.
        let to = unsafe { Array::list(to.cast_const(), count, "to") }?;
        for (from, to) in from.values()?.iter().zip(to.values()?) {
            to.overwrite("what is copied", from.value()?)?;
        }
        Ok(())
    }

    fn IsTensor(value: In<OrtValue>, out: Out<i32>) {
        out.set(i32::from(value.kind() == ONNXType::ONNX_TYPE_TENSOR));
        Ok(())
    }

    fn IsSparseTensor(value: In<OrtValue>, out: Out<i32>) {
        out.set(0);
        Ok(())
    }

    fn HasValue(value: In<OrtValue>, out: Out<i32>) {
        out.set(i32::from(!matches!(&**value, Content::Nothing(_))));
        Ok(())
    }

    fn GetTensorMutableData(value: Change<OrtValue>, out: Out<*mut c_void>) {
        out.set(value.memory()?.address().cast());
        Ok(())
    }

    fn GetTensorData(value: In<OrtValue>, out: Out<*const c_void>) {
        out.set(value.memory()?.address().cast_const().cast());
        Ok(())
    }

    fn GetTensorSizeInBytes(value: In<OrtValue>, out: Out<usize>) {
        out.set(value.memory()?.len());
        Ok(())
    }

    /// The element at a position.
    fn TensorAt(
        value: Change<OrtValue>, position: Raw<*const i64>, rank: usize, out: Out<*mut c_void>,
    ) lists(position[rank]) {
        let Content::Numbers { dtype, shape, memory } = &**value else {
            return Err(Failure::argument(format!("{} has no elements in memory", value.text())));
        };
        let inside = position.iter().zip(shape).all(|(at, size)| (0..*size).contains(at));
        if !inside || position.len() != shape.len() {
            return Err(Failure::argument(format!("there is no element {:?} in {}", &*position, value.text())));
        }
        if dtype.bits() < 8 {
            return Err(Failure::missing(format!("elements of {dtype} share bytes, and have no address")));
        }
        let at = position.iter().zip(shape).fold(0, |at, (k, size)| at * size + k);
        let offset = usize::try_from(at).unwrap_or(0) * dtype.size();
        out.set(memory.address().wrapping_add(offset).cast());
        Ok(())
    }

    fn GetTensorMemoryInfo(value: In<OrtValue>, out: Out<*const OrtMemoryInfo>) {
        out.show(Some(MemoryInfo::cpu()));
        Ok(())
    }

    fn GetTensorTypeAndShape(value: In<OrtValue>, out: Out<*mut OrtTensorTypeAndShapeInfo>) {
        out.give(value.shape_info()?);
        Ok(())
    }

    /// The same, without anything to free.
    fn GetTensorElementTypeAndShapeDataReference(
        value: In<OrtValue>, element: Out<i32>, dims: Out<*const i64>, rank: Out<usize>,
    ) {
        let (dtype, shape) = match &**value {
            Content::Numbers { dtype, shape, .. } => (*dtype, shape),
            Content::Strings { shape, .. } => (DType::String, shape),
            other => return Err(Failure::argument(format!("{} is not a tensor", other.text()))),
        };
        element.set(types::number(dtype));
        dims.set(shape.as_ptr());
        rank.set(shape.len());
        Ok(())
    }

    fn GetTypeInfo(value: In<OrtValue>, out: Out<*mut OrtTypeInfo>) {
        out.give(value.type_info());
        Ok(())
    }

    fn GetValueType(value: In<OrtValue>, out: Out<ONNXType>) {
        out.set(value.kind());
        Ok(())
    }

    fn FillStringTensor(value: Change<OrtValue>, texts: Raw<*const *const c_char>, count: usize) lists(texts[count]) {
        let (given, mut strings) = (texts.texts("texts")?, value.strings()?);
        if given.len() != strings.len() {
            return Err(Failure::argument(format!("{} takes {} strings, not {}", value.text(), strings.len(), given.len())));
        }
        *strings = given.into_iter().map(String::into_bytes).collect();
        Ok(())
    }

    fn FillStringTensorElement(value: Change<OrtValue>, text: Text, index: usize) {
        *at(&value, &mut value.strings()?, index)? = text.into_bytes();
        Ok(())
    }

    /// The bytes of a string, for the program to fill.
    fn GetResizedStringTensorElementBuffer(value: Change<OrtValue>, index: usize, bytes: usize, out: Out<*mut c_char>) {
        let mut strings = value.strings()?;
        let string = at(&value, &mut strings, index)?;
        let missing = bytes.saturating_sub(string.len());
        string.try_reserve(missing).map_err(|_| Failure::other(format!("there is no memory for {bytes} bytes")))?;
        string.resize(bytes, 0);
        out.set(string.as_mut_ptr().cast());
        Ok(())
    }

    fn GetStringTensorDataLength(value: In<OrtValue>, out: Out<usize>) {
        out.set(value.strings()?.iter().map(Vec::len).sum());
        Ok(())
    }

    fn GetStringTensorContent(
        value: In<OrtValue>, text: Space, bytes: usize, offsets: Raw<*mut usize>, count: usize,
    ) lists(text[bytes], offsets[count]) {
        let strings = value.strings()?;
        let all = strings.concat();
        if text.len() < all.len() || offsets.len() != strings.len() {
            let (held, has) = (all.len(), strings.len());
            return Err(Failure::argument(format!(
                "{has} strings of {held} bytes don't fit {bytes} bytes and {count} offsets"
            )));
        }
        text.fill(all);
        let starts = strings.iter().scan(0, |end, string| {
            let start = *end;
            *end += string.len();
            Some(start)
        });
        offsets.fill(starts);
        Ok(())
    }

    fn GetStringTensorElementLength(value: In<OrtValue>, index: usize, out: Out<usize>) {
        out.set(at(&value, &mut value.strings()?, index)?.len());
        Ok(())
    }

    fn GetStringTensorElement(value: In<OrtValue>, bytes: usize, index: usize, text: Space) lists(text[bytes]) {
        let mut strings = value.strings()?;
        let string = at(&value, &mut strings, index)?;
        if bytes < string.len() {
            return Err(Failure::argument(format!("string {index} has {} bytes, and doesn't fit {bytes}", string.len())));
        }
        text.fill(string.iter().copied());
        Ok(())
    }

    fn GetValueCount(value: In<OrtValue>, out: Out<usize>) {
        out.set(value.parts()?.len());
        Ok(())
    }

    fn GetValue(value: In<OrtValue>, index: i32, allocator: Allocator, out: Out<*mut OrtValue>) {
        let mut parts = value.parts()?;
        let count = parts.len();
        let Some(index) = usize::try_from(index).ok().filter(|index| *index < count) else {
            return Err(Failure::argument(format!("there is no value {index} of {count}")));
        };
        out.give(Content::of(parts.swap_remove(index))?.into());
        Ok(())
    }

    fn CreateValue(
        parts: Raw<*const *const OrtValue>, count: usize, kind: i32, out: Out<*mut OrtValue>,
    ) lists(parts[count]) {
        let values: Result<Vec<_>> = parts.values()?.iter().map(|part| part.value()).collect();
        let mut values = values?;
        let made = match (kind, values.len()) {
            (kind, _) if kind == ONNXType::ONNX_TYPE_SEQUENCE as i32 => value::sequence(values)?,
            (kind, 2) if kind == ONNXType::ONNX_TYPE_MAP as i32 => {
                let (second, first) = (values.pop(), values.pop());
                let both = first.zip(second).ok_or_else(|| Failure::bug("two values are fewer"))?;
                value::map(both.0, both.1)?
            }
            (kind, count) if kind == ONNXType::ONNX_TYPE_MAP as i32 => {
                return Err(Failure::argument(format!("a map is made of a tensor of keys and one of values, not of {count}")));
            }
            _ => return Err(Failure::argument("the value to make is neither a sequence nor a map")),
        };
        out.give(Content::of(made)?.into());
        Ok(())
    }
}

/// Where the elements of a tensor of numbers are, and how many bytes they take.
fn place(dtype: DType, shape: &[i64], data: *mut u8, bytes: usize) -> Result<(NonNull<u8>, usize)> {
    if dtype == DType::String {
        return Err(Failure::argument(
            "strings are not made from memory: see CreateTensorAsOrtValue, FillStringTensor",
        ));
    }
    let need = value::byte_count(dtype, shape)?;
    if bytes < need {
        return Err(Failure::argument(format!(
            "a tensor of {dtype} of shape {shape:?} takes {need} bytes, not {bytes}"
        )));
    }
    let at = NonNull::new(data).or((need == 0).then(NonNull::dangling));
    Ok((at.ok_or_else(|| Failure::argument("the argument data is null"))?, need))
}

/// A string by its position in row-major order.
fn at<'a>(value: &Held, strings: &'a mut [Vec<u8>], index: usize) -> Result<&'a mut Vec<u8>> {
    strings.get_mut(index).ok_or_else(|| Failure::argument(format!("there is no string {index} in {}", value.text())))
}
