#!/usr/bin/env python3
"""Makes small models with one fault each, and a table of what onnx's checker refuses.

    python tools/make_faulty_models.py             writes tests/inference/faulty.tar.xz and refused.tsv
    python tools/make_faulty_models.py --check     exits 1 if a model or a line of the table differs

The models are in `tests/inference/faulty.txt`. The archive has each of them twice: `wrong/NAME.onnx`, and without its fault
`right/NAME.onnx`, in which onnx's checker finds nothing. `refused.tsv` lists what `onnx.checker.check_model` with full
check refuses of the wrong ones and of the models of `onnx-test-data`: archive, model, the checker's first words.
"""

import argparse
import io
import lzma
import re
import sys
import tarfile
from pathlib import Path

import onnx
from onnx import SparseTensorProto, TensorProto, checker, helper, parser

from export_shapes import ARCHIVES, Apart, files

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "inference"
OPSETS = {"ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1, "local": 1}
CHOICE = re.compile("«([^|»]*)\\|([^»]*)»")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = arguments.parse_args()
    models, refusal = {}, Apart(checked)
    for name, text in texts():
        right, wrong = (parse(name, CHOICE.sub(rf"\{k}", text)) for k in (1, 2))
        if fault := FAULTS.get(name):
            fault(wrong)
        if (right := right.SerializeToString()) == (wrong := wrong.SerializeToString()):
            sys.exit(f"{name}: no fault")
        if refused := refusal(right)[0]:
            print(f"{name}: without its fault, refused nevertheless: {refused}", file=sys.stderr)
        models[f"right/{name}.onnx"], models[f"wrong/{name}.onnx"] = right, wrong
    archive, table = FOLDER / "faulty.tar.xz", FOLDER / "refused.tsv"
    new = refusals(models, refusal)
    if not arguments.check:
        archive.write_bytes(packed(models))
        table.write_text(new, encoding="utf-8", newline="\n")
    elif unpacked(archive) != models or table.read_text(encoding="utf-8") != new:
        sys.exit("the files differ from what this script writes")


def texts():
    """The names and texts of `faulty.txt`."""
    entries = re.sub(r"^#.*\n", "", (FOLDER / "faulty.txt").read_text(encoding="utf-8"), flags=re.M)
    for entry in re.split(r"\n(?=\S)", entries.strip()):
        yield entry.split(": ", 1)


def parse(name, text):
    domain, opset, text = re.fullmatch(r"(?:@(?:(\S+):)?(\d+) )?(.*)", text, re.S).groups()
    imports = {"": 21}
    if name != "structure/domain_without_opset":
        imports |= {domain: version for domain, version in OPSETS.items() if f"{domain}." in text}
    if opset:
        imports[domain or ""] = opset
    imports = ", ".join(f'"{domain}" : {version}' for domain, version in imports.items())
    try:
        return parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> graph {text}")
    except parser.ParseError as error:
        sys.exit(f"{name}: {error}")


def refusals(models, refusal):
    lines = []
    wrong = ((name.split("/", 1)[1].removesuffix(".onnx"), model) for name, model in models.items() if "wrong/" in name)
    archives = {"faulty": wrong} | {archive: files(archive) for archive in ARCHIVES}
    for archive, entries in archives.items():
        for path, model in entries:
            if refused := refusal(model)[0]:
                lines.append(f"{archive}\t{path}\t{refused}\n")
    head = f"# What the checker of onnx {onnx.__version__} refuses. Made by tools/make_faulty_models.py. Do not edit.\n"
    return head + "".join(lines)


def checked(content):
    """Why the checker refuses a model; an empty text if it doesn't."""
    try:
        checker.check_model(content, full_check=True)
    except Exception as error:
        return (" ".join(str(error).split())[:160].rstrip(),)
    return ("",)


def packed(models):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in models.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(data.getvalue(), preset=9)


def unpacked(path):
    with tarfile.open(path) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


# Faults that the text form can't say.


def set_data(change):
    return lambda model: change(model.graph.initializer[0])


def sparse(values, indices):
    def change(model):
        values_ = helper.make_tensor("w", TensorProto.FLOAT, [len(values)], values)
        indices_ = helper.make_tensor("", TensorProto.INT64, [len(indices)], indices)
        model.graph.ClearField("initializer")
        model.graph.sparse_initializer.append(SparseTensorProto(values=values_, indices=indices_, dims=[4]))

    return change


def change_attribute(change):
    return lambda model: change(model.graph.node[0].attribute[0])


def refer(attribute):
    attribute.ClearField("i")
    attribute.ref_attr_name = "axis"


def raw(tensor):
    tensor.ClearField("string_data")
    tensor.raw_data = b"a"


FAULTS = {
    "structure/attribute_twice": lambda model: model.graph.node[0].attribute.append(model.graph.node[0].attribute[0]),
    "structure/attribute_without_name": change_attribute(lambda attribute: attribute.ClearField("name")),
    "structure/attribute_without_type": change_attribute(lambda attribute: attribute.ClearField("type")),
    "structure/reference_outside_of_a_function": change_attribute(refer),
    "structure/no_opset": lambda model: model.ClearField("opset_import"),
    "structure/opset_0": lambda model: setattr(model.opset_import[0], "version", 0),
    "structure/two_opsets_of_one_domain": lambda model: model.opset_import.append(helper.make_opsetid("", 20)),
    "structure/no_ir_version": lambda model: model.ClearField("ir_version"),
    "structure/no_graph": lambda model: model.ClearField("graph"),
    "structure/no_graph_name": lambda model: model.graph.ClearField("name"),
    "structure/no_operator_name": lambda model: model.graph.node[0].ClearField("op_type"),
    "structure/input_without_type": lambda model: model.graph.input[0].ClearField("type"),
    "structure/input_without_element_type": lambda model: model.graph.input[0].type.tensor_type.ClearField("elem_type"),
    "structure/unknown_element_type": lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 99),
    "structure/negative_dimension": lambda model: setattr(
        model.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", -2
    ),
    "structure/input_without_name": lambda model: model.graph.input.add().type.CopyFrom(model.graph.input[0].type),
    "tensors/too_little_data": set_data(lambda tensor: tensor.float_data.pop()),
    "tensors/two_kinds_of_data": set_data(lambda tensor: setattr(tensor, "raw_data", bytes(8))),
    "tensors/data_of_another_type": set_data(lambda tensor: (tensor.ClearField("float_data"), tensor.int64_data.extend([1, 2]))),
    "tensors/no_data_type": set_data(lambda tensor: tensor.ClearField("data_type")),
    "tensors/negative_dimension": set_data(lambda tensor: tensor.dims.__setitem__(0, -2)),
    "tensors/raw_strings": set_data(raw),
    "tensors/no_name": set_data(lambda tensor: tensor.ClearField("name")),
    "tensors/sparse_indices_out_of_range": sparse([1.0, 2.0], [1, 4]),
    "tensors/sparse_indices_unsorted": sparse([1.0, 2.0], [3, 1]),
    "tensors/sparse_values_of_another_count": sparse([1.0, 2.0], [1]),
    "functions/domain_without_opset": lambda model: model.opset_import.pop(),
}

if __name__ == "__main__":
    main()
