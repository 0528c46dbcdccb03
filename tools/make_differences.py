#!/usr/bin/env python3
"""Makes the models of docs/differences.md, and a table of what onnxruntime and the reference give for them.

    pip install onnx onnxruntime pillow
    python tools/make_differences.py             writes onnx-test-data/differences.tar.xz and differences.tsv
    python tools/make_differences.py --check     exits 1 if a file or a line of the table differs
    python tools/make_differences.py -k pool     prints the lines of the models whose name has "pool", writes nothing

A model has one node. In the archive it is a case in the layout of ONNX's own, NAME/model.onnx and
NAME/test_data_set_0/{input,output}_I.pb. Outputs are what onnxref must give: computed here by the formula of the text, or
by the choice that docs/differences.md states. A case without outputs must be refused.

A line of the table is: model, operator with its version, and what onnxruntime, the reference and onnxref give, each a
value, `as onnxref`, `none` (no kernel), `dies`, or `error: ` and its first words. Of onnxref the words after `error: ` are
a part of its text.
"""

import argparse
import io
import math
import pickle
import re
import sys
from pathlib import Path
from statistics import NormalDist

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from export_shapes import Apart
from make_faulty_models import packed, unpacked

FOLDER = Path(__file__).resolve().parent.parent / "onnx-test-data"
COLUMNS = "model\toperator\tonnxruntime\treference\tonnxref\n"
# Of a value in the table.
WIDTH = 90


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments.add_argument("-k", default="", metavar="TEXT", help="print the lines of models whose name has this")
    arguments = arguments.parse_args()
    engines = [Apart(onnxruntime), Apart(reference)]
    files, table = {}, COLUMNS
    for name, case in CASES.items():
        if arguments.k not in name:
            continue
        files |= {f"{name}/{path}": content for path, content in case.files().items()}
        given = [case.shown(engine(pickle.dumps(case.fed()))) for engine in engines]
        table += "\t".join([name, case.operator, *given, case.shown_wanted()]) + "\n"
    archive, path = FOLDER / "differences.tar.xz", FOLDER / "differences.tsv"
    if arguments.k:
        print(table, end="")
    elif not arguments.check:
        archive.write_bytes(packed(files))
        path.write_text(table, encoding="utf-8", newline="\n")
    elif unpacked(archive) != files or path.read_text(encoding="utf-8") != table:
        sys.exit("the files differ from what this script writes")


class Case:
    """A node, its inputs, and the outputs that are wanted, or a part of the error's text.

    `None` stands for what is left out, a list for a sequence. If an error is wanted, `outputs` have the types of the
    outputs. Inputs that are `fixed` are part of the model. The outputs of engines are `as onnxref` by the rule of ONNX's
    runner, or if they are `exact`ly those.
    """

    def __init__(self, node, inputs, wanted, outputs=None, fixed=(), exact=False, **attributes):
        self.operator = node
        name, version = node.rsplit("-", 1)
        self.inputs, self.fixed, self.exact = inputs, fixed, exact
        # The text of an error, or values.
        self.refusal = wanted if isinstance(wanted, str) else None
        self.wanted = [] if self.refusal else [value for value in wanted if value is not None]
        *domain, operator = name.rsplit(".", 1)
        opset = helper.make_opsetid("".join(domain), int(version))
        given = outputs or wanted
        names = ["" if value is None else f"y{k}" for k, value in enumerate(given)]
        operands = [(f"x{k}", value) for k, value in enumerate(inputs)]
        kept = [(name, value) for name, value in operands if value is not None]
        node = helper.make_node(
            operator, ["" if value is None else name for name, value in operands], names, domain=opset.domain, **attributes
        )
        self.model = helper.make_model(
            helper.make_graph(
                [node],
                operator,
                [helper.make_value_info(name, type_of(value)) for name, value in kept if name not in fixed],
                [helper.make_value_info(name, type_of(value)) for name, value in zip(names, given) if name],
                [tensor(value, name) for name, value in kept if name in fixed],
            ),
            opset_imports=[opset],
            ir_version=helper.find_min_ir_version_for([opset], ignore_unknown=True),
            producer_name="onnxref",
        )

    def fed(self):
        inputs = {f"x{k}": value for k, value in enumerate(self.inputs)}
        fed = {name: value for name, value in inputs.items() if value is not None and name not in self.fixed}
        return self.model.SerializeToString(), fed

    def files(self):
        files = {"model.onnx": self.fed()[0]}
        for k, value in enumerate(self.fed()[1].values()):
            files[f"test_data_set_0/input_{k}.pb"] = tensor(value, "").SerializeToString()
        for k, value in enumerate(self.wanted):
            files[f"test_data_set_0/output_{k}.pb"] = tensor(value, "").SerializeToString()
        return files

    def shown(self, given):
        """What an engine gives, as a cell of the table."""
        if len(given) == 1 and isinstance(given[0], str):
            return "dies" if given[0] == "it crashes" else given[0]
        given, wanted = ([np.asarray(value) for value in values] for values in (given, self.wanted))
        if self.refusal:
            return "; ".join(text(value, value.dtype) for value in given)
        given = [bits(*pair) for pair in zip(given, wanted, strict=True)]
        if all(equal(*pair, self.exact) for pair in zip(given, wanted)):
            return "as onnxref"
        return "; ".join(text(value, wanted.dtype) for value, wanted in zip(given, wanted))

    def shown_wanted(self):
        if self.refusal:
            return f"error: {self.refusal}"
        return "; ".join(text(value, value.dtype) for value in map(np.asarray, self.wanted))


def key_type(value):
    return TensorProto.INT64 if all(isinstance(key, int) for key in value) else TensorProto.STRING


