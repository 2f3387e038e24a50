"""Sweeps, their tables, and what goes on after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import flashpath
import pytest
from conftest import WORK

PATHS = "page:op=14%:28%,victim=greedy:fifo/nand:size=128M"


def test_a_table_is_that_of_the_program_to_the_last_byte(
    program: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file, means = tmp_path / "s.csv", tmp_path / "means.csv"
    ran = program("sweep", WORK, "--on", PATHS, "--seed", "1..3", "--csv", file, "--means", means, "--quiet")
    assert ran.returncode == 0, ran.stderr
    sweep = flashpath.sweep(WORK, on=PATHS, seed=range(1, 4))
    assert sweep.to_csv(tmp_path / "mine.csv") == file.read_text() == (tmp_path / "mine.csv").read_text()
    assert sweep.means().to_csv() == means.read_text()
    assert (len(sweep), sweep.varied, sweep.failed) == (12, ["page.op", "page.victim", "seed"], 0)


def test_cpu_time_is_that_of_the_program(
    program: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    work, on = "varmail:files=50,threads=2,loops=100", "ext/conv:size=64M"
    tables = {}
    for number, cpu in enumerate([None, "off", "call=90000,block-copied=250"]):
        file, option = tmp_path / f"{number}.csv", [] if cpu is None else ["--cpu", cpu]
        ran = program("sweep", work, "--on", on, "--csv", file, "--quiet", *option)
        assert ran.returncode == 0, ran.stderr
        tables[cpu] = flashpath.sweep(work, on=on, cpu=cpu)
        assert tables[cpu].to_csv() == file.read_text(), cpu
    assert len({table.to_csv() for table in tables.values()}) == 3
    with pytest.raises(flashpath.InputError, match="there is no step cull"):
        flashpath.sweep(work, on=on, cpu="cull=1")


def test_values_of_python_are_those_of_the_expression() -> None:
    texts = flashpath.sweep(WORK, on="page/nand:size=128M", seed="1:2", depth="1:8", fill="on:off", limit=1000)
    lists = flashpath.sweep(WORK, on="page/nand:size=128M", seed=[1, 2], depth=(1, 8), fill=[True, False], limit=1000)
    assert texts.to_csv() == lists.to_csv()
    assert texts.varied == ["depth", "fill", "seed"]


def test_several_workloads_and_paths_have_their_columns() -> None:
    sweep = flashpath.sweep([WORK, "zipf:writes=1x"], on={"a": "page/nand:size=128M", "b": "dftl/nand:size=128M"})
    assert [(row["workload"], row["on"]) for row in sweep.rows()] == [
        (WORK, "a"), (WORK, "b"), ("zipf:writes=1x", "a"), ("zipf:writes=1x", "b"),
    ]


def test_a_value_that_a_station_refuses_is_refused_before_anything_runs(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    with pytest.raises(flashpath.InputError) as raised:
        flashpath.sweep(WORK, on="page:op=14%:-1%/nand:size=128M", journal=journal)
    error = raised.value
    assert error.source is not None and error.span is not None
    assert error.source[slice(*error.span)] == "-1%"
    assert not journal.exists()
    with pytest.raises(flashpath.InputError, match="memory="):
        flashpath.sweep(WORK, on=PATHS, memory=1 << 20)


def test_a_run_that_fails_is_a_row_and_the_others_go_on() -> None:
    sweep = flashpath.sweep("uniform:writes=100x", on="page:op=28%/nand:size=128M,endurance=20:100000")
    errors = [row["error"] for row in sweep.rows()]
    assert sweep.failed == 1
    assert errors[0] is not None and "worn out" in errors[0] and errors[1] is None
    assert sweep.means().rows()[0]["failed"] == 1


def test_a_journal_of_another_sweep_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    first = flashpath.sweep(WORK, on=PATHS, journal=journal)
    kept = journal.read_bytes()
    with pytest.raises(flashpath.InputError, match="rows of another sweep"):
        flashpath.sweep(WORK, on=PATHS, seed=2, journal=journal)
    with pytest.raises(flashpath.InputError, match="not a journal"):
        (tmp_path / "thesis").write_text("my thesis")
        flashpath.sweep(WORK, on=PATHS, journal=tmp_path / "thesis")
    with pytest.raises(OSError):
        flashpath.sweep(WORK, on=PATHS, journal=tmp_path / "no" / "folder")
    assert journal.read_bytes() == kept
    assert flashpath.sweep(WORK, on=PATHS, journal=journal).to_csv() == first.to_csv()
    assert journal.read_bytes() == kept


def test_a_killed_sweep_goes_on_from_its_journal_in_python_and_in_the_program(
    program: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    work, seeds, journal = "uniform:writes=8x", range(1, 61), tmp_path / "j"
    expected = flashpath.sweep(work, on="page/nand:size=128M", seed=seeds).to_csv()
    code = f"import flashpath; flashpath.sweep({work!r}, on='page/nand:size=128M', seed={seeds!r}, journal={str(journal)!r})"
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", code]) as process:
            deadline = time.monotonic() + 60
            before = lines(journal)
            while lines(journal) < before + 4 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
        assert before < lines(journal)
    file = tmp_path / "s.csv"
    ran = program(
        "sweep", work, "--on", "page/nand:size=128M", "--seed", "1..60", "--journal", journal, "--csv", file, "--limit", "1"
    )
    assert ran.returncode == 2 and "another sweep" in ran.stderr
    ran = program("sweep", work, "--on", "page/nand:size=128M", "--seed", "1..60", "--journal", journal, "--csv", file)
    assert ran.returncode == 0 and "going on" in ran.stderr, ran.stderr
    assert file.read_text() == expected
    assert flashpath.sweep(work, on="page/nand:size=128M", seed=seeds, journal=journal).to_csv() == expected


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def test_progress_counts_the_runs() -> None:
    told: list[flashpath.SweepProgress] = []
    flashpath.sweep("uniform:writes=20x", on="page/nand:size=128M", seed=range(1, 9), jobs=2, progress=told.append)
    assert told and all(one.runs == 8 and one.running <= 2 and one.done <= 8 for one in told)
    assert [one.done for one in told] == sorted(one.done for one in told)


def test_a_report_has_the_figure(tmp_path: Path) -> None:
    sweep = flashpath.sweep(WORK, on=PATHS, seed=range(1, 3))
    page = sweep.report(tmp_path / "r.html", x="page.op", y="write_amplification.total", by="page.victim")
    assert "<svg" in page and page == (tmp_path / "r.html").read_text()
    with pytest.raises(flashpath.InputError, match="not a varied option"):
        sweep.report(x="page.ops")
