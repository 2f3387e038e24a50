"""Sweeps on a cluster of separate processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flashpath
import pytest
from conftest import WORK
from distributed import Client, LocalCluster, Nanny
from flashpath import _dask, _native

PATHS = "page:op=14%:28%/nand:size=128M"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="2GiB", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def test_a_cluster_makes_the_table_of_one_machine(client: Client, trace_file: Path) -> None:
    told: list[flashpath.SweepProgress] = []
    here = flashpath.sweep([WORK, str(trace_file)], on=PATHS, seed=range(1, 6))
    there = flashpath.sweep([WORK, str(trace_file)], on=PATHS, seed=range(1, 6), client=client, progress=told.append)
    assert there.to_csv() == here.to_csv()
    assert told[-1].done == 20 and told[-1].failed == 0


def test_a_trace_is_sent_once_and_read_once_by_each_worker(client: Client, trace_file: Path) -> None:
    scattered: list[int] = []
    send = client.scatter

    def counted(data: list[bytes], **options: Any) -> Any:
        scattered.append(len(data[0]))
        return send(data, **options)

    client.scatter = counted
    before = client.run(lambda: len(_dask._state.plans))
    flashpath.sweep(trace_file, on=PATHS, seed=range(1, 31), client=client)
    after = client.run(lambda: len(_dask._state.plans))
    assert scattered == [trace_file.stat().st_size]
    assert {after[worker] - before[worker] for worker in after} == {1}


def test_a_killed_worker_changes_nothing(client: Client, trace_file: Path) -> None:
    workloads, seeds = ["uniform:writes=12x", trace_file], range(1, 31)
    here = flashpath.sweep(workloads, on=PATHS, seed=seeds)
    victim, killed = next(iter(client.run(os.getpid).values())), threading.Event()

    def kill(progress: flashpath.SweepProgress) -> None:
        if progress.done >= 5 and not killed.is_set():
            killed.set()
            os.kill(victim, signal.SIGKILL)

    there = flashpath.sweep(workloads, on=PATHS, seed=seeds, client=client, progress=kill)
    assert killed.is_set()
    assert there.to_csv() == here.to_csv() and there.failed == 0
    assert victim not in client.run(os.getpid).values()


def test_a_run_that_fails_is_a_row_there_too(client: Client) -> None:
    path = "page:op=28%/nand:size=128M,endurance=20:100000"
    here = flashpath.sweep("uniform:writes=100x", on=path)
    there = flashpath.sweep("uniform:writes=100x", on=path, client=client)
    assert there.to_csv() == here.to_csv() and there.failed == 1


def test_a_run_that_kills_its_workers_is_a_row(cluster: LocalCluster, client: Client) -> None:
    @flashpath.cleaner("deadly")
    def deadly(segments: object, now: int) -> list[int]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster.scheduler.allowed_failures = 1
        sweep = flashpath.sweep(
            "zipf:writes=96M", on="sfs:segment=512K,cleaner={greedy,deadly}/conv:size=32M", client=client
        )
    assert [row["error"] for row in sweep.rows()] == [None, _dask._DIED]


def test_policies_go_to_the_workers(client: Client) -> None:
    bound = 3

    @flashpath.grouping("by-writes", groups=2)
    def by_writes(blocks: flashpath.policies.Blocks, now: int) -> list[bool]:
        return [writes >= bound for writes in blocks.writes]

    path = "sfs:segment=512K,grouping=none:by-writes/conv:size=32M"
    here = flashpath.sweep("zipf:writes=64M", on=path, seed=range(1, 4))
    assert flashpath.sweep("zipf:writes=64M", on=path, seed=range(1, 4), client=client).to_csv() == here.to_csv()


def test_a_sweep_on_a_cluster_goes_on_from_its_journal(client: Client, tmp_path: Path) -> None:
    journal, seeds = tmp_path / "j", range(1, 41)
    here = flashpath.sweep(WORK, on=PATHS, seed=seeds)

    def stop(progress: flashpath.SweepProgress) -> None:
        if progress.done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flashpath.sweep("uniform:writes=12x", on=PATHS, seed=seeds, client=client, journal=journal, progress=stop)
    assert 1 < journal.read_bytes().count(b"\n")
    expected = flashpath.sweep("uniform:writes=12x", on=PATHS, seed=seeds).to_csv()
    # One machine goes on with what the cluster began.
    assert flashpath.sweep("uniform:writes=12x", on=PATHS, seed=seeds, journal=journal).to_csv() == expected
    assert flashpath.sweep(WORK, on=PATHS, seed=seeds, client=client).to_csv() == here.to_csv()


def test_a_worker_of_another_version_gets_no_runs_and_costs_only_itself(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the sweep, also one that had run for hours when it joined: the test of it had no other worker to go on with."""

    def pretend(text: str) -> None:
        from flashpath import _native

        _native.program = lambda: text

    worker, journal = next(iter(client.run(os.getpid))), tmp_path / "journal"
    client.run(pretend, "flashpath 0.0.1", workers=[worker])
    expected = flashpath.sweep(WORK, on=PATHS, seed=range(1, 41)).to_csv()
    try:
        with pytest.warns(RuntimeWarning, match=r"gets no runs: it has flashpath 0\.0\.1, and this is") as told:
            assert flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client).to_csv() == expected
        assert len(told) == 1 and worker in str(told[0].message) and told[0].filename == __file__
        # A worker that joins later was not asked: its first task says it.
        with monkeypatch.context() as patched, pytest.warns(RuntimeWarning, match=r"a worker has flashpath 0\.0\.1") as told:
            patched.setattr(_dask, "check_workers", lambda *_: None)
            assert flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client).to_csv() == expected
        assert len(told) == 1 and worker in str(told[0].message)
        client.run(pretend, "flashpath 0.0.1")
        with pytest.warns(RuntimeWarning), pytest.raises(flashpath.ClusterError) as caught:
            flashpath.sweep(WORK, on=PATHS, client=client, journal=journal)
        said = str(caught.value)
        assert "flashpath 0.0.1" in said and "install the same package on all workers" in said and str(journal) in said
    finally:
        client.run(pretend, _native.program())


