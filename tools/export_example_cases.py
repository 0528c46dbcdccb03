#!/usr/bin/env python3
"""Chooses an official case as the example of each operator version, for `onnxref ops`.

    python tools/export_example_cases.py cli/src/ops/cases.txt           writes the table
    python tools/export_example_cases.py --check cli/src/ops/cases.txt   exits 1 if the table differs

Of the cases whose only node is that version, the first of these rules decides: the case is in the archive of the newest
release; its name is short; it is of a newer release; its name is first in the alphabet.
"""

import argparse
import sys
import tarfile
from pathlib import Path

import onnx
from onnx import defs

ARCHIVES = ["onnx-1.23.2-node", "onnx-older-node"]
DATA = Path(__file__).resolve().parent.parent / "onnx-test-data"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare with PATH, write nothing")
    arguments.add_argument("path", type=Path, metavar="PATH")
    arguments = arguments.parse_args()
    new = table()
    if not arguments.check:
        arguments.path.write_text(new, encoding="utf-8", newline="\n")
    elif arguments.path.read_text(encoding="utf-8") != new:
        sys.exit(f"{arguments.path} differs from what this script writes")


def table():
    best = {}
    for archive in ARCHIVES:
        for path, model in models(DATA / f"{archive}.tar.xz"):
            name = path.removesuffix("/model.onnx")
            before, case = name.rsplit("/", 1)
            release = before.split("/")[1] if "older" in archive else ""
            if len(model.graph.node) == 1 and (key := operator(model, model.graph.node[0])):
                rank = (ARCHIVES.index(archive), len(case), newer_first(release), case)
                found = (rank, f"{archive} {release}/node/{case}" if release else f"{archive} {case}")
                best[key] = min(best.get(key, found), found)
    head = "# An official case of each operator version. Chosen by tools/export_example_cases.py. Do not edit.\n"
    return head + "".join(f"{operator} {version} {case}\n" for (operator, version), (_, case) in sorted(best.items()))


def models(archive):
    with tarfile.open(archive, "r|xz") as files:
        for file in files:
            if file.name.endswith("/model.onnx"):
                yield file.name, onnx.load_from_string(files.extractfile(file).read())


def operator(model, node):
    """The operator version of a node; None for what isn't in the standard."""
    opsets = {"" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import}
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        schema = defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return None
    return (f"{domain}.{node.op_type}" if domain else node.op_type), schema.since_version


def newer_first(release):
    return tuple(-int(number) for number in release.split(".")) if release else ()


if __name__ == "__main__":
    main()
