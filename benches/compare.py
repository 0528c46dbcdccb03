"""Times the cells of the bench with NumPy, ONNX Runtime, OpenVINO and PyTorch, whichever are installed.

    python benches/compare.py [FILTER ..] [--turns N]

Needs cargo and numpy. On each cell the bench and the peers take turns. Printed are medians, and in parentheses how
many times as long as onnxref on as many threads.
"""

import argparse
import functools
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
THREADS = os.cpu_count() or 1
POOLS = ((1, ""), (THREADS, f", {THREADS} threads"))
SAMPLE_NS = 1_500_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", help="only cells whose name contains one of these")
    parser.add_argument("--turns", type=int, default=3, help="of the bench and the peers, for each cell")
    args = parser.parse_args()
    ask = functools.partial(subprocess.run, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    lines = ask(["cargo", "bench", "--bench", "gather", "--no-run", "--message-format=json"]).stdout.splitlines()
    bench = [path for line in lines if (path := json.loads(line).get("executable"))][-1]
    for cell in ask([bench, "--list", *args.filters]).stdout.splitlines():
        if not cell.startswith("load/"):
            show(cell, measure(bench, cell, args.turns))


def measure(bench, cell, turns):
    """Medians in nanoseconds, by name."""
    samples, peers = {}, None
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [bench, "--bench", cell, "--exact", "--seconds", "0.5", "--json", folder / "json"]
        for _ in range(turns):
            subprocess.run(command + ([] if peers else ["--export", folder]), check=True, stdout=subprocess.DEVNULL)
            line = json.loads((folder / "json").read_text())
            for name, ns in line["ns"].items():
                samples.setdefault(name, []).append(ns)
            peers = peers or list(peers_of(Case(folder / cell.replace("/", "-"), line)))
            for name, run, times in peers:
                time.sleep(0.002)  # threads of the one before go to sleep
                sample(run, times // 4 + 1)
                samples.setdefault(name, []).extend(sample(run, times) for _ in range(7))
    return {name: statistics.median(values) for name, values in samples.items()}


def sample(run, times):
    start = time.perf_counter_ns()
    for _ in range(times):
        run()
    return (time.perf_counter_ns() - start) / times


def show(cell, medians):
    ours = {"": medians["onnxref"], POOLS[1][1]: medians["onnxref_threads"]}
    peers = {name: ns for name, ns in medians.items() if name not in ("loop", "memcpy") and "onnxref" not in name}
    print(cell)
    for name, ns in [("onnxref" + suffix, ns) for suffix, ns in ours.items()] + sorted(peers.items()):
        base = ours[POOLS[1][1] if name.endswith(POOLS[1][1]) else ""]
        print(f"    {name:<26} {ns / 1e3:12,.2f} us  ({ns / base:.2f})", flush=True)


def peers_of(case):
    """(name, run, how often a sample repeats it) of each peer that is there and right."""
    for make in (numpy_peers, onnxruntime_peers, openvino_peers, torch_peers):
        try:
            for name, run in make(case):
                if not np.array_equal(np.asarray(run(0)).reshape(-1), case.want.reshape(-1)):
                    print(f"{case.name}: {name} gives another output")
                    continue
                work, times = functools.partial(lambda run, turn: run(next(turn)), run, itertools.cycle(case.turns)), 1
                while (took := sample(work, times) * times) < SAMPLE_NS:
                    times *= min(20, int(1.1 * SAMPLE_NS / took) + 1)
                yield name, work, times
        except ImportError:
            pass
        except Exception as error:  # a peer that can't do it
            print(f"{case.name}: {make.__name__[:-6]}: {str(error).strip().splitlines()[-1][:100]}")


class Case:
    """What the bench wrote, a model and its inputs; and the output by NumPy."""

    def __init__(self, folder, facts):
        self.name, self.model, self.op, self.axis = folder.name, str(folder / "model.onnx"), facts["op"], facts["axis"]
        self.data, *self.sets = (np.load(path) for path in sorted(folder.glob("*.npy")))
        self.turns, self.text, self.nodes = range(len(self.sets)), self.data.dtype.kind == "S", facts["nodes"]
        self.data = self.data.astype(str).astype(object) if self.text else self.data
        self.feeds = [{"data": self.data, "indices": indices} for indices in self.sets]
        self.feeds = [{name: feeds[name] for name in facts["feeds"]} for feeds in self.feeds]
        self.want = np.asarray(self.numpy(0))

    def numpy(self, k):
        take, data = np.take if self.op == "Gather" else np.take_along_axis, self.data
        for _ in range(self.nodes):
            data = take(data, self.sets[k], self.axis)
        return data


def numpy_peers(case):
    yield "numpy", case.numpy
    if case.op == "Gather" and case.nodes == 1 and case.want.ndim:
        out = np.empty_like(case.want)  # "wrap" saves a copy that "raise" makes
        yield "numpy, kept output", lambda k: np.take(case.data, case.sets[k], case.axis, out=out, mode="wrap")


def onnxruntime_peers(case):
    import onnxruntime

    def bind(session, feeds, out):
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        binding.bind_output("output", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
        return lambda: session.run_with_iobinding(binding) or out

    out = np.empty_like(case.want)
    for threads, suffix in POOLS:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
        plain = [lambda session=session, feeds=feeds: session.run(None, feeds)[0] for feeds in case.feeds]
        runs = plain if case.text else [bind(session, feeds, out) for feeds in case.feeds]  # strings can't be bound
        yield "onnxruntime" + suffix, lambda k, runs=runs: runs[k]()


def openvino_peers(case):
    import openvino

    for threads, suffix in () if case.text else POOLS:
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        request = openvino.Core().compile_model(case.model, "CPU", config).create_infer_request()
        sets = [{n: openvino.Tensor(a, shared_memory=a.ndim > 0) for n, a in feeds.items()} for feeds in case.feeds]
        for name, tensor in sets[0].items():
            request.set_tensor(name, tensor)

        def run(k, request=request, sets=sets):
            if len(sets) > 1:
                request.set_tensor("indices", sets[k]["indices"])
            request.infer()
            return request.get_output_tensor().data

        yield "openvino" + suffix, run


def torch_peers(case):
    import torch

    flat = case.op == "Gather"
    step, data = torch.index_select if flat else torch.gather, torch.from_numpy(case.data)
    sets = [torch.from_numpy(indices.reshape(-1) if flat else indices) for indices in case.sets]
    for threads, suffix in POOLS if case.nodes == 1 else ():

        def run(k, threads=threads):
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            with torch.inference_mode():
                return step(data, case.axis, sets[k])

        yield "torch" + suffix, run


if __name__ == "__main__":
    main()
