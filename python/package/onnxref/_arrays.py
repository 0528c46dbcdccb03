"""Arrays that are fed and given: the types of their elements, and what is not a plain NumPy array."""

from __future__ import annotations

import cmath
import ctypes
import sys
from typing import Any

import numpy as np

#: Element types by their number in ``TensorProto.DataType``.
STRING = 8
_NUMPY = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
}  # fmt: skip
_ML_DTYPES = {
    16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4",
    22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2", 27: "float6_e2m3fn",
    28: "float6_e3m2fn",
}  # fmt: skip
#: Here a byte holds the sign of the number too; in an array of ml_dtypes it doesn't.
_SIGNED = (22, 26)

#: The number of an element type, by the type of an array whose memory can be used as it is.
CODES: dict[np.dtype[Any], int] = {np.dtype(name): code for code, name in _NUMPY.items()}


def code_of(kind: Any) -> int | None:
    """The number of an element type, by what NumPy takes for a type; None for one that isn't known."""
    try:
        dtype = np.dtype(kind)
    except TypeError:
        return None
    if dtype.kind in "TU":
        return STRING
    codes = {name: code for code, name in {**_NUMPY, **_ML_DTYPES}.items()}
    return codes.get(dtype.name)


def _special(code: int) -> np.dtype[Any]:
    """An element type that NumPy doesn't have."""
    name = _ML_DTYPES[code]
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"NumPy has no {name}: pip install ml_dtypes") from None
    if not hasattr(ml_dtypes, name):
        raise ImportError(f"this version of ml_dtypes has no {name}: pip install --upgrade ml_dtypes")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def special(array: np.ndarray[Any, Any], code: int) -> np.ndarray[Any, Any]:
    """An array of integers as one of a type that NumPy doesn't have."""
    if code in _SIGNED:
        return array.view(np.int8).astype(_special(code))
    return array.view(_special(code))


