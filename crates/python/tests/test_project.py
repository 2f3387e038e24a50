"""The files of the project that programs of others read are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


def targets_of(text: str) -> set[str]:
    return set(re.findall(r"^\s*make ([a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_the_steps_of_a_workflow_are_targets_of_the_makefile(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all("uses" in step or "run" in step for step in steps)
    named = set().union(*(targets_of(step.get("run", "")) for step in steps))
    assert named and named <= TARGETS, named - TARGETS


def test_the_targets_that_the_documents_name_exist() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
    named = set().union(*(re.findall(r"`make ([a-z-]+)", file.read_text()) for file in documents))
    assert len(named) > 5 and named <= TARGETS, named - TARGETS


def test_the_citation_is_valid() -> None:
    ran = subprocess.run(
        [Path(sys.executable).with_name("cffconvert"), "--validate", "-i", ROOT / "CITATION.cff"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"version: {version[1]}\n" in (ROOT / "CITATION.cff").read_text()