def type_of(value, shape=None):
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    if isinstance(value, dict):
        return helper.make_map_type_proto(key_type(value), helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def tensor(value, name):
    if isinstance(value, list):
        return numpy_helper.from_list(value, name)
    if isinstance(value, dict):
        values = numpy_helper.from_list([f(number) for number in value.values()])
        whole = key_type(value) == TensorProto.INT64
        keys = {"keys": list(value)} if whole else {"string_keys": [key.encode() for key in value]}
        return onnx.MapProto(name=name, key_type=key_type(value), values=values, **keys)
    return numpy_helper.from_array(value, name)


def bits(given, wanted):
    """Types of 8 bits that numpy doesn't know come as uint8."""
    return given.view(wanted.dtype) if wanted.dtype.kind == "V" and given.dtype == np.uint8 else given


def equal(given, wanted, exact):
    """By the rule of ONNX's runner, or exactly."""
    if given.dtype.kind in "OU" or wanted.dtype.kind in "OU":
        return given.tolist() == wanted.tolist()
    if (given.dtype, given.shape) != (wanted.dtype, wanted.shape):
        return False
    if given.dtype.kind not in "fc":
        return bool((given == wanted).all())
    if exact and (np.signbit(given) != np.signbit(wanted)).any():
        return False
    return np.allclose(given, wanted, *(0, 0) if exact else (1e-3, 1e-7), equal_nan=True)


def text(value, wanted):
    """A value in a few words, with its type if that isn't the wanted one, and its shape if there are no elements."""
    kind = "" if value.dtype == wanted or value.dtype.kind in "OU" else f"{value.dtype} "
    if not value.size:
        return f"{kind}of shape {list(value.shape)}"
    if value.dtype.kind in "OU":
        shown = str(value.tolist()).replace("'", '"').replace("\t", "\\t")
    else:
        shown = listed(value.tolist() if value.dtype.kind in "iu?" else value)
    return kind + (shown if len(shown) <= WIDTH else shown[:WIDTH] + "..")


def listed(value):
    if isinstance(value, list) or np.ndim(value):
        return "[" + ", ".join(map(listed, value)) + "]"
    if isinstance(value, np.complexfloating):
        return f"{listed(value.real)} + {listed(value.imag)}i"
    if not isinstance(value, np.floating):
        return str(value)
    plain = value == 0 or 1e-4 <= abs(value) < 1e9
    return (np.format_float_positional if plain else np.format_float_scientific)(value, trim="-")


# Engines, each in a process of its own.


def onnxruntime(content):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    model, fed = pickle.loads(content)
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session.run(None, fed)
    except Exception as error:
        if "Could not find an implementation" in str(error) or "is not a registered function/op" in str(error):
            return ["none"]
        # Without codes, places in the source, signatures of functions and the conditions that were false.
        message = re.sub(r".*(\[ONNXRuntimeError\] : \d+ : \w+ : |Status Message: )", "", str(error), flags=re.S)
        message = re.sub(r"Exception during \w+: |\S+\.(cc|h):\d+ |.*\[with .*?\] |.*\w+::\w+\(.*?\) ", "", message)
        return [words(message)]


def reference(content):
    from onnx.reference import ReferenceEvaluator

    model, fed = pickle.loads(content)
    np.seterr(all="ignore")
    try:
        return [np.asarray(value) for value in ReferenceEvaluator(onnx.load_from_string(model)).run(None, fed)]
    except Exception as error:
        if re.match("No (registered )?(implementation|schema) for operator", str(error)):
            return ["none"]
        return [words(f"{type(error).__name__} {error}")]


def words(message):
    message = " ".join(re.sub(r"0x[0-9a-f]{6,}", "0x..", message).split())
    return "error: " + (message if len(message) <= WIDTH else message[:WIDTH].rsplit(" ", 1)[0] + " ..")


# The models, in the order of the page.

CASES = {}
inf, nan = math.inf, math.nan


def case(name, node, inputs, wanted, **options):
    assert name not in CASES, name
    CASES[name] = Case(node, inputs, wanted, **options)


def of_type(dtype):
    return lambda *values: np.array(values[0] if len(values) == 1 else values, dtype)


f, d, i, i32, u8, i8, i16, b = map(of_type, "f4 f8 i8 i4 u1 i1 i2 ?".split())
c, half, f8 = of_type(np.complex64), of_type(np.float16), of_type(ml_dtypes.float8_e4m3fn)
s = of_type(object)


def single(number):
    """A number as an attribute holds it."""
    return float(np.float32(number))


# Elements and reductions

case("add_6_axis", "Add-6", [f([[1, 2], [3, 4]]), f([10, 20])], [f([[11, 12], [23, 24]])], broadcast=1, axis=0)
case("div_least_by_minus_1", "Div-14", [i32([-(2**31)]), i32([-1])], [i32([-(2**31)])])
case("div_by_0", "Div-14", [i32([5]), i32([0])], "an integer can't be divided by 0", outputs=[i32(0)])
case("pow_int64", "Pow-15", [i([3]), i([39])], [i([3**39])])
case("pow_negative_exponent", "Pow-15", [i([0, 2]), i([-1, -1])], [i([0, 0])])
case("mod_fmod_int64", "Mod-13", [i([2**53 + 1]), i([10])], [i([(2**53 + 1) % 10])], fmod=1)
case("mod_floats", "Mod-13", [f([-3.5]), f([2])], [f([0.5])])
case("reduceprod_int64", "ReduceProd-13", [i([[94906267, 94906267]])], [i([[94906267**2]])], axes=[1])
case("sigmoid_far_below_0", "Sigmoid-13", [f([-20, -30])], [f([1 / (1 + math.exp(20)), 1 / (1 + math.exp(30))])], exact=True)
near = f([-1e-8, -1e-4])
selu = single(1.05070102214813232421875), single(1.67326319217681884765625)
case("elu_near_0", "Elu-6", [near], [f(np.expm1(d(near)))], exact=True)
case("celu_near_0", "Celu-12", [near], [f(np.expm1(d(near)))], exact=True)
case("selu_near_0", "Selu-6", [near], [f(selu[0] * selu[1] * np.expm1(d(near)))], exact=True)
below = [-4, -6, -10]
case("gelu_far_below_0", "Gelu-20", [f(below)], [f([0.5 * of * math.erfc(-of / math.sqrt(2)) for of in below])], exact=True)
case("erf_float64", "Erf-13", [d([0.5])], [d([math.erf(0.5)])], exact=True)
case("clip_nan", "Clip-13", [f([1, 2]), None, f(nan)], [f([nan, nan])])
case("gemm_beta_0", "Gemm-13", [f([[1, 2]]), f([[1], [2]]), f([inf])], [f([[nan]])], beta=0.0)
case("layernormalization_double", "LayerNormalization-17", [d([[1e8, 1e8 + 1, 1e8 + 3]]), d([1, 1, 1])], [d([[0, 0, 0]])])
case(
    "rotaryembedding_one_batch", "RotaryEmbedding-23", [f([[[[1, 2]]], [[[3, 4]]]]), f([[[0]]]), f([[[1]]])],
    [f([[[[-2, 1]]], [[[-4, 3]]]])],
)
case("clip_infinities", "Clip-13", [f([inf, -inf])], [f([np.finfo(np.float32).max, np.finfo(np.float32).min])])
case("where_minus_0", "Where-16", [b([1, 0]), f([-0.0, 1]), f([1, -0.0])], [f([-0.0, -0.0])], exact=True)
case("cast_beyond_the_range", "Cast-13", [f([3e9, nan, inf])], [i32([3_000_000_000 - 2**32, 0, 0])], to=TensorProto.INT32)
case("cast_from_text_beyond_the_range", "Cast-13", [s(["1e400"])], [f([inf])], to=TensorProto.FLOAT)
for name, content in ("text_with_comma", "1,5"), ("hexadecimals", "0x10"):
    refused = f'"{content}" can\'t be read as float32'
    case(f"cast_from_{name}", "Cast-13", [s([content])], refused, outputs=[f([])], to=TensorProto.FLOAT)
case("cast_from_text_with_fraction", "Cast-13", [s(["100.5"])], [i([100])], to=TensorProto.INT64)
digits = s(["0.2961402", "1", "INF", "NaN"])
case("cast_to_text", "Cast-13", [f([0.2961402, 1, inf, nan])], [digits], to=TensorProto.STRING)
case("cast_to_text_float64", "Cast-13", [d([0.1234567890123])], [s(["0.1234567890123"])], to=TensorProto.STRING)
case("cast_to_text_bool", "Cast-13", [b([0, 1])], [s(["0", "1"])], to=TensorProto.STRING)
kept = np.random.RandomState(3).uniform(size=6) >= 0.5
case("dropout_training", "Dropout-13", [f([1] * 6), f(0.5), b(1)], [f(2 * kept)], seed=3)
for version, mask in (7, f), (10, b):
    case(f"dropout_{version}_mask", f"Dropout-{version}", [f([1, 2])], [f([1, 2]), mask([1, 1])])
case("range_steps", "Range-11", [f(0), f(1), f(0.1)], [f(np.arange(10) * single(0.1))], exact=True)
case("reducemax_nan", "ReduceMax-13", [f([[1, nan, 3]])], [f([[nan]])], axes=[1])
case("reducemin_nan", "ReduceMin-13", [f([[1, nan, 3]])], [f([[nan]])], axes=[1])
case("argmax_nan", "ArgMax-13", [f([[1, nan, 3]])], [i([[1]])], axis=1)
case("argmin_nan", "ArgMin-13", [f([[1, nan, 3]])], [i([[1]])], axis=1)
case("hardmax_nan", "Hardmax-13", [f([[nan, 1, 3]])], [f([[1, 0, 0]])])
case("reducemean_empty", "ReduceMean-13", [f(np.zeros((2, 0)))], [f([[nan], [nan]])], axes=[1])
case("reducemean_int32", "ReduceMean-13", [i32([[1500000000, 1500000000]])], [i32([[1500000000]])], axes=[1])
case("reducel2_int32", "ReduceL2-13", [i32([[60000, 80000]])], [i32([[100000]])], axes=[1])
case("reducesum_int32", "ReduceSum-13", [i32([[2**31 - 1, 1]]), i([1])], [i32([[-(2**31)]])])
case("reducel1_int32", "ReduceL1-13", [i32([[2**31 - 1, 1]])], [i32([[-(2**31)]])], axes=[1])
case("reducesum_cancels", "ReduceSum-13", [f([[1e8, 1, -1e8]]), i([1])], [f([[1]])])
case("reducesum_twice", "ReduceSum-13", [f([[1, 2]]), i([1, 1])], "axis 1 is given twice", outputs=[f([])])
case("reducelogsumexp_infinities", "ReduceLogSumExp-13", [f([[-inf, -inf]])], [f([[-inf]])], axes=[1])
matrix = f([[[1, 2], [3, 4]]])
exponentials = np.exp(d(matrix))
case("softmax_11_lanes", "Softmax-11", [matrix], [f(exponentials / exponentials.sum())], axis=1)
case("logsoftmax_11_lanes", "LogSoftmax-11", [matrix], [f(matrix - np.log(exponentials.sum()))], axis=1)
case("hardmax_11_lanes", "Hardmax-11", [matrix], [f([[[0, 0], [0, 1]]])], axis=1)
case("lpnormalization_p_1", "LpNormalization-1", [f([[-1, 3]])], [f([[-0.25, 0.75]])], p=1)
case(
    "instancenormalization_far_from_0", "InstanceNormalization-6", [f([[[1e4, 1e4 + 1]]]), f([1]), f([0])],
    [f(d([[[-0.5, 0.5]]]) / math.sqrt(0.25 + single(1e-5)))], exact=True,
)

# Shapes and places

case(
    "reshape_allowzero", "Reshape-14", [f(np.zeros((0, 2))), i([0, -1])], "can't stand beside a 0 with allowzero", outputs=[f(0)],
    allowzero=1,
)
case("nonzero_scalar", "NonZero-13", [f(5)], [i(np.zeros((0, 1)))])
case("squeeze_twice", "Squeeze-13", [f([[1, 2]]), i([0, 0])], "axis 0 is given twice", outputs=[f([])])
beyond = "axis -1 is out of range"
case("squeeze_no_axes", "Squeeze-13", [f([[1, 2]]), i([])], [f([[1, 2]])])
case("squeeze_1_negative", "Squeeze-1", [f([[1], [2]])], beyond, outputs=[f([])], axes=[-1])
case("unsqueeze_1_negative", "Unsqueeze-1", [f([1, 2])], beyond, outputs=[f([])], axes=[-1])
case("flatten_9_negative", "Flatten-9", [f([[1, 2]])], beyond, outputs=[f([])], axis=-1)
nothing = f(np.zeros((0, 7)))
case("concat_nothing", "Concat-13", [nothing, f([[1]])], "off the axis 0 they must be equal", outputs=[f([[]])], axis=0)
case("unsqueeze_order", "Unsqueeze-11", [f([1, 2])], [f([[[1], [2]]])], axes=[2, 0])
case("shape_clamped", "Shape-15", [f([[1, 2]])], [i([])], end=-3)
case("slice_clamped", "Slice-13", [f([1, 2, 3]), i([-5]), i([-10]), i([0]), i([-1])], [f([1])])
case("split_too_many", "Split-18", [f([1, 2, 3, 4, 5, 6, 7])], "make no 5 parts of 2", outputs=[f([])] * 5, num_outputs=5)
case(
    "splittosequence_keepdims", "SplitToSequence-11", [f([[1, 2], [3, 4]]), i(1)], [[f([[1, 2]]), f([[3, 4]])]], keepdims=0
)
case("pad_reflect_more", "Pad-13", [f([1, 2, 3]), i([4, 0])], [f([1, 2, 3, 2, 1, 2, 3])], mode="reflect")
case("pad_matrix", "Pad-13", [f([1, 2]), i([[1, 1]])], "a list is needed", outputs=[f([])])
case("pad_negative_edge", "Pad-13", [f([1, 2, 3]), i([-1, 2])], [f([2, 3, 3, 3])], mode="edge")
case("compress_longer", "Compress-11", [f([1, 2]), b([1, 0, 1])], "only 2 entries", outputs=[f([])])
case("prelu_rank", "PRelu-16", [f([-1, 2, -3]), f([[1, 2, 3]])], "has no place", outputs=[f([[]])])
case("gather_1_negative", "Gather-1", [f([1, 2, 3]), i([-1])], "which is allowed from version 11 on", outputs=[f([])])
case("gatherelements_beyond", "GatherElements-13", [f([1, 2, 3]), i([3])], "indices[0] = 3 is out of range", outputs=[f([])])


def body(inputs, outputs, *nodes):
    """A body: inputs and outputs have values like theirs; a node is an operator, names of inputs, and of an output."""

    def infos(side):
        return [helper.make_value_info(name, type_of(value, value.shape)) for name, value in side.items()]

    nodes = [helper.make_node(node, names, [name]) for node, names, name in nodes]
    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs))


