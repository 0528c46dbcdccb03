#!/usr/bin/env python3
"""Exports the shapes that onnx's own inference finds in the models of `onnx-test-data`, without those that are declared.

    python tools/export_shapes.py tests/inference/onnx.tsv            writes the table
    python tools/export_shapes.py --check tests/inference/onnx.tsv    exits 1 if the table differs
    python tools/export_shapes.py --show networks gpt2.legacy17       prints the values of one model

Removed are all `value_info`, the shapes of the graphs' outputs, and the shapes of the inputs of subgraphs. The inputs of
the main graph keep theirs. What counts are the values that nodes of the main graph produce, each once, in the file's
order: how many there are, how many are tensors of known rank, how many dimensions of these are known. Known is a number,
or a symbol that an input has: a symbol that inference invents says nothing.

The models of two archives come once more, as `open-networks` and `open-node`, with symbols in place of sizes: each size
above 1 of an input becomes a symbol, `d16` for 16, so that only symbols say what is known.

A line is: archive, model, values, ranks, dimensions, shapes; or archive, model and the text with which inference fails.
Shapes are separated by spaces: `2,N,?` with an unknown dimension, `.` for a scalar, `-` without a rank. `*3` after a
shape says that three values in a row have it.
"""

import argparse
import itertools
import multiprocessing
import sys
import tarfile
from pathlib import Path

import onnx
from onnx import AttributeProto, shape_inference

DATA = Path(__file__).resolve().parent.parent / "onnx-test-data"
ARCHIVES = {
    "networks": "small-networks.tar.xz",
    "node": "onnx-1.23.2-node.tar.xz",
    "older": "onnx-older-node.tar.xz",
    "others": "onnx-1.22.0-others.tar.xz",
}
OPEN = {"open-networks": "networks", "open-node": "node"}
SECONDS = 60


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare with PATH, write nothing")
    arguments.add_argument("--show", nargs=2, metavar=("ARCHIVE", "MODEL"), help="print the values of one model")
    arguments.add_argument("path", type=Path, metavar="PATH", nargs="?")
    arguments = arguments.parse_args()
    if arguments.show:
        show(*arguments.show)
        return
    if not arguments.path:
        sys.exit("PATH is missing")
    new = table()
    if not arguments.check:
        arguments.path.write_text(new, encoding="utf-8", newline="\n")
    elif arguments.path.read_text(encoding="utf-8") != new:
        sys.exit(f"{arguments.path} differs from what this script writes")


def table():
    head = f"# What the inference of onnx {onnx.__version__} finds. Made by tools/export_shapes.py. Do not edit.\n"
    archives = [*ARCHIVES, *OPEN]
    models = ((archive, path, content) for archive in archives for path, content in files(archive))
    work = Apart(line)
    return head + "".join("\t".join((archive, path, *work(content))) + "\n" for archive, path, content in models)


def show(archive, model):
    content = next(content for path, content in files(archive) if path == model)
    values, types, symbols = infer(content)
    for name, op_type in values:
        print(op_type, name, compact(types.get(name), symbols), sep="\t")


def files(archive):
    """The models of an archive: their paths in it, without what all paths have in common, and their contents."""
    with tarfile.open(DATA / ARCHIVES[OPEN.get(archive, archive)], "r|xz") as entries:
        for entry in entries:
            if entry.name.endswith(".onnx"):
                path = entry.name.split("/", 1)[1].removesuffix(".onnx").removesuffix("/model")
                content = entries.extractfile(entry).read()
                yield path, opened(content) if archive in OPEN else content


def opened(content):
    """A model with symbols in place of the sizes of its inputs."""
    model = onnx.load_from_string(content)
    constant = {tensor.name for tensor in model.graph.initializer}
    for info in (info for info in model.graph.input if info.name not in constant):
        for dim in (dim for shape in shapes_in(info.type) for dim in shape.dim if dim.dim_value > 1):
            dim.dim_param = f"d{dim.dim_value}"
    return model.SerializeToString()


class Apart:
    """Work in a process of its own, because it may crash or never end. What it gives is a tuple of texts."""

    def __init__(self, work):
        self.work = work
        self.process = None

    def __call__(self, content):
        if not self.process:
            self.pipe, there = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(there, self.work), daemon=True)
            self.process.start()
            there.close()
        self.pipe.send_bytes(content)
        try:
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            result = (f"it takes more than {SECONDS} seconds",)
        except EOFError:
            result = ("it crashes",)
        self.process.kill()
        self.process.join()
        self.process = None
        return result


def serve(pipe, work):
    while True:
        content = pipe.recv_bytes()
        try:
            pipe.send(work(content))
        except Exception as error:
            pipe.send((" ".join(str(error).split()),))


def line(content):
    values, types, symbols = infer(content)
    shapes = [compact(types.get(name), symbols) for name, _ in values]
    known = [shape for shape in shapes if shape != "-"]
    dims = sum(dim != "?" for shape in known if shape != "." for dim in shape.split(","))
    runs = [(shape, len(list(run))) for shape, run in itertools.groupby(shapes)]
    text = " ".join(shape if count == 1 else f"{shape}*{count}" for shape, count in runs)
    return str(len(shapes)), str(len(known)), str(dims), text


def infer(content):
    """The outputs of the nodes with their operators, the types that inference finds, and the symbols of the inputs."""
    model = onnx.load_from_string(content)
    strip(model)
    values = {name: node.op_type for node in model.graph.node for name in node.output if name}
    symbols = {dim.dim_param for info in model.graph.input for shape in shapes_in(info.type) for dim in shape.dim}
    graph = shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True).graph
    types = {info.name: info.type for info in itertools.chain(graph.value_info, graph.output)}
    return list(values.items()), types, symbols - {""}


def strip(model):
    """Removes the shapes that are declared, but for those of the inputs."""
    graphs = []
    for function in model.functions:
        function.ClearField("value_info")
        graphs += bodies(function.node)
    strip_graph(model.graph)
    graphs += bodies(model.graph.node)
    while graphs:
        graph = graphs.pop()
        strip_graph(graph)
        for info in graph.input:
            strip_type(info.type)
        graphs += bodies(graph.node)


def strip_graph(graph):
    graph.ClearField("value_info")
    for info in graph.output:
        strip_type(info.type)


def bodies(nodes):
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def strip_type(type_):
    if tensor := innermost(type_):
        tensor.ClearField("shape")


def shapes_in(type_):
    tensor = innermost(type_)
    return [tensor.shape] if tensor and tensor.HasField("shape") else []


def innermost(type_):
    """The tensor type in a type; None if it has none."""
    while (kind := type_.WhichOneof("value")) not in ("tensor_type", "sparse_tensor_type"):
        if kind is None:
            return None
        inner = getattr(type_, kind)
        type_ = inner.value_type if kind == "map_type" else inner.elem_type
    return getattr(type_, kind)


def compact(type_, symbols):
    if type_ is None or not type_.tensor_type.HasField("shape"):
        return "-"
    return ",".join(dim_text(dim, symbols) for dim in type_.tensor_type.shape.dim) or "."


def dim_text(dim, symbols):
    if dim.HasField("dim_value"):
        return str(dim.dim_value)
    return dim.dim_param if dim.dim_param in symbols else "?"


if __name__ == "__main__":
    main()
