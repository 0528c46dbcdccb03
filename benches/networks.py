"""Times networks in onnxref, ONNX Runtime and OpenVINO, whichever are installed, and prints a table of each number of threads.

    python benches/networks.py FOLDER .. [--threads 1 2] [--turns N] [--seconds S] [--fast-math]

A folder holds model.onnx and test_data_set_0/input_I.pb; one that holds such folders stands for these. Needs cargo and the
packages onnx and numpy. Each turn times every runtime once; a runtime's sessions are of one process, ours is the program.
Printed are the medians of all runs in milliseconds, and how many times as long as the best peer onnxref takes: by medians,
and by the least times, which other programs on the machine disturb less. OpenVINO computes in float32, as the others do.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "onnxref"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each runtime in a turn")
    parser.add_argument("--fast-math", action="store_true", help="for onnxref: sums as the peers compute them")
    args = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "-p", "onnxref-cli"], cwd=ROOT, check=True)
    of = lambda folder: [folder] if is_case(folder) else sorted(filter(is_case, folder.iterdir()))
    cases = [case for folder in args.folders for case in of(folder)]
    for threads in args.threads:
        names = ["onnxref", *PEERS]
        print(f"\n{threads} thread{'s' * (threads > 1)}\n\n| network | {' | '.join(names)} | by medians | by least times |")
        print(f"| --- |{' ---: |' * (len(names) + 2)}", flush=True)
        for case in cases:
            print(row(case.resolve().name, measure(case, threads, args.turns, args.seconds, args.fast_math), names), flush=True)


def is_case(folder):
    return (folder / "model.onnx").is_file()


def measure(case, threads, turns, seconds, fast_math):
    """The times of all runs in seconds, by runtime: the medians and the least ones of the turns."""
    feeds = fed(case)
    runs = {"onnxref": lambda: own(case, threads, seconds, fast_math)}
    for name, peer in PEERS.items():
        run = peer(str(case / "model.onnx"), feeds, threads)
        runs[name] = lambda run=run: sample(run, seconds)
    times = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            times[name].append(run())
    return times


def fed(case):
    model = onnx.load(case / "model.onnx", load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]
    tensor = lambda k: onnx.load_tensor(case / "test_data_set_0" / f"input_{k}.pb")
    return {name: numpy_helper.to_array(tensor(k)) for k, name in enumerate(names)}


def own(case, threads, seconds, fast_math):
    command = [PROGRAM, "bench", case / "model.onnx", "--inputs", case / "test_data_set_0", "--json"]
    command += ["--threads", str(threads), "--seconds", str(seconds), "--warmup", "2"]
    command += ["--fast-math"] if fast_math else []
    runs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["runs"]
    return runs["p50"], runs["min"]


def sample(run, seconds):
    run(), run()
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return statistics.median(times), min(times)


def onnxruntime_of(model, feeds, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def openvino_of(model, feeds, threads):
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    compiled = openvino.Core().compile_model(model, "CPU", config)
    request = compiled.create_infer_request()
    inputs = [feeds[(port.get_names() & feeds.keys()).pop()] for port in compiled.inputs]
    return lambda: request.infer(inputs, share_inputs=True)


def row(name, times, names):
    medians = {runtime: statistics.median(median for median, _ in own) for runtime, own in times.items()}
    least = {runtime: min(least for _, least in own) for runtime, own in times.items()}
    ratios = [own["onnxref"] / min(own[peer] for peer in PEERS) for own in (medians, least) if PEERS]
    cells = [f"{1e3 * medians[runtime]:.2f}" for runtime in names] + [f"{ratio:.2f}" for ratio in ratios]
    return f"| {name} | {' | '.join(cells)} |"


PEERS = {}
try:
    import onnxruntime

    PEERS["onnxruntime"] = onnxruntime_of
except ImportError:
    pass
try:
    import openvino

    PEERS["OpenVINO (f32)"] = openvino_of
except ImportError:
    pass

if __name__ == "__main__":
    main()
