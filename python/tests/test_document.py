"""Models that Python reads, changes, builds and writes."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import CASES
from onnx import helper

import onnxref

MODEL = CASES / "test_gather_2d_indices" / "model.onnx"


def rows() -> onnxref.Document:
    """The rows of a table, doubled."""
    document = onnxref.Document("rows", opset=22)
    document.add_input("indices", "int64", ["n"])
    document.add_initializer("table", np.arange(6, dtype=np.float32).reshape(3, 2))
    document.add_node("Gather", ["table", "indices"], ["row"], {"axis": 0}, name="pick")
    document.add_node("Constant", [], ["two"], {"value": np.float32([2])})
    document.add_node("Identity", ["two"], ["same"])
    document.add_node("Mul", ["row", "same"], ["y"])
    document.add_output("y", "float32")
    return document


def test_what_is_built_runs() -> None:
    document = rows()
    assert document.inputs == [("indices", "tensor(int64)", ["n"])]
    assert document.outputs == [("y", "tensor(float)", None)]
    assert [node.op_type for node in document.nodes] == ["Gather", "Constant", "Identity", "Mul"]
    assert (document.nodes[0].name, document.nodes[0].inputs) == ("pick", ["table", "indices"])
    (y,) = onnxref.InferenceSession(document.to_bytes()).run(None, {"indices": np.array([2, 0])})
    assert y.tolist() == [[8, 10], [0, 2]]
    assert repr(document) == "<Document: 4 nodes, indices -> y>"


def test_bodies_and_attributes() -> None:
    document = onnxref.Document()
    document.add_input("up", "bool", [])
    branches = {}
    for name, value in (("then_branch", [1.5, 2]), ("else_branch", [3, 4])):
        body = onnxref.Document(name)
        body.add_node("Constant", [], [name], {"value_ints" if name[0] == "e" else "value_floats": value})
        body.add_node("Cast", [name], [name + "_float"], {"to": 1})
        body.add_output(name + "_float")
        branches[name] = body
    document.add_node("If", ["up"], ["y"], branches)
    document.add_output("y", "float32", [2])
    session = onnxref.InferenceSession(document.to_bytes())
    assert session.run(None, {"up": np.array(False)})[0].tolist() == [3, 4]
    with pytest.raises(TypeError, match="attribute axes: an empty list has no type: give an array"):
        document.add_node("Squeeze", ["y"], ["z"], {"axes": []})
    for value, text in [
        (2**63, "9223372036854775808 is out of bounds for int64"),
        ([1, -(2**63) - 1], "-9223372036854775809 is out of bounds for int64"),
        (1e300, "1e+300 is out of bounds for float32"),
        ([0.5, -1e39], "-1e+39 is out of bounds for float32"),
    ]:
        with pytest.raises(onnxref.InputError) as raised:
            document.add_node("Cast", ["y"], ["z"], {"to": value})
        assert str(raised.value) == f"attribute to: {text}"
    document.add_node("Gemm", ["y", "y"], ["z"], {"alpha": 0.1, "beta": float("inf"), "most": 2**63 - 1, "list": [1, 0.5]})
    assert "alpha: float = 0.1" in document.to_text() and "most: int = 9223372036854775807" in document.to_text()
    with pytest.raises(onnxref.InputError, match='dtype="floaty": not an element type, such as float32'):
        document.add_input("x", "floaty")


def test_text_and_files(tmp_path: Path) -> None:
    document = onnxref.Document.open(MODEL)
    assert document.to_bytes() == MODEL.read_bytes()
    again = onnxref.Document.parse(document.to_text())
    assert onnxref.Document.open(document.to_text().encode()).to_text() == again.to_text()
    again.rename("data", "table")
    again.save(tmp_path / "model.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    assert onnxref.InferenceSession(tmp_path / "model.onnx").input_names[0] == "table"
    assert onnxref.Document.open(onnx.load(MODEL)).to_text() == document.to_text()
    assert onnxref.Document.open(memoryview(MODEL.read_bytes())).to_bytes() == document.to_bytes()
    with pytest.raises(TypeError, match="a NoneType is not a model: expected a path, bytes or an onnx.ModelProto"):
        onnxref.Document.open(None)  # type: ignore[arg-type]
    with pytest.raises(onnxref.LoadError, match="line 1, column 3: expected `\\(`, found the end"):
        onnxref.Document.parse("g ")
    with pytest.raises(onnxref.ModelNotFoundError):
        onnxref.Document.open(tmp_path / "none.onnx")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path, number, text in [
        (tmp_path / "none" / "x.onnx", errno.ENOENT, "No such file or directory"),
        (tmp_path, errno.EISDIR, "Is a directory"),
    ]:
        with pytest.raises(OSError) as raised:
            rows().save(path)
        for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
            assert isinstance(error, onnxref.WriteError) and not isinstance(error, ValueError)
            assert (error.errno, error.strerror, error.filename) == (number, text, os.fspath(path))
            assert str(error) == f'file "{path}": {text} (os error {number})' and error.kind == "io"
    assert not list(tmp_path.iterdir())


def test_changes() -> None:
    document = rows()
    document.simplify()
    assert [node.op_type for node in document.nodes] == ["Gather", "Mul"]
    assert document.initializers == ["table", "same"]
    document.declare_shapes()
    assert document.outputs == [("y", "tensor(float)", ["n", 2])]
    document.set_symbol("n", 4)
    assert document.outputs[0][2] == [4, 2] and document.inputs[0][2] == [4]
    assert document.extract(outputs=["row"]) == []
    assert document.outputs == [("row", "tensor(float)", [4, 2])] and len(document.nodes) == 1
    document.convert(28)
    assert document.opsets == {"": 28} and document.ir_version == 14
    with pytest.raises(onnxref.InputError, match='the graph has no value "rows"') as raised:
        document.extract(outputs=["rows"])
    assert raised.value.value_name == "rows"


def test_types_and_sizes() -> None:
    """Those of NumPy, and what is listed."""
    document = onnxref.Document()
    types: list[tuple[Any, str]] = [
        ("float32", "tensor(float)"), ("double", "tensor(double)"), (np.float32, "tensor(float)"),
        (np.dtype("i8"), "tensor(int64)"), (bool, "tensor(bool)"), (str, "tensor(string)"),
        (ml_dtypes.bfloat16, "tensor(bfloat16)"), (ml_dtypes.int4, "tensor(int4)"),
    ]  # fmt: skip
    for k, (dtype, text) in enumerate(types):
        document.add_input(f"x{k}", dtype, (2, "n", None, np.int64(0)))
        assert document.inputs[-1] == (f"x{k}", text, [2, "n", None, 0])
    for text in (
        "tensor(float16)", "seq(tensor(int64))", "optional(seq(tensor(string)))", "map(int64,tensor(float))",
        "seq(map(string,tensor(double)))",
    ):  # fmt: skip
        document.add_output("y", text)
        assert document.outputs[-1] == ("y", text, None)
    document.add_output("untyped")
    assert document.outputs[-1] == ("untyped", None, None)
    before = document.to_bytes()
    wrong: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (("float32", [-1]), onnxref.InputError, "size -1: a size can't be negative"),
        (("float32", [2**63]), onnxref.InputError, f"size {2**63}: a size is from 0 to {2**63 - 1}"),
        (("float32", [1.5]), TypeError, "size 1.5: expected a number, the name of a symbol, or None"),
        (("float32", 3), TypeError, "shape=3: expected a list of numbers, names of symbols and None"),
        (("float32", "abc"), TypeError, "shape='abc': expected a list of numbers, names of symbols and None"),
        (("seq(tensor(float))", [1]), onnxref.InputError, '"z": only a tensor with a dtype has a shape'),
        ((None, [1]), onnxref.InputError, '"z": only a tensor with a dtype has a shape'),
        (("tensor(floaty)",), onnxref.InputError, 'dtype="tensor(floaty)": not an element type, such as float32'),
        (("seq(" * 50 + "tensor(float)" + ")" * 50,), onnxref.InputError, "not an element type, such as float32"),
        ((5,), TypeError, "dtype=5: not an element type, such as float32"),
        ((np.dtype("M8"),), TypeError, "dtype=dtype('<M8'): not an element type, such as float32"),
    ]
    for arguments, kind, text in wrong:
        for add in (document.add_input, document.add_output):
            with pytest.raises(kind) as raised:
                add("z", *arguments)
            assert str(raised.value).endswith(text)
    for size, text in ((-4, "size -4: a size can't be negative"), (2**70, f"size {2**70}: a size is from 0 to {2**63 - 1}")):
        with pytest.raises(onnxref.InputError) as refused:
            document.set_symbol("n", size)
        assert str(refused.value) == text
    with pytest.raises(TypeError, match=r"^size 1\.5: expected a number, the name of a symbol, or None$"):
        document.set_symbol("n", 1.5)  # type: ignore[arg-type]
    for call in (
        lambda: document.add_node("Neg", "x0", ["y"]), lambda: document.add_node("Clip", ["x0", None], ["y"]),
        lambda: document.extract(outputs="y"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="puts=.*: expected a list of names$"):
            call()
    assert document.to_bytes() == before


def test_opsets() -> None:
    assert [onnxref.Document(opset=opset).ir_version for opset in (9, 22, 23, 25, 28)] == [10, 10, 11, 13, 14]
    document = onnxref.Document()
    document.set_opset("ai.onnx.ml", 3)
    document.set_opset("ai.onnx", 24)
    assert document.opsets == {"ai.onnx.ml": 3, "": 24} and document.ir_version == 12
    for opset in range(1, onnx.defs.onnx_opset_version() + 1):
        document = onnxref.Document(opset=opset)
        assert document.ir_version == max(10, helper.find_min_ir_version_for([helper.make_opsetid("", opset)], True))


def test_a_name_may_stay() -> None:
    document = rows()
    before = document.to_bytes()
    document.rename("y", "y")
    assert document.to_bytes() == before
    with pytest.raises(onnxref.InputError, match='^the graph has no value "z"$'):
        document.rename("z", "z")


def test_copies() -> None:
    document = rows()
    for same in (copy.copy(document), copy.deepcopy([document])[0], pickle.loads(pickle.dumps(document))):
        assert same is not document and same.to_bytes() == document.to_bytes()
        same.rename("y", "z")
        assert document.outputs[0][0] == "y" and same.outputs[0][0] == "z"


def test_a_document_is_a_model() -> None:
    document = rows()
    feeds = {"indices": np.array([2, 0])}
    assert onnxref.InferenceSession(document).run(None, feeds)[0].tolist() == [[8, 10], [0, 2]]
    assert onnxref.run(document, **feeds)["y"].tolist() == [[8, 10], [0, 2]]
    assert onnxref.check(document)["valid"] and onnxref.inspect(document)["totals"]["nodes"] == 4
    assert onnxref.Document.open(document).to_bytes() == document.to_bytes()
    # Its own graph is what it was before.
    document.add_node("If", ["c"], ["z"], {"then_branch": document, "else_branch": document})
    assert [node.op_type for node in document.nodes][-1] == "If" and document.to_text().count("pick") == 3


def test_threads_share_a_document() -> None:
    """One that changes it while others work on it is told so."""
    document = onnxref.Document()
    document.add_initializer("big", np.zeros(1 << 19, np.int8))
    told: list[str] = []
    reading = threading.Thread(target=lambda: [document.to_text() for _ in range(3)])
    reading.start()
    while reading.is_alive():
        try:
            document.rename("big", "big")
        except RuntimeError as error:
            told.append(str(error))
    reading.join()
    assert set(told) == {"another thread works on the document"}


def test_everything_public_is_explained() -> None:
    for name in onnxref.__all__:
        value = getattr(onnxref, name)
        assert name == "__version__" or value.__doc__, name
        if isinstance(value, type) and value.__module__.startswith("onnxref"):
            for own, member in vars(value).items():
                called = callable(member) or isinstance(member, (property, staticmethod)) or hasattr(member, "__get__")
                assert own.startswith("_") or not called or member.__doc__, f"{name}.{own}"
