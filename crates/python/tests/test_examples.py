"""The Python examples of the README and of docs/python.md run as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = ["README.md", "crates/python/README.md", "docs/python.md"]


def examples(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    # A block behind this comment needs a cluster that a test does not have.
    return re.findall(r"(?<!<!-- not run -->\n)```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page: str, tmp_path: Path) -> None:
    code = "\n".join(examples(page))
    assert code, f"{page} has no example"
    # Small drives: what is tested is that each line runs.
    code = code.replace("size=1G", "size=128M").replace("range(1, 11)", "range(1, 3)")
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    script = tmp_path / "example.py"
    script.write_text(f"if __name__ == '__main__':\n{indented(code)}\n")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ
    )
    assert ran.returncode == 0, ran.stderr


def indented(code: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in code.splitlines())
