#!/usr/bin/env python3
"""Makes the files in `onnx-test-data/` from the `onnx` package.

    python tools/export_test_data.py FOLDER
        has the installed package (1.23.2 or newer) generate its node cases, writes them to FOLDER/node and packs
        them into FOLDER/onnx-VERSION-node.tar.xz

    python tools/export_test_data.py --gather-only DATA --release VERSION onnx-test-data/gather
        adds the cases that consist of nothing but Gather, GatherElements and GatherND. DATA is the folder
        `onnx/backend/test/data` of that release, or the FOLDER of above. Take the releases from old to new.
"""

import argparse
import hashlib
import io
import json
import lzma
import shutil
import sys
import tarfile
from pathlib import Path

import onnx
from onnx import TensorProto, numpy_helper

GATHERS = {"Gather", "GatherElements", "GatherND"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gather-only", type=Path, metavar="DATA")
    arguments.add_argument("--release", metavar="VERSION")
    arguments.add_argument("folder", type=Path, metavar="FOLDER")
    arguments = arguments.parse_args()
    if bool(arguments.gather_only) != bool(arguments.release):
        sys.exit("--gather-only and --release belong together")
    if arguments.gather_only:
        select_gathers(arguments.gather_only, arguments.release, arguments.folder)
    else:
        write_node_cases(arguments.folder / "node")
        pack(arguments.folder / "node", arguments.folder / f"onnx-{onnx.__version__}-node.tar.xz")


def write_node_cases(folder):
    from onnx.backend.test.case.node import collect_testcases  # generates every case when called

    for case in collect_testcases():
        graph = case.model.graph
        target = folder / case.name
        write(target / "model.onnx", case.model)
        for n, (inputs, outputs) in enumerate(case.data_sets):
            for side, infos, values in (("input", graph.input, inputs), ("output", graph.output, outputs)):
                for k, (info, value) in enumerate(zip(infos, values, strict=True)):
                    write(target / f"test_data_set_{n}" / f"{side}_{k}.pb", proto(info, value))


def proto(info, value):
    if isinstance(value, TensorProto):
        return value
    convert = {
        "tensor_type": numpy_helper.from_array,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
        "map_type": numpy_helper.from_dict,
    }
    return convert[info.type.WhichOneof("value")](value, info.name)


def write(path, message):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(message.SerializeToString(deterministic=True))


def pack(folder, archive):
    """The same tree gives the same tar: sorted names, and nothing of the files but name and content."""
    paths = sorted([folder, *folder.rglob("*")], key=lambda path: path.relative_to(folder.parent).as_posix())
    with tarfile.open(archive, "w:xz", preset=9 | lzma.PRESET_EXTREME, format=tarfile.GNU_FORMAT) as tar:
        for path in paths:
            entry = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())  # owner 0, time 0, mode 644
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            else:
                content = path.read_bytes()
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))


def select_gathers(data, release, folder):
    manifest = folder / "manifest.json"
    cases = json.loads(manifest.read_text())["cases"] if manifest.exists() else []
    for model_path in sorted(data.glob("*/*/model.onnx")):
        source = model_path.parent
        model = onnx.load(model_path, load_external_data=False)
        ops = sorted({node.op_type for node in model.graph.node})
        if not ops or not GATHERS.issuperset(ops):
            continue
        name = source.relative_to(data).as_posix()
        sha256 = {path.relative_to(source).as_posix(): digest(path) for path in sorted(source.rglob("*")) if path.is_file()}
        namesakes = [case for case in cases if case["path"].split("/", 1)[1] == name]
        if any(release in case["releases"] and case["sha256"] == sha256 for case in namesakes):
            continue
        if any(number(r) >= number(release) for case in namesakes for r in case["releases"]):
            sys.exit(f"{name}: the manifest has {release} with other files, or a newer release already")
        same = [case for case in namesakes if case["sha256"] == sha256]
        if same:
            same[0]["releases"].append(release)
            continue
        path = f"onnx-{release}/{name}"
        shutil.copytree(source, folder / path)
        opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
        cases.append(
            {"path": path, "ops": ops, "opset": opset, "ir_version": model.ir_version, "releases": [release], "sha256": sha256}
        )
    cases.sort(key=lambda case: case["path"])
    releases = sorted({release for case in cases for release in case["releases"]}, key=number)
    note = (
        "Every official ONNX backend test case whose nodes are all Gather, GatherElements or GatherND,"
        f" over {len(releases)} releases of the onnx package from {releases[0]} to {releases[-1]};"
        " the folder names the first release that shipped exactly these files."
        " Licence of the data: Apache-2.0, ONNX project contributors."
    ) if releases else ""
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"note": note, "cases": cases}, indent=1))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def number(release):
    return tuple(map(int, release.split(".")))


if __name__ == "__main__":
    main()
