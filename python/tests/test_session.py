"""Sessions: what onnxruntime's and onnx's have, options, watching, threads, interruptions, pickles."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import CASES, model
from onnx import TensorProto, helper

import onnxref
from onnxref import Cancelled, InferenceSession, InputError, LimitError, LoadError, ModelNotFoundError, UnsupportedModelError

ONE = np.ones(1, np.float32)


def test_sources(gather: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(gather)
    feeds = {"data": np.eye(4, dtype=np.float32), "indices": np.array([2, 0])}
    for source in (path, os.fspath(path), gather, bytearray(gather), memoryview(gather), onnx.load_from_string(gather)):
        got = InferenceSession(source).run(None, feeds)[0]
        assert got.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    with pytest.raises(TypeError, match="a int is not a model: expected a path, bytes or an onnx.ModelProto"):
        InferenceSession(3)  # type: ignore[arg-type]


def test_what_onnxruntime_has(gather: bytes) -> None:
    session = InferenceSession(gather, onnxref.SessionOptions(), providers=["CPUExecutionProvider"])
    data, indices = session.get_inputs()
    assert (data.name, data.type, data.shape) == ("data", "tensor(float)", ["N", 4])
    assert (indices.name, indices.type, indices.shape) == ("indices", "tensor(int64)", [None])
    assert [(y.name, y.type, y.shape) for y in session.get_outputs()] == [("y", "tensor(float)", ["M", 4])]
    assert session.get_providers() == onnxref.get_available_providers() == ["CPUExecutionProvider"]
    options = onnxref.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.graph_optimization_level = onnxref.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxref.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert InferenceSession(gather, options)._options["threads"] == 1
    with pytest.raises(TypeError, match="InferenceSession has no argument 'thread'"):
        InferenceSession(gather, thread=1)


def test_metadata(chain: bytes) -> None:
    proto = onnx.load_from_string(chain)
    proto.producer_name, proto.model_version = "somebody", 3
    helper.set_model_props(proto, {"names": "{0: 'cat'}"})
    # A property may be called as a field that isn't set.
    proto.metadata_props.insert(0, onnx.StringStringEntryProto(key="domain", value="of the author"))
    session = InferenceSession(proto)
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.version, meta.description) == ("somebody", 3, "")
    assert meta.domain == "" and meta.custom_metadata_map == {"domain": "of the author", "names": "{0: 'cat'}"}
    assert session.metadata["names"] == "{0: 'cat'}"


def test_what_the_reference_has(chain: bytes) -> None:
    session = onnxref.ReferenceEvaluator(chain, verbose=0)
    assert (session.input_names, session.output_names) == (["x"], ["y"])
    assert session.opsets == {"": onnx.defs.onnx_opset_version()}
    assert session.run(None, {"x": ONE})[0].tolist() == [3]


def test_the_same_types_as_onnxruntime(gather: bytes) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    for path in sorted(CASES.glob("*/model.onnx")):
        ours, theirs = InferenceSession(path), onnxruntime.InferenceSession(path)
        for own, other in [(ours.get_inputs(), theirs.get_inputs()), (ours.get_outputs(), theirs.get_outputs())]:
            assert [(i.name, i.type, i.shape) for i in own] == [(i.name, i.type, i.shape) for i in other]


def test_defaults_of_inputs() -> None:
    of = model(
        [helper.make_node("Add", ["x", "b"], ["y"])],
        [("x", 1, [1]), ("b", 1, [1])],
        [("y", 1, [1])],
        [onnx.numpy_helper.from_array(ONE * 5, "b")],
    )
    session = InferenceSession(of)
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [i.name for i in session.get_overridable_initializers()] == ["b"]
    assert session.run(None, {"x": ONE})[0].tolist() == [6]
    assert session.run(None, {"x": ONE, "b": ONE})[0].tolist() == [2]


def test_run(chain: bytes) -> None:
    assert onnxref.run(chain, x=[1, 2])["y"].tolist() == [3, 5]
    session = InferenceSession(chain)
    assert onnxref.run(session, x=[1])["y"].tolist() == [3]
    assert session.run([], {"x": ONE}, onnxref.RunOptions())[0].tolist() == [3]


def test_watch(chain: bytes) -> None:
    session = InferenceSession(chain)
    seen: list[Any] = []

    def watch(node: onnxref.Node, outputs: dict[str, Any]) -> None:
        seen.append((node.index, node.operator, node.version, {name: value.tolist() for name, value in outputs.items()}))
        with pytest.raises(ValueError, match="read-only"):
            next(iter(outputs.values()))[...] = 0

    session.run(None, {"x": ONE}, watch=watch)
    assert seen == [(0, "Mul", 14, {"hidden": [2]}), (1, "Add", 14, {"y": [3]})]
    large = {"x": np.ones(1 << 18, np.float32)}
    kept: list[Any] = []
    session.run(None, large, watch=lambda node, outputs: kept.extend(outputs.values()))
    assert [float(each.sum()) for each in kept] == [2 << 18, 3 << 18]

    def fails(node: onnxref.Node, outputs: dict[str, Any]) -> None:
        raise KeyError(node.name)

    with pytest.raises(KeyError):
        session.run(None, {"x": ONE}, watch=fails)


def test_timeout(endless: bytes) -> None:
    session = InferenceSession(endless)
    feeds = {"n": np.int64(2**40), "x": np.ones(8, np.float32)}
    start = time.monotonic()
    with pytest.raises(Cancelled) as raised:
        session.run(None, feeds, timeout=0.2)
    assert 0.2 <= time.monotonic() - start < 10 and raised.value.kind == "cancelled"
    assert str(raised.value).endswith("the time of the run is up")
    for wrong in (-1, -0.5, float("nan")):
        with pytest.raises(InputError, match=f"^timeout={wrong}: expected a number of seconds that is not negative$"):
            session.run(None, feeds, timeout=wrong)
    with pytest.raises(TypeError, match="^timeout='1': expected a number of seconds$"):
        session.run(None, feeds, timeout="1")  # type: ignore[arg-type]
    for timeout in (60, 2.0**63, 2**70, float("inf"), np.float32(60)):
        assert session.run(None, {**feeds, "n": np.int64(3)}, timeout=timeout)[0].shape == (8,)


def test_another_thread_ends_a_run(endless: bytes, chain: bytes) -> None:
    session, options = InferenceSession(endless), onnxref.RunOptions()
    feeds = {"n": np.int64(2**40), "x": np.ones(8, np.float32)}
    assert options.terminate is False
    threading.Timer(0.3, lambda: setattr(options, "terminate", True)).start()
    start = time.monotonic()
    with pytest.raises(Cancelled, match="the run was cancelled by its caller$"):
        session.run(None, feeds, options, timeout=60)
    assert 0.2 <= time.monotonic() - start < 10 and options.terminate is True
    # It stays so, whatever the session and the values.
    session = InferenceSession(chain)
    for names in (None, ["hidden"]):
        with pytest.raises(Cancelled, match="the run was cancelled by its caller$"):
            session.run(names, {"x": ONE}, options)
    with pytest.raises(Cancelled):
        session.run(None, {"x": ONE}, options, intermediate=True)
    options.terminate = False
    assert session.run(["hidden"], {"x": ONE}, options)[0].tolist() == [2]


INTERRUPTED = """
import signal, sys, threading, time
import numpy as np, onnxref
# A job in the background of a shell ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
session = onnxref.InferenceSession(sys.argv[1])
feeds = {name: np.load(sys.argv[2])[name] for name in np.load(sys.argv[2]).files}
threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
start = time.monotonic()
try:
    session.run(None, feeds)
