#!/usr/bin/env python3
"""Tests the engines of `engines` on all cases of onnx-test-data, and writes the tables of docs/engines.md.

    pip install onnx onnxruntime ml_dtypes pillow
    cargo install --path cli
    python tools/test_engines.py                        runs all, and writes the page
    python tools/test_engines.py --check                exits 1 if the page has other tables
    python tools/test_engines.py --results some/folder  keeps results of runs there, and doesn't repeat these

What is between the lines `<!-- tables -->` and `<!-- end -->` of the page is written. The rows of the table of findings name
cases: those must be among the ones that the engine fails, or doesn't support.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, DIFFERENCES = ROOT / "docs/engines.md", ROOT / "docs/differences.md"
ARCHIVES = ["onnx-1.23.2-node", "onnx-older-node", "onnx-1.22.0-others"]
# Of these, the cases that must be refused.
REFUSED = "generated-opset28"
# What is random agrees at times.
RANDOM = "test_bernoulli"
TIMEOUT = "600"
RUST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "engines/rust/target")) / "release"
ENGINES = {
    "onnxruntime": f"{sys.executable} {ROOT}/engines/ort.py",
    "reference": f"{sys.executable} {ROOT}/engines/reference.py",
    "tract": f"{RUST}/tract",
    "rten": f"{RUST}/rten",
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="onnxref", help="the program onnxref")
    arguments.add_argument("--results", metavar="DIR", help="a folder for results, which aren't computed again")
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.results or temporary)
        folder.mkdir(exist_ok=True)
        if not (RUST / "rten").exists():
            manifest = ROOT / "engines/rust/Cargo.toml"
            subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", manifest], check=True)
        results = {
            (engine, archive): result(arguments.program, folder, engine, archive)
            for archive in [*ARCHIVES, REFUSED]
            for engine in ENGINES
        }
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split("<!-- tables -->\n")
    _, tail = rest.split("<!-- end -->\n")
    page = f"{head}<!-- tables -->\n{tables(results)}<!-- end -->\n{tail}"
    wrong = unfounded(page, results)
    if wrong:
        sys.exit("\n".join(wrong))
    if not arguments.check:
        PAGE.write_text(page, encoding="utf-8", newline="\n")
    elif text != page:
        sys.exit("docs/engines.md has other tables than this script writes")


def result(program, folder, engine, archive):
    """What `onnxref test --json` prints."""
    file = folder / f"{engine}-{archive}.json"
    if not file.exists():
        print(f"{engine} on {archive}", file=sys.stderr)
        command = [program, "test", ROOT / f"onnx-test-data/{archive}.tar.xz", "--exclude", RANDOM, "--by-operator"]
        command += ["--json", "--timeout", TIMEOUT, "--engine-lines", ENGINES[engine]]
        command += ["-k", "/negative/"] if archive == REFUSED else []
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        # 5: no model was supported.
        if ran.returncode not in (0, 1, 5):
            sys.exit(f"{engine} was not tested")
        file.write_text(ran.stdout, encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def tables(results):
    """The totals, then a row for each version of an operator."""
    lines = ["| cases | " + " | ".join(ENGINES) + " |", "| --- |" + " --- |" * len(ENGINES)]
    for archive in ARCHIVES:
        totals = [results[engine, archive] for engine in ENGINES]
        cells = [f"{one['passed']} ({one['exact']}) / {one['failed']} / {one['unsupported']}" for one in totals]
        lines.append(f"| {archive} | " + " | ".join(cells) + " |")
    refusals = [results[engine, REFUSED]["cases"] for engine in ENGINES]
    lines += ["", "| must be refused | " + " | ".join(ENGINES) + " |", "| --- |" + " --- |" * len(ENGINES)]
    lines.append(f"| {len(refusals[0])} cases | " + " | ".join(map(refused, refusals)) + " |")
    counts = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for (engine, archive), one in results.items():
        for row in one["operators"] if archive != REFUSED else []:
            outcomes = {outcome: row[outcome] for outcome in ("passed", "failed", "unsupported")}
            counts[row["operator"]][engine].update(outcomes)
    models = models_by_operator()
    lines += ["", "| operator | cases | " + " | ".join(ENGINES) + " | differences |"]
    lines.append("| --- | --- |" + " --- |" * len(ENGINES) + " --- |")
    for operator in sorted(counts, key=sorted_by):
        engines = counts[operator]
        total = max(sum(engines[engine].values()) for engine in ENGINES)
        cells = [cell(engines[engine]) for engine in ENGINES]
        lines.append(f"| {operator} | {total} | " + " | ".join(cells) + f" | {models(operator)} |")
    return "\n".join(lines) + "\n"


def refused(cases):
    """How many are refused / unsupported / accepted / none of these."""
    outcomes = collections.Counter(case["outcome"] for case in cases)
    accepted = sum("must be refused" in case.get("reason", "") for case in cases)
    return f"{outcomes['passed']} / {outcomes['unsupported']} / {accepted} / {outcomes['failed'] - accepted}"


def cell(count):
    """`all`, `none`, or how many pass; and how many of the others fail."""
    passed, failed, unsupported = count["passed"], count["failed"], count["unsupported"]
    if not failed and not unsupported:
        return "all"
    if not passed and not failed:
        return "-"
    return f"{passed}, {failed} fail" if failed else str(passed)


def sorted_by(operator):
    name, _, version = operator.rpartition("-")
    return (operator.startswith("("), name.count("."), name, int(version)) if version.isdigit() else (True, 0, operator, 0)


def models_by_operator():
    """A function from an operator with its version to links to the rows of docs/differences.md that name it."""
    rows = []
    for line in DIFFERENCES.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and len(cells) > 5 and "`" in cells[-1]:
            names = [name.strip().replace("*", ".*") for name in cells[0].lstrip("| ").split(",")]
            rows.append((names, cells[1], re.findall(r"`(\w+)`", cells[-1])[0]))

    def links(operator):
        name, _, version = operator.rpartition("-")
        name = name.rpartition(".")[2]
        named = [row for row in rows if any(re.fullmatch(one, name) for one in row[0]) and applies(row[1], version)]
        return ", ".join(f"[{model}](differences.md#{model})" for _, _, model in named)

    return links


def applies(versions, version):
    """Whether the second column of docs/differences.md has a version: `all`, `9 on`, `1, 6`, `12 to 15`."""
    if not version.isdigit():
        return False
    version = int(version)
    for part in versions.split(","):
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        if not numbers or (part.strip().endswith(" on") and version >= numbers[0]):
            return True
        if version == numbers[0] or (len(numbers) == 2 and numbers[0] <= version <= numbers[1]):
            return True
    return False


def unfounded(page, results):
    """Rows of the findings whose cases the engine passes."""
    wrong = []
    outcomes = {
        (engine, case["name"].partition(".tar.xz/")[2]): case["outcome"]
        for (engine, _), one in results.items()
        for case in one["cases"]
    }
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 4 or cells[0] not in ENGINES:
            continue
        for case in re.findall(r"`([\w./-]+/test_\w+)`", cells[3]):
            if outcomes.get((cells[0], case)) not in ("failed", "unsupported"):
                wrong.append(f"{cells[0]} passes {case}, or it wasn't run")
    return wrong


if __name__ == "__main__":
    main()
