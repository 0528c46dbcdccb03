"""Ray Data: `pip install 'ray[data]'` first, else these tests are skipped."""

from __future__ import annotations

import os
import runpy
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import ROOT, model
from onnx import helper

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pytestmark = pytest.mark.filterwarnings("default")

ROWS, ENTRIES = 1_000_000, 100_000


@pytest.fixture(scope="module")
def cluster() -> Any:
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("kill", [False, True])
def test_gather(cluster: Any, tmp_path: Path, kill: bool) -> None:
    """A million rows of a table, equal to those of one process bit by bit; also if a worker is killed on the way."""
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    table, ids = rng.standard_normal((ENTRIES, 64), dtype=np.float32), rng.integers(0, ENTRIES, ROWS)
    path = tmp_path / "table.onnx"
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    path.write_bytes(model([node], [("ids", 7, ["N"])], [("y", 1, ["N", 64])], [onnx.numpy_helper.from_array(table, "table")]))
    (tmp_path / "ids").mkdir()
    for k, part in enumerate(np.array_split(np.arange(ROWS), 8)):
        columns = pyarrow.table({"row": part, "ids": ids[part]})
        pyarrow.parquet.write_table(columns, tmp_path / "ids" / f"{k}.parquet")
    example = runpy.run_path(str(ROOT / "python" / "examples" / "ray_data.py"))
    killed: list[int] = []
    if kill:
        threading.Thread(target=_kill_a_worker, args=(killed,), daemon=True).start()
    start = time.monotonic()
    example["gather"](str(path), str(tmp_path / "ids"), str(tmp_path / "out"))
    print(f"{ROWS / (time.monotonic() - start):.0f} rows a second, killed: {killed}")
    assert len(killed) == kill
    given = pyarrow.parquet.read_table(tmp_path / "out")
    rows = given["row"].to_numpy()
    y = given["y"].combine_chunks()
    values = (y.storage if hasattr(y, "storage") else y).flatten().to_numpy().reshape(-1, 64)
    assert sorted(rows) == list(range(ROWS))
    assert values.tobytes() == table[ids[rows]].tobytes()


def _kill_a_worker(killed: list[int]) -> None:
    """Ends the first worker that runs batches, as a machine without memory would."""
    while not killed:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"ray::MapWorker") or b"ray::_MapWorker" in line:
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(int(process.name))
                return
        time.sleep(0.05)
