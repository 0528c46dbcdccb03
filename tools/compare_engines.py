#!/usr/bin/env python3
"""Runs the official cases on inputs of its own, on onnxruntime or the reference, and compares onnxref with what they give.

    pip install onnx onnxruntime
    cargo build --release -p onnxref-cli
    python tools/compare_engines.py target/release/onnxref                       all cases, beside onnxruntime
    python tools/compare_engines.py target/release/onnxref -k conv --seed 7      those whose name has "conv", other inputs
    python tools/compare_engines.py target/release/onnxref --engine reference

Floats are drawn between the least and the greatest one of the case's input; other inputs stay as they are, since they are
sizes, positions and the like. It prints each case that differs with what differs, and a line for each operator.
docs/differences.md says which differences are known.
"""

import argparse
import collections
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

ARCHIVE = Path(__file__).resolve().parent.parent / "onnx-test-data/onnx-1.23.2-node.tar.xz"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="the program onnxref")
    arguments.add_argument("-k", default="", metavar="TEXT", help="cases whose name has this")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--engine", choices=ENGINES, default="onnxruntime")
    arguments = arguments.parse_args()
    random = np.random.default_rng(arguments.seed)
    operators, skipped = {}, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, files in cases(arguments.k):
            model = onnx.load_model(io.BytesIO(files["model.onnx"]))
            try:
                inputs = [drawn(files[f"test_data_set_0/input_{k}.pb"], random) for k in range(len(model.graph.input))]
                outputs = ENGINES[arguments.engine](model, [numpy_helper.to_array(tensor) for tensor in inputs])
                if any(isinstance(value, list) or value is None for value in outputs):
                    raise TypeError("sequences and optionals are left out")
                outputs = [numpy_helper.from_array(np.asarray(value)) for value in outputs]
            except Exception as error:  # what an engine can't do is no difference
                skipped[type(error).__name__] += 1
                continue
            case = Path(folder) / name
            (case / "test_data_set_0").mkdir(parents=True)
            (case / "model.onnx").write_bytes(files["model.onnx"])
            for kind, tensors in (("input", inputs), ("output", outputs)):
                for k, tensor in enumerate(tensors):
                    (case / f"test_data_set_0/{kind}_{k}.pb").write_bytes(tensor.SerializeToString())
            operators[name] = model.graph.node[-1].op_type
        ran = subprocess.run([arguments.program, "test", folder], capture_output=True, text=True)
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
    names = [Path(line.split(":")[0].removeprefix("FAILED ")).name for line in failed]
    print("\n".join(failed))
    print(f"\n{len(operators)} cases beside {arguments.engine}, {len(failed)} differ; skipped: {dict(skipped)}")
    all_of, wrong_of = (collections.Counter(operators[name] for name in group) for group in (operators, names))
    for operator in sorted(wrong_of):
        print(f"{operator}: {wrong_of[operator]} of {all_of[operator]} differ")


def cases(text):
    """The cases by name, each with its files."""
    found = collections.defaultdict(dict)
    with tarfile.open(ARCHIVE) as archive:
        for entry in archive:
            if entry.isfile() and text in entry.name:
                _, name, *path = entry.name.split("/")
                found[name]["/".join(path)] = archive.extractfile(entry).read()
    return sorted(item for item in found.items() if not item[0].endswith("_expanded"))


def drawn(message, random):
    """An input with other floats."""
    tensor = onnx.TensorProto.FromString(message)
    values = numpy_helper.to_array(tensor)
    if values.dtype.kind != "f" or not values.size or not np.isfinite(values).all():
        return tensor
    new = random.uniform(values.min(), values.max(), values.shape).astype(values.dtype)
    return numpy_helper.from_array(new, tensor.name)


def onnxruntime(model, inputs):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], inputs)))


def reference(model, inputs):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, dict(zip([value.name for value in model.graph.input], inputs)))


ENGINES = {"onnxruntime": onnxruntime, "reference": reference}

if __name__ == "__main__":
    main()