except KeyboardInterrupt:
    print("interrupted after", time.monotonic() - start)
"""


def test_ctrl_c_ends_a_run(endless: bytes, tmp_path: Path) -> None:
    """Between nodes, and within a single one that works for long."""
    product = model([helper.make_node("MatMul", ["x", "x"], ["y"])], [("x", 11, ["N", "N"])], [("y", 11, ["N", "N"])])
    loop = {"n": np.int64(2**40), "x": np.ones(8, np.float32)}
    for of, feeds in [(endless, loop), (product, {"x": np.ones((6000, 6000))})]:
        (tmp_path / "model.onnx").write_bytes(of)
        np.savez(tmp_path / "feeds.npz", **feeds)
        arguments = [sys.executable, "-c", INTERRUPTED, "model.onnx", "feeds.npz"]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.stdout.startswith("interrupted after "), done
        assert float(done.stdout.split()[-1]) < 5


LEFT = """
import signal, sys, threading, time
import onnxref
signal.signal(signal.SIGINT, signal.default_int_handler)
named = "limits" if sys.argv[1] == "InferenceSession" else "limit"
threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
start = time.monotonic()
try:
    getattr(onnxref, sys.argv[1])("model.onnx", **{named: {"load_bytes": 2**40, "nodes": 2**30}})
