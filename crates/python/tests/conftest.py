"""The parts that several tests share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import flashpath
import pytest

#: The workspace.
ROOT = Path(__file__).resolve().parents[3]

#: A small drive, and work on it that takes hundredths of a second.
DRIVE = "page:op=14%/nand:size=128M"
WORK = "uniform:writes=2x"


@pytest.fixture
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program ``flashpath`` of the same build."""
    binary = os.environ.get("FLASHPATH_PROGRAM", "")
    if not os.access(binary, os.X_OK):
        pytest.skip("the program flashpath is not built: cargo test --workspace builds it")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, check=False)

    if not _is_of_this_build(run):
        pytest.skip("the program flashpath is of another build: cargo test --workspace builds it anew")
    return run


def _is_of_this_build(run: Callable[..., subprocess.CompletedProcess[str]]) -> bool:
    ran = run("run", "uniform:writes=4M", "--on", "page/nand:size=128M", "--json", "-", "--quiet")
    program = json.loads(ran.stdout)[0]["program"]
    return f"{program['name']} {program['version']} ({program['commit']})" == flashpath.program()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds a skipped test to those that ``make test`` lists at its end."""
    name = os.environ.get("SKIPPED_TESTS")
    if report.skipped and name is not None and isinstance(report.longrepr, tuple):
        with open(name, "a", encoding="utf-8") as file:
            file.write(f"skipped: {report.nodeid}: {report.longrepr[2]}\n")


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """A trace with two devices, a read, writes and a line that is none."""
    path = tmp_path / "small.csv"
    rows = [
        f"{number * 128166372003061629 // 10**9},host,{number % 2},{'Read' if number % 7 == 0 else 'Write'},"
        f"{number % 500 * 8192},8192,100"
        for number in range(1, 3001)
    ]
    path.write_text("\n".join([*rows, "not,a,line"]) + "\n")
    return path
