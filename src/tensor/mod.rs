//! Tensors: an element type, a shape, and bytes: dense, row-major, always.

#[cfg(feature = "ndarray")]
mod array;
mod buffer;
mod display;
mod mapped;
mod memory;
mod new;
mod packing;
mod pool;
mod text;

pub use display::Scalar;
pub(crate) use mapped::{Mapped, release};
pub(crate) use memory::{Counted, Memory};
pub use new::NewTensor;
pub(crate) use new::Scratch;
#[cfg(test)]
pub(crate) use packing::extended;
pub(crate) use packing::{pack, packed_size, unpack};
pub(crate) use text::view_part;

use crate::dtype::{DType, Element, ShapeText, VIEW, byte_count};
use crate::error::{Error, Result};
use buffer::{Buffer, Data};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use text::Text;

/// The dimensions of a tensor, inline up to rank 6.
pub(crate) type Shape = SmallVec<[usize; INLINE]>;

/// Dimensions that take no allocation.
const INLINE: usize = 6;

/// A tensor: an element type, a shape, and the elements in row-major order. Cheap to clone: the elements are shared.
///
/// ```
/// use ndarray::array;
/// use onnxref::{DType, Tensor};
///
/// let tensor = Tensor::from_array(array![[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!((tensor.dtype(), tensor.shape()), (DType::Float, &[2, 2][..]));
/// assert_eq!(tensor.view::<f32>()?[[1, 0]], 3.0);
/// assert_eq!(tensor.view::<i64>().unwrap_err().to_string(), "the tensor has element type float32, not int64");
/// # Ok::<(), onnxref::Error>(())
/// ```
///
/// Equal tensors have the same type, shape and bits: NaN equals the same NaN, and 0.0 differs from -0.0.
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    /// For strings: views into `text`.
    data: Data,
    text: Option<Arc<Text>>,
}

impl Tensor {
    /// Bytes that a tensor takes beside itself and its elements. A list of tensors counts them: there may be many.
    pub(crate) const BESIDE: usize = Buffer::BESIDE;

