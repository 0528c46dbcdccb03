//! Types and shapes of values.

use crate::crossing::{Change, Handle, In, Names, Out, Raw, Result, entries, other_entries, releases};
use crate::failure::Failure;
use onnxref::{DType, Dim, ValueInfo, ValueType};
use ort_sys::{
    ONNXType, OrtMapTypeInfo, OrtOptionalTypeInfo, OrtSequenceTypeInfo, OrtTensorTypeAndShapeInfo, OrtTypeInfo,
};
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of no element type.
const UNDEFINED: i32 = 0;

/// The greatest number that the API shares with ONNX: INT4.
const SHARED: i32 = 22;

/// The API's numbers of later types.
const LATER: [(DType, i32); 4] =
    [(DType::Float4e2m1, 23), (DType::Uint2, 24), (DType::Int2, 25), (DType::Float8e8m0, 26)];

/// Whether the program is in Rust, and knows numbers up to [`SHARED`] only: its enumerations have no others.
static ONLY_SHARED: AtomicBool = AtomicBool::new(false);

/// From now on, no other element types cross.
pub(crate) fn share_only() {
    ONLY_SHARED.store(true, Ordering::Relaxed);
}

/// The API's number of a type; that of no type for one that it doesn't have.
pub(crate) fn number(dtype: DType) -> i32 {
    if dtype.code() <= SHARED {
        return dtype.code();
    }
    let later = LATER.iter().filter(|_| !ONLY_SHARED.load(Ordering::Relaxed)).find(|(known, _)| *known == dtype);
    later.map_or(UNDEFINED, |(_, number)| *number)
}

/// Whether values of a type can cross.
pub(crate) fn check(dtype: DType) -> Result<()> {
    if number(dtype) != UNDEFINED {
        return Ok(());
    }
    Err(Failure::missing(format!("tensors of {dtype} have no form in version {} of the API", crate::VERSION)))
}

/// The element type with the API's number.
pub(crate) fn dtype(given: i32) -> Result<DType> {
    let later = || LATER.iter().find(|(_, known)| *known == given).map(|(dtype, _)| *dtype);
    let known = DType::from_code(given).filter(|_| given <= SHARED).or_else(later);
    known.filter(|dtype| check(*dtype).is_ok()).ok_or_else(|| {
        Failure::missing(format!("{given} is not an element type of version {} of the API", crate::VERSION))
    })
}

/// Element type and shape.
#[derive(Clone)]
pub(crate) struct ShapeInfo {
    element: i32,
    /// -1 for a size that is open.
    dims: Vec<i64>,
    /// The names of open sizes; empty for others.
    names: Vec<CString>,
    has_shape: bool,
}

impl ShapeInfo {
    pub(crate) fn of(dtype: DType, dims: &[i64]) -> ShapeInfo {
        let names = dims.iter().map(|_| CString::default()).collect();
        ShapeInfo { element: number(dtype), dims: dims.to_vec(), names, has_shape: true }
    }

    fn declared(dtype: DType, shape: Option<&[Dim]>) -> ShapeInfo {
        let size = |dim: &Dim| match dim {
            Dim::Fixed(size) => i64::try_from(*size).unwrap_or(i64::MAX),
            _ => -1,
        };
        let name = |dim: &Dim| match dim {
            Dim::Symbol(name) => CString::new(name.replace('\0', "\\0")).unwrap_or_default(),
            Dim::Formula(formula) => CString::new(formula.to_string()).unwrap_or_default(),
            _ => CString::default(),
        };
        let dims = shape.unwrap_or_default();
        ShapeInfo {
            element: number(dtype),
            dims: dims.iter().map(size).collect(),
            names: dims.iter().map(name).collect(),
            has_shape: shape.is_some(),
        }
    }
}

/// The type of a value, with the shape of a tensor.
#[derive(Clone)]
pub(crate) enum TypeInfo {
    Tensor(ShapeInfo),
    Sequence(Element),
    Map(MapInfo),
    Optional(Element),
}

/// What a sequence or an optional holds.
#[derive(Clone)]
pub(crate) struct Element(Box<TypeInfo>);