case(
    "loop_without_condition", "Loop-16", [i(3), None, f(1)], [f(8)],
    body=body(
        {"step": i(0), "go": b(0), "sum": f(0)}, {"stop": b(0), "twice": f(0)},
        ("Not", ["go"], "stop"), ("Add", ["sum", "sum"], "twice"),
    ),
)
row = f([0, 0])
case(
    "scan_of_nothing", "Scan-16", [f(np.zeros((0, 2)))], [f(np.zeros((0, 2)))],
    num_scan_inputs=1, body=body({"x": row}, {"y": row}, ("Identity", ["x"], "y")),
)

# Products

query = f([[[[2]]]])
case(
    "attention_scores_and_softcap", "Attention-23", [query, query, f([[[[1]]]])], [f([[[[1]]]]), None, None, f([[[[4]]]])],
    softcap=1.0, qk_matmul_output_mode=0,
)
keys, ones = f([[[[1], [1]]]]), f([[[[1]]]])
case("attention_masked_infinity", "Attention-23", [ones, keys, f([[[[1], [inf]]]]), b([[1, 0]])], [ones])
case(
    "attention_causal_one_query", "Attention-23",
    [ones, f([[[[1], [2]]]]), f([[[[10], [20]]]]), None, ones, f([[[[5]]]])],
    [f([[[[7.5]]]]), f([[[[1], [1], [2]]]]), f([[[[5], [10], [20]]]])],
    is_causal=1,
)
case(
    "attention_masked_scores", "Attention-23", [keys, keys, f([[[[1], [2]]]])],
    [f([[[[1], [1.5]]]]), None, None, f([[[[1, -inf], [1, 1]]]])],
    is_causal=1, qk_matmul_output_mode=2,
)
case("matmulinteger_rows", "MatMulInteger-10", [u8([[5], [5]]), u8([[1]]), u8([1, 2])], [i32([[4], [3]])])
case(
    "qlinearconv_filters", "QLinearConv-10",
    [u8([[[2]]]), f(1), u8(0), u8([[[1]], [[1]]]), f([1, 2]), u8([0, 0]), f(1), u8(0)], [u8([[[2], [4]]])],
)
case("quantizelinear_infinity", "QuantizeLinear-13", [f([inf, -inf]), f(1), i8(0)], [i8([127, -128])])

# Pools