    /// A tensor of a shape from its elements in row-major order, without a copy.
    ///
    /// # Errors
    /// If the number of elements is not what `shape` needs.
    ///
    /// ```
    /// let tensor = onnxref::Tensor::from_elements(&[2, 1], vec![1.5f32, 2.5])?;
    /// assert_eq!(tensor.as_slice::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn from_elements<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Tensor> {
        let need = byte_count(T::DTYPE, shape)? / T::DTYPE.size();
        if elements.len() != need {
            let (dtype, shape, count) = (T::DTYPE, ShapeText(shape), elements.len());
            return Err(Error::input(format!(
                "a tensor of {dtype} of shape {shape} takes {need} elements, not {count}"
            )));
        }
        Ok(Tensor::of_words(shape.into(), elements))
    }

    /// As many elements as the shape needs.
    fn of_words<T: Element>(shape: Shape, elements: Vec<T>) -> Tensor {
        let words: Vec<T::Word> = bytemuck::allocation::cast_vec(elements);
        Tensor { dtype: T::DTYPE, shape, data: Data::own(Buffer::from_vec(words)), text: None }
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::of_words(Shape::new(), vec![value])
    }

    /// A tensor from bytes: little-endian elements in row-major order, one byte each for sub-byte types.
    /// The bytes are not copied and need no alignment.
    ///
    /// # Errors
    /// If the number of bytes doesn't match `dtype` and `shape`, a byte is not a valid value of the type (a bool other
    /// than 0 and 1, a 4-bit integer with more bits), or the type is string: see [`Tensor::from_strings`].
    pub fn new(dtype: DType, shape: &[usize], bytes: impl Into<Bytes>) -> Result<Tensor> {
        let bytes = bytes.into();
        if dtype == DType::String {
            return Err(Error::input("a string tensor is not made from bytes"));
        }
        let need = byte_count(dtype, shape)?;
        if bytes.len() != need {
            let shape = ShapeText(shape);
            return Err(Error::input(format!(
                "a tensor of {dtype} of shape {shape} takes {need} bytes, not {}",
                bytes.len()
            )));
        }
        if let Some(at) = dtype.first_invalid(&bytes) {
            let value = bytes.get(at).copied().unwrap_or(0);
            let position = kernels::position_of(at, shape);
            return Err(Error::input(format!(
                "element {} is the byte {value}, which is not a valid {dtype}",
                ShapeText(&position)
            ))
            .at(|place| {
                place.value = Some(value.into());
                place.position = Some(position);
            }));
        }
        Ok(Tensor { dtype, shape: shape.into(), data: Data::shared(bytes), text: None })
    }

    /// A tensor from words: its elements in row-major order, in the number that its type and shape need.
    pub(crate) fn from_words<W: bytemuck::Pod>(dtype: DType, shape: &[usize], mut words: Vec<W>) -> Tensor {
        words.shrink_to_fit();
        Tensor { dtype, shape: shape.into(), data: Data::own(Buffer::from_vec(words)), text: None }
    }

    /// A tensor of strings, in row-major order.
    ///
    /// # Errors
    /// If the number of strings is not what `shape` needs.
    ///
    /// ```
    /// let tensor = onnxref::Tensor::from_strings(&[2], ["an", "other"])?;
    /// assert_eq!(tensor.strings()?.collect::<Vec<_>>(), ["an", "other"]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn from_strings<S: AsRef<str>>(shape: &[usize], strings: impl IntoIterator<Item = S>) -> Result<Tensor> {
        Tensor::try_from_strings(shape, 0, strings.into_iter().map(Ok))
    }

    /// As [`Tensor::from_strings`], up to the first error. If `text_bytes` is the total length of the strings, and the
    /// iterator knows its length, no excess memory is allocated.
    pub(crate) fn try_from_strings<S: AsRef<str>>(
        shape: &[usize],
        text_bytes: usize,
        strings: impl Iterator<Item = Result<S>>,
    ) -> Result<Tensor> {
        let need = byte_count(DType::String, shape)? / VIEW;
        let wrong_count = |count| {
            let shape = ShapeText(shape);
            Err(Error::input(format!("a string tensor of shape {shape} takes {need} strings, not {count}")))
        };
        let (least, most) = strings.size_hint();
        if most == Some(least) && least != need {
            return wrong_count(least);
        }
        let mut text = String::with_capacity(text_bytes);
        let mut views = Vec::with_capacity(2 * need.min(least));
        for string in strings {
            views.push(text.len() as u64);
            text.push_str(string?.as_ref());
            views.push(text.len() as u64);
        }
        if views.len() / 2 != need {
            return wrong_count(views.len() / 2);
        }
        let data = Data::own(Buffer::from_vec(views));
        Ok(Tensor { dtype: DType::String, shape: shape.into(), data, text: Some(Arc::new(text.into())) })
    }

    /// Bytes of memory held for the elements, including unused capacity, and for the text if no other tensor shares it.
    pub(crate) fn held(&self) -> usize {
        let text = self.text.as_ref().filter(|text| Arc::strong_count(text) == 1);
        self.data.held() + text.map_or(0, |text| text.len())
    }

    /// Keeps the tensor's memory for reuse, unless others share it.
    #[inline]
    pub(crate) fn recycle(self, memory: &Memory) {
        match self.data {
            Data::Own(buffer) => memory.give(buffer),
            shared => shared.hand_out(memory),
        }
        if let Some(text) = self.text {
            memory.hand_out(&text.lease);
        }
    }

    /// The text that strings are views into.
    #[inline]
    pub(crate) fn text(&self) -> Option<Arc<Text>> {
        self.text.clone()
    }

    /// As [`Tensor::recycle`] during a run: memory that others hold counts until they drop it.
    #[inline(always)]
    pub(crate) fn release(self, memory: &Memory) {
        if let Data::Own(buffer) = self.data
            && Arc::strong_count(&buffer) == 1
        {
            memory.give(buffer);
        }
    }

    /// Counts the tensor's memory if it isn't counted yet and nobody else holds it. Returns whether it did.
    #[inline]
    pub(crate) fn adopt(&mut self, memory: &Memory) -> Result<bool> {
        self.data.adopt(memory)
    }

    /// Stops counting memory that leaves with the outputs of a run.
    #[inline]
    pub(crate) fn hand_out(&self, memory: &Memory) {
        self.data.hand_out(memory);
        if let Some(text) = &self.text {
            memory.hand_out(&text.lease);
        }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, outermost first; empty for a scalar.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The same elements under another shape.
    pub(crate) fn reshaped(self, shape: Shape) -> Result<Tensor> {
        let same = byte_count(self.dtype, &shape)? == self.bytes().len();
        if same { Ok(Tensor { shape, ..self }) } else { Err(Error::bug("a shape has another number of elements")) }
    }

    /// The same bytes as elements of another numeric type of the same size and alignment, for which they must be valid.
    pub(crate) fn retyped(self, dtype: DType) -> Tensor {
        Tensor { dtype, ..self }
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a tensor without elements is nothing special
    pub fn len(&self) -> usize {
        self.data.bytes().len() / self.dtype.size()
    }

    /// The bytes of the elements in row-major order, little-endian, one byte each for sub-byte types; not necessarily
    /// aligned. For strings these are internal offsets, of no use to a caller.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// Whether an aligned copy of the bytes was made.
    #[cfg(test)]
    pub(crate) fn is_copied(&self) -> bool {
        self.data.is_copied()
    }

    /// The bytes of the elements, aligned as by [`Tensor::view`].
    #[inline]
    pub(crate) fn aligned_bytes(&self) -> &[u8] {
        self.data.aligned_bytes(self.dtype.align())
    }

    /// The elements in row-major order, in the same memory if nothing else shares it.
    ///
    /// # Errors
    /// If `T` is not the tensor's element type.
    pub fn into_elements<T: Element>(self) -> Result<Vec<T>> {
        self.check_type::<T>()?;
        let (words, align) = (self.data.clone(), self.dtype.align());
        drop(self.data);
        Ok(T::from_words(words.into_buffer(align).into_vec::<T::Word>()))
    }

    /// The same tensor in memory of its own, aligned as by [`Tensor::view`]: without a copy if nothing else shares it.
    ///
    /// ```
    /// use onnxref::Tensor;
    ///
    /// let tensor = Tensor::from(vec![1.0f32, 2.0]);
    /// let address = tensor.bytes().as_ptr();
    /// let shared = tensor.clone();
    /// assert_ne!(shared.into_owned().bytes().as_ptr(), address);
    /// assert_eq!(tensor.into_owned().bytes().as_ptr(), address);
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Tensor {
        let Tensor { dtype, shape, data, text } = self;
        Tensor { dtype, shape, data: Data::own(data.into_buffer(dtype.align())), text }
    }

    /// The elements in row-major order; aligned as by [`Tensor::view`].
    ///
    /// # Errors
    /// If `T` is not the tensor's element type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_type::<T>()?;
        let words = bytemuck::try_cast_slice(self.data.aligned_bytes(align_of::<T>()));
        words
            .map_err(Into::into)
            .and_then(T::of_words)
            .map_err(|e| Error::input(format!("the bytes of the {} tensor can't be viewed: {e}", self.dtype)))
    }

    /// The bytes of the elements, as [`Tensor::bytes`], shared with the tensor's clones.
    ///
    /// # Errors
    /// If the element type is string.
    ///
    /// ```
    /// use onnxref::{DType, Tensor};
    ///
    /// let tensor = Tensor::new(DType::Float8e4m3fn, &[2], vec![0x38, 0x40])?;
    /// assert_eq!(tensor.into_bytes()?, [0x38, 0x40][..]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn into_bytes(self) -> Result<Bytes> {
        if self.dtype == DType::String {
            return Err(wrong_type(self.dtype, "one of numbers"));
        }
        Ok(self.data.into_bytes())
    }

    /// The strings in row-major order.
    ///
    /// # Errors
    /// If the element type is not string.
    pub fn strings(&self) -> Result<impl ExactSizeIterator<Item = &str>> {
        if self.dtype != DType::String {
            return Err(wrong_type(self.dtype, "string"));
        }
        Ok((0..self.len()).map(|k| self.string(k)))
    }

    /// The string at a position in row-major order.
    fn string(&self, k: usize) -> &str {
        self.viewed(self.data.bytes().get(k * VIEW..(k + 1) * VIEW).unwrap_or(&[]))
    }

    /// The string of a view into this tensor's text: the bytes of an element.
    pub(crate) fn viewed(&self, view: &[u8]) -> &str {
        let bound = |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        // `from_strings` makes the views, and they are copied whole, so each is a range of the text.
        let range = view.split_at_checked(VIEW / 2).and_then(|(from, to)| bound(from).zip(bound(to)));
        range.and_then(|(from, to)| self.text.as_ref()?.get(from..to)).unwrap_or("")
    }

    fn check_type<T: Element>(&self) -> Result<()> {
        if self.dtype == T::DTYPE { Ok(()) } else { Err(wrong_type(self.dtype, &T::DTYPE.to_string())) }
    }
}

