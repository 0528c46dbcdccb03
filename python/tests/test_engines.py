"""Engines of batch jobs: what examples/ does with each equals what one process gives, bit by bit.

Daft and DataFusion always; Ray Data where it is installed (`pip install 'ray[data]'`); Spark with ONNXREF_SPARK=1, which
needs Java 17 and `pip install pyspark pandas`. ONNXREF_ROWS is the number of rows that are gathered. With
ONNXREF_MINILM=MODEL, a model with the inputs `input_ids` and `attention_mask` and one output runs on ONNXREF_TEXTS texts.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at the memory of processes in /proc")
ROWS, TEXTS = os.environ.get("ONNXREF_ROWS", "5000"), os.environ.get("ONNXREF_TEXTS", "20000")
MINILM = os.environ.get("ONNXREF_MINILM")

RAY = pytest.param("ray", marks=pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="it needs Ray"))
SPARK = pytest.param("spark", marks=pytest.mark.skipif("ONNXREF_SPARK" not in os.environ, reason="it needs ONNXREF_SPARK=1"))
every_engine = pytest.mark.parametrize("engine", ["daft", "datafusion", RAY, SPARK])


def job(engine: str, folder: Path, *arguments: str) -> Any:
    """Runs a job, which compares its rows. What it prints."""
    command = [sys.executable, str(Path(__file__).with_name("engines.py")), engine, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["same_bits"] and found["rows_per_second"] > 0
    assert found["pss_mib"], "no worker loaded the model"
    return found


@every_engine
def test_gather(engine: str, tmp_path: Path) -> None:
    assert job(engine, tmp_path, "--rows", ROWS)["killed"] == 0


@pytest.mark.parametrize("engine", [RAY, SPARK])
def test_a_worker_that_is_killed_loses_nothing(engine: str, tmp_path: Path) -> None:
    assert job(engine, tmp_path, "--rows", "200000", "--batch", "1024", "--kill")["killed"] == 1


@pytest.mark.skipif(MINILM is None, reason="it needs ONNXREF_MINILM=MODEL")
@every_engine
def test_minilm(engine: str, tmp_path: Path) -> None:
    job(engine, tmp_path, "--rows", TEXTS, "--batch", "32", "--model", str(MINILM))
