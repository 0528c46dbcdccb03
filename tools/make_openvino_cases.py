#!/usr/bin/env python3
"""Makes the cases in `tests/openvino/`: OpenVINO IR files with inputs and the outputs that their text asks for.

    python tools/make_openvino_cases.py tests/openvino

The `openvino` package (2026.4.1) writes the models; the outputs are the index equation of the Gather-1, -7 and -8
pages, written as a plain loop below. OpenVINO's CPU plugin then runs each case in a process of its own, and the
manifest says where it agrees. CASE/model.xml, CASE/model.bin and CASE/test_data_set_0 are laid out as the official
ONNX cases are: input_K.pb belongs to the K-th Parameter, output_K.pb to the K-th Result.

An element type that ONNX doesn't have (u1, u3, u6, nf4) is stored as uint8, one code an element.
"""

import argparse
import io
import json
import math
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import openvino
from onnx import TensorProto, helper
from openvino import Dimension, Layout, Model, PartialShape, Shape, Tensor, Type, op, opset1, opset7, opset8, passes

# OpenVINO's name: (numpy type of a value or a bare code, bits, ONNX's name)
TYPES = {
    "boolean": (np.uint8, 8, "BOOL"),
    "bf16": (np.uint16, 16, "BFLOAT16"),
    "f16": (np.uint16, 16, "FLOAT16"),
    "f32": (np.uint32, 32, "FLOAT"),
    "f64": (np.uint64, 64, "DOUBLE"),
    "f8e4m3": (np.uint8, 8, "FLOAT8E4M3FN"),
    "f8e5m2": (np.uint8, 8, "FLOAT8E5M2"),
    "f8e8m0": (np.uint8, 8, "FLOAT8E8M0"),
    "f4e2m1": (np.uint8, 4, "FLOAT4E2M1"),
    "nf4": (np.uint8, 4, None),
    "i4": (np.uint8, 4, "INT4"),
    "i8": (np.int8, 8, "INT8"),
    "i16": (np.int16, 16, "INT16"),
    "i32": (np.int32, 32, "INT32"),
    "i64": (np.int64, 64, "INT64"),
    "u1": (np.uint8, 1, None),
    "u2": (np.uint8, 2, "UINT2"),
    "u3": (np.uint8, 3, None),
    "u4": (np.uint8, 4, "UINT4"),
    "u6": (np.uint8, 6, None),
    "u8": (np.uint8, 8, "UINT8"),
    "u16": (np.uint16, 16, "UINT16"),
    "u32": (np.uint32, 32, "UINT32"),
    "u64": (np.uint64, 64, "UINT64"),
    "string": (object, 0, "STRING"),
}
STRAY_WRITES = {"type_u2", "type_f4e2m1"}  # one run differs, the next crashes, the third never ends: not run
WITHOUT_ZERO = {"f8e8m0", "nf4"}  # code 0 isn't the number 0: no out-of-range cases


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plugin", action="store_true", help="FOLDER is one case: run it, print what came out")
    arguments.add_argument("folder", type=Path, metavar="FOLDER")
    arguments = arguments.parse_args()
    if arguments.plugin:
        print("verdict:", run_plugin(arguments.folder))
        return
    for stale in arguments.folder.glob("*/test_data_set_0"):
        shutil.rmtree(stale.parent)
    entries = [write_case(arguments.folder, case) for case in all_cases()]
    entries.sort(key=lambda entry: entry["path"])
    if len({entry["path"] for entry in entries}) != len(entries):
        sys.exit("two cases have one name")
    for entry in entries:
        if entry["path"] in STRAY_WRITES:
            entry["cpu_plugin"] = "crashes: stray memory access"
            continue
        verdicts = sorted({ask_plugin(arguments.folder / entry["path"]) for _ in range(3)})
        crashes = [verdict for verdict in verdicts if verdict.startswith("crashes")]
        varying = verdicts[0].split(":")[0] + ": not the same each time"
        entry["cpu_plugin"] = crashes[0] if crashes else verdicts[0] if len(verdicts) == 1 else varying
    manifest = {
        "note": "Models written by OpenVINO; outputs computed from the text of its Gather pages, not by OpenVINO.",
        "openvino": openvino.__version__,
        "cases": entries,
    }
    (arguments.folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


# ---- The oracle


class Value(NamedTuple):
    type: str
    array: np.ndarray


def gather(version, data, indices, axis, batch_dims=0):
    """output[p.., i.., t..] = data[p.., indices[p[:b].., i..], t..], p being `axis` long."""
    (kind, data), indices, axis = data, indices.array, int(axis.array.reshape(()))
    axis += data.ndim if axis < 0 else 0
    batch_dims += indices.ndim if batch_dims < 0 else 0
    assert 0 <= batch_dims <= min(axis, indices.ndim) and axis < data.ndim, "not a legal case"
    assert data.shape[:batch_dims] == indices.shape[:batch_dims], "not a legal case"
    size, inner = data.shape[axis], indices.ndim - batch_dims
    shape = data.shape[:axis] + indices.shape[batch_dims:] + data.shape[axis + 1 :]
    output = np.full(shape, "" if kind == "string" else 0, data.dtype)
    for place in np.ndindex(*shape):
        head, picked, tail = place[:axis], place[axis : axis + inner], place[axis + inner :]
        index = int(indices[head[:batch_dims] + picked])
        if version == 8 and -size <= index < 0:
            index += size
        if 0 <= index < size:
            output[place] = data[head + (index,) + tail]
        else:
            assert version == 8, "only version 8 says what lies out of range"
    return Value(kind, output)


# ---- Values


def value(kind, content):
    return Value(kind, np.array(content, TYPES[kind][0]))


def i32(content):
    return value("i32", content)


def i64(content):
    return value("i64", content)


def iota(kind, *shape):
    """Elements that tell where they come from."""
    count, (number, bits, _) = math.prod(shape), TYPES[kind]
    if kind == "string":
        array = np.array([f"s{n}" for n in range(count)], object)
    elif kind == "boolean":
        array = np.arange(count) % 3 == 0
    elif kind in ("bf16", "f16", "f32", "f64"):
        numbers = np.arange(1, count + 1, dtype={"f16": np.float16, "f64": np.float64}.get(kind, np.float32))
        array = numbers.view(f"u{numbers.itemsize}") >> (16 if kind == "bf16" else 0)
    elif bits < 8 or kind.startswith("f8"):
        array = (np.arange(count) * 5 + 3) % (1 << bits)
    else:
        array = np.arange(1, count + 1)
    return Value(kind, array.astype(number).reshape(shape))


def awkward(kind, *shape):
    """As `iota`, but the first four elements are easily damaged."""
    number, bits, _ = TYPES[kind]
    mantissa = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}.get(kind)
    if kind == "string":
        first = ["", "é€😀", "two\nlines", "x" * 70]
    elif mantissa:
        infinity = (1 << (bits - 1)) - (1 << mantissa)
        first = [1 << (bits - 1), infinity, infinity + (1 << (mantissa - 1)) + 3, 1]  # -0, inf, a NaN with payload, subnormal
    elif kind[0] in "iu" and bits >= 8:
        limits = np.iinfo(number)
        first = [limits.max, limits.min, limits.max - 1, limits.min + 1]
    else:
        first = []
    result = iota(kind, *shape)
    result.array.reshape(-1)[: len(first)] = first
    return result