fn wrong_type(dtype: DType, asked: &str) -> Error {
    Error::input(format!("the tensor has element type {dtype}, not {asked}"))
}

/// The concatenated dimensions of several shapes.
#[inline]
pub(crate) fn shape_of<const N: usize>(parts: [&[usize]; N]) -> Shape {
    let rank = parts.iter().map(|part| part.len()).sum();
    if rank > INLINE {
        return parts.concat().into();
    }
    // Written where they stay: reading what was just written in pieces takes longer than all the rest.
    let mut shape = Shape::from_buf_and_len([0; INLINE], rank);
    let mut places = shape.iter_mut();
    for part in parts {
        for (dim, place) in part.iter().zip(&mut places) {
            *place = *dim;
        }
    }
    shape
}

impl Clone for Tensor {
    #[inline]
    fn clone(&self) -> Tensor {
        // Every run clones shapes: a memory copy is several times faster than element by element.
        let shape = Shape::from_slice(&self.shape);
        Tensor { dtype: self.dtype, shape, data: self.data.clone(), text: self.text.clone() }
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && match (self.strings(), other.strings()) {
                (Ok(left), Ok(right)) => left.eq(right),
                _ => self.bytes() == other.bytes(),
            }
    }
}

impl Eq for Tensor {}

/// A tensor of rank 1, without a copy.
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Tensor {
        Tensor::of_words(Shape::from_elem(elements.len(), 1), elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};
    use ndarray::{Array, Array2, Array3, array, s};
    use num_complex::Complex;

    fn there_and_back<T: Element + PartialEq>(values: [T; 4]) {
        let array = Array::from_shape_vec((2, 2), values.to_vec()).unwrap();
        let tensor = Tensor::from_array(array.clone());
        assert_eq!(tensor.dtype(), T::DTYPE);
        assert_eq!(tensor.view::<T>().unwrap(), array.clone().into_dyn());
        let bytes = tensor.bytes().to_vec();
        assert_eq!(Tensor::new(T::DTYPE, &[2, 2], bytes.clone()).unwrap(), tensor);
        assert_eq!(tensor.clone().into_array::<T>().unwrap(), array.clone().into_dyn(), "shared");
        assert_eq!(tensor.into_array::<T>().unwrap(), array.clone().into_dyn(), "moved");

        // The same bytes at an odd address.
        let mut shifted = vec![0];
        shifted.extend(&bytes);
        let odd = Tensor::new(T::DTYPE, &[2, 2], Bytes::from(shifted).slice(1..)).unwrap();
        let first = odd.view::<T>().unwrap().as_ptr();
        assert_eq!(odd.view::<T>().unwrap(), array.clone().into_dyn());
        assert_eq!(odd.clone().view::<T>().unwrap().as_ptr(), first, "aligned once");
        assert_eq!(odd.into_array::<T>().unwrap(), array.into_dyn());
    }

    #[test]
    fn every_element_type() {
        there_and_back([1.5f32, -0.0, f32::INFINITY, 4.0]);
        there_and_back([1.5f64, -0.0, f64::INFINITY, 4.0]);
        there_and_back([1i8, -128, 127, 0]);
        there_and_back([1i16, i16::MIN, i16::MAX, 0]);
        there_and_back([1i32, i32::MIN, i32::MAX, 0]);
        there_and_back([1i64, i64::MIN, i64::MAX, 0]);
        there_and_back([1u8, 255, 127, 0]);
        there_and_back([1u16, u16::MAX, 127, 0]);
        there_and_back([1u32, u32::MAX, 127, 0]);
        there_and_back([1u64, u64::MAX, 127, 0]);
        there_and_back([true, false, false, true]);
        there_and_back([1.0, 2.5, -3.0, 0.0].map(f16::from_f32));
        there_and_back([1.0, 2.5, -3.0, 0.0].map(bf16::from_f32));
        there_and_back([Complex::new(1f32, 2.0), Complex::new(0.0, -1.0), Complex::ZERO, Complex::ONE]);
        there_and_back([Complex::new(1f64, 2.0), Complex::new(0.0, -1.0), Complex::ZERO, Complex::ONE]);
    }

    #[test]
    fn arrays_in_standard_layout_move_and_others_are_put_in_order() {
        let array = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as i32);
        let address = array.as_ptr();
        let tensor = Tensor::from_array(array.clone().reversed_axes());
        assert_eq!(tensor.view::<i32>().unwrap(), array.t().into_dyn());
        assert_eq!(
            Tensor::from_array(array.slice(s![1.., ..;2])).bytes(),
            Tensor::from_array(array![[4, 6], [8, 10]]).bytes()
        );
        assert_eq!(Tensor::from_array(array.clone().slice_move(s![..;-1, ..])).view::<i32>().unwrap()[[0, 0]], 8);
        let moved = Tensor::from_array(array);
        assert_eq!(moved.view::<i32>().unwrap().as_ptr(), address);
        assert_eq!(moved.into_array::<i32>().unwrap().as_ptr(), address);
    }

    #[test]
    fn empty_and_scalar() {
        let empty = Tensor::from_array(Array3::<f32>::zeros((2, 0, 3)));
        assert_eq!((empty.len(), empty.shape()), (0, &[2, 0, 3][..]));
        assert_eq!(empty.view::<f32>().unwrap().shape(), [2, 0, 3]);
        let scalar = Tensor::scalar(7i64);
        assert_eq!((scalar.rank(), scalar.len()), (0, 1));
        assert_eq!(scalar.into_array::<i64>().unwrap().first(), Some(&7));
    }

    #[test]
    fn bits_decide_equality() {
        assert_ne!(Tensor::scalar(0.0f32), Tensor::scalar(-0.0f32));
        assert_eq!(Tensor::scalar(f32::NAN), Tensor::scalar(f32::NAN));
        assert_ne!(Tensor::scalar(0i32), Tensor::scalar(0u32));
        let strings = Tensor::from_strings(&[2], ["a", "b"]).unwrap();
        assert_eq!(strings, Tensor::from_strings(&[2], ["a", "b"]).unwrap());
        assert_ne!(strings, Tensor::from_strings(&[2], ["ab", ""]).unwrap());
    }

    #[test]
    fn wrong_bytes_are_refused() {
        let error = |dtype, shape: &[usize], bytes: &[u8]| Tensor::new(dtype, shape, bytes.to_vec()).unwrap_err();
        assert_eq!(
            error(DType::Int16, &[3], &[0; 5]).to_string(),
            "a tensor of int16 of shape [3] takes 6 bytes, not 5"
        );
        let bad = error(DType::Bool, &[2, 2], &[0, 1, 0, 2]);
        assert_eq!(bad.to_string(), "element [1, 1] is the byte 2, which is not a valid bool");
        assert_eq!((bad.place().value, bad.place().position.as_deref()), (Some(2), Some(&[1, 1][..])));
        assert!(Tensor::new(DType::Uint8, &[usize::MAX, 2], vec![]).is_err());
        assert!(Tensor::new(DType::String, &[0], vec![]).is_err());
        let strings = Tensor::from_strings(&[2, 2], ["a"]).unwrap_err();
        assert_eq!(strings.to_string(), "a string tensor of shape [2, 2] takes 4 strings, not 1");
    }
}
