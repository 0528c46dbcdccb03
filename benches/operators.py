"""Times single operators in onnxref and ONNX Runtime, each on one thread, and prints those that take longer here.

    python benches/operators.py [FILTER ..] [--above RATIO] [--seconds S]

Needs cargo and the packages onnx, numpy and onnxruntime. Tensors have 2^18 elements or so: a run takes some tens of
microseconds at least, in which calls from Python don't count. Printed are the least times, which other programs on the
machine disturb less, and the models that ONNX Runtime doesn't run.
"""

import argparse
import pathlib
import subprocess
import tempfile

import networks
import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET, ML = 18, "ai.onnx.ml"
RANDOM = np.random.default_rng(1)
SQUARE = (512, 512)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def ints(high, *shape, dtype=np.int64):
    return RANDOM.integers(0, high, shape).astype(dtype)


def numbers(*of):
    return np.array(of, np.int64)


def listed(count):
    return [float(number) for number in floats(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--above", type=float, default=1.1, help="show those that take more than so many times as long")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each runtime, twice")
    args = parser.parse_args()
    if "onnxruntime" not in networks.PEERS:
        parser.error("onnxruntime isn't installed")
    subprocess.run(["cargo", "build", "--release", "-p", "onnxref-cli"], cwd=networks.ROOT, check=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if args.filters and not any(filter in name for filter in args.filters):
                continue
            written = write(pathlib.Path(folder) / name.replace(" ", "-"), name, **case)
            try:
                peer = networks.onnxruntime_of(str(written / "model.onnx"), networks.fed(written), 1)
            except Exception as error:  # these have no class in common
                print(f"{name}: onnxruntime has {str(error).splitlines()[0]}")
                continue
            rows.append((name, *measure(written, peer, args.seconds)))
    rows = sorted(((name, own, peer, own / peer) for name, own, peer in rows), key=lambda row: -row[-1])
    print(f"\n| operator | onnxref, µs | onnxruntime, µs | ratio |\n| --- | ---: | ---: | ---: |")
    for name, own, peer, ratio in rows:
        if ratio > args.above:
            print(f"| {name} | {1e6 * own:.1f} | {1e6 * peer:.1f} | {ratio:.2f} |")
    print(f"\n{sum(row[-1] <= args.above for row in rows)} of {len(rows)} take at most {args.above} times as long.")


def measure(case, peer, seconds):
    """The least times of both, in seconds."""
    times = [(networks.own(case, 1, seconds, False)[1], networks.sample(peer, seconds)[1]) for _ in range(2)]
    return map(min, zip(*times))


def write(folder, name, operator, inputs, constants, outputs, domain, opset, attributes):
    """A folder with a model of one node, and its inputs."""
    (folder / "test_data_set_0").mkdir(parents=True)
    names = [f"x{k}" for k in range(len(inputs))]
    fixed = [f"c{k}" if constant is not None else "" for k, constant in enumerate(constants)]
    results = [f"y{k}" for k in range(outputs)]
    of = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    node = helper.make_node(operator, names + fixed, results, domain=domain, **attributes)
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in zip(fixed, constants) if name]
    graph = helper.make_graph(
        [node], name, list(map(of, names, inputs)), [onnx.ValueInfoProto(name=name) for name in results], initializers
    )
    imports = [helper.make_opsetid("", OPSET if domain else opset)]
    imports += [helper.make_opsetid(domain, opset)] if domain else []
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=10))
    for value in model.graph.output:
        if not value.type.WhichOneof("value"):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    onnx.save(model, folder / "model.onnx")
    for k, (name, array) in enumerate(zip(names, inputs)):
        bytes_ = numpy_helper.from_array(array, name).SerializeToString()
        (folder / "test_data_set_0" / f"input_{k}.pb").write_bytes(bytes_)
    return folder


CASES = {}