def packed(kind, array):
    """The bytes of .bin files and, for the types that ONNX has, of `raw_data`."""
    bits = TYPES[kind][1]
    codes = array.reshape(-1)
    if bits >= 8:
        return codes.tobytes()
    if bits == 1:  # the first element is the highest bit
        return np.packbits(codes).tobytes()
    if bits in (2, 4):  # the first element is lowest
        return join(codes, bits, lambda k, n: k)
    low, group = (2, 8) if bits == 3 else (4, 4)  # a group's low parts, then its high parts, each highest first
    codes = np.append(codes, np.zeros(-len(codes) % group, np.uint8)).reshape(-1, group)
    parts = [(row % (1 << low), row >> low) for row in codes]
    highest_first = lambda k, n: n - 1 - k
    return b"".join(join(a, low, highest_first) + join(b, bits - low, highest_first) for a, b in parts)


def join(codes, bits, position):
    per_byte = 8 // bits
    result = bytearray(-(-len(codes) // per_byte))
    for k, code in enumerate(codes):
        result[k // per_byte] |= int(code) << (bits * position(k % per_byte, per_byte))
    return bytes(result)


def tensor_of(kind, array):
    if kind == "string" and array.size:
        return Tensor(array.astype(str))
    tensor = Tensor(getattr(Type, kind), Shape(array.shape))  # one that owns its memory
    if array.size:
        tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(packed(kind, array), np.uint8)
    return tensor


def proto(name, tensor):
    kind, array = tensor
    onnx_type = TYPES[kind][2]
    result = TensorProto(name=name, dims=array.shape, data_type=getattr(TensorProto, onnx_type or "UINT8"))
    if kind == "string":
        result.string_data.extend(text.encode() for text in array.reshape(-1))
    else:
        result.raw_data = packed(kind, array) if onnx_type else array.tobytes()
    return result


# ---- Models


class Case(NamedTuple):
    name: str
    shows: str
    model: Model
    inputs: list  # values, in the order of the Parameters
    outputs: list  # values, in the order of the Results
    ir: int = 11
    saved: bool = False  # by save_model, which adds its version


def parameter(name, tensor, shape=None):
    node = op.Parameter(getattr(Type, tensor.type), PartialShape(tensor.array.shape) if shape is None else shape)
    return named(node, name)


def constant(name, tensor):
    node = op.Constant(tensor_of(tensor.type, tensor.array))
    node.set_friendly_name(name)
    return node


def gather_node(name, version, data, indices, axis, batch_dims=0):
    if version == 1:
        node = opset1.gather(data, indices, axis)
    else:
        node = {7: opset7, 8: opset8}[version].gather(data, indices, axis, batch_dims)
    return named(node, name)


def result(name, source):
    node = op.Result(source.output(0))
    node.set_friendly_name(name)
    return node


def named(node, name, tensor_names=None):
    node.set_friendly_name(name)
    node.output(0).set_names(tensor_names or {name})
    return node


def one(name, shows, version, data, indices, axis, batch_dims=0, feed=("data", "indices"), shapes={}, **more):
    """One Gather. `feed` names the inputs that are Parameters; `shapes` what these declare, if not what they get."""
    values = {"data": data, "indices": indices, "axis": axis}
    nodes = {
        key: parameter(key, tensor, shapes.get(key)) if key in feed else constant(key, tensor) for key, tensor in values.items()
    }
    node = gather_node("output", version, *nodes.values(), batch_dims)
    parameters = [nodes[key] for key in values if key in feed]
    model = Model([result("result", node)], parameters, name)
    output = gather(version, data, indices, axis, batch_dims)
    return Case(name, shows, model, [values[key] for key in values if key in feed], [output], **more)


def all_cases():
    yield from page_examples()
    yield from batches()
    yield from axes()
    yield from indices_values()
    yield from empties()
    yield from element_types()
    yield from dynamic_shapes()
    yield from ir_10()
    yield from structures()


def page_examples():
    numbers = lambda *shape: i32(np.arange(1, math.prod(shape) + 1).reshape(shape))
    rows, blocks = [[0, 0, 4], [4, 0, 0]], [[[0, 0, 4], [4, 0, 0]], [[1, 2, 4], [4, 3, 2]]]
    from_blocks = [[[1, 1, 5], [10, 6, 6]], [[12, 13, 15], [20, 19, 18]]]
    first, second = [[5, 6, 7, 8], [9, 10, 11, 12], [17, 18, 19, 20]], [[37, 38, 39, 40], [33, 34, 35, 36], [29, 30, 31, 32]]
    examples = [  # shape of data, indices, axis, batch_dims, the output that the page prints
        ((5,), [0, 0, 4], 0, 0, [1, 1, 5]),
        ((2, 5), rows, 1, 1, [[1, 1, 5], [10, 6, 6]]),
        ((2, 2, 5), blocks, 2, 2, from_blocks),
        ((2, 1, 5, 4), [[1, 2, 4], [4, 3, 2]], 2, 1, [[first], [second]]),
        ((2, 5), rows, 1, -1, [[1, 1, 5], [10, 6, 6]]),
        ((5,), [0, -2, -1], 0, 0, [1, 4, 5]),
        ((5,), [3, 10, -20], 0, 0, [4, 0, 0]),
    ]
    for version, count in ((7, 5), (8, 7)):
        for n, (shape, indices, axis, batch_dims, printed) in enumerate(examples[:count], 1):
            case = one(
                f"gather{version}_example_{n}",
                f"example {n} of the page of version {version}",
                version,
                numbers(*shape),
                i32(indices),
                i64(axis),
                batch_dims,
            )
            assert case.outputs[0].array.tolist() == printed
            yield case
    yield one(
        "gather1_example",
        "the ranks of the page's example: four and four, axis 1",
        1,
        iota("f32", 2, 3, 1, 2),
        i32(np.arange(12).reshape(3, 1, 2, 2) % 3),
        i64(1),
    )


def batches():
    three = i64([[[[3, 0], [1, 1]]], [[[2, 3], [0, 3]]]])
    yield one("batch_0_indices_of_rank_3", "batch_dims 0", 7, iota("f32", 2, 3), i32([[[0, 1]], [[1, 0]]]), i32(0))
    yield one("batch_3", "batch_dims 3", 8, iota("i16", 2, 1, 2, 4, 2), three, i64(3), 3)
    yield one("batch_3_axis_4", "batch_dims 3, axis behind it", 7, iota("i16", 2, 1, 2, 2, 4), three, i64(4), 3)
    yield one(
        "batch_minus_1",
        "batch_dims -1 with indices of rank 3 is 2",
        8,
        iota("f32", 2, 1, 3),
        i32([[[2, -1]], [[0, 1]]]),
        i64(2),
        -1,
    )
    yield one(
        "batch_minus_2", "batch_dims -2 with indices of rank 3 is 1", 7, iota("f32", 2, 5), i32([[[2, 1]], [[0, 4]]]), i64(1), -2
    )
    yield one(
        "batch_minus_2_of_data_rank_4",
        "batch_dims counts from the rank of indices, not of data",
        8,
        iota("u8", 2, 2, 3, 2),
        i32([[0, 1], [2, 0]]),
        i64(2),
        -1,
    )
    yield one("batch_minus_rank", "batch_dims -2 with indices of rank 2 is 0", 8, iota("f32", 3, 2), i64([[2, 0]]), i64(0), -2)
    yield one("batch_all", "batch_dims is the rank of indices", 7, iota("f32", 2, 3, 4), i32([[0, 1, 2], [3, 3, 0]]), i64(2), 2)
    yield one(
        "batch_all_of_rank_1", "batch_dims 1, indices of rank 1: one pick a row", 8, iota("i64", 3, 4), i64([3, -4, 1]), i64(1), 1
    )
    yield one(
        "batch_all_axis_behind",
        "batch_dims is the rank of indices, axis two behind",
        8,
        iota("u16", 2, 2, 2, 3),
        i32([2, 0]),
        i64(-1),
        1,
    )
    yield one("batch_of_ones", "batch dimensions of size 1", 8, iota("u16", 1, 1, 3), i32([[[2, 0]]]), i64(2), 2)


def axes():
    data, indices = iota("f32", 2, 3, 4), i32([1, 0])
    yield one("axis_scalar_i32", "axis: scalar i32 Const", 1, data, indices, i32(1))
    yield one("axis_scalar_i64", "axis: scalar i64 Const", 1, data, indices, i64(2))
    yield one("axis_1d_i32", "axis: i32 Const of shape [1]", 7, data, indices, i32([1]))
    yield one("axis_1d_i64", "axis: i64 Const of shape [1]", 1, data, indices, i64([0]))
    yield one("axis_negative", "axis -1", 1, data, indices, i64(-1))
    yield one("axis_minus_rank", "axis -3 with data of rank 3", 8, data, indices, i32([-3]))
    every = ("data", "indices", "axis")
    yield one("axis_fed_scalar_i32", "axis: scalar i32 Parameter", 8, data, indices, i32(2), feed=every)
    yield one("axis_fed_scalar_i64", "axis: scalar i64 Parameter", 7, data, indices, i64(0), feed=every)
    yield one("axis_fed_1d_i32", "axis: i32 Parameter of shape [1]", 1, data, indices, i32([1]), feed=every)
    yield one("axis_fed_1d_i64", "axis: i64 Parameter of shape [1], negative", 8, data, indices, i64([-2]), feed=every)
    yield one(
        "axis_fed_batch", "axis: Parameter, batch_dims 1", 8, iota("f32", 2, 3, 4), i32([[1, 0], [2, -1]]), i64(2), 1, feed=every
    )
    yield one("axis_u8", "axis: u8 Const (any integer type, by the page)", 8, data, indices, value("u8", 1))


def indices_values():
    data = iota("i32", 4, 2)
    yield one("indices_const_i32", "indices: i32 Const", 7, data, i32([[3, 0, 3]]), i64(0), feed=["data"])
    yield one("indices_const_i64", "indices: i64 Const", 1, data, i64([[3, 0, 3]]), i64(0), feed=["data"])
    yield one("indices_scalar_const", "indices: scalar Const, the axis goes away", 8, data, i64(-1), i64(0), feed=["data"])
    yield one("indices_scalar_i32", "indices: scalar i32 Parameter", 1, data, i32(2), i64(0))
    yield one("indices_scalar_i64", "indices: scalar i64 Parameter", 7, data, i64(1), i64(1))
    yield one("indices_scalar_of_1d", "1-D data, scalar indices: scalar output", 8, iota("i32", 5), i32(-2), i64(0))
    yield one(
        "indices_extremes_i32",
        "the first values out of range and the extremes of i32",
        8,
        data,
        i32([3, 4, -4, -5, 2**31 - 1, -(2**31)]),
        i64(0),
    )
    yield one(
        "indices_extremes_i64",
        "values that differ from legal ones by 2^32, and the extremes of i64",
        8,
        data,
        i64([2**32, 2**32 + 1, -(2**32) - 1, 2**63 - 1, -(2**63), 1]),
        i64(0),
    )
    yield one(
        "indices_out_of_range_const",
        "out of range, known when loading",
        8,
        iota("f32", 2, 3),
        i64([-4, 5, 0]),
        i64(1),
        feed=["data"],
    )
    yield one(
        "indices_out_of_range_batch",
        "out of range must not reach into the next batch",
        8,
        iota("f32", 3, 2),
        i32([[2, 0], [-3, 1], [1, 4]]),
        i64(1),
        1,
    )
    for kind, top in (("i8", 127), ("u8", 200), ("i16", 1), ("u16", 1), ("u32", 1), ("u64", 2**64 - 1)):
        yield one(
            f"indices_{kind}", f"indices: {kind} (any integer type, by the page)", 8, data, value(kind, [3, top, 0]), i64(0)
        )


def empties():
    none = lambda *shape: value("i64", np.zeros(shape))
    yield one("empty_indices", "indices of shape [0]", 7, iota("f32", 3, 2), none(0), i64(0))
    yield one("empty_indices_const", "indices of shape [0] as Const", 8, iota("f32", 3, 2), none(0), i64(0), feed=["data"])
    yield one("empty_indices_of_rank_3", "indices of shape [2, 0, 3]", 1, iota("f32", 3, 2), none(2, 0, 3), i64(1))
    yield one("empty_data_off_axis", "data of shape [3, 0], axis 0", 7, iota("f32", 3, 0), i64([2, 0]), i64(0))
    yield one(
        "empty_data_const", "data of shape [0, 3] as Const, axis 1", 8, iota("i32", 0, 3), i64([2, 0]), i64(1), feed=["indices"]
    )
    nodes = parameter("data", iota("f32", 3, 2)), op.Constant(Type.i64, Shape([2, 0]), []), constant("axis", i64(0))
    nodes[1].set_friendly_name("indices")
    node = gather_node("output", 8, *nodes)
    yield Case(
        "empty_const_of_one_byte",
        "a Const without elements that still has a byte in the .bin file",
        Model([result("result", node)], [nodes[0]], "one byte"),
        [iota("f32", 3, 2)],
        [gather(8, iota("f32", 3, 2), none(2, 0), i64(0))],
    )
    yield one("empty_axis_and_indices", "no indices into an empty axis", 8, iota("f32", 2, 0), none(0), i64(1))
    yield one("empty_axis", "an empty axis: every index is out of range", 8, iota("f32", 0, 2), i64([0, -1, 3]), i64(0))
    yield one("empty_batch", "a batch of size 0", 8, iota("f32", 0, 3), none(0, 2), i64(1), 1)


def element_types():
    for kind, (_, _, onnx_type) in TYPES.items():
        data = awkward(kind, 3, 5)
        yield one(
            f"type_{kind}_const",
            f"{kind} in the .bin file",
            7,
            data,
            i32([[4, 0, 3], [2, 1, 0]]),
            i32(1),
            feed=["indices"],
        )
        if onnx_type:
            beyond = [] if kind in WITHOUT_ZERO else [3, -4]
            yield one(
                f"type_{kind}",
                f"{kind} through a Parameter" + (", with indices out of range" if beyond else ""),
                8,
                data,
                i64([0, -1, *beyond, 1]),
                i64(0),
            )
    yield one(
        "type_string_const_one",
        "a scalar pick of a 1-D string Const",
        8,
        value("string", ["é", "", "z"]),
        i32(0),
        i64(0),
        feed=["indices"],
    )


def dynamic_shapes():
    data, indices = iota("f32", 2, 3, 4), i64([[0, 2], [1, 1]])
    free, some = Dimension(-1), PartialShape([Dimension(-1), 3, Dimension(2, 5)])
    yield one(
        "dynamic_dims",
        "unknown dimensions",
        8,
        data,
        indices,
        i64(1),
        shapes={"data": PartialShape([-1, 3, -1]), "indices": PartialShape([free, free])},
    )
    yield one(
        "dynamic_ranges",
        "dimensions between bounds",
        7,
        data,
        indices,
        i64(1),
        shapes={"data": some, "indices": PartialShape([Dimension(1, 3), Dimension(2, -1)])},
    )
    anything = PartialShape.dynamic()
    yield one("dynamic_rank_data", "data of unknown rank, axis -2", 8, data, indices, i64(-2), shapes={"data": anything})
    yield one(
        "dynamic_rank_indices",
        "indices of unknown rank, batch_dims -1",
        7,
        data,
        indices,
        i64(1),
        -1,
        shapes={"indices": anything},
    )
    yield one(
        "dynamic_everything",
        "all three of unknown rank",
        8,
        data,
        indices,
        i32([-2]),
        1,
        feed=("data", "indices", "axis"),
        shapes=dict.fromkeys(("data", "indices", "axis"), anything),
    )


def ir_10():
    data, indices = iota("f32", 2, 3), i32([[2, 0], [1, 1]])
    yield one("ir10_gather1", "IR 10", 1, data, indices, i64(1), ir=10)
    yield one("ir10_gather7", "IR 10", 7, data, indices, i64(1), 1, ir=10)
    yield one("ir10_gather8", "IR 10, data in the .bin file", 8, data, i64([-1, 7]), i64(1), feed=["indices"], ir=10)
    yield one("ir10_i4", "IR 10, i4 in the .bin file", 8, iota("i4", 3, 3), i64([2, 0]), i64(1), feed=["indices"], ir=10)
    yield one(
        "ir10_dynamic", "IR 10, unknown dimensions", 8, data, indices, i64(-1), shapes={"data": PartialShape([-1, 3])}, ir=10
    )
    yield one("saved_f32", "save_model, which writes its version", 8, data, indices, i64(-1), feed=["indices"], saved=True)


def structures():
    """Models of more than one Gather, or with unusual names and orders."""
    data, indices, axis, ones = iota("f32", 3, 4), i32([2, 0]), i64(0), i64([1])

    p, q, zero = parameter("data", data), parameter("indices", indices), constant("zero", axis)
    a = gather_node("a", 1, p, q, zero)
    b = gather_node("b", 7, a, q, constant("one", ones))
    c = gather_node("c", 8, b, constant("last", i64(-1)), zero)
    values = [gather(1, data, indices, axis)]
    values.append(gather(7, values[0], indices, ones))
    values.append(gather(8, values[1], i64(-1), axis))
    yield Case(
        "chain",
        "three Gathers of three versions, one axis Const used twice",
        Model([result("end", c)], [p, q], "chain"),
        [data, indices],
        values[2:],
    )

    p, q, zero = parameter("data", data), parameter("indices", indices), constant("zero", axis)
    a = gather_node("a", 8, p, q, zero)
    b = gather_node("b", 8, a, q, constant("one", ones))
    model = Model([result("second", b), result("first", a), result("input", p)], [q, p], "outputs")
    outputs = [gather(8, values[0], indices, ones), values[0], data]
    yield Case(
        "three_results",
        "Results in an order of their own, one of an inner tensor, one of a Parameter; Parameters in reverse",
        model,
        [indices, data],
        outputs,
    )

    p, q = parameter("data", data), parameter("indices", indices)
    a = gather_node("a", 8, p, q, constant("zero", axis))
    model = Model([result("once", a), result("twice", a)], [p, q], "twice")
    yield Case("one_output_twice", "two Results of one tensor", model, [data, indices], [values[0]] * 2)

    p, q, unused = parameter("data", data), parameter("indices", indices), parameter("unused", i64([5, 6]))
    a = gather_node("a", 7, p, q, constant("zero", axis))
    model = Model([result("end", a)], [unused, p, q], "unused")
    yield Case("unused_parameter", "a Parameter that nothing reads", model, [i64([5, 6]), data, indices], [values[0]])

    a = gather_node("a", 8, constant("data", data), constant("indices", indices), constant("zero", axis))
    yield Case("no_parameters", "three Consts", Model([result("end", a)], [], "constant"), [], [values[0]])

    table = iota("i64", 8, 4)  # equal Consts that are large enough share their bytes
    q = parameter("indices", indices)
    parts = [gather_node(name, 8, constant(f"{name} table", table), q, constant(f"{name} axis", axis)) for name in "ab"]
    model = Model([result(f"{part.get_friendly_name()} end", part) for part in parts], [q], "shared")
    yield Case("shared_bytes", "two Consts of the same content", model, [indices], [gather(8, table, indices, axis)] * 2)

    p = named(op.Parameter(Type.f32, PartialShape([3, 4])), 'we <ird> & "né\tw\n😀', {"da,ta <&>\"'"})
    q = named(op.Parameter(Type.i32, PartialShape([2])), "../x:0/", {"in dices"})
    a = named(opset8.gather(p, q, constant("]]>", axis)), "%s\\", {"a,b\\c"})
    yield Case(
        "odd_names",
        "names that need escaping; friendly names and tensor names differ",
        Model([named(op.Result(a.output(0)), "r,<>", {"a,b\\c", "out"})], [p, q], '<&">'),
        [data, indices],
        [values[0]],
    )

    p, q = parameter("data", data), parameter("indices", indices)
    p.set_layout(Layout("NC"))
    model = Model([result("end", gather_node("a", 8, p, q, constant("zero", axis)))], [p, q], "rt_info")
    model.set_rt_info("some value", ["some", "key"])
    yield Case("rt_info", "a layout on a Parameter and a note on the model", model, [data, indices], [values[0]], saved=True)

    integers, floats = TensorProto.INT64, TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Gather", ["data", "indices"], ["y"], axis=1)],
        "graph",
        [helper.make_tensor_value_info("indices", integers, ["n", 2])],
        [helper.make_tensor_value_info("y", floats, None)],
        [proto("data", data)],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    model = openvino.convert_model(io.BytesIO(source.SerializeToString(deterministic=True)))
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Constant" and node.get_friendly_name() != "data":
            node.set_friendly_name("axis")  # else numbered
    picked = i64([[3, -1], [0, 2]])
    yield Case(
        "from_onnx",
        "converted from ONNX: a note on a layer, a name on the Result",
        model,
        [picked],
        [gather(8, data, picked, ones)],
        saved=True,
    )


# ---- Files


def write_case(folder, case):
    target = folder / case.name
    data_set = target / "test_data_set_0"
    data_set.mkdir(parents=True)
    if case.saved:
        openvino.save_model(case.model, target / "model.xml", compress_to_fp16=False)
    else:
        manager = passes.Manager()
        manager.register_pass(passes.Serialize(target / "model.xml", target / "model.bin", f"IR_V{case.ir}"))
        manager.run_passes(case.model)
    for side, ports, values in (("input", case.model.inputs, case.inputs), ("output", case.model.outputs, case.outputs)):
        for k, (port, tensor) in enumerate(zip(ports, values, strict=True)):
            message = proto(tensor_name(port), tensor)
            (data_set / f"{side}_{k}.pb").write_bytes(message.SerializeToString(deterministic=True))
    gathers = [node for node in case.model.get_ordered_ops() if node.get_type_name() == "Gather"]
    return {
        "path": case.name,
        "shows": case.shows,
        "gather": sorted({int(node.get_type_info().version_id.removeprefix("opset")) for node in gathers}),
        "ir": case.ir,
        "data": types(gathers, 0),
        "indices": types(gathers, 1),
        "axis": types(gathers, 2),
        "inputs": [tensor_name(port) for port in case.model.inputs],
        "outputs": [tensor_name(port) for port in case.model.outputs],
    }


def types(nodes, k):
    return sorted({node.input(k).get_element_type().get_type_name() for node in nodes})


def tensor_name(port):
    return sorted(port.get_names())[0]


# ---- The CPU plugin


def ask_plugin(case):
    child = subprocess.run([sys.executable, __file__, "--plugin", case], capture_output=True, text=True, timeout=300)
    if child.returncode < 0:
        return "crashes: division by zero" if child.returncode == -signal.SIGFPE else "crashes: stray memory access"
    for line in child.stdout.splitlines():
        if line.startswith("verdict: "):
            return line.removeprefix("verdict: ")
    last = [line for line in child.stderr.splitlines() if line][-1:]
    return f"fails: {''.join(last)[:200]}"


def run_plugin(case):
    core = openvino.Core()
    model = core.read_model(case / "model.xml")
    read = lambda side, ports: [unproto(case / "test_data_set_0" / f"{side}_{k}.pb", port) for k, port in enumerate(ports)]
    inputs, expected = read("input", model.inputs), read("output", model.outputs)
    memory = [guarded(*tensor) for tensor in inputs]
    try:
        exact = {"EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_PRECISION_HINT": "f32"}
        request = core.compile_model(model, "CPU", exact).create_infer_request()
        for k, (tensor, _) in enumerate(memory):
            request.set_input_tensor(k, tensor)
        request.infer()
    except (RuntimeError, TypeError, ValueError) as error:
        reasons = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"refuses: {reasons[-1][:200] if reasons else type(error).__name__}"
    for k, (kind, array) in enumerate(expected):
        tensor, shape, content = request.get_output_tensor(k), array.shape, array.reshape(-1)
        if tensor.get_element_type().get_type_name() != kind:
            return f"differs: output {k} has type {tensor.get_element_type().get_type_name()}"
        if tuple(tensor.get_shape()) != tuple(shape):
            return f"differs: output {k} has shape {list(tensor.get_shape())}, not {list(shape)}"
        if kind == "string":
            got, want = list(tensor.str_data.reshape(-1)), list(content)
        else:
            size = max(1, TYPES[kind][1] // 8)
            got, want = in_hex(tensor.data.tobytes() if content.size else b"", size), in_hex(packed(kind, content), size)
        wrong = [n for n, pair in enumerate(zip(got, want, strict=True)) if pair[0] != pair[1]]
        if wrong:
            unit = "element" if TYPES[kind][1] >= 8 else "byte"
            first = wrong[0]
            return (
                f"differs: output {k}, {len(wrong)} of {len(want)} {unit}s, the first at {first}: {got[first]}, not {want[first]}"
            )
    return "agrees"


def in_hex(content, size):
    return [content[k : k + size][::-1].hex() for k in range(0, len(content), size)]


def guarded(kind, array):
    """A tensor between bytes that show in an output if the plugin reads past the tensor's ends, and its memory."""
    tensor = tensor_of(kind, array)
    if kind == "string" or not array.size:
        return tensor, None
    content, margin = tensor.data.tobytes(), 4096
    memory = np.full(len(content) + 2 * margin, 0xA5, np.uint8)
    inside = memory[margin : margin + len(content)]
    inside[:] = np.frombuffer(content, np.uint8)
    return Tensor(inside.view(tensor.data.dtype), tensor.get_shape(), tensor.get_element_type()), memory


def unproto(path, port):
    """The type and elements of a file written above; `port` knows the type that ONNX doesn't have."""
    message = TensorProto.FromString(path.read_bytes())
    kind = next((kind for kind, row in TYPES.items() if row[2] and getattr(TensorProto, row[2]) == message.data_type))
    number, bits, _ = TYPES[kind]
    if kind == "string":
        content = np.array([text.decode() for text in message.string_data], object)
    elif bits < 8:
        raw = np.frombuffer(message.raw_data, np.uint8)
        content = np.stack([raw >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)], -1).reshape(-1)
        content = content[: math.prod(message.dims)]
    else:
        content = np.frombuffer(message.raw_data, number)
    of_port = port.get_element_type().get_type_name()
    return kind if TYPES[of_port][2] else of_port, content.reshape(message.dims)


if __name__ == "__main__":
    main()