def waits_until(holds: Callable[[], bool]) -> bool:
    """True once this holds; false if it does not within a minute."""
    until = time.monotonic() + 60
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_workers_without_the_package_get_no_runs(
    cluster: LocalCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests find the package by PYTHONPATH.
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run([sys.executable, "-c", "import flashpath"], env=without, capture_output=True).returncode == 0:
        pytest.skip("the package is installed for all programs")
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", "bare"]
    line = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, *options]
    worker = subprocess.Popen(line, env=without, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client.wait_for_workers(3)
        here = flashpath.sweep(WORK, on=PATHS, seed=range(1, 41)).to_csv()
        with pytest.warns(RuntimeWarning, match=r"gets no runs: it has no package flashpath"):
            assert flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client).to_csv() == here
        # A worker that joins later was not asked: its first task says it.
        monkeypatch.setattr(_dask, "check_workers", lambda *_: None)
        with pytest.warns(RuntimeWarning, match=r"gets no runs: .*flashpath"):
            assert flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client).to_csv() == here
    finally:
        worker.terminate()
        worker.wait()
        assert waits_until(lambda: len(client.scheduler_info()["workers"]) == 2)


def test_an_interrupt_ends_the_runs_that_workers_have_begun(client: Client) -> None:
    def running() -> int:
        return sum(client.run(lambda dask_worker: len(dask_worker.active_threads)).values())

    def stop(progress: flashpath.SweepProgress) -> None:
        if running() == 2:
            raise KeyboardInterrupt

    # Runs of many minutes, as the drives do not wear out.
    endless = "page:op=14%:28%/nand:size=128M,endurance=1000000"
    with pytest.raises(KeyboardInterrupt):
        flashpath.sweep("uniform:writes=1000000x", on=endless, client=client, progress=stop)
    assert waits_until(lambda: running() == 0)
    # The same workers do the next sweep, also with the same plan.
    assert flashpath.sweep(WORK, on=PATHS, client=client).failed == 0


def test_runs_that_do_not_fit_a_worker_are_refused(client: Client) -> None:
    with pytest.raises(flashpath.InputError, match="a run takes about"):
        flashpath.sweep("uniform:writes=1x", on="page/nand:size=2T", client=client)


def test_the_cluster_is_of_separate_processes(client: Client) -> None:
    assert os.getpid() not in client.run(os.getpid).values()
    assert Nanny is not None


def test_a_changed_value_is_another_policy_on_the_workers(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker kept the plan of the first policy, and returned its rows for the second: W=1.0 and W=0.5 gave the same."""
    import importlib

    # The workers do not have it.
    (tmp_path / "weights.py").write_text(
        "W = 1.0\nclass Chooses:\n    bias = 0.0\n    def __init__(self, seed): pass\n"
        "    def __call__(self, c, now):\n"
        "        return [W * i + self.bias * (b % 5) + (1.0 - W) * 4 * (b % 7) for i, b in zip(c.invalid, c.block)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    weights = importlib.import_module("weights")
    flashpath.victim("chooses")(weights.Chooses)
    on, seeds = "page:victim=chooses,op=14%/nand:size=128M", range(1, 4)
    tables = []
    for owner, name, value in [(weights, "W", 1.0), (weights, "W", 0.5), (weights.Chooses, "bias", 3.0), (weights, "W", 1.0)]:
        setattr(owner, name, value)
        there = flashpath.sweep("uniform:writes=6x", on=on, seed=seeds, client=client)
        here = flashpath.sweep("uniform:writes=6x", on=on, seed=seeds)
        assert there.failed == 0 and there.to_csv() == here.to_csv(), (name, value)
        tables.append(there.to_csv())
    assert len(set(tables)) == len(tables)


def test_a_scheduler_that_dies_is_a_cluster_error_that_names_the_journal(tmp_path: Path) -> None:
    """Its tasks counted as lost by their own fault: rows that failed."""
    journal = tmp_path / "journal"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    place = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(place)], stderr=subprocess.DEVNULL)
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(place), "--nthreads", "1",
         "--no-dashboard", "--death-timeout", "20"],
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 30
        while not place.exists() and time.monotonic() < until:
            time.sleep(0.1)
        with Client(scheduler_file=str(place), timeout=20) as client:
            client.wait_for_workers(1, timeout=30)

            def kill(progress: flashpath.SweepProgress) -> None:
                if progress.done >= 3:
                    scheduler.kill()

            with pytest.raises(flashpath.ClusterError, match="journal") as caught:
                flashpath.sweep("uniform:writes=12x", on=PATHS, seed=range(1, 31), client=client, journal=journal, progress=kill)
        assert str(journal) in str(caught.value) and "scheduler" in str(caught.value)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    told: list[flashpath.SweepProgress] = []
    here = flashpath.sweep("uniform:writes=12x", on=PATHS, seed=range(1, 31), journal=journal, progress=told.append)
    assert here.failed == 0 and len(here) == 60
    assert here.to_csv() == flashpath.sweep("uniform:writes=12x", on=PATHS, seed=range(1, 31)).to_csv()
    assert told[0].done >= 3, "what was done stays"
