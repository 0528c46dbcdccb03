#!/usr/bin/env python3
"""Applies the verbs that change models to all models of some folders, and loads and runs what they write elsewhere.

    pip install onnx onnxruntime ml_dtypes
    cargo build --release -p onnxref-cli
    target/release/onnxref corpus export -o cases
    python tools/check_edits.py target/release/onnxref cases small-networks        all models: about an hour
    python tools/check_edits.py target/release/onnxref cases --every 20 -k resize  a sample, by place and name

A model is a file model.onnx; test_data_set_0 beside it has its inputs, else they are random. Each verb runs as a user would
call it. What it writes must pass onnx.checker (with shapes, if the model does), load in onnxruntime and give the same outputs
there, if the model itself does so. Converted to the newest opset, models are for the checker only. It prints how often each
verb wrote a model, refused one, and proved the change, and what newly fails, by reason; it exits 1 if anything does.
"""

import argparse
import collections
import copy
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The newest opset of ai.onnx that onnxruntime loads, and that of the standard.
RUNS, NEWEST = 24, 28
# Models that a process of this tool checks: an engine may crash, and leaves memory behind.
BATCH = 100
TIMEOUT = 120


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="the program onnxref")
    arguments.add_argument("folders", nargs="*", type=Path)
    arguments.add_argument("-k", default="", metavar="TEXT", help="models whose path has this")
    arguments.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th model")
    arguments.add_argument("--results", type=Path, help="a file for results, a line for each model; those in it are known")
    arguments.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = arguments.parse_args()
    if arguments.worker:
        return worker(arguments.program)
    models = [path for folder in arguments.folders for path in sorted(folder.rglob("model.onnx"))]
    # Many cases have the same model.
    models = {path.read_bytes(): str(path) for path in reversed(models) if arguments.k in str(path)}
    models = sorted(models.values())[:: arguments.every]
    known = {}
    if arguments.results and arguments.results.exists():
        known = {one["model"]: one for one in map(json.loads, arguments.results.read_text("utf-8").splitlines())}
    left = [path for path in models if path not in known]
    while left:
        for one in checked(arguments.program, left[:BATCH]):
            known[one["model"]] = one
            if arguments.results:
                with arguments.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(one) + "\n")
        left = [path for path in left if path not in known]
        print(f"{len(left)} left", file=sys.stderr)
    sys.exit(report([known[path] for path in models]))


def checked(program, models):
    """The results of a batch. If the process ends in the middle, the model that it was at has crashed it."""
    command = [sys.executable, __file__, "--worker", program]
    ran = subprocess.run(command, input="\n".join(models), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.endswith("}")]
    found = [line for line in lines if "at" not in line]
    if ran.returncode and lines and "at" in lines[-1]:
        at = lines[-1]
        found.append({"model": at["model"], "edits": {at["at"]: {"new": ["the engine crashes"]}}, "runs": False})
    elif len(found) < len(models):
        sys.exit(f"the models from {models[len(found)]} on are not checked: exit status {ran.returncode}")
    return found


def report(results):
    """Prints the tables. Returns whether anything newly fails."""
    print(f"{len(results)} models, {sum(one['runs'] for one in results)} of them run in onnxruntime\n")
    print(f"{'':12}{'written':>9}{'proved':>9}{'refused':>9}{'run':>9}{'same bits':>11}{'near':>7}{'new faults':>12}")
    groups = collections.defaultdict(list)
    for edit in EDITS:
        count = collections.Counter()
        for one in results:
            found = one["edits"].get(edit)
            if not found:
                continue
            count.update(found.get("counts", []))
            if found.get("refused"):
                groups[edit, "refused", general(found["refused"])].append(one["model"])
            if found.get("unproved"):
                groups[edit, "not proved", general(found["unproved"])].append(one["model"])
            for new in found.get("new", []):
                count["new"] += 1
                groups[edit, "NEW", general(new)].append(one["model"])
        columns = zip(("written", "proved", "refused", "run", "same", "near", "new"), (9, 9, 9, 9, 11, 7, 12))
        print(f"{edit:12}" + "".join(f"{count[name]:>{width}}" for name, width in columns))
    failed = False
    for kind in ("refused", "not proved", "NEW"):
        rows = sorted((row for row in groups.items() if row[0][1] == kind), key=lambda row: (row[0][0], -len(row[1])))
        print(f"\n{kind}:")
        for (edit, _, why), models in rows:
            failed |= kind == "NEW"
            print(f"{len(models):6}  {edit}: {why}\n        {models[0]}")
    return failed


