"""What the program finds, as data, and the program itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import CASES, model
from onnx import helper

import onnxref

MODEL = CASES / "test_gather_2d_indices" / "model.onnx"


def program(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onnxref", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_check(chain: bytes) -> None:
    assert onnxref.check(chain, verbose=True)["valid"]
    found = onnxref.check(MODEL)
    assert found["model"] == str(MODEL) and found["valid"] and found["findings"] == []
    assert onnxref.check(chain)["valid"]
    wrong = onnxref.check(model([helper.make_node("Relu", ["x"], ["y"], axis=1)], [("x", 1, [1])], [("y", 1, [1])]))
    assert not wrong["valid"] and wrong["count"] == 1 and wrong["findings"][0]["attribute"] == "axis"


def test_inspect(chain: bytes) -> None:
    found = onnxref.inspect(chain, nodes=True, set={"N": 3})
    assert found["runs"] and found["graph"]["inputs"][0]["shape"] == [3]
    assert onnxref.inspect(onnxref.InferenceSession(chain)) == onnxref.inspect(chain)


def test_compare(chain: bytes) -> None:
    other = model(
        [helper.make_node("Add", ["x", "x"], ["hidden"]), helper.make_node("Add", ["hidden", "hidden"], ["y"])],
        [("x", 1, ["N"])],
        [("y", 1, ["N"])],
    )
    same = onnxref.compare(chain, inputs={"x": np.ones(3, np.float32)})
    assert same["exact"] == same["compared"] > 0 and same["outputs"] == {"y": {"exact": True, "equal": True}}
    assert onnxref.compare(chain, other, inputs={"x": np.zeros(3, np.float32)})["first"]["value"] == "y"
    differs = onnxref.compare(chain, other, seed=3, set={"N": 5})
    assert differs["differing"] == 1 and not differs["outputs"]["y"]["equal"]


def test_compare_of_types_that_archives_do_not_have() -> None:
    for code, value in [
        (8, np.array(["a", "bü"], dtype=object)),
        (8, ["a", "b"]),
        (16, np.array([1.5, float("nan"), -0.0], ml_dtypes.bfloat16)),
        (17, np.array([0.5, 448], ml_dtypes.float8_e4m3fn)),
        (22, np.array([[-8, 7]], ml_dtypes.int4)),
    ]:
        shape = list(np.asarray(value).shape)
        same = model([helper.make_node("Identity", ["x"], ["y"])], [("x", code, shape)], [("y", code, shape)])
        found = onnxref.compare(same, inputs={"x": value})
        assert found["outputs"] == {"y": {"exact": True, "equal": True}}


def test_inputs_of_compare() -> None:
    """They may have any name, and are what `run` takes."""
    for name in ("file", "allow_pickle", "a/b:0", "a%2Fb", "-%", "a=b", "x"):
        same = model([helper.make_node("Identity", [name], ["y"])], [(name, 1, ["N"])], [("y", 1, ["N"])])
        for value in ([1.5], np.array([1.5], ">f4"), (np.float32(1.5),)):
            found = onnxref.compare(same, inputs={name: value})
            assert found["outputs"] == {"y": {"exact": True, "equal": True}}
    for value, text in [
        ([2**24 + 1], 'input "x": 16777217 is not exact as float32: 16777217.0 is rounded'),
        (np.array([1.5]), 'input "x": it is float64, but the model expects float32: cast=True rounds it'),
        (None, 'input "x": None is not a tensor: write it to a file, and give input=["x=FILE.pb"]'),
    ]:
        with pytest.raises(onnxref.InputError) as raised:
            onnxref.compare(same, inputs={"x": value})
        assert str(raised.value) == text
    assert onnxref.compare(same, inputs={"x": np.array([0.1])}, cast=True)["differing"] == 0
    for value in ([0.1], [1], 1):
        same = model([helper.make_node("Identity", ["x"], ["y"])], [("x", 1, None)], [("y", 1, None)])
        assert onnxref.compare(same, inputs={"x": value}, cast=True)["differing"] == 0
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    same = model([helper.make_node("Identity", ["s"], ["t"])], [("s", kind)], [("t", kind)])
    with pytest.raises(onnxref.InputError, match=r'^input "s": seq\(tensor\(float\)\) is not a tensor: write it to a file, '):
        onnxref.compare(same, inputs={"s": [np.ones(1, np.float32), np.ones(2, np.float32)]})


def test_messages_name_arguments(chain: bytes) -> None:
    for options, text in [
        ({"timeout": 0}, "the time of the run is up: timeout=SECONDS gives it more time"),
        ({"limit": {"nodes": 0}}, 'the limit is 0 (limit={"nodes": N} raises it)'),
        ({"set": {"n": 2}}, "set n=2: no input has this dimension; open dimensions: N"),
    ]:
        with pytest.raises(onnxref.OnnxrefError) as raised:
            onnxref.compare(chain, **options)
        assert str(raised.value).endswith(text)
    # What is quoted stays.
    same = model([helper.make_node("Identity", ["--cast rounds"], ["y"])], [("--cast rounds", 1, [1])], [("y", 1, [1])])
    with pytest.raises(onnxref.InputError, match='^input "--cast rounds": it is float64, .*: cast=True rounds it$'):
        onnxref.compare(same, inputs={"--cast rounds": np.ones(1)})
    for name in ("help", "version", "json"):
        with pytest.raises(TypeError, match=f"^check has no argument '{name}': it returns data$"):
            onnxref.check(chain, **{name: True})
    with pytest.raises(TypeError, match="^name=5: expected a text$"):
        onnxref.ops(5)  # type: ignore[arg-type]


def test_ops() -> None:
    assert len({(each["domain"], each["name"]) for each in onnxref.ops()}) > 200
    found = next(each for each in onnxref.ops("Gather") if each["domain"] == "")
    assert [version["version"] for version in found["versions"]] == [1, 11, 13]


def test_faults_are_exceptions(tmp_path: Path) -> None:
    for verb in (onnxref.inspect, onnxref.check, onnxref.compare):
        with pytest.raises(onnxref.ModelNotFoundError, match="No such file") as raised:
            verb(tmp_path / "none.onnx")
        assert raised.value.filename == str(tmp_path / "none.onnx")
    with pytest.raises(onnxref.InputError, match="unexpected argument '--wrong'"):
        onnxref.inspect(MODEL, wrong=True)
    with pytest.raises(onnxref.OnnxrefError):
        onnxref.ops("Gathr")


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    onnxref.check(MODEL)
    with pytest.raises(onnxref.LoadError):
        onnxref.check(tmp_path / "none.onnx")
    with pytest.raises(onnxref.InputError):
        onnxref.check(MODEL, wrong=True)
    assert capfd.readouterr() == ("", "")


def test_the_program() -> None:
    done = program("run", MODEL, "-i", "data=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", "-i", "indices=[[0, 2]]")
    assert (done.returncode, done.stderr) == (0, "") and "[[[1, 3]], [[4, 6]], [[7, 9]]]" in done.stdout
    assert program("--version").stdout == f"onnxref {onnxref.__version__}\n"
    assert program("run").returncode == 2
    assert program("check", "none.onnx").returncode == 3
    assert "Usage: onnxref" in program("--help").stdout
    script = Path(sys.executable).with_name("onnxref")
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout.startswith("onnxref ")
