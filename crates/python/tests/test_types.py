"""The types of the package, and of its native part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flashpath
from conftest import ROOT

PACKAGE = Path(flashpath.__file__).parent


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "crates/python/pyproject.toml", PACKAGE],
        capture_output=True, text=True, check=False, cwd=PACKAGE.parent,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_stubs_are_those_of_the_native_part() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "flashpath._native", "--ignore-missing-stub"],
        capture_output=True, text=True, check=False, cwd=PACKAGE.parent,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_users_see_is_documented() -> None:
    for name in flashpath.__all__:
        assert (getattr(flashpath, name).__doc__ or "").strip(), name
