"""The examples of README.md give what it says."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT


def test_examples() -> None:
    text = (ROOT / "python" / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert len(examples) == 3
    for code, want in examples:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (want, ""), code
