"""The predictor of batch jobs."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from conftest import model
from onnx import helper, numpy_helper

from onnxref import IndexOutOfRangeError, InputError, LoadError
from onnxref.batch import _SESSIONS, Predictor

TABLE = np.random.default_rng(7).standard_normal((100, 8), dtype=np.float32)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """y = table[ids], and its product with a matrix."""
    path = tmp_path / "table.onnx"
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"]), helper.make_node("MatMul", ["y", "m"], ["z"])]
    weights = [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(TABLE[:8], "m")]
    path.write_bytes(model(nodes, [("ids", 7, ["N"])], [("y", 1, ["N", 8]), ("z", 1, ["N", 8])], weights))
    return path


def test_columns(table: Path) -> None:
    predict = Predictor(table, inputs={"ids": "key"}, outputs={"row": "y"}, keep=["name"])
    ids = np.array([3, 1, 4])
    given = predict({"key": ids, "name": np.array(["a", "b", "c"]), "other": ids})
    assert list(given) == ["name", "row"] and given["name"].tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(given["row"], TABLE[ids])
    assert sorted(Predictor(table)({"ids": ids})) == ["y", "z"]


def test_a_row_is_the_same_in_any_batch(table: Path) -> None:
    predict = Predictor(table)
    ids = np.random.default_rng(1).integers(0, 100, 257)
    whole = predict({"ids": ids})["z"]
    for size in (1, 2, 7, 64, 256):
        parts = [predict({"ids": ids[at : at + size]})["z"] for at in range(0, len(ids), size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_it_is_pickled_without_the_model(table: Path) -> None:
    predict = Predictor(table)
    text = pickle.dumps(predict)
    assert len(text) < 1500 and TABLE.tobytes()[:64] not in text
    loaded = dict(_SESSIONS)
    assert pickle.loads(text)({"ids": np.array([5])})["y"].tobytes() == TABLE[5].tobytes()
    assert _SESSIONS == loaded, "it was loaded twice"
    # In another process.
    code = "import pickle, sys, numpy; print(pickle.load(sys.stdin.buffer)({'ids': numpy.array([5])})['y'].tobytes().hex())"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.decode().strip() == TABLE[5].tobytes().hex()
    table.write_bytes(model([helper.make_node("Neg", ["ids"], ["y"])], [("ids", 7, ["N"])], [("y", 7, ["N"])]))
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True)
    assert b"is not the file that was pickled" in done.stderr
    del predict
    with pytest.raises(LoadError):
        Predictor(table.with_name("none.onnx"))


def test_a_model_goes_with_its_predictors(table: Path) -> None:
    """But for the four that came last: an engine may make a predictor for each task."""
    content = table.read_bytes()
    predict = Predictor(content)
    key = predict._key
    assert len(key) == 64 and _SESSIONS[key] is predict._session and Predictor(content)._session is predict._session
    others = [Predictor(content, limits={"run_nodes": 100 + k}) for k in range(4)]
    assert predict({"ids": np.array([5])})["y"].tobytes() == TABLE[5].tobytes()
    assert key in _SESSIONS and len({each._key for each in others}) == 4
    text = pickle.dumps(predict)
    del predict
    gc.collect()
    assert key not in _SESSIONS
    again = pickle.loads(text)
    assert again._key == key and key not in _SESSIONS
    assert again({"ids": np.array([5])})["y"].tobytes() == TABLE[5].tobytes()
    held = _SESSIONS[key]
    del again
    gc.collect()
    assert pickle.loads(text)({"ids": np.array([5])}) and _SESSIONS[key] is held, "it was loaded twice"


def test_a_batch_is_not_charged_for_the_model(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Predictor(table.read_bytes())
    monkeypatch.setattr("onnxref.batch._key", lambda state: pytest.fail("the model is hashed again"))
    for _ in range(2):
        assert predict({"ids": np.array([5])})["y"].tobytes() == TABLE[5].tobytes()


def test_errors_name_the_row(table: Path) -> None:
    predict = Predictor(table)
    with pytest.raises(IndexOutOfRangeError, match=r"^row 2: node #0 \(Gather-13\): indices.* = 100 is out of range") as raised:
        predict({"ids": np.array([1, 2, 100, 101])})
    assert (raised.value.row, raised.value.value) == (2, 100)
    with pytest.raises(InputError, match="there is no column 'ids': the columns are id"):
        predict({"id": np.array([1])})
    with pytest.raises(InputError, match="^column 'name' has 3 rows, but others have 2$"):
        Predictor(table, keep="name")({"ids": np.array([1, 2]), "name": ["a", "b", "c"]})
    with pytest.raises(InputError, match="the model has no input 'key': it has ids"):
        Predictor(table, inputs={"key": "ids"})


def test_errors_of_columns_name_no_row(table: Path) -> None:
    predict = Predictor(table, keep="name")
    names = np.array(["a", "b"])
    for ids, text in [
        (np.array([1.0, 2.0]), 'input "ids" has element type float64, but the model expects int64'),
        (np.array([1, 2], object), 'input "ids": an array of objects can\'t be fed as int64: .astype("int64") converts it'),
        (np.array([[1], [2]]), 'input "ids" has shape [2, 1] of rank 2, but the model expects rank 1'),
    ]:
        with pytest.raises(InputError) as raised:
            predict({"ids": ids, "name": names})
        assert (str(raised.value), raised.value.row) == (text, None)
    with pytest.raises(InputError, match="^there is no column 'name': the columns are ids$"):
        predict({"ids": np.array([1])})
    with pytest.raises(InputError, match="^the model has no output 'q': it has y, z$"):
        Predictor(table, outputs={"row": "q"})
    # A value inside the graph is one too.
    inner = [helper.make_node("Neg", ["x"], ["inner"]), helper.make_node("Abs", ["inner"], ["y"])]
    predict = Predictor(_model(table, inner, [("x", 7, ["N"])], [("y", 7, ["N"])]), outputs={"row": "inner"})
    assert predict({"x": np.array([3])})["row"].tolist() == [-3]


def test_columns_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    axes = numpy_helper.from_array(np.array([1]), "axes")
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    path.write_bytes(model([node], [("x", 7, ["N", "L"])], [("y", 7, ["N"])], [axes]))
    predict = Predictor(path)
    column = np.empty(3, dtype=object)
    column[:] = [np.array([1, 2]), [3, 4], np.array([5, 6])]
    assert predict({"x": column})["y"].tolist() == [3, 7, 11]
    column[1] = [3]
    with pytest.raises(InputError, match=r"^row 1: column 'x' has shape \(1,\), but \(2,\) in row 0$"):
        predict({"x": column})


def test_arrow(table: Path) -> None:
    predict = Predictor(table, outputs={"y": "y"}, keep=["name"])
    ids = np.arange(10) * 7
    batches = [
        pyarrow.RecordBatch.from_pydict({"ids": ids[at : at + 4], "name": [str(i) for i in ids[at : at + 4]]})
        for at in (0, 4, 8)
    ]
    given = list(predict.map_in_arrow(iter(batches)))
    assert [batch.num_rows for batch in given] == [4, 4, 2] and given[0].schema.names == ["name", "y"]
    # Spark refuses lists of a fixed size.
    assert given[0].schema.field("y").type == pyarrow.list_(pyarrow.float32())
    whole = predict.arrow(pyarrow.Table.from_batches(batches))
    assert whole.equals(pyarrow.Table.from_batches(given))
    rows = np.array(whole["y"].to_pylist(), np.float32)
    np.testing.assert_array_equal(rows, TABLE[ids])
    with pytest.raises(InputError, match="^row 1: column 'ids' is null$"):
        next(predict.map_in_arrow([pyarrow.RecordBatch.from_pydict({"ids": [1, None], "name": ["a", "b"]})]))
    with pytest.raises(InputError, match="^there is no column 'name': the columns are ids$"):
        predict.arrow(pyarrow.RecordBatch.from_pydict({"ids": [1]}))
    # In a table, a row is counted from the beginning of the table.
    wrong = pyarrow.RecordBatch.from_pydict({"ids": [1, 100], "name": ["a", "b"]})
    with pytest.raises(IndexOutOfRangeError, match=r"^row 11: node #0 \(Gather-13\): ") as raised:
        predict.arrow(pyarrow.Table.from_batches([*batches, wrong]))
    assert (raised.value.row, raised.value.value) == (11, 100)


def test_columns_of_arrow(table: Path) -> None:
    """What engines want to know before the job: also what they get for no rows."""
    predict = pickle.loads(pickle.dumps(Predictor(table, inputs={"ids": "key"}, outputs={"row": "y"}, keep=["name"])))
    assert predict.input_columns == pyarrow.schema([("key", pyarrow.int64())])
    assert predict.output_columns == pyarrow.schema([("row", pyarrow.list_(pyarrow.float32()))])
    none = pyarrow.schema([("name", pyarrow.string()), ("key", pyarrow.int64())])
    for empty in (pyarrow.RecordBatch.from_pylist([], schema=none), none.empty_table()):
        given = predict.arrow(empty)
        assert given.num_rows == 0 and given.schema == pyarrow.schema([none.field(0), *predict.output_columns])
    inner = Predictor(_model(table, [helper.make_node("Sin", ["x"], ["y"])], [("x", 16, ["N", 2])], [("y", 16, ["N", 2])]))
    with pytest.raises(InputError, match=r"^column 'y': 'y' is tensor\(bfloat16\) \['N', 2\], for which Arrow has no column$"):
        inner.output_columns  # noqa: B018


def test_lists_of_arrow(table: Path) -> None:
    """Lists become axes, and axes lists, whatever the kind of the lists, and in a slice."""
    predict = Predictor(_model(table, [helper.make_node("Neg", ["x"], ["y"])], [("x", 7, ["N", 2, "M"])], [("y", 7, ["N", 2, "M"])]))
    number, values = pyarrow.int64(), np.arange(24).reshape(4, 2, 3)
    assert predict.input_columns.field("x").type == pyarrow.list_(pyarrow.list_(number))
    for inner in (pyarrow.list_(number), pyarrow.large_list(number), pyarrow.list_(number, 3)):
        for outer in (pyarrow.list_(inner), pyarrow.large_list(inner), pyarrow.list_(inner, 2)):
            column = pyarrow.array(values.tolist(), outer)
            for part in (slice(0, 4), slice(1, 3), slice(2, 2)):
                given = predict.arrow(pyarrow.record_batch({"x": column[part]}))
                assert given.schema == predict.output_columns
                assert given["y"].to_pylist() == (-values[part]).tolist()
    for wrong, text in [
        ([[[1], [2]], [[3], [4, 5]]], "row 1: column 'x' has 2 elements, but 1 in row 0"),
        ([[[1], [2]], [[3]]], "row 1: column 'x' has 1 elements, but 2 in row 0"),
        ([[[1], [2]], [[3], [None]]], "row 1: column 'x' is null within a list"),
        ([[[1], [2]], None], "row 1: column 'x' is null"),
    ]:
        with pytest.raises(InputError) as raised:
            predict.arrow(pyarrow.record_batch({"x": pyarrow.array(wrong, pyarrow.list_(pyarrow.list_(number)))}))
        assert (str(raised.value), raised.value.row) == (text, 1)


def _model(beside: Path, *parts: Any) -> Path:
    path = beside.with_name("other.onnx")
    path.write_bytes(model(*parts))
    return path