/// What a map holds.
#[derive(Clone)]
pub(crate) struct MapInfo {
    key: i32,
    value: Box<TypeInfo>,
}

impl TypeInfo {
    pub(crate) fn declared(info: &ValueInfo) -> TypeInfo {
        info.value_type.as_ref().map_or_else(TypeInfo::undefined, |known| TypeInfo::of(known, info.shape.as_deref()))
    }

    pub(crate) fn of(value_type: &ValueType, shape: Option<&[Dim]>) -> TypeInfo {
        let inner = |held: &ValueType, shape| Box::new(TypeInfo::of(held, shape));
        match value_type {
            ValueType::Tensor(dtype) => TypeInfo::Tensor(ShapeInfo::declared(*dtype, shape)),
            ValueType::Sequence(held) => TypeInfo::Sequence(Element(inner(held, None))),
            ValueType::Optional(held) => TypeInfo::Optional(Element(inner(held, shape))),
            ValueType::Map(key, held) => TypeInfo::Map(MapInfo { key: number(*key), value: inner(held, None) }),
            _ => TypeInfo::undefined(),
        }
    }

    /// A type that nobody declared: a tensor without an element type, as programs needn't expect that there is no kind.
    pub(crate) fn undefined() -> TypeInfo {
        TypeInfo::Tensor(ShapeInfo { element: UNDEFINED, dims: Vec::new(), names: Vec::new(), has_shape: false })
    }

    /// An optional without a value.
    pub(crate) fn nothing(element: Option<&ValueType>) -> TypeInfo {
        let element = element.map_or_else(TypeInfo::undefined, |known| TypeInfo::of(known, None));
        TypeInfo::Optional(Element(Box::new(element)))
    }

    pub(crate) fn kind(&self) -> ONNXType {
        match self {
            TypeInfo::Tensor(_) => ONNXType::ONNX_TYPE_TENSOR,
            TypeInfo::Sequence(_) => ONNXType::ONNX_TYPE_SEQUENCE,
            TypeInfo::Map(_) => ONNXType::ONNX_TYPE_MAP,
            TypeInfo::Optional(_) => ONNXType::ONNX_TYPE_OPTIONAL,
        }
    }
}

impl Handle for OrtTypeInfo {
    type Value = TypeInfo;
}

impl Handle for OrtTensorTypeAndShapeInfo {
    type Value = ShapeInfo;
}

impl Handle for OrtSequenceTypeInfo {
    type Value = Element;
}

impl Handle for OrtOptionalTypeInfo {
    type Value = Element;
}

impl Handle for OrtMapTypeInfo {
    type Value = MapInfo;
}

releases!(ReleaseTypeInfo: OrtTypeInfo, ReleaseTensorTypeAndShapeInfo: OrtTensorTypeAndShapeInfo);

