"""The official conformance runner of onnx, unmodified: https://onnx.ai/onnx/api/backend.html"""

from __future__ import annotations

import os
import unittest
import warnings
from pathlib import Path

import onnx
import pytest

import onnxref.backend

#: Of onnx 1.23.2. Each case for the CPU is there for CUDA too, and skipped.
PASSED, SKIPPED = 2023, 2033

#: Nobody passes these but the reference that made them, or by luck: most have no seed.
RANDOM = {f"test_bernoulli{kind}_cpu" for kind in ("", "_double", "_seed", "_expanded", "_double_expanded", "_seed_expanded")}
FAILED = {
    **dict.fromkeys(RANDOM, "AssertionError"),
    # The expected output was added up in float16; two of 192 elements differ by 1 part in 900.
    "test_attention_4d_causal_fp16_expanded_cpu": "AssertionError",
    # The runner takes the length of an array of rank 0 that is expected.
    "test_loop16_seq_none_cpu": "TypeError",
    # Gradient is the one operator that doesn't run.
    "test_gradient_of_add_cpu": "onnxref.UnsupportedModelError",
    "test_gradient_of_add_and_mul_cpu": "onnxref.UnsupportedModelError",
}


def test_official_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if onnx.__version__ != "1.23.2":
        pytest.skip("the numbers are those of onnx 1.23.2")
    # Where it writes inputs of networks.
    monkeypatch.setenv("ONNX_HOME", os.fspath(tmp_path))
    result = unittest.TestResult()
    with warnings.catch_warnings():
        # The cases are made by formulas of NumPy, on purpose also where these overflow.
        warnings.simplefilter("ignore")
        from onnx.backend.test import BackendTest

        BackendTest(onnxref.backend, __name__).test_suite.run(result)
    bad = {case.id().rpartition(".")[2]: trace for case, trace in result.failures + result.errors}
    kinds = dict.fromkeys(RANDOM, "AssertionError") | {name: _raised(trace) for name, trace in bad.items()}
    passed = result.testsRun - len(kinds) - len(result.skipped)
    print(f"{passed} passed, {len(kinds)} failed, {len(result.skipped)} skipped")
    assert kinds == FAILED, {name: trace for name, trace in bad.items() if name not in FAILED}
    assert (passed, len(result.skipped)) == (PASSED, SKIPPED)


def _raised(trace: str) -> str:
    """The exception of a trace: the last line that begins with a name and a colon."""
    lines = [line for line in trace.splitlines() if line and line[0].isalpha() and line.split(":")[0].replace(".", "").isalnum()]
    return [line.split(":")[0] for line in lines if line.split(":")[0].endswith("Error")][-1]


def test_backend() -> None:
    """What the runner doesn't call."""
    import numpy as np
    from onnx import helper

    x = np.array([[-1, 2]], np.float32)
    (y,) = onnxref.backend.run_node(helper.make_node("Relu", ["x"], ["y"]), x)
    assert y.tolist() == [[0, 2]]
    (y,) = onnxref.backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x], opset_version=1)
    assert y.tolist() == [[0, 2]]
    graph = helper.make_graph(
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)],
        "g",
        [helper.make_tensor_value_info(name, 1, ["N", 2]) for name in "ab"],
        [helper.make_tensor_value_info("y", 1, ["M", 2])],
    )
    model = helper.make_model(graph)
    assert onnxref.backend.run_model(model, {"b": x, "a": -x})["y"].tolist() == [[1, -2], [-1, 2]]
    assert onnxref.backend.run(model, [x, -x])[0].tolist() == [[-1, 2], [1, -2]]
    assert onnxref.backend.supports_device("CPU") and not onnxref.backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="there is no device CUDA: only CPU"):
        onnxref.backend.prepare(model, "CUDA")
    with pytest.raises(ValueError, match="3 inputs are given, but the model has 2"):
        onnxref.backend.run(model, [x, x, x])
