"""A job of one engine, in a process of its own: its output is compared with one process's, and it is measured. On Linux.

python engines.py ENGINE FOLDER [--rows N] [--model MINILM] [--with onnxruntime] [--kill] [--workers N] [--batch N] [--tokens N]

Prints JSON: whether the bits are the same, the rows a second from Parquet to Parquet, and for each worker the most memory that it held, in MiB: its own
and its part of what it shares with others (PSS), and its own alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = {"ray": "ray_data", "daft": "daft_frame", "datafusion": "datafusion_udf", "spark": "spark_map"}


class Onnxruntime:
    """What `Predictor` is, by onnxruntime. It loads nothing of onnxref, so that a worker's memory is that of one engine."""

    def __init__(self, model: str, keep: Iterable[str] = ()) -> None:
        self.model, self.keep = str(model), list(keep)
        self.session: Any = None
        session = self._session()
        self.input_columns, self.output_columns = _schema(session.get_inputs()), _schema(session.get_outputs())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "session": None}

    def _session(self) -> Any:
        if self.session is None:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            self.session = onnxruntime.InferenceSession(self.model, options)
        return self.session

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        columns = [batch[name] for name in self.input_columns.names]
        fed = [np.stack(list(column)) if column.dtype == object else column for column in columns]
        given = self._session().run(None, dict(zip(self.input_columns.names, fed)))
        return {**{name: batch[name] for name in self.keep}, **dict(zip(self.output_columns.names, given))}

    def arrow(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        kept = {name: batch[name] for name in self.keep}
        given = self({**kept, **{name: _array(batch[name]) for name in self.input_columns.names}})
        columns = {**kept, **{name: _column(given[name]) for name in self.output_columns.names}}
        return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def map_in_arrow(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return map(self.arrow, batches)


def made(folder: Path, rows: int, model: Path | None, tokens: int) -> None:
    """Writes what a job reads: the model, unless there is one, and Parquet files with its rows."""
    rng = np.random.default_rng(0)
    if model is None:
        from onnx import helper, numpy_helper, save

        table = rng.standard_normal((100_000, 64), dtype=np.float32)
        node = helper.make_node("Gather", ["table", "ids"], ["y"])
        ids = helper.make_tensor_value_info("ids", 7, ["N"])
        y = helper.make_tensor_value_info("y", 1, ["N", 64])
        graph = helper.make_graph([node], "g", [ids], [y], [numpy_helper.from_array(table, "table")])
        # A version that onnxruntime knows too.
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "table.onnx")
        columns = {"ids": rng.integers(0, len(table), rows)}
    else:
        # What a tokenizer gives for texts of various lengths.
        mask = (np.arange(tokens) < rng.integers(8, tokens + 1, (rows, 1))).astype(np.int64)
        columns = {"input_ids": rng.integers(1000, 30_000, (rows, tokens)) * mask, "attention_mask": mask}
    (folder / "rows").mkdir()
    for k, part in enumerate(np.array_split(np.arange(rows), 8)):
        arrays = {name: _column(value[part]) for name, value in columns.items()}
        pyarrow.parquet.write_table(pyarrow.table({"row": part, **arrays}), folder / "rows" / f"{k}.parquet")


def _column(array: np.ndarray[Any, Any]) -> pyarrow.Array:
    column = pyarrow.array(array.reshape(-1))
    if array.ndim == 1:
        return column
    ends = np.arange(len(array) + 1, dtype=np.int32) * np.int32(array.shape[1])
    return pyarrow.ListArray.from_arrays(ends, column)


def _array(column: pyarrow.Array) -> np.ndarray[Any, Any]:
    while isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    lists = not pyarrow.types.is_primitive(column.type)
    array: np.ndarray[Any, Any] = (column.flatten() if lists else column).to_numpy()
    return array.reshape(len(column), -1) if lists else array


def _schema(values: Any) -> pyarrow.Schema:
    """What a model of onnxruntime takes or gives, as columns."""
    element = {"tensor(int64)": pyarrow.int64(), "tensor(float)": pyarrow.float32()}
    kinds = [element[value.type] if len(value.shape) == 1 else pyarrow.list_(element[value.type]) for value in values]
    return pyarrow.schema(list(zip([value.name for value in values], kinds)))


def same_bits(output: Path, source: Path, predictor: Any, batch: int) -> bool:
    """Whether each row has the bits that this process gives for it, in other batches. Fails unless each was written once."""
    given, rows = pyarrow.parquet.read_table(output), pyarrow.parquet.read_table(source)
    assert sorted(given["row"].to_pylist()) == list(range(len(rows))), "rows are missing, or there twice"
    (name,) = predictor.output_columns.names
    columns = {name: _array(rows[name].combine_chunks()) for name in predictor.input_columns.names}
    # Part by part: all together may be more than Arrow's arrays hold.
    for part in given.to_batches(max_chunksize=max(1, batch - 1)):
        at = part["row"].to_numpy()
        want = predictor({name: column[at] for name, column in columns.items()})[name]
        if _array(part[name]).tobytes() != want.tobytes():
            return False
    return True


def descendants() -> Iterator[int]:
    """The processes that this one, and those, have started."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid():
            yield pid


class Workers(threading.Thread):
    """Watches the processes that have loaded a model, and kills the first one that has if it is asked to."""

    def __init__(self, library: str, model: Path, kill: bool) -> None:
        super().__init__(daemon=True)
        self.library, self.model, self.kill = library, model, kill
        self.killed: list[int] = []
        self.held: dict[int, tuple[float, float]] = {}
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.look()
        self.look()

    def look(self) -> None:
        for pid in descendants():
            try:
                maps = Path(f"/proc/{pid}/maps").read_text()
                if self.library not in maps:
                    continue
                if self.kill and not self.killed and pid != os.getpid() and str(self.model) in maps:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
            except OSError:
                continue
            found = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines}
            pss, own = self.held.get(pid, (0.0, 0.0))
            alone = found["Private_Clean:"] + found["Private_Dirty:"]
            self.held[pid] = (max(pss, found["Pss:"]), max(own, alone))


def started(engine: str, workers: int) -> Callable[[], None]:
    """Starts an engine, and returns what ends it."""
    # Workers find this module, and are of this Python.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if engine == "ray":
        import ray
        import ray.data

        ray.init(num_cpus=workers + 2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        return lambda: ray.shutdown()
    if engine == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master(f"local[{workers},4]").config("spark.ui.enabled", "false").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        return lambda: session.stop()
    return lambda: None


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("engine", choices=NAMES)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rows", type=int, default=5000)
    arguments.add_argument("--model", type=Path)
    arguments.add_argument("--with", dest="predictor", choices=["onnxref", "onnxruntime"], default="onnxref")
    arguments.add_argument("--kill", action="store_true")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--batch", type=int, default=8192)
    arguments.add_argument("--tokens", type=int, default=128)
    of = arguments.parse_args()

    # In a process of its own: what it loads isn't counted as the worker's.
    making = multiprocessing.get_context("fork").Process(target=made, args=(of.folder, of.rows, of.model, of.tokens))
    making.start()
    making.join()
    model, rows, output = of.model or of.folder / "table.onnx", of.folder / "rows", of.folder / "output"
    library = "_onnxref."
    if of.predictor == "onnxruntime":
        import engines  # not this script's module, which workers don't have

        library = "onnxruntime_pybind11_state"
        sys.modules["onnxref"] = sys.modules["onnxref.batch"] = SimpleNamespace(Predictor=engines.Onnxruntime)  # type: ignore
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / f"{NAMES[of.engine]}.py")
    assert spec and spec.loader
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    end = started(of.engine, of.workers)
    watched = Workers(library, model, of.kill)
    watched.start()
    start = time.monotonic()
    example.run(str(model), str(rows), str(output), of.workers, of.batch)
    seconds = time.monotonic() - start
    watched.done.set()
    watched.join()
    # DataFusion has threads of this process; the others have processes, and this one has the model for its schema at most.
    held = [held for pid, held in watched.held.items() if (pid == os.getpid()) == (of.engine == "datafusion")]
    same = same_bits(output, rows, example.Predictor(str(model)), of.batch)
    end()
    assert len(watched.killed) == of.kill, "no worker was killed"
    print(json.dumps({
        "engine": of.engine, "with": of.predictor, "rows": of.rows, "rows_per_second": round(of.rows / seconds),
        "same_bits": same, "killed": len(watched.killed), "pss_mib": [round(pss) for pss, _ in held], "own_mib": [round(own) for _, own in held],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