except KeyboardInterrupt:
    print("interrupted after", time.monotonic() - start)
"""


@pytest.mark.parametrize("called", ["InferenceSession", "check", "inspect", "compare"])
def test_ctrl_c_ends_a_load(called: str, tmp_path: Path) -> None:
    """Here of functions that call each other twice, again and again: a million nodes."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    bodies = [[helper.make_node("Sin", ["x"], ["y"])]]
    for k in range(20):
        call = f"f{k}"
        bodies.append([helper.make_node(call, [x], [y], domain="own") for x, y in (("x", "z"), ("z", "y"))])
    functions = [helper.make_function("own", f"f{k}", ["x"], ["y"], body, opsets) for k, body in enumerate(bodies)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("f20", ["x"], ["y"], domain="own")], "g", [x], [y])
    onnx.save(helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8), tmp_path / "model.onnx")
    command = [sys.executable, "-c", LEFT, called]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("interrupted after ") and done.stderr == "", done
    assert float(done.stdout.split()[-1]) < 5


def test_other_threads_go_on_during_a_run(endless: bytes) -> None:
    session = InferenceSession(endless)
    feeds = {"n": np.int64(2**40), "x": np.ones(8, np.float32)}
    counted = 0
    running = threading.Thread(target=lambda: pytest.raises(Cancelled, session.run, None, feeds, timeout=0.5))
    running.start()
    while running.is_alive():
        counted += 1
    assert counted > 1000


def test_many_threads_run_one_session(gather: bytes) -> None:
    session = InferenceSession(gather)
    data = np.arange(40_000, dtype=np.float32).reshape(-1, 4)

    def rows(seed: int) -> bool:
        indices = np.random.default_rng(seed).integers(0, len(data), 5000)
        return bool((session.run(None, {"data": data, "indices": indices})[0] == data[indices]).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(rows, range(100)))