def case(name, *inputs, constants=(), outputs=1, domain="", opset=OPSET, **attributes):
    """A case of the operator that the name begins with."""
    CASES[name] = {
        "operator": name.split()[0],
        "inputs": inputs,
        "constants": constants,
        "outputs": outputs,
        "domain": domain,
        "opset": opset,
        "attributes": attributes,
    }


def elementwise():
    x = floats(*SQUARE)
    positive = np.abs(x) + np.float32(0.1)
    for name in (
        "Abs Neg Ceil Floor Round Sign Reciprocal Exp Erf Tanh Sigmoid Softplus Softsign Relu LeakyRelu Elu Selu Celu "
        "HardSigmoid HardSwish Mish ThresholdedRelu Shrink Sin Cos Tan Atan Sinh Cosh Asinh IsNaN IsInf Identity"
    ).split():
        case(name, x)
    for name in "Sqrt Log".split():
        case(name, positive)
    for name in "Asin Acos Atanh".split():
        case(name, np.clip(x, -0.9, 0.9))
    for name in "Add Sub Mul Div Pow Max Min".split():
        case(name, positive, positive.copy())
        case(f"{name} by a number", positive, constants=[np.float32(1.7)])
        case(f"{name} by a row", positive, constants=[floats(512) ** 2])
        case(f"{name} by a column", positive, constants=[floats(512, 1) ** 2])
    for name in "Add Sub Mul Div Mod".split():
        case(f"{name} int64", 1 + ints(99, *SQUARE), 1 + ints(99, *SQUARE))
    for name in "Less Greater Equal".split():
        case(name, x, x.T.copy())
    case("Where", x > 0, x, floats(*SQUARE))
    case("Clip", x, constants=[np.float32(-0.5), np.float32(0.5)])
    case("Sum of three", x, x, x)
    case("Mean of three", x, x, x)
    types = {"float": np.float32, "float16": np.float16, "int64": np.int64, "uint8": np.uint8, "bool": bool}
    for source, of in types.items():
        for target, to in types.items():
            if source != target:
                array = (np.abs(x) * 50).astype(of)
                case(f"Cast {source} to {target}", array, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def reductions():
    for name in "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare".split():
        for axes in ((0,), (1,)):
            case(f"Reduce{name} {axes}", np.abs(floats(*SQUARE)), constants=[numbers(*axes)])
        for axes in ((0, 2), (2, 3)):
            case(f"Reduce{name} {axes}", np.abs(floats(16, 32, 24, 24)), constants=[numbers(*axes)])
    x = floats(*SQUARE)
    for axis in (0, 1):
        case(f"ArgMax {axis}", x, axis=axis)
        case(f"CumSum {axis}", x, constants=[np.int64(axis)])
    for k in (1, 10, 100):
        case(f"TopK {k}", x, constants=[numbers(k)], outputs=2)
    for size in (10, 50, 1000):
        case(f"Softmax {size}", floats(262144 // size, size))
        case(f"LogSoftmax {size}", floats(262144 // size, size))
    case("Softmax axis 1", floats(8, 64, 512), axis=1)
    case("LayerNormalization", x, constants=[floats(512), floats(512)])
    image = floats(4, 64, 32, 32)
    case("InstanceNormalization", image, constants=[floats(64), floats(64)])
    of_channels = [floats(64), floats(64), floats(64), floats(64) ** 2]
    case("BatchNormalization", image, constants=of_channels)
    case("MeanVarianceNormalization", image)
    case("LRN", floats(1, 64, 32, 32), size=5)


def windows():
    image, same = floats(1, 64, 56, 56), {"pads": [1] * 4}
    for name in ("MaxPool", "AveragePool", "LpPool"):
        case(f"{name} 2 x 2", image, kernel_shape=[2, 2], strides=[2, 2])
        case(f"{name} 3 x 3", image, kernel_shape=[3, 3], **same)
        case(f"{name} 3 x 3, every second", image, kernel_shape=[3, 3], strides=[2, 2], **same)
    case("MaxPool of one axis", floats(4, 64, 1024), kernel_shape=[3], strides=[2])
    case("MaxPool of three axes", floats(1, 16, 16, 28, 28), kernel_shape=[2] * 3, strides=[2] * 3)
    case("MaxPool with indices", image, kernel_shape=[2, 2], strides=[2, 2], outputs=2)
    case("GlobalAveragePool", floats(4, 256, 14, 14))
    case("AveragePool of the image", floats(4, 512, 7, 7), kernel_shape=[7, 7])
    case("Conv 3 x 3", image, constants=[floats(64, 64, 3, 3), floats(64)], **same)
    case("Conv 1 x 1", image, constants=[floats(256, 64, 1, 1)])
    half = [floats(*shape).astype(np.float16) for shape in ((1, 64, 56, 56), (64, 64, 3, 3), (64,))]
    case("Conv 3 x 3 of float16", half[0], constants=half[1:], **same)
    case("Conv of each channel", image, constants=[floats(64, 1, 3, 3)], group=64, **same)
    case("Conv of groups", image, constants=[floats(64, 16, 3, 3)], group=4, **same)
    case("Conv 7 x 7", floats(1, 3, 224, 224), constants=[floats(64, 3, 7, 7)], pads=[3] * 4, strides=[2, 2])
    case("Conv of one axis", floats(1, 64, 1000), constants=[floats(128, 64, 3)], pads=[1, 1])
    case("Conv of three axes", floats(1, 16, 8, 28, 28), constants=[floats(32, 16, 3, 3, 3)], pads=[1] * 6)
    small = floats(1, 64, 28, 28)
    case("ConvTranspose 2 x 2", small, constants=[floats(64, 32, 2, 2)], strides=[2, 2])
    case("ConvTranspose 4 x 4", small, constants=[floats(64, 32, 4, 4)], strides=[2, 2], **same)
    case("ConvTranspose of each channel", small, constants=[floats(64, 1, 4, 4)], strides=[2, 2], group=64, **same)
    case("DeformConv", floats(1, 64, 28, 28), floats(64, 64, 3, 3), floats(1, 18, 28, 28), kernel_shape=[3, 3], **same)
    case("Col2Im", floats(1, 144, 3136), constants=[numbers(56, 56), numbers(3, 3)], **same)


def images():
    for mode in ("nearest", "linear", "cubic"):
        for factor, size in ((2, 56), (0.37, 112)):
            scales = np.array([1, 1, factor, factor], np.float32)
            case(f"Resize {mode} by {factor}", floats(1, 16, size, size), constants=[None, scales], mode=mode)
    for mode in ("linear", "nearest", "cubic"):
        grid = RANDOM.uniform(-1, 1, (1, 56, 56, 2)).astype(np.float32)
        case(f"GridSample {mode}", floats(1, 32, 56, 56), grid, opset=20, mode=mode)
    case("AffineGrid", floats(4, 2, 3), constants=[numbers(4, 3, 112, 112)], opset=20)
    boxes, image = np.sort(RANDOM.uniform(0, 50, (100, 4))).astype(np.float32), floats(1, 64, 50, 50)
    case("RoiAlign", image, boxes, ints(1, 100), output_height=7, output_width=7, sampling_ratio=2)
    case("MaxRoiPool", image, np.c_[np.zeros(100, np.float32), boxes], pooled_shape=[7, 7])
    boxes = np.sort(RANDOM.uniform(0, 1, (1, 1000, 4))).astype(np.float32)
    limits = [numbers(50), np.float32([0.5]), np.float32([0.3])]
    case("NonMaxSuppression", boxes, np.abs(floats(1, 10, 1000)), constants=limits)


def layouts():
    x, image = floats(*SQUARE), floats(1, 16, 112, 112)
    for shape, order in (
        (SQUARE, [1, 0]),
        ((1, 224, 224, 3), [0, 3, 1, 2]),
        ((1, 3, 224, 224), [0, 2, 3, 1]),
        ((8, 128, 8, 64), [0, 2, 1, 3]),
        ((64, 64, 64), [2, 1, 0]),
    ):
        case(f"Transpose {order}", floats(*shape), perm=order)
    for mode in ("constant", "reflect", "edge", "wrap"):
        case(f"Pad {mode}", image, constants=[numbers(0, 0, 3, 3, 0, 0, 3, 3)], opset=19, mode=mode)
    for axis in (0, 1):
        case(f"Concat {axis}", x, x, axis=axis)
    case("Concat of single elements", floats(*SQUARE, 1), floats(*SQUARE, 1), axis=2)
    case("Split", x, constants=[numbers(128, 384)], outputs=2, axis=1)
    case("Slice", x, constants=[numbers(1), numbers(511), numbers(1)])
    case("Slice every second", x, constants=[numbers(0), numbers(512), numbers(1), numbers(2)])
    case("Slice reversed", x, constants=[numbers(-1), numbers(-9999), numbers(1), numbers(-1)])
    case("Expand", floats(512, 1), constants=[numbers(*SQUARE)])
    case("Tile", floats(256, 256), constants=[numbers(2, 2)])
    case("DepthToSpace", floats(1, 64, 56, 56), blocksize=2)
    case("SpaceToDepth", image, blocksize=2)
    case("Trilu", x)
    case("ReverseSequence", floats(128, 32, 64), 1 + ints(127, 32))


def indices():
    x, at = floats(*SQUARE), ints(512, *SQUARE)
    case("Gather", floats(10000, 64), constants=[ints(10000, 4096)])
    case("Gather axis 1", x, constants=[ints(512, 256)], axis=1)
    case("GatherElements", x, constants=[at], axis=1)
    case("GatherND", x, constants=[ints(512, 20000, 2)])
    case("ScatterElements", x, constants=[at, floats(*SQUARE)], axis=1)
    case("ScatterElements add", x, constants=[at, floats(*SQUARE)], axis=1, reduction="add")
    case("ScatterND", x, constants=[ints(512, 20000, 2), floats(20000)])
    case("OneHot", ints(100, 4096), constants=[np.int64(100), np.float32([0, 1])])
    case("NonZero", x > 0)
    case("Compress", x, constants=[ints(2, x.size).astype(bool)])
    case("Unique int64", ints(1000, 100000), outputs=4)
    case("Unique float", np.round(floats(50000), 2))
    places = (np.arange(784).reshape(1, 1, 28, 28) * 4).repeat(64, 1) + np.arange(64).reshape(1, 64, 1, 1) * 3136
    case("MaxUnpool", floats(1, 64, 28, 28), places.astype(np.int64), kernel_shape=[2, 2], strides=[2, 2])


def products():
    case("MatMul", floats(128, 768), constants=[floats(768, 768)])
    case("MatMul of many", floats(12, 128, 64), floats(12, 64, 128))
    case("MatMul of a row", floats(1, 768), constants=[floats(768, 3072)])
    case("MatMul of long columns", floats(10000, 32), constants=[floats(32, 16)])
    case("MatMul of small ones", floats(4096, 4, 4), floats(4096, 4, 4))
    case("Gemm", floats(64, 512), constants=[floats(1000, 512), floats(1000)], transB=1)
    case("Einsum of heads", floats(2, 128, 8, 64), floats(2, 128, 8, 64), equation="bqhd,bkhd->bhqk")
    case("MatMulInteger", ints(256, 128, 512, dtype=np.uint8), constants=[ints(99, 512, 512, dtype=np.int8)])
    for name, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [floats(1, gates * 256, size) * np.float32(0.05) for size in (128, 256)]
        case(name, floats(64, 1, 128), constants=weights, hidden_size=256)


def quantized():
    x, scale = floats(*SQUARE), np.float32(0.02)
    case("QuantizeLinear", x, constants=[scale, np.uint8(128)])
    case("DequantizeLinear", ints(256, *SQUARE, dtype=np.uint8), constants=[scale, np.uint8(128)])
    case("DynamicQuantizeLinear", x, outputs=3)
    of = lambda *shape: [scale, np.uint8(3), ints(99, *shape, dtype=np.int8), scale, np.int8(0), np.float32(1), np.uint8(9)]
    case("QLinearMatMul", ints(256, 128, 512, dtype=np.uint8), constants=of(512, 256))
    case("QLinearConv", ints(256, 1, 64, 28, 28, dtype=np.uint8), constants=of(64, 64, 3, 3), pads=[1] * 4)


def others():
    case("DFT", floats(16, 512, 1), constants=[None, np.int64(1)], opset=20)
    case("STFT", floats(1, 16000, 1), constants=[np.int64(160), np.hanning(400).astype(np.float32), np.int64(400)])
    case("Det", floats(1000, 8, 8))
    case("SoftmaxCrossEntropyLoss", floats(512, 100), ints(100, 512))
    case("Multinomial", floats(64, 1000), sample_size=10)
    pool = {"ngram_counts": [0, 50], "ngram_indexes": list(range(75)), "pool_int64s": [*range(50), *map(int, ints(100, 50))]}
    grams = {"max_gram_length": 2, "min_gram_length": 1, "max_skip_count": 1, "mode": "TF"}
    case("TfIdfVectorizer", ints(100, 64, 200), **grams, **pool)
    labels = {"keys_int64s": list(range(100)), "values_int64s": list(range(100))}
    case("LabelEncoder", ints(100, 100000), domain=ML, opset=3, **labels)
    case("OneHotEncoder", ints(100, 4096), domain=ML, opset=3, cats_int64s=list(range(100)))
    case("Normalizer", floats(*SQUARE), domain=ML, opset=3, norm="L2")
    case("Scaler", floats(*SQUARE), domain=ML, opset=3, offset=listed(512), scale=listed(512))
    linear = {"coefficients": listed(500), "intercepts": [0.1] * 10, "classlabels_ints": list(range(10))}
    case("LinearClassifier", floats(1000, 50), domain=ML, opset=3, outputs=2, post_transform="SOFTMAX", **linear)
    case("LinearRegressor", floats(1000, 50), domain=ML, opset=3, coefficients=listed(50), intercepts=[0.1], targets=1)
    machine = {"coefficients": listed(100), "support_vectors": listed(2000), "n_supports": 100, "rho": [0.1]}
    case("SVMRegressor", floats(500, 20), domain=ML, opset=3, kernel_type="RBF", kernel_params=[0.1, 0.0, 0.0], **machine)


def few():
    """Short lanes, few of them side by side, and few channels."""
    for name in "Sum Mean Max Prod L2 LogSum LogSumExp".split():
        case(f"Reduce{name} of one", np.abs(floats(4096, 1, 64)), constants=[numbers(1)])
        case(f"Reduce{name} of five", np.abs(floats(50000, 5)), constants=[numbers(1)])
        case(f"Reduce{name} of five, two side by side", np.abs(floats(25000, 5, 2)), constants=[numbers(1)])
    x = floats(25000, 5, 2)
    for name in "ArgMax Softmax LogSoftmax Hardmax LpNormalization".split():
        case(f"{name} of five, two side by side", x, axis=1)
    case("CumSum of five, two side by side", x, constants=[np.int64(1)])
    for channels in (3, 8):
        image = floats(8, channels, 64, 64)
        for name in ("MaxPool", "AveragePool"):
            case(f"{name} of {channels} channels", image, kernel_shape=[3, 3])
    case("MaxPool of one channel", floats(1, 1, 480, 640), kernel_shape=[9, 9], pads=[4] * 4)
    case("Conv of four filters for each channel", floats(1, 64, 56, 56), constants=[floats(256, 1, 3, 3)], group=64)


for group in (elementwise, reductions, windows, images, layouts, indices, products, quantized, others, few):
    group()

if __name__ == "__main__":
    main()