entries! {
    fn GetOnnxTypeFromTypeInfo(info: In<OrtTypeInfo>, out: Out<ONNXType>) {
        out.set(info.kind());
        Ok(())
    }

    fn GetDenotationFromTypeInfo(info: In<OrtTypeInfo>, denotation: Out<*const c_char>, len: Out<usize>) {
        denotation.set(c"".as_ptr());
        len.set(0);
        Ok(())
    }

    fn CastTypeInfoToTensorInfo(info: In<OrtTypeInfo>, out: Out<*const OrtTensorTypeAndShapeInfo>) {
        out.show(if let TypeInfo::Tensor(shape) = &*info { Some(shape) } else { None });
        Ok(())
    }

    fn CastTypeInfoToSequenceTypeInfo(info: In<OrtTypeInfo>, out: Out<*const OrtSequenceTypeInfo>) {
        out.show(if let TypeInfo::Sequence(element) = &*info { Some(element) } else { None });
        Ok(())
    }

    fn CastTypeInfoToMapTypeInfo(info: In<OrtTypeInfo>, out: Out<*const OrtMapTypeInfo>) {
        out.show(if let TypeInfo::Map(map) = &*info { Some(map) } else { None });
        Ok(())
    }

    fn CastTypeInfoToOptionalTypeInfo(info: In<OrtTypeInfo>, out: Out<*const OrtOptionalTypeInfo>) {
        out.show(if let TypeInfo::Optional(element) = &*info { Some(element) } else { None });
        Ok(())
    }

    fn GetSequenceElementType(info: In<OrtSequenceTypeInfo>, out: Out<*mut OrtTypeInfo>) {
        out.give((*info.0).clone());
        Ok(())
    }

    fn GetOptionalContainedTypeInfo(info: In<OrtOptionalTypeInfo>, out: Out<*mut OrtTypeInfo>) {
        out.give((*info.0).clone());
        Ok(())
    }

    fn GetMapKeyType(info: In<OrtMapTypeInfo>, out: Out<i32>) {
        out.set(info.key);
        Ok(())
    }

    fn GetMapValueType(info: In<OrtMapTypeInfo>, out: Out<*mut OrtTypeInfo>) {
        out.give((*info.value).clone());
        Ok(())
    }

    fn CreateTensorTypeAndShapeInfo(out: Out<*mut OrtTensorTypeAndShapeInfo>) {
        out.give(ShapeInfo { element: UNDEFINED, dims: Vec::new(), names: Vec::new(), has_shape: true });
        Ok(())
    }

    fn SetTensorElementType(info: Change<OrtTensorTypeAndShapeInfo>, given: i32) {
        info.element = if given == UNDEFINED { given } else { number(dtype(given)?) };
        Ok(())
    }

    fn SetDimensions(info: Change<OrtTensorTypeAndShapeInfo>, dims: Raw<*const i64>, count: usize) lists(dims[count]) {
        info.dims = dims.to_vec();
        info.names = dims.iter().map(|_| CString::default()).collect();
        Ok(())
    }

    fn SetSymbolicDimensions(info: Change<OrtTensorTypeAndShapeInfo>, names: Names, count: usize) lists(names[count]) {
        info.names = names.texts("names")?.into_iter().map(|name| CString::new(name).unwrap_or_default()).collect();
        let rank = info.dims.len();
        info.names.resize(rank, CString::default());
        Ok(())
    }

    fn GetTensorElementType(info: In<OrtTensorTypeAndShapeInfo>, out: Out<i32>) {
        out.set(info.element);
        Ok(())
    }

    fn GetDimensionsCount(info: In<OrtTensorTypeAndShapeInfo>, out: Out<usize>) {
        out.set(info.dims.len());
        Ok(())
    }

    fn GetDimensions(info: In<OrtTensorTypeAndShapeInfo>, out: Raw<*mut i64>, count: usize) lists(out[count]) {
        out.fill(info.dims.iter().copied());
        Ok(())
    }

    fn GetSymbolicDimensions(
        info: In<OrtTensorTypeAndShapeInfo>, out: Raw<*mut *const c_char>, count: usize,
    ) lists(out[count]) {
        out.fill(info.names.iter().map(|name| name.as_ptr()));
        Ok(())
    }

    fn GetTensorShapeElementCount(info: In<OrtTensorTypeAndShapeInfo>, out: Out<usize>) {
        let sizes = info.dims.iter().map(|size| usize::try_from(*size).ok());
        let count = sizes.reduce(|before, size| before?.checked_mul(size?)).unwrap_or(Some(1));
        let shape = &info.dims;
        out.set(count.ok_or_else(|| Failure::argument(format!("a shape of {shape:?} has no number of elements")))?);
        Ok(())
    }
}

other_entries! {
    fn TensorTypeAndShape_HasShape(info: In<OrtTensorTypeAndShapeInfo>) -> bool, false, {
        info.has_shape
    }

    /// What a cast gives belongs to the type that it came from, and is freed with it.
    fn ReleaseSequenceTypeInfo(info: Raw<*mut OrtSequenceTypeInfo>) -> (), (), {
        let _ = info;
    }

    /// The same.
    fn ReleaseMapTypeInfo(info: Raw<*mut OrtMapTypeInfo>) -> (), (), {
        let _ = info;
    }
}
