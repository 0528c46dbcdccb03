"""Models that Python reads, changes, builds and writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import CASES

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