FORKED = """
import multiprocessing, sys
import numpy as np, onnxref
session = onnxref.InferenceSession(sys.argv[1])
x = np.random.default_rng(0).standard_normal((500, 500))
def run(_):
    return session.run(None, {"x": x})[0].tobytes()
if __name__ == "__main__":
    want = run(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(all(got == want for got in pool.map_async(run, range(4)).get(60)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs fork")
def test_a_forked_process_runs(tmp_path: Path) -> None:
    """The threads that helped before are not there any more."""
    product = model([helper.make_node("MatMul", ["x", "x"], ["y"])], [("x", 11, ["N", "N"])], [("y", 11, ["N", "N"])])
    (tmp_path / "model.onnx").write_bytes(product)
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "model.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_pickles(chain: bytes, gather: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(chain)
    for source in (path, chain):
        session = InferenceSession(source, threads=1, limits={"run_nodes": 10})
        text = pickle.dumps(session)
        assert (chain in text) == (source is chain)
        again = pickle.loads(text)
        assert again.run(None, {"x": ONE})[0].tolist() == [3]
        assert again._options == session._options
    text = pickle.dumps(InferenceSession(path))
    path.write_bytes(gather)
    with pytest.raises(LoadError, match="is not the file that was pickled: its hash is another"):
        pickle.loads(text)
    session = InferenceSession(path)
    path.write_bytes(chain)
    with pytest.raises(LoadError, match="was changed since it was loaded: the model can't be pickled"):
        pickle.dumps(session)


def test_a_relative_path_stays_that_of_the_file(chain: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(chain)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    session = InferenceSession("model.onnx")
    with pytest.raises(ModelNotFoundError) as raised:
        InferenceSession("none.onnx")
    assert raised.value.filename == "none.onnx" and str(raised.value).startswith('model "none.onnx": ')
    monkeypatch.chdir(tmp_path / "other")
    # Optimisation computed it in place of a node: the model is loaded again.
    assert session.run(["hidden"], {"x": ONE})[0].tolist() == [2]
    assert pickle.loads(pickle.dumps(session)).run(None, {"x": ONE})[0].tolist() == [3]
    assert session._repr_svg_().startswith("<svg")
    path.unlink()
    with pytest.raises(ModelNotFoundError) as raised:
        pickle.dumps(session)
    assert str(raised.value) == f"{path} isn't there any more: the model can't be pickled"
    assert raised.value.filename == str(path)


def test_a_pickle_has_a_hash_of_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all of it, or of pieces of what is large, here of more than 64 KiB."""
    monkeypatch.setattr("onnxref._session._PIECE", 1 << 10)
    for size in (8, 20 << 10):
        data = np.arange(size, dtype=np.float32)
        of = model(
            [helper.make_node("Gather", ["data", "i"], ["y"])], [("i", 7, [1])], [("y", 1, [1])],
            [onnx.numpy_helper.from_array(data, "data")],
        )  # fmt: skip
        path, external = tmp_path / "model.onnx", tmp_path / f"{size}.bin"
        onnx.save(onnx.load_from_string(of), path, save_as_external_data=True, location=external.name, size_threshold=0)
        text = pickle.dumps(InferenceSession(path, mmap=True))
        for last in (size - 1, 0):
            assert pickle.loads(text).run(None, {"i": [last]})[0].tolist() == [last]
        time.sleep(0.01)
        with external.open("r+b") as file:
            file.seek(4 * (size - 1))
            file.write(np.float32(0.5).tobytes())
        with pytest.raises(LoadError, match=rf"{size}\.bin is not the file that was pickled: its hash is another"):
            pickle.loads(text)
        session = InferenceSession(path)
        os.utime(external, ns=(0, 0))
        with pytest.raises(LoadError, match=rf"{size}\.bin was changed since it was loaded: the model can't be pickled"):
            pickle.dumps(session)
        external.unlink()
        with pytest.raises(ModelNotFoundError):
            pickle.loads(text)


def test_options(chain: bytes, tmp_path: Path) -> None:
    with pytest.raises(LimitError) as raised:
        InferenceSession(chain, limits={"file_bytes": 10})
    assert (raised.value.limit, raised.value.size, raised.value.remedy) == ("file_bytes", 10, 'limits={"file_bytes": N}')
    assert str(raised.value).endswith('the limit is 10 (limits={"file_bytes": N} raises it)')
    with pytest.raises(LimitError):
        InferenceSession(chain, limits={"run_nodes": 1}, optimize=False).run(None, {"x": ONE})
    with pytest.raises(InputError, match='there is no limit "bytes"'):
        InferenceSession(chain, limits={"bytes": 10})
    with pytest.raises(InputError, match='there is no departure "everything"'):
        InferenceSession(chain, allow=["everything"])
    fixed = InferenceSession(chain, dimensions={"N": 2})
    assert fixed.get_inputs()[0].shape == [2]
    path = tmp_path / "model.onnx"
    path.write_bytes(chain)
    assert InferenceSession(path, mmap=True, fast_math=True).run(None, {"x": ONE})[0].tolist() == [3]
    assert InferenceSession(chain, untrusted=True).run(None, {"x": ONE})[0].tolist() == [3]


def test_allow(gather: bytes) -> None:
    """Gather-1 has no negative indices."""
    of = helper.make_model(
        onnx.load_from_string(gather).graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=3
    )
    feeds = {"data": np.eye(4, dtype=np.float32), "indices": [-1]}
    with pytest.raises(onnxref.IndexOutOfRangeError) as raised:
        InferenceSession(of).run(None, feeds)
    name = raised.value.remedy
    assert name is not None and name.startswith('allow=["')
    allowed = InferenceSession(of, allow=[name.split('"')[1]])
    assert allowed.run(None, feeds)[0].tolist() == [[0, 0, 0, 1]]


