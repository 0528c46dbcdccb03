#!/usr/bin/env python3
"""Merges a decoder without a past and one with it into one model, as exporters of transformers do: an If takes the branch.

    pip install onnx onnxruntime
    tar xf onnx-test-data/small-networks.tar.xz
    python tools/merge_decoders.py small-networks onnx-test-data/merged-decoder.tar.xz

The branches read the inputs and the weights of the outer graph; equal weights are there once. The case has a data set for
each branch: merged-decoder/gpt2/model.onnx and test_data_set_{0,1}/{input,output}_I.pb, the outputs onnxruntime's.
"""
import io
import pathlib
import sys
import tarfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NETWORKS = pathlib.Path(sys.argv[1])
SWITCH = "use_cache_branch"


def tensors(folder):
    """The values of a data set, by their place."""
    files = sorted(folder.glob("input_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in files]


def branch(model, name, weights):
    """The model's graph as a branch: its weights move out, its inputs are those of the outer graph."""
    graph = model.graph
    renamed = {}
    for tensor in graph.initializer:
        key = (tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes())
        outer = weights.setdefault(key, (f"weight_{len(weights)}", tensor))[0]
        renamed[tensor.name] = outer
    for node in graph.node:
        node.input[:] = [renamed.get(value, value) for value in node.input]
    return helper.make_graph(graph.node, name, [], graph.output)


first, later = (onnx.load(NETWORKS / f"gpt2_{kind}.legacy17" / "model.onnx") for kind in ("prefill", "decode"))
inputs = list(later.graph.input)
weights = {}
outputs = [value.name for value in later.graph.output]
assert outputs == [value.name for value in first.graph.output], "both decoders have the same outputs"
assert {value.name for value in first.graph.input} <= {value.name for value in inputs}
node = helper.make_node(
    "If", [SWITCH], outputs, "branch",
    then_branch=branch(later, "with_past", weights), else_branch=branch(first, "without_past", weights),
)
for value in [*inputs, *later.graph.output]:
    # Either branch has its own sizes.
    for axis, size in enumerate(value.type.tensor_type.shape.dim):
        size.dim_param = f"{value.name}_{axis}"
switch = helper.make_tensor_value_info(SWITCH, TensorProto.BOOL, [1])
initializers = []
for name, tensor in weights.values():
    initializers.append(TensorProto())
    initializers[-1].CopyFrom(tensor)
    initializers[-1].name = name
graph = helper.make_graph([node], "merged_decoder", [*inputs, switch], later.graph.output, initializers)
model = helper.make_model(graph, opset_imports=later.opset_import, ir_version=later.ir_version)
onnx.checker.check_model(model, full_check=True)

session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
names = [value.name for value in inputs]
with_past = dict(zip(names, tensors(NETWORKS / "gpt2_decode.legacy17" / "test_data_set_0")))
fed = [value.name for value in first.graph.input]
without = dict(zip(fed, tensors(NETWORKS / "gpt2_prefill.legacy17" / "test_data_set_0")))
# The branch without a past reads none: one of length 0 is fed.
without |= {name: np.zeros((*with_past[name].shape[:2], 0, with_past[name].shape[3]), np.float32) for name in names if name not in fed}

with tarfile.open(sys.argv[2], "w:xz", preset=9) as archive:

    def write(path, data):
        entry = tarfile.TarInfo(f"merged-decoder/gpt2/{path}")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))

    write("model.onnx", model.SerializeToString())
    for k, (feeds, past) in enumerate([(without, False), (with_past, True)]):
        feeds[SWITCH] = np.array([past])
        for i, name in enumerate([*names, SWITCH]):
            write(f"test_data_set_{k}/input_{i}.pb", numpy_helper.from_array(feeds[name], name).SerializeToString())
        for i, value in enumerate(session.run(outputs, feeds)):
            write(f"test_data_set_{k}/output_{i}.pb", numpy_helper.from_array(value, outputs[i]).SerializeToString())
print(len(weights), "weights,", model.ByteSize(), "bytes")
