"""How `onnxref test` calls an engine that is written in Python.

With three paths as arguments (model, inputs, outputs) it runs one case. Without arguments it reads a line with the three
paths, tabs between them, for each case, and answers with a line: `ok`, `unsupported WHY` or `failed WHY`.
"""

import os
import re
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Unsupported(Exception):
    """The engine doesn't support the model."""


def serve(run):
    """Runs all cases that are asked for, with `run(model, inputs)`: a ModelProto, and the inputs by name. It returns the
    outputs in the order of the model."""
    answers = os.fdopen(os.dup(1), "w")
    # What the engine prints is no answer.
    os.dup2(2, 1)
    if len(sys.argv) == 4:
        word, why = attempt(run, *sys.argv[1:])
        print(why, file=sys.stderr)
        sys.exit({"ok": 0, "unsupported": 77}.get(word, 1))
    for line in sys.stdin:
        print(*attempt(run, *line.rstrip("\n").split("\t")), file=answers, flush=True)


def attempt(run, path, inputs, outputs):
    try:
        model = onnx.load(path)
        fed = {}
        for file in Path(inputs).iterdir():
            info = model.graph.input[int(re.fullmatch(r"input_(\d+)\.pb", file.name)[1])]
            fed[info.name] = value(info.type, file.read_bytes())
        for k, (info, output) in enumerate(zip(model.graph.output, run(model, fed))):
            Path(outputs, f"output_{k}.pb").write_bytes(message(info, output).SerializeToString())
    except Unsupported as error:
        return "unsupported", words(error)
    except Exception as error:
        return "failed", words(f"{type(error).__name__}: {error}")
    return "ok", ""


def words(error):
    return " ".join(str(error).split())[:300]


def value(type_, encoded):
    """The value in a file: an array, a list, a dict of numbers or strings, or None."""
    if type_.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(encoded))
    if type_.HasField("optional_type"):
        held = onnx.OptionalProto.FromString(encoded)
        filled = any(field.name.endswith("_value") for field, _ in held.ListFields())
        return numpy_helper.to_optional(held) if filled else None
    if type_.HasField("map_type"):
        held = numpy_helper.to_dict(onnx.MapProto.FromString(encoded))
        text = lambda key: key.decode() if isinstance(key, bytes) else key
        return {text(key): element.item() for key, element in held.items()}
    return numpy_helper.to_array(onnx.TensorProto.FromString(encoded))


def message(info, output):
    if info.type.HasField("map_type"):
        return map_message(info.type.map_type, output)
    if info.type.HasField("sequence_type"):
        element = info.type.sequence_type.elem_type
        if element.HasField("map_type"):
            maps = [map_message(element.map_type, held) for held in output]
            return onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP, map_values=maps)
        return numpy_helper.from_list(output, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(output, info.name)
    return numpy_helper.from_array(output, info.name)


def map_message(type_, held):
    dtype = helper.tensor_dtype_to_np_dtype(type_.value_type.tensor_type.elem_type)
    keys = "string_keys" if type_.key_type == onnx.TensorProto.STRING else "keys"
    encoded = [key.encode() if isinstance(key, str) else int(key) for key in held]
    values = numpy_helper.from_list([np.asarray(element, dtype) for element in held.values()])
    return onnx.MapProto(key_type=type_.key_type, values=values, **{keys: encoded})
