"""The examples of README.md, and of the guide to batch jobs, give what they say."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.parametrize(("path", "number"), [("python/README.md", 4), ("docs/guides/batch_jobs.md", 2)])
def test_examples(path: str, number: int) -> None:
    text = (ROOT / path).read_text()
    examples = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert len(examples) == number
    for code, want in examples:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (want, ""), code
