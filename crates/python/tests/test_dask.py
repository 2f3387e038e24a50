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


def test_workers_of_another_version_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(text: str) -> None:
        from flashpath import _native

        _native.program = lambda: text

    worker = next(iter(client.run(os.getpid)))
    client.run(pretend, "flashpath 0.0.1", workers=[worker])
    try:
        with pytest.raises(flashpath.ClusterError, match=r"flashpath 0\.0\.1.*install the same package"):
            flashpath.sweep(WORK, on=PATHS, client=client)
        # A worker that joins later was not asked: its first task says it.
        monkeypatch.setattr(_dask, "check_workers", lambda *_: 2)
        with pytest.raises(flashpath.ClusterError, match=r"a worker has flashpath 0\.0\.1"):
            flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client)
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


def test_workers_without_the_package_are_refused(
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
        with pytest.raises(flashpath.ClusterError, match=r"has no package flashpath: install the same package on all"):
            flashpath.sweep(WORK, on=PATHS, client=client)
        # A worker that joins later was not asked: its first task says it.
        monkeypatch.setattr(_dask, "check_workers", lambda *_: 3)
        with pytest.raises(flashpath.ClusterError, match=r"a worker cannot run the sweep.*flashpath"):
            flashpath.sweep(WORK, on=PATHS, seed=range(1, 41), client=client)
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