def general(text):
    """A reason without names and numbers."""
    text = re.sub(r'"[^"]*"|\'[^\']*\'', '".."', " ".join(text.split()))
    return re.sub(r"\d+", "N", text)[:200]


def worker(program):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    for path in sys.stdin.read().splitlines():
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"model": path, "at": "the model itself"}), flush=True)
            print(json.dumps(Model(program, path, Path(folder)).check()), flush=True)


class Model:
    def __init__(self, program, path, folder):
        import onnx

        self.program, self.path, self.folder = program, path, folder
        self.proto = onnx.load(path)
        self.sane = [not faults(path, full) for full in (False, True)]
        self.inputs = self.outputs = None

    def check(self):
        try:
            session = load(self.path)
            self.inputs = self.feeds()
            self.outputs = run(session, self.inputs)
            # What is random can't be compared.
            again = run(load(self.path), self.inputs)
            if any(alike(self.outputs[name], again[name]) != "same" for name in again):
                self.outputs = None
        except Exception:  # what the engine can't do is no fault of a verb
            session = None
        self.loads = session is not None
        edits = {}
        for name, edit in EDITS.items():
            self.at(name)
            found = {"counts": [], "new": []}
            try:
                edit(self, found)
            except Refused as refused:
                found["refused"] = str(refused)
                found["counts"].append("refused")
            edits[name] = found
        return {"model": self.path, "edits": edits, "runs": self.outputs is not None}

    def at(self, what):
        """What is left of a process that crashes."""
        print(json.dumps({"model": self.path, "at": what}), flush=True)

    def feeds(self):
        """The inputs of the case by name, or random ones."""
        import numpy as np
        import onnx

        fixed = {tensor.name for tensor in self.proto.graph.initializer}
        feeds, random = {}, np.random.default_rng(0)
        for k, info in enumerate(self.proto.graph.input):
            file = Path(self.path).with_name("test_data_set_0") / f"input_{k}.pb"
            if file.exists():
                feeds[info.name] = read(file.read_bytes(), info.type)
            elif info.name not in fixed:
                tensor = info.type.tensor_type
                shape = [dim.dim_value or 2 for dim in tensor.shape.dim]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
                kind = dtype.kind
                feeds[info.name] = (random.random(shape) if kind == "f" else random.integers(0, 2, shape)).astype(dtype)
        return feeds

    def call(self, verb, model, to, flags, found):
        """Runs a verb. Returns the file that it writes."""
        to = self.folder / to
        command = [self.program, verb, str(model), "-o", str(to), "--json", *flags]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Refused(f"it takes longer than {TIMEOUT} s") from None
        if ran.returncode:
            line = (ran.stdout.splitlines() or [""])[-1]
            why = json.loads(line).get("error", {}) if line.startswith("{") else {}
            why = why.get("message") if isinstance(why, dict) else why
            why = why or (ran.stderr.splitlines() or ["no message"])[0]
            if to.exists() or ran.returncode not in (1, 2, 3):
                found["new"].append(f"exit status {ran.returncode}: {why}")
            raise Refused(why)
        proof = json.loads(ran.stdout.splitlines()[-1])
        if proof["proof"] == "equal":
            found["counts"].append("proved")
        else:
            found["unproved"] = proof["detail"]
        return to

    def judge(self, file, found, inputs=None, wanted=None, runs=True):
        """Notes what newly fails with a file."""
        found["counts"].append("written")
        for full, sane in zip((False, True), self.sane):
            why = sane and faults(str(file), full)
            if why:
                found["new"].append(f"onnx.checker{' with shapes' if full else ''}: {why}")
                break
        if not (runs and self.loads):
            return
        try:
            session = load(str(file))
        except Exception as error:
            found["new"].append(f"onnxruntime doesn't load it: {error}")
            return
        inputs, wanted = self.inputs if inputs is None else inputs, wanted or self.outputs
        if self.outputs is None:
            return
        found["counts"].append("run")
        try:
            outputs = run(session, inputs)
        except Exception as error:
            found["new"].append(f"onnxruntime doesn't run it: {error}")
            return
        verdicts = {alike(wanted[name], value) for name, value in outputs.items()}
        verdict = next(one for one in ("other", "near", "same") if one in verdicts or one == "same")
        if verdict == "other":
            found["new"].append("onnxruntime gives other outputs")
        else:
            found["counts"].append(verdict)

    def middle(self):
        """A value of the graph that a node in the middle gives."""
        nodes = self.proto.graph.node
        names = [name for node in nodes[len(nodes) // 2 :] for name in node.output if name]
        if not names or "," in names[0]:
            raise Refused("no value is in the middle")
        return names[0]

    def with_output(self, name):
        """What the model gives for a value of its graph."""
        import onnx

        if self.outputs is None:
            return {}
        if name not in self.outputs:
            proto = onnx.ModelProto.FromString(self.proto.SerializeToString())
            proto.graph.output.append(onnx.ValueInfoProto(name=name))
            try:
                return run(load(proto.SerializeToString()), self.inputs)
            except Exception:
                return None
        return self.outputs


def extract(model, found):
    name = model.middle()
    file = model.call("extract", model.path, "head.onnx", ["--outputs", name], found)
    wanted = model.with_output(name)
    kept = inputs_of(file)
    model.judge(file, found, {n: v for n, v in (model.inputs or {}).items() if n in kept}, wanted, wanted is not None)


def tail(model, found):
    """The outputs from a value in the middle, and all inputs."""
    name = model.middle()
    names = [name, *dict.fromkeys(info.name for info in model.proto.graph.input)]
    if len(model.proto.graph.node) < 2 or any("," in name for name in names):
        raise Refused("no value is in the middle")
    file = model.call("extract", model.path, "tail.onnx", ["--inputs", ",".join(names)], found)
    wanted = model.with_output(name)
    model.judge(file, found, {**(model.inputs or {}), name: (wanted or {}).get(name)}, None, bool(wanted))


def rename(model, found):
    """A new name for a value, and all shapes declared."""
    graph = model.proto.graph
    old = next((info.name for info in [*graph.input, *graph.output]), "")
    file = model.call("set", model.path, "set.onnx", ["--rename", f"{old}=renamed/by:a.test", "--shapes"], found)
    renamed = lambda values: {{old: "renamed/by:a.test"}.get(name, name): value for name, value in (values or {}).items()}
    model.judge(file, found, renamed(model.inputs), renamed(model.outputs))


def simplify(model, found):
    model.judge(model.call("simplify", model.path, "simple.onnx", [], found), found)


def convert(model, found):
    model.judge(model.call("convert", model.path, "later.onnx", ["--opset", str(RUNS)], found), found)


def newest(model, found):
    model.judge(model.call("convert", model.path, "newest.onnx", ["--opset", str(NEWEST)], found), found, runs=False)


def text(model, found):
    """To the text form and back."""
    there = model.call("set", model.path, "text.onnxtxt", [], found)
    found["counts"] = []
    back = model.call("set", there, "back.onnx", [], found)
    model.judge(back, found)


EDITS = {
    "extract": extract,
    "tail": tail,
    "set": rename,
    "simplify": simplify,
    f"convert {RUNS}": convert,
    f"convert {NEWEST}": newest,
    "text": text,
}


class Refused(Exception):
    """Nothing is written."""


def faults(path, full):
    """What the checker finds."""
    import onnx

    try:
        onnx.checker.check_model(path, full_check=full)
        return None
    except Exception as error:
        return str(error) or type(error).__name__


def load(model):
    """A session that computes what the graph says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(session, inputs):
    # Training overwrites what it is given.
    inputs = copy.deepcopy(inputs)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs)))


def read(data, declared):
    """A file of a case."""
    import onnx

    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        message = onnx.OptionalProto.FromString(data)
        return onnx.numpy_helper.to_optional(message)
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def inputs_of(file):
    import onnx

    return {info.name for info in onnx.load(str(file), load_external_data=False).graph.input}


def alike(one, other):
    """`same` bits, `near` or `other`."""
    import numpy as np

    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        verdicts = {alike(*pair) for pair in zip(one, other)} if len(one) == len(other) else {"other"}
        return next(verdict for verdict in ("other", "near", "same") if verdict in verdicts or verdict == "same")
    if isinstance(one, dict) or one is None or other is None:
        return "same" if one == other else "other"
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return "other"
    if one.dtype.kind == "O" or one.dtype.kind not in "fc":
        return "same" if (one == other).all() else "other"
    if np.array_equal(one, other, equal_nan=True):
        return "same"
    rtol = max(1e-4, 8 * float(np.finfo(one.dtype).eps))
    return "near" if np.allclose(one, other, rtol=rtol, atol=rtol / 100, equal_nan=True) else "other"


if __name__ == "__main__":
    main()