case("averagepool_1_padding", "AveragePool-1", [f([[[1, 2, 3]]])], [f([[[1, 1.5, 2.5, 3]]])], kernel_shape=[2], pads=[1, 1])
case("averagepool_padding_only", "AveragePool-11", [f([[[5]]])], [f([[[nan, 5, nan]]])], kernel_shape=[1], pads=[1, 1])
case(
    "maxpool_padding_only", "MaxPool-12", [f([[[5]]])], [f([[[-inf, 5, -inf]]]), i([[[-1, 0, -1]]])],
    kernel_shape=[1], pads=[1, 1],
)
case("maxpool_nan", "MaxPool-12", [f([[[1, nan, 3, 2]]])], [f([[[nan, nan, 3]]])], kernel_shape=[2])
case(
    "maxpool_nan_indices", "MaxPool-12", [f([[[1, nan, 3, 2]]])], [f([[[nan, nan, 3]]]), i([[[1, 1, 2]]])], kernel_shape=[2]
)
case("maxpool_nan_of_image", "MaxPool-12", [f([[[[1, 2, nan, 3]]]])], [f([[[[nan, nan]]]])], kernel_shape=[1, 3])
case("maxpool_nan_alone", "MaxPool-12", [f([[[nan, nan]]])], [f([[[nan]]])], kernel_shape=[2])
case(
    "maxpool_column_major", "MaxPool-12", [f([[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [1, 2, 3]]]])],
    [f([[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [1, 2, 3]]]]), i([[[[0, 2, 4], [1, 3, 5]], [[6, 8, 10], [7, 9, 11]]]])],
    kernel_shape=[1, 1], storage_order=1,
)
case(
    "averagepool_same_ceil_mode", "AveragePool-19", [f([[[1, 2, 3, 4, 5]]])], [f([[[1.5, 3.5, 5]]])],
    kernel_shape=[2], ceil_mode=1, auto_pad="SAME_UPPER", strides=[2],
)
four = f([[[5, 1, 6, 8]]])
for pool, version, one in ("MaxPool", 12, 5), ("AveragePool", 19, 3):
    case(
        f"{pool.lower()}_valid_ceil_mode", f"{pool}-{version}", [four], [f([[[one]]])],
        kernel_shape=[2], strides=[3], ceil_mode=1, auto_pad="VALID",
    )
    case(
        f"{pool.lower()}_window_beyond_the_image", f"{pool}-{version}", [f([[[1, 2]]])], [f(np.zeros((1, 1, 0)))],
        kernel_shape=[3], strides=[2],
    )
case("maxpool_auto_pad_empty", "MaxPool-12", [four], [f([[[5, 5, 6, 8]]])], kernel_shape=[2], pads=[1, 0], auto_pad="")
case(
    "conv_auto_pad_empty", "Conv-11", [four, f([[[1, 1]]])], [f([[[5, 6, 7, 14]]])],
    kernel_shape=[2], pads=[1, 0], auto_pad="",
)
for pool, version in ("MaxPool", 12), ("AveragePool", 11), ("AveragePool", 19), ("LpPool", 18):
    case(
        f"{pool.lower()}_{version}_same_negative_padding", f"{pool}-{version}", [f([[[1, 2, 3, 4, 5, 6]]])], [f([[[1, 4]]])],
        kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER",
    )
dilated = {"kernel_shape": [2], "dilations": [2]}
case(
    "maxpool_same_dilations", "MaxPool-12", [f([[[5, 1, 4, 2, 3]]])], [f([[[1, 5, 2, 4, 2]]])], auto_pad="SAME_UPPER", **dilated
)
case(
    "averagepool_valid_dilations", "AveragePool-19", [f([[[5, 1, 4, 2, 3]]])], [f([[[4.5, 1.5, 3.5]]])],
    auto_pad="VALID", **dilated,
)
refused = "p is 0: it must be a number greater than 0"
case("lppool_p_0", "LpPool-18", [f([[[1, 2]]])], refused, outputs=[f(0)], kernel_shape=[2], p=0)
case("globallppool_p_0", "GlobalLpPool-2", [f([[[1, 2]]])], refused, outputs=[f(0)], p=0)
case("lppool_1_kernel_shape", "LpPool-1", [f([[[1, 2]]])], "kernel_shape is not given", outputs=[f(0)])
case("globalmaxpool_of_rank_3", "GlobalMaxPool-1", [f([[[1, 2, 3]]])], [f([[[3]]])])
unpooled = [f([[[[1, 2], [3, 4]]]]), i([[[[5, 7], [13, 15]]]]), i([1, 1, 5, 5])]
zeros = np.zeros((1, 1, 5, 5), np.float32)
zeros[0, 0, 1::2, 1::2][:2, :2] = [[1, 2], [3, 4]]
case("maxunpool_output_shape", "MaxUnpool-11", unpooled, [zeros], kernel_shape=[2, 2], strides=[2, 2])
case(
    "maxunpool_output_shape_and_pads", "MaxUnpool-11", unpooled, [zeros],
    kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1],
)

# Normalization

x = f([[[1, 2], [3, 5]], [[7, 8], [4, 4]]])
channel = [f([1, 2]), f([0, 1]), f([3, 4]), f([0.25, 4])]


def normalized(x, scale, bias, mean, variance):
    scale, bias, mean, variance = (d(value).reshape(1, 2, 1) for value in (scale, bias, mean, variance))
    return f((x - mean) / np.sqrt(variance + single(1e-5)) * scale + bias)


case("batchnormalization_9", "BatchNormalization-9", [x, *channel], [normalized(x, *channel)])
own = d([4.5, 4]), d([(12.25 + 6.25 + 6.25 + 12.25) / 4, 0.5])
share = single(0.9)
shared = [f(share * d(given) + (1 - share) * of) for given, of in zip(channel[2:], own)]
case(
    "batchnormalization_9_training", "BatchNormalization-9", [x, *channel],
    [normalized(x, *channel[:2], *own), *shared, f(own[0]), f(own[1])],
)
case(
    "batchnormalization_14_outputs", "BatchNormalization-14", [x, *channel], "outputs beyond the first are those of training",
    outputs=[x, *channel[:2]],
)


