"""Arrays in and out: types, layouts, copies, other kinds of values."""

from __future__ import annotations

import array
import builtins
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import identity, model
from onnx import TensorProto, helper

import onnxref
from onnxref import InferenceSession, InputError

NUMPY = [
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
]  # fmt: skip
SPECIAL = [
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "uint4", "int4",
    "uint2", "int2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
]  # fmt: skip


def returned(value: Any, kind: Any) -> Any:
    """What a model gives that returns what it is fed."""
    return InferenceSession(identity(kind)).run(None, {"x": value})[0]


def code_of(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@pytest.mark.parametrize("name", NUMPY + SPECIAL)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 3), (70, 300)])
def test_every_type(name: str, shape: tuple[int, ...]) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name) if name in SPECIAL else name)
    few = np.arange(np.prod(shape, dtype=int)) % 2
    # -1 has a sign in every bit of an integer.
    signed = few.astype(np.float32) * (1 if "uint" in name or name in ("bool", "float8_e8m0fnu") else -1)
    value = (signed + (name == "float8_e8m0fnu")).astype(dtype).reshape(shape)
    got = returned(value, code_of(dtype))
    assert got.dtype == dtype and got.shape == shape and type(got) is np.ndarray
    np.testing.assert_array_equal(got.astype(np.complex128), value.astype(np.complex128))


def test_layouts() -> None:
    grid = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    large = np.arange(60_000, dtype=np.int32).reshape(30, 40, 50)
    for base in (grid, large):
        for view in (base.T, base[::-1], base[:, ::2], base[1:, :, 3:], np.broadcast_to(base[0], base.shape), base[..., 0]):
            got = returned(view, TensorProto.INT32)
            np.testing.assert_array_equal(got, view)
            assert got.flags.c_contiguous and got.flags.writeable
    swapped = grid.astype(">i4")
    np.testing.assert_array_equal(returned(swapped, TensorProto.INT32), grid)
    # At an odd address.
    odd = np.frombuffer(b"x" + grid.tobytes(), dtype=np.int32, offset=1).reshape(grid.shape)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(returned(odd, TensorProto.INT32), grid)


def address(value: np.ndarray[Any, Any]) -> int:
    return int(value.__array_interface__["data"][0])


def test_large_outputs_hand_over_their_memory() -> None:
    relu = model([helper.make_node("Relu", ["x"], ["y"])], [("x", 1, ["N"])], [("y", 1, ["N"])])
    session = InferenceSession(relu)
    x = np.ones(1 << 20, dtype=np.float32)
    first = session.run(None, {"x": x})[0]
    second = session.run(None, {"x": -x})[0]
    assert address(first) != address(second) and first.base is not None and first.flags.writeable
    first[:] = 7
    del session
    assert (second == 0).all() and (first == 7).all()