def test_external_data(tmp_path: Path) -> None:
    of = model(
        [helper.make_node("Add", ["x", "b"], ["y"])], [("x", 1, [1])], [("y", 1, [1])],
        [onnx.numpy_helper.from_array(ONE * 5, "b")],
    )  # fmt: skip
    proto = onnx.load_from_string(of)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert InferenceSession(path).run(None, {"x": ONE})[0].tolist() == [6]
    with pytest.raises(InputError) as raised:
        InferenceSession(path.read_bytes())
    assert raised.value.remedy is not None and "external_data" in raised.value.remedy
    kept = (tmp_path / "w.bin").rename(tmp_path / "kept.bin")
    with pytest.raises(ModelNotFoundError) as missing:
        InferenceSession(path)
    assert missing.value.filename is None and "w.bin" in str(missing.value)
    kept.rename(tmp_path / "w.bin")
    inside = InferenceSession(path.read_bytes(), external_data={"w.bin": (tmp_path / "w.bin").read_bytes()})
    assert inside.run(None, {"x": ONE})[0].tolist() == [6]


def test_exceptions(gather: bytes, tmp_path: Path) -> None:
    session = InferenceSession(gather)
    feeds: dict[str, Any] = {"data": np.eye(4, dtype=np.float32), "indices": [1, 7]}
    with pytest.raises(IndexError) as index:
        session.run(None, feeds)
    error = index.value
    assert isinstance(error, onnxref.IndexOutOfRangeError) and isinstance(error, ValueError)
    assert (error.node, error.operator, error.version, error.node_index) == ("lookup", "Gather", 13, 0)
    assert (error.value, error.position, error.axis, error.size) == (7, (1,), 0, 4)
    assert error.remedy is None and error.needs is None and error.faults == 1 and len(error.causes) == 1
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)

    with pytest.raises(ValueError, match='^missing input "indices"') as missing:
        session.run(None, {"data": feeds["data"]})
    assert isinstance(missing.value, InputError) and missing.value.value_name == "indices"
    with pytest.raises(InputError, match='input "other" is not an input of the model, which takes "data", "indices"'):
        session.run(None, {**feeds, "other": ONE})
    with pytest.raises(LoadError) as load:
        InferenceSession(tmp_path / "none.onnx")
    assert load.value.kind == "io" and "No such file" in str(load.value)
    text, path = str(load.value), tmp_path / "none.onnx"
    assert isinstance(load.value, ModelNotFoundError)
    for again in (load.value, pickle.loads(pickle.dumps(load.value))):
        assert isinstance(again, FileNotFoundError) and isinstance(again, ValueError)
        assert (again.errno, again.filename, str(again)) == (errno.ENOENT, str(path), text)
    with pytest.raises(LoadError) as load:
        InferenceSession(tmp_path)
    assert not isinstance(load.value, OSError)
    with pytest.raises(LoadError) as load:
        InferenceSession(b"not a model")
    assert load.value.kind == "model"
    unknown = model([helper.make_node("Other", ["x"], ["y"], domain="com.example")], [("x", 1, [1])], [("y", 1, [1])])
    proto = onnx.load_from_string(unknown)
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(NotImplementedError) as unsupported:
        InferenceSession(proto)
    assert isinstance(unsupported.value, UnsupportedModelError) and unsupported.value.needs is not None
    assert unsupported.value.needs["missing"][0]["operator"] == "Other"


def test_several_faults() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], axis=1), helper.make_node("Relu", ["y"], ["z"], axis=2)]
    with pytest.raises(LoadError) as raised:
        InferenceSession(model(nodes, [("x", 1, [1])], [("z", 1, [1])]))
    assert raised.value.faults == 2 and [cause["node_index"] for cause in raised.value.causes] == [0, 1]


def test_a_picture(chain: bytes) -> None:
    picture = InferenceSession(chain)._repr_svg_()
    assert picture.startswith("<svg") and "Mul" in picture


def test_signals_are_left_alone(chain: bytes) -> None:
    before = signal.getsignal(signal.SIGINT)
    onnxref.check(chain)
    assert signal.getsignal(signal.SIGINT) is before