def strings(values: list[str], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of strings, as onnx and onnxruntime have it: of objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def with_string_dtype(value: Any) -> Any:
    """An output whose arrays of objects, which are of strings, are of StringDType."""
    if isinstance(value, np.ndarray):
        return value.astype(np.dtypes.StringDType()) if value.dtype == object else value
    if isinstance(value, list):
        return [with_string_dtype(each) for each in value]
    if isinstance(value, dict):
        return {key: with_string_dtype(each) for key, each in value.items()}
    return value


def feed(value: Any, declared: int | None) -> tuple[Any, int, tuple[int, ...] | None]:
    """What is fed: an array in row-major order and its type, or a list of strings, their type, and their shape."""
    array = _array(value, declared)
    if array.dtype.kind in "OSUT":
        return _list_of_strings(array, declared), STRING, array.shape
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    code = CODES.get(array.dtype)
    if code is None and "ml_dtypes" in sys.modules:
        code = next((code for code, name in _ML_DTYPES.items() if name == array.dtype.name), None)
        if code in _SIGNED:
            array = array.astype(np.int8)
        elif code is not None:
            CODES[array.dtype] = code
    if code is None:
        raise TypeError(f"an array of {array.dtype} can't be fed")
    # A subclass of arrays may say something else about its memory, or allow no other view.
    return np.asarray(array), code, None


def _array(value: Any, declared: int | None) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("an array with masked elements can't be fed")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if isinstance(value, (list, tuple, bool, int, float, complex, str)):
        return _of_numbers(value, declared)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        pass
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, ValueError, TypeError):
            return _from_dlpack(value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    raise TypeError(f"a {type(value).__name__} can't be fed: expected an array")


def _of_numbers(value: Any, declared: int | None) -> np.ndarray[Any, Any]:
    """Numbers or strings of Python, as the type that the model declares, if it holds them."""
    if declared == STRING:
        return np.asarray(value, dtype=object)
    array, kinds = np.asarray(value), "biufc"
    if declared is None or array.dtype.kind not in kinds + "O":
        return array
    shape, given = array.shape, np.asarray(value, dtype=object).ravel().tolist()
    wanted, is_large = _dtype(declared), array.dtype.kind == "O"
    for number in given if is_large else ():
        if not isinstance(number, _NUMBERS):
            raise TypeError(f"a {type(number).__name__} can't be fed as {wanted}: expected a number")
    kind = "f" if wanted.kind == "V" and "float" in wanted.name else wanted.kind.replace("V", "i")
    # Large integers, which NumPy has as objects, or rounded as floats.
    if given and kind in "iu" and array.dtype.kind in "Of" and all(isinstance(number, _INTEGERS) for number in given):
        bounds = np.iinfo(wanted) if declared in _NUMPY else None
        for number in sorted(given, key=abs, reverse=True):
            if bounds is None or not bounds.min <= number <= bounds.max:
                raise ValueError(f"{number} is out of bounds for {wanted}")
        return np.array(given, dtype=wanted).reshape(shape)
    if is_large:
        array = array.astype(np.complex128 if any(isinstance(number, complex) for number in given) else np.float64)
    if array.size and kinds.index(array.dtype.kind.replace("u", "i")) > kinds.index(kind.replace("u", "i")):
        raise TypeError(f"numbers of the kind {array.dtype} can't be fed as {wanted}")
    exact = kind == "f" and declared > _LAST_ROUNDED
    array = array.ravel()
    # What is lost is found below, among those that may have changed.
    with np.errstate(all="ignore"):
        made = array.astype(wanted)
        held = made if wanted.kind != "V" else made.astype(np.float64 if kind == "f" else np.int64)
        changed = (held != array) | (np.abs(array) >= 2**53)
    if array.dtype.kind in "fc" and not exact:
        is_integer = np.fromiter((isinstance(number, _INTEGERS) for number in given), bool, len(given))
        changed &= is_integer | (np.isfinite(array) & ~np.isfinite(held))
    for k in np.flatnonzero(changed).tolist():
        why = _lost(given[k], held[k].item(), kind, exact=exact)
        if why:
            raise ValueError(f"{given[k]} is {why.format(wanted)}")
    return made.reshape(shape)


_INTEGERS = (int, np.integer, np.bool_)
_NUMBERS = (int, float, complex, np.number, np.bool_)
#: Floats with larger numbers have few values: nothing is rounded to them.
_LAST_ROUNDED = 16


def _lost(number: Any, becomes: Any, kind: str, *, exact: bool) -> str | None:
    """Why a type doesn't hold a number, which would become another one there. A decimal may be rounded."""
    if becomes == number or (becomes != becomes and number != number):
        return None
    if exact:
        return "not a value of {}: only those that it holds exactly are allowed"
    is_integer = isinstance(number, _INTEGERS)
    if kind in "biu" or (not cmath.isfinite(becomes) and cmath.isfinite(number)):
        return "out of bounds for {}"
    return f"not exact as {{}}: {number}.0 is rounded" if is_integer else None


def _dtype(code: int) -> np.dtype[Any]:
    """An element type by its number."""
    return np.dtype(_NUMPY[code]) if code in _NUMPY else _special(code)


def _list_of_strings(array: np.ndarray[Any, Any], declared: int | None) -> list[str]:
    values = array.ravel().tolist()
    if declared not in (None, STRING) and array.dtype.kind == "O" and not (values and isinstance(values[0], (str, bytes))):
        wanted = _dtype(declared)
        how = f'"{wanted}"' if declared in _NUMPY else f"ml_dtypes.{wanted}"
        raise TypeError(f"an array of objects can't be fed as {wanted}: .astype({how}) converts it")
    for k, value in enumerate(values):
        if isinstance(value, bytes):
            values[k] = value.decode()
        elif not isinstance(value, str):
            kind = type(value).__name__
            raise TypeError(f"element {k} of an array of {array.dtype} is a {kind}: expected a string")
    return values


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip
    data: int | None
    device_type: int
    device_id: int
    ndim: int
    code: int
    bits: int
    lanes: int
    shape: Any
    strides: Any
    byte_offset: int


#: Element types by their number in DLPack and their bits.
_DLPACK = {
    (4, 16): 16, (10, 8): 17, (11, 8): 18, (12, 8): 19, (13, 8): 20, (14, 8): 24,
}  # fmt: skip


class _Shown:
    """The memory of a capsule of DLPack, as integers. The capsule is kept, and frees it."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self._capsule = capsule
        self.__array_interface__ = interface


def _from_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """An array of a type that NumPy doesn't have, such as PyTorch's bfloat16, without a copy."""
    device, _ = value.__dlpack_device__()
    if device != 1:
        raise TypeError("an array in the memory of a device can't be fed: move it to the CPU")
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    code = _DLPACK.get((tensor.code, tensor.bits))
    if code is None or tensor.lanes != 1:
        raise TypeError(f"elements of DLPack's type {tensor.code} with {tensor.bits} bits can't be fed")
    size = tensor.bits // 8
    interface = {
        "version": 3,
        "typestr": f"<u{size}" if size > 1 else "|u1",
        "shape": tuple(tensor.shape[: tensor.ndim]),
        "strides": tuple(size * step for step in tensor.strides[: tensor.ndim]) if tensor.strides else None,
        "data": ((tensor.data or 0) + tensor.byte_offset, True),
    }
    return np.asarray(_Shown(capsule, interface)).view(_special(code))