LARGE = """
import sys
import numpy as np, onnxref
size = 64 << 20
session = onnxref.InferenceSession(sys.argv[1])
feeds = {"x": np.ones(size if sys.argv[2] == "feed" else 1, np.float32), "n": np.array([size])}
# Not ru_maxrss, which begins with the memory of the process that started this one.
peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) >> 10
before = peak()
outputs = session.run([sys.argv[2]], feeds)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads the memory of a process in KiB")
def test_large_arrays_are_not_copied(tmp_path: Path) -> None:
    """A feed of 256 MiB takes no more memory, an output of 256 MiB no more than itself."""
    nodes = [helper.make_node("Gather", ["x", "zero"], ["feed"]), helper.make_node("Expand", ["x", "n"], ["output"])]
    zero = onnx.numpy_helper.from_array(np.array([0]), "zero")
    for name, least, most in [("feed", 0, 100), ("output", 200, 300)]:
        own = [node for node in nodes if name in node.output]
        of = model(own, [("x", 1, ["N"]), ("n", 7, [1])], [(name, 1, ["M"])], [zero])
        (tmp_path / "model.onnx").write_bytes(of)
        command = [sys.executable, "-c", LARGE, str(tmp_path / "model.onnx"), name]
        done = subprocess.run(command, capture_output=True, text=True)
        assert least <= int(done.stdout) <= most, (name, done)


def test_outputs_share_nothing() -> None:
    """What a model returns as it is, a feed or a constant, is a copy: who writes to it changes nothing else."""
    constant = np.arange(50_000, dtype=np.float32)
    of = model(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["c"], ["z"])],
        [("x", 1, ["N"])],
        [("y", 1, ["N"]), ("z", 1, ["M"])],
        [onnx.numpy_helper.from_array(constant, "c")],
    )
    session = InferenceSession(of)
    x = constant + 1
    for _ in range(2):
        y, z = session.run(None, {"x": x})
        np.testing.assert_array_equal(y, constant + 1)
        np.testing.assert_array_equal(z, constant)
        y[:], z[:] = 0, 0
    np.testing.assert_array_equal(x, constant + 1)
    y, y_again = session.run(["y", "y"], {"x": x})
    y[:] = 0
    np.testing.assert_array_equal(y_again, x)


def test_large_feeds_are_borrowed_and_given_back() -> None:
    x = np.ones(1 << 20, dtype=np.float32)
    session = InferenceSession(identity(TensorProto.FLOAT))
    before = sys.getrefcount(x)
    for _ in range(3):
        session.run(None, {"x": x})
    assert sys.getrefcount(x) == before


def test_other_arrays() -> None:
    want = np.arange(6, dtype=np.int64)

    class Shown:
        def __init__(self, field: str) -> None:
            setattr(type(self), field, property(lambda self: getattr(want, field)))

    class Dlpack:
        def __dlpack__(self, **arguments: Any) -> Any:
            return want.__dlpack__(**arguments)

        def __dlpack_device__(self) -> Any:
            return want.__dlpack_device__()

    class Convertible:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return want

    others = [array.array("q", want), memoryview(want), bytearray(want).__class__(want), want.tolist(), tuple(want.tolist())]
    for other in [others[0], others[1], *others[3:], Shown("__array_interface__"), Dlpack(), Convertible()]:
        np.testing.assert_array_equal(returned(other, TensorProto.INT64), want, err_msg=str(type(other)))
    np.testing.assert_array_equal(returned(b"\x01\x02", TensorProto.UINT8), [1, 2])
    np.testing.assert_array_equal(returned(bytearray(b"\x01\x02"), TensorProto.UINT8), [1, 2])

    class Own(np.ndarray[Any, Any]):
        pass

    assert type(returned(want.view(Own), TensorProto.INT64)) is np.ndarray
    with pytest.raises(InputError, match=r'^input "x": a dict can\'t be fed: expected an array$'):
        returned({}, TensorProto.INT64)
    with pytest.raises(InputError, match="an array with masked elements can't be fed"):
        returned(np.ma.masked_array([1, 2], [True, False]), TensorProto.INT64)


def test_dlpack_of_types_that_numpy_does_not_have() -> None:
    torch = pytest.importorskip("torch")
    of = torch.tensor([[1.5, -2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.bfloat16)
    for value in (of, of.T, of[:, 1:]):
        got = returned(value, TensorProto.BFLOAT16)
        assert got.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(got.astype(np.float32), value.float().numpy())


def test_the_reader_of_dlpack() -> None:
    """It reads the memory of others: here, integers that pass as bfloat16."""
    from onnxref import _arrays

    bits = np.arange(12, dtype=np.uint16).reshape(3, 4)
    for value in (bits, bits.T, bits[1:, ::2]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(_arrays._DLPACK, (1, 16), 16)
            got = _arrays._from_dlpack(value)
        assert got.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(got.view(np.uint16), value)


def test_numbers_of_python() -> None:
    assert returned([1.5, 2], TensorProto.FLOAT).dtype == np.float32
    assert returned(3, TensorProto.FLOAT16).dtype == np.float16
    assert returned([[1], [2]], TensorProto.BFLOAT16).tolist() == [[1], [2]]
    assert returned([], TensorProto.INT64).shape == (0,)
    assert returned(True, TensorProto.BOOL).tolist() is True
    # Decimals are rounded, and infinity stays.
    assert returned([0.1, float("inf")], TensorProto.FLOAT16).tolist() == [float(np.float16(0.1)), float("inf")]
    assert np.isnan(returned([float("nan"), 2**70], TensorProto.FLOAT)[0])
    assert returned([16777217.0], TensorProto.FLOAT).tolist() == [16777216.0]
    assert returned([0.5, float("nan")], TensorProto.FLOAT8E4M3FN).astype(np.float32)[0] == 0.5
    assert returned([-8, 7], TensorProto.INT4).tolist() == [-8, 7]
    # NumPy rounds these to floats, or has them as objects.
    assert returned([[2**64 - 1], [0]], TensorProto.UINT64).tolist() == [[2**64 - 1], [0]]
    assert returned([True, 2**63], TensorProto.UINT64).tolist() == [1, 2**63]
    assert returned([ml_dtypes.bfloat16(1.5)] * 2, TensorProto.BFLOAT16).tolist() == [1.5, 1.5]
    for value, kind, text in [
        ([2**64 - 1, -1], TensorProto.UINT64, "-1 is out of bounds for uint64"),
        ([2**64 - 1, 0], TensorProto.INT64, "18446744073709551615 is out of bounds for int64"),
        ([2**64 - 1, 0], TensorProto.INT4, "18446744073709551615 is out of bounds for int4"),
        ([2**64 - 1, 0.5], TensorProto.UINT64, "numbers of the kind float64 can't be fed as uint64"),
        ([2**70, 1j], TensorProto.FLOAT, "numbers of the kind complex128 can't be fed as float32"),
        ([1, None], TensorProto.FLOAT, "a NoneType can't be fed as float32: expected a number"),
        ([ml_dtypes.bfloat16(1)], TensorProto.FLOAT, "has element type bfloat16, but the model expects float32"),
        ([1.5], TensorProto.INT64, "numbers of the kind float64 can't be fed as int64"),
        ([1], TensorProto.BOOL, "numbers of the kind int64 can't be fed as bool"),
        ([1j], TensorProto.FLOAT, "numbers of the kind complex128 can't be fed as float32"),
        ([300], TensorProto.UINT8, "out of bounds"),
        ([[1, 300]], TensorProto.UINT8, '^input "x": 300 is out of bounds for uint8$'),
        ([np.int64(300)], TensorProto.UINT8, '^input "x": 300 is out of bounds for uint8$'),
        ([-1], TensorProto.UINT64, "-1 is out of bounds for uint64"),
        ([2**63], TensorProto.INT64, "9223372036854775808 is out of bounds for int64"),
        ([1, 2**70], TensorProto.INT64, "1180591620717411303424 is out of bounds for int64"),
        ([100], TensorProto.INT4, "100 is out of bounds for int4"),
        ([1e10], TensorProto.FLOAT16, r"10000000000.0 is out of bounds for float16"),
        (10**400, TensorProto.DOUBLE, "too large"),
        ([1e300 + 1e300j], TensorProto.COMPLEX64, "is out of bounds for complex64"),
        ([16777217], TensorProto.FLOAT, "16777217 is not exact as float32: 16777217.0 is rounded"),
        ([0.5, 257], TensorProto.BFLOAT16, "257 is not exact as bfloat16: 257.0 is rounded"),
        ([2**53 + 1], TensorProto.DOUBLE, "9007199254740993 is not exact as float64"),
        ([1000.0], TensorProto.FLOAT8E4M3FN, "1000.0 is not a value of float8_e4m3fn: only those that it holds exactly"),
        ([0.3], TensorProto.FLOAT8E5M2, "0.3 is not a value of float8_e5m2"),
        ([[1], [2, 3]], TensorProto.FLOAT, "inhomogeneous"),
    ]:
        with pytest.raises(InputError, match=text):
            returned(value, kind)


def test_nothing_is_narrowed() -> None:
    with pytest.raises(InputError, match='^input "x" has element type float64, but the model expects float32$'):
        returned(np.zeros(2), TensorProto.FLOAT)
    with pytest.raises(InputError, match="is the byte 2, which is not a valid bool"):
        returned(np.array([0, 2], dtype=np.uint8).view(bool), TensorProto.BOOL)
    with pytest.raises(InputError, match=r"an array of datetime64\[D\] can't be fed"):
        returned(np.array(["2020-01-01"], dtype="M8[D]"), TensorProto.INT64)


def test_objects_are_not_converted() -> None:
    """As pandas has mixed columns."""
    for value in ([1.5, 2], [1, None], []):
        text = 'input "x": an array of objects can\'t be fed as float32: .astype("float32") converts it'
        with pytest.raises(InputError) as raised:
            returned(np.array(value, object), TensorProto.FLOAT)
        assert str(raised.value) == text
    with pytest.raises(InputError, match=r"fed as bfloat16: \.astype\(ml_dtypes\.bfloat16\) converts it$"):
        returned(np.array([1], object), TensorProto.BFLOAT16)
    with pytest.raises(InputError, match="has element type string, but the model expects float32"):
        returned(np.array(["a"], object), TensorProto.FLOAT)


def test_strings() -> None:
    want = np.array([["a", "bü"], ["", "d" * 40]], dtype=object)
    given = [want, want.astype(str), want.tolist(), want.T.T, np.array([[s.encode() for s in row] for row in want], object)]
    if hasattr(np.dtypes, "StringDType"):
        given.append(want.astype(np.dtypes.StringDType()))
    for value in given:
        got = returned(value, TensorProto.STRING)
        assert got.dtype == object and got.tolist() == want.tolist()
    assert returned(np.array("one", dtype=object), TensorProto.STRING).tolist() == "one"
    assert returned(np.zeros((0, 3), dtype=object), TensorProto.STRING).shape == (0, 3)
    with pytest.raises(InputError, match="element 1 of an array of object is a int: expected a string"):
        returned(np.array(["a", 1], dtype=object), TensorProto.STRING)
    with pytest.raises(InputError, match="has element type string, but the model expects float32"):
        returned(np.array(["a"]), TensorProto.FLOAT)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="it needs NumPy 2")
def test_string_dtype() -> None:
    """Strings as NumPy 2 has them, also in sequences."""
    want = np.array([["a", "bü"], ["", "d" * 40]], dtype=np.dtypes.StringDType())
    node = helper.make_node("SequenceConstruct", ["x", "x"], ["s"])
    strings = helper.make_tensor_type_proto(TensorProto.STRING, None)
    both = model([node], [("x", TensorProto.STRING, None)], [("x", strings), ("s", helper.make_sequence_type_proto(strings))])
    session = pickle.loads(pickle.dumps(InferenceSession(both, string_dtype=True)))
    x, sequence = session.run(None, {"x": want})
    for got in (x, *sequence):
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
    number = InferenceSession(identity(TensorProto.INT64, [2]), string_dtype=True).run(None, {"x": [1, 2]})[0]
    assert number.dtype == np.int64


def test_sequences_optionals_maps() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence = helper.make_sequence_type_proto(tensor)
    values = [np.ones(2, np.float32), np.zeros((1, 3), np.float32)]
    got = returned(values, sequence)
    assert type(got) is list and [each.tolist() for each in got] == [[1, 1], [[0, 0, 0]]]
    assert returned([], sequence) == []
    optional = helper.make_optional_type_proto(tensor)
    assert returned(None, optional) is None
    assert returned(values[0], optional).tolist() == [1, 1]
    nested = helper.make_optional_type_proto(sequence)
    assert [each.shape for each in returned(values, nested)] == [(2,), (1, 3)]
    with pytest.raises(InputError, match='input "x": '):
        returned([np.ones(2)], sequence)


def test_maps() -> None:
    of = helper.make_model(
        helper.make_graph(
            [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
            [helper.make_empty_tensor_value_info("y")],
        ),
        opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=10,
    )
    rows = InferenceSession(of).run(None, {"x": np.array([[1, 2], [3, 4]], np.float32)})[0]
    assert rows == [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]
    assert type(rows[0]["a"]) is float


def test_ml_dtypes_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferenceSession(
        model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)], [("x", 1, [1])], [("y", 16, [1])])
    )
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "ml_dtypes":
            raise ImportError(name)
        return imported(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="^NumPy has no bfloat16: pip install ml_dtypes$"):
        session.run(None, {"x": np.ones(1, np.float32)})


def test_the_package_does_not_need_onnx_or_ml_dtypes() -> None:
    code = "import sys, onnxref; assert not {'onnx', 'ml_dtypes', 'onnxruntime'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert onnxref.__version__
