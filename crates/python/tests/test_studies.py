"""The studies in examples/ run, as scripts and as notebooks, in their small size, and each draws its figure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

EXAMPLES = ROOT / "examples"
STUDIES = sorted(file.stem for file in EXAMPLES.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STUDY", "small")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("FLASHPATH_TRACES", str(ROOT / "traces"))


def test_there_are_five_studies_and_their_notebooks_are_those_of_their_scripts() -> None:
    assert len(STUDIES) == 5
    subprocess.run([sys.executable, EXAMPLES / "notebooks.py", "--check"], check=True)


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_runs_as_a_script(study: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{study}.py"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert "<svg" in (tmp_path / f"{study}.svg").read_text()
    skips = [line for line in ran.stdout.splitlines() if line.startswith("skipped:")]
    if skips and (name := os.environ.get("SKIPPED_TESTS")):
        with open(name, "a", encoding="utf-8") as file:
            file.write(f"{skips[0]} (a part of the study {study})\n")


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_runs_as_a_notebook(study: str, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / f"{study}.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert (tmp_path / f"{study}.svg").exists()