def lrn(x, size, alpha=1.0, beta=0.75, bias=1.0):
    squares = d(x) ** 2
    sums = np.zeros_like(squares)
    for k in range(x.shape[1]):
        first = max(0, k - (size - 1) // 2)
        sums[:, k] = squares[:, first : k + (size - 1 + 1) // 2 + 1].sum(axis=1)
    return f(x / (bias + alpha / size * sums) ** beta)


x = f([[[[1]], [[2]], [[3]], [[4]]]])
case("lrn_one_image", "LRN-13", [x], [lrn(x, 3)], size=3, alpha=1.0)
case("lrn_even_size", "LRN-13", [x], [lrn(x, 2)], size=2, alpha=1.0)

# Regions, classes and order

corners = f([[[[1, 2], [3, 4]]]])
case(
    "roialign_max", "RoiAlign-16", [corners, f([[0, 0, 2, 2]]), i([0])], [f([[[[1]]]])],
    mode="max", sampling_ratio=1, output_height=1, output_width=1,
)
case(
    "roialign_10", "RoiAlign-10", [corners, f([[0, 0, 1, 1]]), i([0])], [f([[[[2.5]]]])],
    sampling_ratio=1, output_height=1, output_width=1,
)
region = f([[0, 0, 0, 4, 0]])
case("maxroipool", "MaxRoiPool-1", [f([[[[1, 2, 9, 4, 5]]]]), region], [f([[[[9, 9]]]])], pooled_shape=[1, 2])
row = np.arange(26, dtype=np.float32)[::-1].copy().reshape(1, 1, 1, 26)
cells = [row[..., k * 26 // 22].item() for k in range(22)]
case(
    "maxroipool_cells", "MaxRoiPool-1", [row, f([[0, 0, 0, 25, 0]])], [f(cells).reshape(1, 1, 1, 22)], pooled_shape=[1, 22]
)
case(
    "nonmaxsuppression_equal_to_threshold", "NonMaxSuppression-11",
    [f([[[0, 0, 1, 1]]]), f([[[0.5]]]), i([1]), f([0.5]), f([0.5])], [i([[0, 0, 0]])],
)
case("onehot_fraction", "OneHot-11", [f([1.5]), f([3]), f([0, 1])], [f([[0, 1, 0]])])
case("topk_nan", "TopK-11", [f([1, nan, 3, 2]), i([2])], [f([nan, 3]), i([1, 2])])
case("topk_0", "TopK-11", [f([1, 2]), i([0])], [f([]), i([])])
case(
    "unique_nan", "Unique-11", [f([nan, 1, nan, -0.0, 0])],
    [f([-0.0, 1, nan]), i([3, 1, 0]), i([2, 1, 2, 0, 0]), i([2, 1, 2])],
)
unsorted = {"sorted": 0}
case("unique_not_sorted_one_output", "Unique-11", [f([2, 1, 1, 3])], [f([2, 1, 3])], **unsorted)
case(
    "unique_not_sorted_axis", "Unique-11", [f([[2, 1, 2], [3, 0, 3]])],
    [f([[2, 1], [3, 0]]), i([0, 1]), i([0, 1, 0]), i([2, 1])], axis=1, **unsorted,
)
case(
    "unique_not_sorted_matrix", "Unique-11", [f([[2, 1], [1, 1]])], [f([2, 1]), i([0, 1]), i([0, 1, 1, 1]), i([1, 3])], **unsorted
)
case("unique_without_elements", "Unique-11", [f(np.zeros((2, 0)))], [f(np.zeros((1, 0))), i([0]), i([0, 0]), i([2])], axis=0)

# Losses and optimizers

scores, kept = f([[-1, -2], [-3, -5], [-7, -4]]), {"ignore_index": -1}
none = i([-1, -1, -1])
case("negativeloglikelihoodloss_all_ignored", "NegativeLogLikelihoodLoss-13", [scores, none], [f(nan)], **kept)
case("softmaxcrossentropyloss_all_ignored", "SoftmaxCrossEntropyLoss-13", [scores, none], [f(nan)], **kept)
case("negativeloglikelihoodloss_mean", "NegativeLogLikelihoodLoss-13", [scores, i([0, 1, -1])], [f(3)], **kept)
losses = np.log(np.exp(d(scores)).sum(axis=1)) - d([-1, -5, 0])
case(
    "softmaxcrossentropyloss_mean", "SoftmaxCrossEntropyLoss-12", [scores, i([0, 1, -1])], [f(losses[:2].mean())], **kept
)
training = "ai.onnx.preview.training"
momentum = {"alpha": 0.5, "beta": 0.5, "norm_coefficient": 0.0, "mode": "standard"}
for optimizer, states, options in ("Adagrad", 1, {}), ("Adam", 2, {}), ("Momentum", 1, momentum):
    case(
        f"{optimizer.lower()}_broadcast", f"{training}.{optimizer}-1", [f(0.5), i(1), f([1, 2]), f([1]), *[f([0, 0])] * states],
        "input 3 has shape [1]: it belongs to input 2, of shape [2]", outputs=[f([1, 2])] * (1 + states), **options,
    )
alpha, beta = single(0.9), single(0.999)
rate, moved, square = 0.5 * math.sqrt(1 - beta) / (1 - alpha), (1 - alpha) * d([2, 4]), (1 - beta) * d([4, 16])
case(
    "adam_types", f"{training}.Adam-1", [f(0.5), i(1), f([1, 2]), f([2, 4]), f([0, 0]), f([0, 0])],
    [f(d([1, 2]) - rate * moved / np.sqrt(square)), f(moved), f(square)], epsilon=0.0,
)

# Experimental operators

x = f([[[[1, 3]]], [[[5, 7]]]])
case("meanvariancenormalization_1_batch", "MeanVarianceNormalization-1", [x], [f((d(x) - 4) / math.sqrt(5))])
case("meanvariancenormalization_1_equal", "MeanVarianceNormalization-1", [f([[[[5, 5]]]])], [f([[[[0, 0]]]])])
image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
case("crop_without_border", "Crop-1", [image], [image[..., :2, :2].copy()], scale=[2, 2])
case("crop_beyond", "Crop-1", [image], "before a part of 2 are too many", outputs=[image], border=[2, 2, 0, 0], scale=[2, 2])
case("imagescaler_without_bias", "ImageScaler-1", [corners], [f([[[[2, 4], [6, 8]]]])], scale=2.0)
case("parametricsoftplus_without_alpha", "ParametricSoftplus-1", [f([1])], '"alpha" of kind FLOAT is not given', outputs=[f(0)])
case("scaledtanh_without_alpha", "ScaledTanh-1", [f([1])], '"alpha" of kind FLOAT is not given', outputs=[f(0)])

# Convolutions

x, one = f([[[1, 2, 3]]]), f([[[10]]])
cut = {"strides": [2], "auto_pad": "SAME_UPPER"}
case("convtranspose_same_gaps", "ConvTranspose-11", [x, one, f([1])], [f([[[11, 1, 21, 1, 31, 1]]])], **cut)
case(
    "convtranspose_output_shape_beyond", "ConvTranspose-11", [x, one, f([1])], [f([[[11, 1, 21, 1, 31, 1, 1]]])],
    strides=[2], output_shape=[7],
)
two = f([[[1, 10]]])
case("convtranspose_1_odd_padding", "ConvTranspose-1", [x, two], [f([[[1, 12, 23]]])], auto_pad="SAME_UPPER")
case(
    "convtranspose_output_shape_and_pads", "ConvTranspose-11", [x, two], [f([[[1, 12, 23, 30]]])], output_shape=[4], pads=[1, 1]
)
x = f([[[[[1, 2, 4]]]]])
case(
    "deformconv_mask_of_rank_5", "DeformConv-19",
    [x, f([[[[[10, 1]]]]]), f(np.zeros((1, 6, 1, 1, 2))), None, f([[[[[1, 2]]], [[[3, 4]]]]])],
    [f([[[[[10 * 1 * 1 + 2 * 3, 10 * 2 * 2 + 4 * 4]]]]])],
)
case(
    "deformconv_beyond_the_border", "DeformConv-19",
    [f([[[[4, 8], [1, 1]]]]), f([[[[1]]]]), f([[[[0, 0], [0, 0]], [[-0.5, 0.5], [0, 0]]]])], [f([[[[2, 4], [1, 1]]]])],
)
block = [i([3]), i([2])]
case("col2im_bools", "Col2Im-18", [b([[[0, 1], [0, 0]]]), *block], [b([[[0, 1, 0]]])])
case("col2im_strings", "Col2Im-18", [s([[["a", "b"], ["c", "d"]]]), *block], "string can't be added up", outputs=[s([""])])

# Quantization

case(
    "qlinearconv_scales", "QLinearConv-10",
    [u8([[[45]]]), f(0.1), u8(0), u8([[[1]]]), f(0.1), u8(0), f(0.3), u8(0)], [u8([[[2]]])],
)
case("quantizelinear_nan", "QuantizeLinear-13", [f([nan, 2]), f(1), i8(3)], [i8([0, 5])])
case("quantizelinear_precision", "QuantizeLinear-23", [f([2049]), half(1), i16(0)], [i16([2048])])
case(
    "quantizelinear_float8_zero_point", "QuantizeLinear-19", [f([2]), f(1), f8(1)], [f8([3])], fixed=["x2"],
)
case(
    "qlinearmatmul_float8_zero_point", "QLinearMatMul-21",
    [f8([[2]]), f(1), f8(1), f8([[3]]), f(1), f8(1), f(1), f8(1)], [f8([[3]])], fixed=["x0", "x2", "x3", "x5", "x7"],
)
case("dequantizelinear_int32_zero_point", "DequantizeLinear-19", [i32([5]), f(1), i32(2)], "no zero point but 0", outputs=[f(0)])
case("dynamicquantizelinear_zeros", "DynamicQuantizeLinear-11", [f([0, 0])], [u8([0, 0]), f(0), u8(0)])
case(
    "qlinearmatmul_scales", "QLinearMatMul-10",
    [u8([[45]]), f(0.1), u8(0), u8([[1]]), f(0.1), u8(0), f(0.3), u8(0)], [u8([[1]])],
)

# Recurrent layers

w, r = f(np.zeros((1, 4, 1))), f(np.zeros((1, 4, 1)))
case(
    "lstm_clip", "LSTM-14", [f([[[0]]]), w, r, None, None, None, f([[[10]]])],
    [f([[[[0.5 * math.tanh(1)]]]]), f([[[0.5 * math.tanh(1)]]]), f([[[5]]])], hidden_size=1, clip=1.0,
)
for layer, gates in ("RNN", 1), ("GRU", 3), ("LSTM", 4):
    weights = [f(np.ones((1, gates, 1)))] * 2
    state, carried = [f([[[0.5]]]), f([[[0.25]]])], layer == "LSTM"
    case(
        f"{layer.lower()}_length_0", f"{layer}-14", [f([[[1]]]), *weights, None, i32([0]), *state[: 1 + carried]],
        [f([[[[0]]]]), *state[: 1 + carried]], hidden_size=1,
    )
step = [f([[[1]]]), f([[[1]]]), f([[[1]]])]
case(
    "rnn_parameters", "RNN-14", step, "activation_alpha has 1 entries more", outputs=[f(0)], hidden_size=1,
    activations=["Tanh"], activation_alpha=[1.0],
)
case("rnn_case", "RNN-14", step, [f([[[[math.tanh(1)]]]])], hidden_size=1, activations=["TANH"])
opened, relu = 1 / (1 + math.exp(-1)), ["SIGMOID", "RELU", "RELU"]
three, four = ([f([[[1]]]), *[f(np.ones((1, gates, 1)))] * 2] for gates in (3, 4))
case("gru_case", "GRU-14", three, [f([[[[1 - opened]]]])], hidden_size=1, activations=relu[:2])
case("lstm_case", "LSTM-14", four, [f([[[[opened * opened]]]])], hidden_size=1, activations=relu)

# Random numbers

case("bernoulli_certain", "Bernoulli-15", [f([0, 1, 1, 0])], [f([0, 1, 1, 0])])


def philox(element, key):
    """The first uniform number of an element, by Philox4x32-10."""
    counter, keys = [element, 0, 0, 0], [key, 0]
    for _ in range(10):
        one, other = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [other >> 32 ^ counter[1] ^ keys[0], other, one >> 32 ^ counter[3] ^ keys[1], one]
        counter = [word & 0xFFFFFFFF for word in counter]
        keys = [keys[0] + 0x9E3779B9 & 0xFFFFFFFF, keys[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return ((counter[0] >> 5) * 2**26 + (counter[1] >> 6)) / 2**53


# The seed 2 has the bits 0x40000000.
numbers = d([philox(element, 0x40000000) for element in range(4)])
case("randomuniform_seed", "RandomUniform-1", [], [f(numbers)], exact=True, shape=[4], seed=2.0)
case("bernoulli_seed", "Bernoulli-15", [f([0.5] * 4)], [f(numbers < 0.5)], seed=2.0)
case("multinomial_seed", "Multinomial-7", [f([[0, 0]])], [i32([numbers >= 0.5])], sample_size=4, seed=2.0)

# Images in other sizes

ramp, twice = f([[0, 1, 2, 3]]), f([1, 2])
linear = {"mode": "linear"}
case(
    "resize_tf_crop_and_resize_scales", "Resize-13", [ramp, f([0, 0.25, 1, 0.75]), twice], [f([[0.75, 1.25, 1.75, 2.25]])],
    coordinate_transformation_mode="tf_crop_and_resize", **linear,
)
case(
    "resize_align_corners_scales", "Resize-13", [ramp, None, f([1, 0.6])], [f([[0, 3 / 1.4]])],
    coordinate_transformation_mode="align_corners", **linear,
)
case(
    "resize_pytorch_half_pixel_one_entry", "Resize-13", [ramp, None, None, i([1, 1])], [f([[0]])],
    coordinate_transformation_mode="pytorch_half_pixel", mode="cubic",
)
eight = np.arange(8, dtype=np.float32).reshape(1, 8)
case(
    "resize_nearest_same_size", "Resize-11", [f([[1, 2], [3, 4]]), f([]), f([1, 0.5])], [f([[4], [4]])],
    coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="ceil",
)
nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
case("resize_coordinates_by_a_tenth", "Resize-13", [f(range(30)), None, f([0.1])], [f([0, 9, 19])], **nearest)
case("resize_size_by_seven_tenths", "Resize-13", [f(range(10)), None, f([0.7])], [f([0, 1, 2, 4, 5, 7])], **nearest)
case("resize_10_nearest", "Resize-10", [eight, f([1, 0.375])], [f([[0, 3, 6]])])
case("resize_10_linear", "Resize-10", [ramp, f([1, 0.5])], [f([[0, 2]])], **linear)
case("resize_integers", "Resize-13", [u8([[0, 3]]), None, twice], [u8([[0, 1, 2, 3]])], **linear)
case("resize_integers_ties", "Resize-13", [u8([[0, 2]]), None, twice], [u8([[0, 0, 2, 2]])], **linear)
case(
    "resize_exclude_outside_linear", "Resize-13", [f([[1, 2]]), None, twice], [f([[1, 1.25, 1.75, 2]])],
    exclude_outside=1, **linear,
)
case("resize_bools", "Resize-13", [b([[0, 1]]), None, twice], [b([[0, 0, 1, 1]])], **linear)
case("resize_complex", "Resize-13", [c([[0, 4 + 8j]]), None, twice], [c([[0, 1 + 2j, 3 + 6j, 4 + 8j]])], **linear)
case("upsample_nearest", "Upsample-9", [f([[1, 2]]), f([1, 1.5])], [f([[1, 1, 2]])])
case("upsample_linear", "Upsample-9", [f([[1, 2]]), f([1, 1.5])], [f([[1, 1 + 2 / 3, 2]])], **linear)
case(
    "gridsample_cubic_border", "GridSample-20", [f([[[[1, 2, 4]]]]), f([[[[-1.5, 0], [0, 0], [1.5, 0]]]])], [f([[[[1, 2, 4]]]])],
    align_corners=1, mode="cubic", padding_mode="border",
)
case(
    "gridsample_integers", "GridSample-20", [i32([[[[0, 3]]]]), f([[[[-0.5, 0], [0.5, 0], [1, 0]]]])], [i32([[[[1, 2, 3]]]])],
    align_corners=1, mode="linear",
)
case(
    "affinegrid_one_entry", "AffineGrid-20", [f([[[1, 0, 0], [0, 1, 0]]]), i([1, 1, 1, 1])], [f([[[[0, 0]]]])], align_corners=1
)

# Sums, updates and learned models

case("einsum_size_1", "Einsum-12", [f([2]), f([1, 2, 3])], [f([2, 4, 6])], equation="i,i->i")
updated = [f([[[1], [2], [3]]]), f([[[9]]]), i([-1])]
case("tensorscatter_negative", "TensorScatter-24", updated, "write_indices[0] = -1 is out of range", outputs=[f(0)], axis=1)
case("tensorscatter_negative_circular", "TensorScatter-24", updated, [f([[[1], [2], [9]]])], axis=1, mode="circular")
ml = "ai.onnx.ml"
case("normalizer_l1", f"{ml}.Normalizer-1", [f([[-1, 3]])], [f([[-0.25, 0.75]])], norm="L1")
case("normalizer_l2", f"{ml}.Normalizer-1", [f([[-3, 4]])], [f([[-0.6, 0.8]])], norm="L2")
case("normalizer_max", f"{ml}.Normalizer-1", [f([[-4, 2]])], [f([[-2, 1]])], norm="MAX")


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def quantile(p):
    return NormalDist().inv_cdf(p)


binary = {"coefficients": [1.0], "intercepts": [0.0], "classlabels_ints": [5, 6]}
case("linearclassifier_one_row", f"{ml}.LinearClassifier-1", [f([[2]])], [i([6]), f([[-2, 2]])], **binary)
case(
    "linearclassifier_one_row_logistic", f"{ml}.LinearClassifier-1", [f([[2]])], [i([6]), f([[sigmoid(-2), sigmoid(2)]])],
    post_transform="LOGISTIC", **binary,
)
case(
    "linearclassifier_probit", f"{ml}.LinearClassifier-1", [f([[0.25]])], [i([5]), f([[quantile(0.25), quantile(0.125)]])],
    exact=True, post_transform="PROBIT", coefficients=[1.0, 0.5], intercepts=[0.0, 0.0], classlabels_ints=[5, 6],
)
weights = {"coefficients": [1.0], "intercepts": [0.0]}
case("linearregressor_without_intercepts", f"{ml}.LinearRegressor-1", [f([[2]])], [f([[6]])], coefficients=[3.0])
case(
    "linearregressor_logistic", f"{ml}.LinearRegressor-1", [f([[2]])], [f([[sigmoid(2)]])], post_transform="LOGISTIC", **weights
)
case(
    "linearregressor_probit", f"{ml}.LinearRegressor-1", [f([[0.25]])], [f([[quantile(0.25)]])], exact=True,
    post_transform="PROBIT", **weights,
)


def tree(modes, values, **options):
    """Nodes of a single tree: the root, and the leaves if it has a choice."""
    count = len(modes)
    return {
        "nodes_treeids": [0] * count, "nodes_nodeids": list(range(count)), "nodes_featureids": [0] * count,
        "nodes_modes": modes, "nodes_values": values, "nodes_truenodeids": [1, 0, 0][:count],
        "nodes_falsenodeids": [2, 0, 0][:count], "nodes_hitrates": [1.0] * count,
        "nodes_missing_value_tracks_true": [0] * count, **options,
    }


def votes(of, nodes, ids, weights):
    return {f"{of}_treeids": [0] * len(nodes), f"{of}_nodeids": nodes, f"{of}_ids": ids, f"{of}_weights": weights}


leaf = tree(["LEAF"], [0.0])
leaf["nodes_truenodeids"] = leaf["nodes_falsenodeids"] = [0]
choice = ["BRANCH_LEQ", "LEAF", "LEAF"], [1.0, 0.0, 0.0]
case(
    "treeensembleregressor_logistic", f"{ml}.TreeEnsembleRegressor-1", [f([[0]])], [f([[sigmoid(2)]])],
    n_targets=1, post_transform="LOGISTIC", **leaf, **votes("target", [0], [0], [2.0]),
)
case(
    "treeensembleregressor_probit", f"{ml}.TreeEnsembleRegressor-1", [f([[0]])], [f([[quantile(0.25)]])], exact=True,
    n_targets=1, post_transform="PROBIT", **leaf, **votes("target", [0], [0], [0.25]),
)
case(
    "treeensembleclassifier_two_classes", f"{ml}.TreeEnsembleClassifier-1", [f([[0], [2]])],
    [i([5, 6]), f([[0.75, 0], [0, 0.75]])], classlabels_int64s=[5, 6], **tree(*choice),
    **votes("class", [1, 2], [0, 1], [0.75, 0.75]),
)
case(
    "treeensembleclassifier_one_class", f"{ml}.TreeEnsembleClassifier-1", [f([[0], [2]])],
    [i([6, 5]), f([[0.25, 0.75], [0.75, 0.25]])], classlabels_int64s=[5, 6], **tree(*choice),
    **votes("class", [1, 2], [0, 0], [0.75, 0.25]),
)
case(
    "treeensembleregressor_nan", f"{ml}.TreeEnsembleRegressor-1", [f([[nan], [1], [2]])], [f([[20], [20], [10]])], n_targets=1,
    **tree(["BRANCH_NEQ", "LEAF", "LEAF"], [1.0, 0.0, 0.0]), **votes("target", [1, 2], [0, 0], [10.0, 20.0]),
)
case(
    "treeensembleregressor_votes_of_decisions", f"{ml}.TreeEnsembleRegressor-1", [f([[1], [2]])], [f([[10], [20]])],
    n_targets=1, **tree(*choice), **votes("target", [0, 1, 2], [0, 0, 0], [5.0, 10.0, 20.0]),
)
case(
    "treeensembleregressor_target_without_votes", f"{ml}.TreeEnsembleRegressor-1", [f([[1], [2]])], [f([[11, 2], [21, 2]])],
    n_targets=2, base_values=[1.0, 2.0], **tree(*choice), **votes("target", [1, 2], [0, 0], [10.0, 20.0]),
)
case(
    "treeensembleregressor_votes_for_the_only_target", f"{ml}.TreeEnsembleRegressor-1", [f([[1], [2]])], [f([[44], [77]])],
    n_targets=1, **tree(*choice), **votes("target", [1, 1, 2, 2], [0, 0, 0, 0], [4.0, 40.0, 7.0, 70.0]),
)
svm = dict(classlabels_ints=[5, 2], kernel_type="LINEAR", kernel_params=[1.0, 0.0, 1.0])
case(
    "svmclassifier_linear", f"{ml}.SVMClassifier-1", [f([[1, 2]])], [i([5]), f([[3, -3]])],
    coefficients=[1.0, 1.0, -1.0, -1.0], rho=[0.0], **svm,
)
case(
    "svmclassifier_softmax", f"{ml}.SVMClassifier-1", [f([[1, 2]])], [i([2]), f([[1 / (1 + np.exp(-1.8)), 1 / (1 + np.exp(1.8))]])],
    vectors_per_class=[1, 1], support_vectors=[1.0, 0.0, 0.0, 1.0], coefficients=[1.0, -1.0], rho=[0.1],
    post_transform="SOFTMAX", **svm,
)
case("castmap_to_text", f"{ml}.CastMap-1", [{1: 0.5}], [s([["0.5"]])], cast_to="TO_STRING")
case(
    "labelencoder_2_equal_keys", f"{ml}.LabelEncoder-2", [f([nan, 1])], [i([10, 30])],
    keys_floats=[nan, 1.0, 1.0], values_int64s=[10, 20, 30],
)
vocabulary = {"string_vocabulary": ["a", "b"]}
case("dictvectorizer_shape", f"{ml}.DictVectorizer-1", [{"a": 1.0}], [f([1, 0])], **vocabulary)
case(
    "dictvectorizer_other_key", f"{ml}.DictVectorizer-1", [{"a": 1.0, "c": 2.0}], 'the key "c"', outputs=[f([1, 0])], **vocabulary
)
pairs = f([[1, 2]])
case(
    "featurevectorizer_dimensions", f"{ml}.FeatureVectorizer-1", [pairs, f([[3, 4]])], [f([[1, 3, 4, 0]])], inputdimensions=[1, 3]
)

# Texts

for name, pattern, content, matches in (
    ("reference_to_group", r"(a)\1", "aa", "RE2 has no references to groups"),
    ("digits", r"\d", "\u0663", [False]),
    ("any_byte", r"\C", "a", "only whole letters can match"),
    ("nested_groups", "(" * 25 + "a" + ")" * 25, "a", "more than 24 groups are in each other"),
    ("repeated_flags", "a(?i)*", "a", "there is nothing to repeat"),
):
    wanted = matches if isinstance(matches, str) else [b(matches)]
    case(f"regexfullmatch_{name}", "RegexFullMatch-20", [s([content])], wanted, outputs=[b([0])], pattern=pattern)
# Any system has these two locales.
upper = {"case_change_action": "UPPER"}
case(
    "stringnormalizer_upper", "StringNormalizer-10", [s(["straße", "é"])], [s(["STRASSE", "É"])], locale="C.UTF-8", **upper
)
case("stringnormalizer_locale", "StringNormalizer-10", [s(["é"])], [s(["É"])], locale="C", **upper)
case(
    "stringnormalizer_stop_words", "StringNormalizer-10", [s(["straße", "b"])], [s(["b"])],
    locale="C.UTF-8", stopwords=["strasse"], is_case_sensitive=0,
)
case("stringsplit_tab", "StringSplit-20", [s(["a\tb c"])], [s([["a", "b", "c"]]), i([3])])
case("stringsplit_maxsplit", "StringSplit-20", [s([" a b "])], [s([["a", "b"]]), i([2])], maxsplit=1)
case("stringsplit_empty", "StringSplit-20", [s([""])], [s([[""]]), i([1])], delimiter=",")
grams = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
case(
    "tfidfvectorizer_weights", "TfIdfVectorizer-9", [i([2, 2, 3])], [f([20, 20])], mode="TFIDF",
    pool_int64s=[2, 3], ngram_indexes=[1, 0], weights=[10.0, 20.0], **grams,
)
case(
    "tfidfvectorizer_equal_ngrams", "TfIdfVectorizer-9", [i([2, 3])], [f([1, 1])], mode="TF",
    pool_int64s=[2, 2], ngram_indexes=[0, 1], **grams,
)
case(
    "tfidfvectorizer_without_weights", "TfIdfVectorizer-9", [i([2, 3])], [f([1, 1])], mode="IDF",
    pool_int64s=[2, 3], ngram_indexes=[0, 1], **grams,
)
case("binarizer_nan", f"{ml}.Binarizer-1", [f([[nan, 2]])], [f([[0, 1]])], threshold=1.0)

# Signals

wave = f([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]) / f(7)
spectrum = np.fft.fft(d(wave))
case(
    "dft_precision", "DFT-17", [wave.reshape(1, 16, 1)], [f(np.stack([spectrum.real, spectrum.imag], -1)[None])],
    exact=True, axis=1,
)
case(
    "dft_imaginary_ends", "DFT-20", [f([[[10, 5], [-2, 2], [-2, 7]]]), None, i(1)],
    [f(np.fft.irfft([10, -2 + 2j, -2]).reshape(1, 4, 1))], inverse=1, onesided=1,
)
frames = f(np.zeros((1, 0, 3, 2)))
case("stft_rank_2", "STFT-17", [f([[1, 2, 3, 4]]), i(2), f([1, 1])], "of rank 2: allowed rank 3", outputs=[f([])])
case("stft_short_signal", "STFT-17", [f(np.ones((1, 3, 1))), i(1), None, i(4)], [frames])
case("stft_shorter_signal", "STFT-17", [f(np.ones((1, 2, 1))), i(1), None, i(4)], "a frame has 4 samples", outputs=[frames])
edge = 25 / 46 - 21 / 46
case("hannwindow_symmetric", "HannWindow-17", [i(5)], [f([0, 0.5, 1, 0.5, 0])], exact=True, periodic=0)
case("hammingwindow_symmetric", "HammingWindow-17", [i(5)], [f([edge, 25 / 46, 1, 25 / 46, edge])], exact=True, periodic=0)
case("blackmanwindow_symmetric", "BlackmanWindow-17", [i(5)], [f([0, 0.34, 1, 0.34, 0])], exact=True, periodic=0)
case("hannwindow_size_1", "HannWindow-17", [i(1)], [f([nan])], periodic=0)


def mel_weights(bands, length, rate, lower, upper):
    rows = length // 2 + 1
    low, high = (2595 * math.log10(1 + hertz / 700) for hertz in (lower, upper))
    hertz = [700 * (10 ** ((low + k * (high - low) / (bands + 2)) / 2595) - 1) for k in range(bands + 2)]
    bins = [math.floor((length + 1) * of / rate) for of in hertz]
    weights = np.zeros((rows, bands))
    for band, (left, peak, right) in enumerate(zip(bins, bins[1:], bins[2:])):
        for row in range(rows):
            if left <= row <= peak:
                weights[row, band] = (row - left) / (peak - left) if peak > left else 1
            elif peak < row < right:
                weights[row, band] = (right - row) / (right - peak)
    return f(weights)


for name, *numbers in ("edges", 2, 8, 8192, 0, 4096), ("beyond", 2, 8, 8192, 0, 16384):
    case(
        f"melweightmatrix_{name}", "MelWeightMatrix-17", [*map(i, numbers[:3]), *map(f, numbers[3:])], [mel_weights(*numbers)],
    )
case(
    "melweightmatrix_below_0", "MelWeightMatrix-17", [i(2), i(8), i(8192), f(-5000), f(4096)], "they must be finite and in order",
    outputs=[f(0)],
)

# Pictures


def stored(image, format, **options):
    data = io.BytesIO()
    image.save(data, format, **options)
    return np.frombuffer(data.getvalue(), np.uint8)


def picture(pixels, mode=None):
    return Image.fromarray(np.array(pixels, np.uint8), mode)


def pixels(image):
    return np.asarray(image.convert("RGB"))


def decoder(name, stream, wanted, **options):
    case(f"imagedecoder_{name}", "ImageDecoder-20", [stream], [wanted], **options)


undecoded = np.zeros((0, 0, 3), np.uint8)
gray = picture([[10, 200]])
decoder("gray", stored(gray, "PNG"), pixels(gray))
decoder("grayscale_of_colours", stored(picture([[[255, 0, 0]]]), "PNG"), u8([[[76]]]), pixel_format="Grayscale")
decoder("no_picture", np.frombuffer(b"no picture", np.uint8), undecoded)
decoder("no_picture_grayscale", np.frombuffer(b"no picture", np.uint8), undecoded[..., :1], pixel_format="Grayscale")
decoder("transparency", stored(picture([[[10, 20, 30, 128]]]), "PNG"), u8([[[10, 20, 30]]]))
deep = stored(Image.fromarray(np.array([[0x1234, 0x00FF]], np.uint16)), "PNG")
decoder("gray_of_16_bits", deep, u8([[[0x12] * 3, [0] * 3]]))
decoder("gray_of_16_bits_grayscale", deep, u8([[[0x12], [0]]]), pixel_format="Grayscale")
turned = Image.Exif()
turned[0x0112] = 6  # Orientation
flat = picture(np.full((8, 16, 3), 128))
decoder("orientation", stored(flat, "JPEG", exif=turned), pixels(flat))
pages = [picture([[[1, 2, 3]]]), picture([[[4, 5, 6]]])]
decoder("two_pictures", stored(pages[0], "TIFF", save_all=True, append_images=pages[1:]), u8([[[1, 2, 3]]]))
slope = picture(np.add.outer(np.arange(9) * 20, np.arange(11) * 3)[..., None] + np.arange(3) * 17)
jpeg = stored(slope, "JPEG", quality=60, subsampling="4:2:0")
decoder("jpeg", jpeg, pixels(Image.open(io.BytesIO(jpeg.tobytes()))))
inks = stored(Image.new("CMYK", (8, 8), (10, 60, 110, 30)), "JPEG")
decoder("cmyk", inks, pixels(Image.open(io.BytesIO(inks.tobytes()))))
decoder("damaged", stored(slope, "PNG")[:-40], undecoded)
# Without a transform, a coefficient is a pixel less 128, and its step is 1: at the step's beginning it is exact.
decoder(
    "irreversible_jpeg_2000", stored(picture([[127, 129, 131, 133]]), "JPEG2000", irreversible=True, num_resolutions=1),
    pixels(picture([[127, 129, 131, 133]])),
)
decoder("bigtiff", stored(gray, "TIFF", big_tiff=True), undecoded)
frames = [picture(np.full((2, 2, 3), shade)) for shade in (10, 200)]
decoder(
    "animated_webp", stored(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True), pixels(frames[0])
)

if __name__ == "__main__":
    main()
