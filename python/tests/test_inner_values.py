"""Values inside the graph, also those that optimisation leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import model
from onnx import helper

from onnxref import InferenceSession, InputError, LoadError

ONE = np.ones(1, np.float32)


def test_values_inside(chain: bytes) -> None:
    session = InferenceSession(chain)
    y, hidden = session.run(["y", "hidden"], {"x": ONE})
    assert (y.tolist(), hidden.tolist()) == ([3], [2])
    assert hidden.flags.writeable
    with pytest.raises(InputError, match='there is no output "z", and no node that runs gives a value "z"'):
        session.run(["z"], {"x": ONE})


@pytest.fixture
def folded() -> bytes:
    """y = k * same, where k is a constant and `same` an input unchanged; nobody reads `unread`."""
    nodes = [
        helper.make_node("Add", ["w", "w"], ["k"]),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Sqrt", ["x"], ["unread"]),
        helper.make_node("Mul", ["k", "same"], ["y"]),
    ]
    return model(nodes, [("x", 1, ["N"])], [("y", 1, ["N"])], [onnx.numpy_helper.from_array(ONE * 2, "w")])


def test_values_that_optimisation_left_out(folded: bytes, chain: bytes, tmp_path: Path) -> None:
    path, x = tmp_path / "model.onnx", {"x": ONE * 9}
    path.write_bytes(folded)
    for session in (InferenceSession(path), InferenceSession(folded), InferenceSession(path, optimize=False)):
        for _ in range(2):
            values = session.run(["k", "y", "same", "unread"], x, timeout=60)
            assert [value.tolist() for value in values] == [[4], [36], [9], [3]]
        seen: list[str] = []
        k = session.run(["k"], x, watch=lambda node, outputs: seen.extend(outputs))[0]
        assert k.tolist() == [4] and seen == (["y"] if session._options["optimize"] else ["k", "same", "unread", "y"])
        # An initializer, or an input, is no value that a node gives.
        for name in ("w", "x", "z"):
            with pytest.raises(InputError, match=f'there is no output "{name}", and no node that runs gives a value "{name}"'):
                session.run([name], x)
    session = InferenceSession(path)
    path.write_bytes(chain)
    with pytest.raises(InputError, match='there is no output "k"'):
        session.run(["k"], x)
    with pytest.raises(LoadError, match=r"model\.onnx was changed since it was loaded: it can't be loaded again$"):
        session.run(None, x, intermediate=True)


def test_intermediate_values(folded: bytes) -> None:
    from onnx.reference import ReferenceEvaluator

    x = {"x": ONE * 9}
    ours = InferenceSession(folded).run(None, x, intermediate=True)
    theirs = ReferenceEvaluator(onnx.load_from_string(folded)).run(None, x, intermediate=True)
    assert list(ours) == ["x", "k", "same", "unread", "y"]
    assert {name: value.tolist() for name, value in ours.items()} == {name: theirs[name].tolist() for name in ours}
