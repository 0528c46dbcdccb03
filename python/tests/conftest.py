"""Models for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

#: The root of the repository.
ROOT = Path(__file__).parents[2]
CASES = ROOT / "onnx-test-data" / "gather" / "onnx-1.12.0" / "node"


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: Any = ()) -> bytes:
    """The bytes of a model. An input or output is (name, type) or (name, element type, shape)."""

    def info(name: str, kind: Any, shape: Any = None) -> onnx.ValueInfoProto:
        if isinstance(kind, onnx.TypeProto):
            return helper.make_value_info(name, kind)
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes, "g", [info(*i) for i in inputs], [info(*o) for o in outputs], initializer=list(initializers)
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", onnx.defs.onnx_opset_version())])
    return bytes(made.SerializeToString())


def identity(kind: Any, shape: Any = None) -> bytes:
    """A model that gives what it is fed."""
    if kind in (TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2):
        # Identity doesn't take them yet.
        return model([], [("x", kind, shape)], [("x", kind, shape)])
    return model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, shape)], [("y", kind, shape)])


@pytest.fixture(scope="session")
def gather() -> bytes:
    """y = data[indices], of float32 and int64."""
    return model(
        [helper.make_node("Gather", ["data", "indices"], ["y"], name="lookup")],
        [("data", TensorProto.FLOAT, ["N", 4]), ("indices", TensorProto.INT64, [None])],
        [("y", TensorProto.FLOAT, ["M", 4])],
    )


@pytest.fixture(scope="session")
def chain() -> bytes:
    """hidden = 2 x; y = hidden + 1"""
    return model(
        [helper.make_node("Mul", ["x", "two"], ["hidden"]), helper.make_node("Add", ["hidden", "one"], ["y"])],
        [("x", TensorProto.FLOAT, ["N"])],
        [("y", TensorProto.FLOAT, ["N"])],
        [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in (("two", 2), ("one", 1))],
    )


@pytest.fixture(scope="session")
def endless() -> bytes:
    """A loop that hardly ends."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Sin", ["v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [8]),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, [8])],
    )
    return model(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        [("n", TensorProto.INT64, []), ("x", TensorProto.FLOAT, [8])],
        [("y", TensorProto.FLOAT, [8])],
    )
