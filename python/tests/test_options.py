"""Options of sessions: what they may be, and their names in onnxruntime and onnx."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import model
from onnx import helper

import onnxref
from onnxref import InferenceSession, InputError
from onnxref.batch import Predictor

ONE = np.ones(1, np.float32)


def test_one_text_is_a_list_of_one(chain: bytes, tmp_path: Path) -> None:
    """Its letters are not meant: "/" would be a folder into which all links may lead."""
    of = model(
        [helper.make_node("Add", ["x", "b"], ["y"])], [("x", 1, [1])], [("y", 1, [1])],
        [onnx.numpy_helper.from_array(ONE * 5, "b")],
    )  # fmt: skip
    path, allowed, elsewhere = (tmp_path / name for name in ("model.onnx", "allowed", "elsewhere"))
    onnx.save(onnx.load_from_string(of), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    allowed.mkdir()
    elsewhere.mkdir()
    (tmp_path / "w.bin").rename(elsewhere / "w.bin")
    (tmp_path / "w.bin").symlink_to(elsewhere / "w.bin")
    for load in (InferenceSession, Predictor):
        for root in (os.fspath(allowed), allowed, os.fsencode(allowed), [allowed]):
            with pytest.raises(InputError, match=r'external data "w\.bin" is behind a link'):
                load(path, external_roots=root)
        for root in (os.fspath(elsewhere), elsewhere, os.fsencode(elsewhere), (elsewhere,)):
            load(path, external_roots=root)
    assert InferenceSession(chain, allow="unsorted-nodes")._options["allow"] == ["unsorted-nodes"]
    with pytest.raises(InputError, match='there is no departure "everything"'):
        InferenceSession(chain, allow="everything")
    assert InferenceSession(chain).run("hidden", {"x": ONE})[0].tolist() == [2]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"threads": -1}, InputError, "threads=-1: expected an integer from 0 to 18446744073709551615"),
    ({"threads": 1.5}, TypeError, "threads=1.5: expected an integer"),
    ({"limits": {"nodes": -1}}, InputError, 'limits["nodes"]=-1: expected an integer from 0 to 18446744073709551615'),
    ({"limits": {"nodes": "5"}}, TypeError, "limits[\"nodes\"]='5': expected an integer"),
    ({"limits": 5}, TypeError, "limits=5: expected a dict"),
    ({"limits": {1: 2}}, TypeError, "limits={1: 2}: expected a text, not 1, as the key"),
    ({"dimensions": {"N": -2}}, InputError, 'dimensions["N"]=-2: expected an integer from 0 to 18446744073709551615'),
    ({"mmap": 1}, TypeError, "mmap=1: expected True or False"),
    ({"optimize": None}, TypeError, "optimize=None: expected True or False"),
    ({"allow": 5}, TypeError, "allow=5: expected a text or a path, or a list of these"),
    ({"external_roots": [None]}, TypeError, "external_roots=[None]: expected a text or a path, or a list of these"),
    ({"external_data": {"w": 5}}, TypeError, 'external_data["w"]: expected bytes, not a value of type int'),
    ({"sess_options": 5}, TypeError, "sess_options=5: expected SessionOptions"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG)
def test_wrong_options(chain: bytes, options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        InferenceSession(chain, **options)
    assert str(raised.value) == text


def test_right_options(chain: bytes) -> None:
    options: dict[str, Any] = {"threads": np.int64(2), "limits": [("nodes", 2**64 - 1)], "mmap": np.bool_(False)}
    assert InferenceSession(chain, **options)._options["threads"] == 2


def test_session_options(chain: bytes) -> None:
    options = onnxref.SessionOptions()
    assert options.graph_optimization_level is onnxref.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert onnxref.GraphOptimizationLevel.ORT_ENABLE_LAYOUT.value == 3
    assert (options.inter_op_num_threads, options.enable_profiling, options.log_severity_level) == (0, False, -1)
    options.add_free_dimension_override_by_name("N", 3)
    options.intra_op_num_threads = 2
    session = InferenceSession(chain, options)
    assert session.get_inputs()[0].shape == [3]
    assert InferenceSession(chain, options, dimensions={"N": 4}).get_inputs()[0].shape == [4]
    assert session.get_session_options().intra_op_num_threads == 2
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    options.intra_op_num_threads = -3
    with pytest.raises(InputError, match=r"^SessionOptions\.intra_op_num_threads=-3: expected an integer from 0 to "):
        InferenceSession(chain, options)
    assert session.get_modelmeta().graph_name == "g"


def test_config_entries(chain: bytes) -> None:
    options = onnxref.SessionOptions()
    for key, value, text in [
        ("session.set_denormal_as_zero", "1", "is not implemented: onnxref computes with subnormal numbers"),
        ("session.set_denormal_as_zero", "yes", "is neither 0 nor 1"),
        ("session.load_model_format", "ORT", "is not implemented: onnxref reads ONNX only"),
        ("onnxref.untrusted", "1", "sets nothing: in Python it is an argument of InferenceSession"),
    ]:
        with pytest.raises(InputError) as raised:
            options.add_session_config_entry(key, value)
        assert str(raised.value) == f'the config entry "{key}": "{value}" {text}'
    options.add_session_config_entry("session.set_denormal_as_zero", "0")
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", "/data")
    assert InferenceSession(chain, options, external_roots="/more")._options["external_roots"] == ["/more", "/data"]


def test_names_of_arguments(chain: bytes) -> None:
    """As onnxruntime and onnx have them."""
    for session in (InferenceSession(path_or_bytes=chain), onnxref.ReferenceEvaluator(proto=onnx.load_from_string(chain))):
        assert session.run(None, feed_inputs={"x": ONE})[0].tolist() == [3]
        assert session.run(output_names=["y"], input_feed={"x": ONE}, run_options=None)[0].tolist() == [3]
    with pytest.raises(TypeError, match="a NoneType is not a model: expected a path, bytes or an onnx.ModelProto"):
        InferenceSession()
    with pytest.raises(TypeError, match="InferenceSession has no argument 'proto'"):
        InferenceSession(chain, proto=chain)
    session = InferenceSession(chain)
    with pytest.raises(TypeError, match="unexpected keyword argument 'timout'"):
        session.run(None, {"x": ONE}, timout=0)  # type: ignore[call-arg]
    for feeds, kind in ((None, "NoneType"), ([ONE], "list")):
        with pytest.raises(TypeError) as raised:
            session.run(None, feeds)  # type: ignore[arg-type]
        text = "input_feed: expected a dict of arrays by the names of inputs, not a value of type "
        assert str(raised.value) == text + kind
