"""Runs and sweeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, SupportsIndex, overload

from . import _native
from ._errors import InputError, RunFailed
from ._goal import GoalFound, goal_found
from ._names import file_name
from ._options import (
    Paths, Reading, Value, Values, Workload, at_least_one, given, paths_of, reading_of, switch, workload_of, workloads_of,
)
from ._progress import RunProgressOption, RunWatch, SweepProgressOption, SweepWatch
from ._tables import Table
from ._words import in_python
from .policies import costs_since, digest_of
from .results import PolicyCost, Result, result_of

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Sweep", "run", "sweep"]


@overload
def run(  # type: ignore[overload-overlap]  # A text is a sequence of texts, but is taken as one path.
    workload: Workload,
    on: str,
    *,
    seed: SupportsIndex = ...,
    depth: SupportsIndex | None = ...,
    timed: float | None = ...,
    limit: SupportsIndex | None = ...,
    fill: bool | Value | None = ...,
    precondition: Value | None = ...,
    verify: bool | None = ...,
    size: Value | None = ...,
    utilization: Value | None = ...,
    fsync_every: SupportsIndex | None = ...,
    max_request: Value | None = ...,
    repeat: SupportsIndex | None = ...,
    addresses: str | None = ...,
    device: SupportsIndex | None = ...,
    format: str | None = ...,
    columns: str | None = ...,
    stage: str | None = ...,
    cpu: str | None = ...,
    window: str | None = ...,
    rate: str | None = ...,
    age: str | None = ...,
    waits: bool = ...,
    progress: RunProgressOption = ...,
) -> Result: ...
@overload
def run(
    workload: Workload,
    on: Sequence[str] | Mapping[str, str],
    *,
    seed: SupportsIndex = ...,
    depth: SupportsIndex | None = ...,
    timed: float | None = ...,
    limit: SupportsIndex | None = ...,
    fill: bool | Value | None = ...,
    precondition: Value | None = ...,
    verify: bool | None = ...,
    size: Value | None = ...,
    utilization: Value | None = ...,
    fsync_every: SupportsIndex | None = ...,
    max_request: Value | None = ...,
    repeat: SupportsIndex | None = ...,
    addresses: str | None = ...,
    device: SupportsIndex | None = ...,
    format: str | None = ...,
    columns: str | None = ...,
    stage: str | None = ...,
    cpu: str | None = ...,
    window: str | None = ...,
    rate: str | None = ...,
    age: str | None = ...,
    waits: bool = ...,
    progress: RunProgressOption = ...,
) -> list[Result]: ...
def run(
    workload: Workload,
    on: Paths,
    *,
    seed: SupportsIndex = 1,
    depth: SupportsIndex | None = None,
    timed: float | None = None,
    limit: SupportsIndex | None = None,
    fill: bool | Value | None = None,
    precondition: Value | None = None,
    verify: bool | None = None,
    size: Value | None = None,
    utilization: Value | None = None,
    fsync_every: SupportsIndex | None = None,
    max_request: Value | None = None,
    repeat: SupportsIndex | None = None,
    addresses: str | None = None,
    device: SupportsIndex | None = None,
    format: str | None = None,
    columns: str | None = None,
    stage: str | None = None,
    cpu: str | None = None,
    window: str | None = None,
    rate: str | None = None,
    age: str | None = None,
    waits: bool = False,
    progress: RunProgressOption = None,
) -> Result | list[Result]:
    """Runs one workload on one path, or on several, one after the other, in simulated time.

    Other threads of Python go on beside a run. Ctrl-C ends it within about a tenth of a second.

    Args:
        workload: A generator (``uniform:writes=6x``), a file workload (``varmail``), ``fio:JOBFILE``, the file of a
            trace, or a trace that :func:`flashpath.trace` has read.
        on: A path (``page:op=7%/nand:size=1G``), or several: a list, or a dictionary from short names to paths.
        seed: The seed of all randomness. The same seed, workload and path give the same counters on every machine.
        depth: Requests in flight. Default: a fio job's iodepth, else 32.
        timed: Replay a trace at its recorded times, multiplied by this.
        limit: End after this many requests.
        fill: Write the exported space once in order before counting begins; 0.7 or ``70%``: this share of it, or of the
            regions of each job of a fio file.
        precondition: The amount of writes of the workload before counting begins: bytes, ``512M``, or ``2x`` for twice
            the size of the device.
        verify: Check that every read returns the newest write.
        size: Bytes of the file in which a block workload runs on a file system, or ``512M``.
        utilization: On ``sfs``, fill the volume up to this share: 0.8 or ``80%``.
        fsync_every: In a file, fsync the data after this many writes.
        max_request: Bytes of the largest write request of a file system, or ``44K``: its writes are counted merged up to it.
        repeat: Replay a trace this many times.
        addresses: A trace's addresses beyond the end of the drive: ``refuse``, ``wrap`` or ``scale``.
        device: Only this device of a trace, from 0.
        format: The format of a trace. Default: recognised by its content.
        columns: The columns of any text, in place of a format: ``time=1,op=3,offset=4,size=5,unit=sector``.
        stage: The stage of requests in a blktrace trace: ``Q``, ``D`` or ``C``.
        cpu: The nanoseconds of CPU time that the steps of a file system take: ``off``, steps that differ from the
            program's table (``call=800,block-copied=250``), or a file of ``flashpath calibrate --json``.
        window: The length of windows in recorded times, such as ``60s``, in place of windows of equal writes; with ``timed``.
        rate: Tell the life of the drive at this rate of writes, such as ``200GB/day``.
        age: The age of a drive whose flash has errors: ``years=1,cycles=50%``.
        waits: Tell what the latencies at each percentile are made of (``latency_ns.write.parts.p99.collection``).
        progress: True for a bar, False for none, or a function of :class:`flashpath.RunProgress`, which is called about
            20 times a second. Default: a bar in notebooks and terminals.

    Returns:
        The result; a list of results, if ``on`` is several paths.

    Raises:
        InputError: The path, the workload or an option is wrong; the message points at it. Nothing was run.
        RunFailed: The run failed; ``result`` has what was measured.
    """
    cpu = None if cpu is None else _native.cpu_steps(cpu)
    format, columns, stage, read_device = reading_of([workload], format, columns, stage, device)
    options = given({
        "seed": seed, "depth": depth, "timed": timed, "limit": limit, "fill": fill, "precondition": precondition,
        "verify": verify, "size": size, "utilization": utilization, "fsync-every": fsync_every, "max-request": max_request,
        "repeat": repeat,
        "addresses": addresses, "device": read_device,
    })
    tells_waits, asked = switch("waits", waits), workload_of(workload)
    described = [
        (
            name,
            _native.Description(
                [asked], [(name, path)], options, format=format, columns=columns, stage=stage, cpu=cpu,
                window=window, rate=rate, age=age, waits=tells_waits,
            ),
        )
        for name, path in paths_of(on)
    ]
    # All are checked before the first one begins.
    plans = [(name, _native.Plan(one, one=True)) for name, one in described]
    results = [_run_plan(name, plan, progress) for name, plan in plans]
    return results[0] if isinstance(on, str) else results


def _run_plan(name: str | None, plan: _native.Plan, progress: RunProgressOption) -> Result:
    watch = RunWatch(progress)
    try:
        document, failure, costs = plan.run(watch)
    finally:
        watch.close()
    result = result_of(document, name, costs)
    if failure is None:
        return result
    message, is_input = failure
    if is_input:
        raise InputError(message)
    raise RunFailed(message, result)


class Sweep(Table):
    """The results of a sweep: a table with a row for each run, in the order of the combinations.

    The first columns are the varied options and ``seed``; the others are the values of the result by the names of
    ``flashpath run --csv``, without wall-clock times. ``error`` has the reason why a run failed.
    """

    def __init__(
        self,
        native: _native.Table,
        columns: list[str],
        failed: int,
        costs: tuple[PolicyCost, ...],
        units: list[tuple[str, str]],
        goal: GoalFound | None = None,
    ) -> None:
        super().__init__(native)
        #: The columns of the varied options; the last is ``seed``.
        self.varied = columns
        #: The number of runs that failed.
        self.failed = failed
        #: The cost of policies in Python, over all runs of this session.
        self.policies = costs
        #: The answer, if a goal was sought.
        self.goal = goal
        self._units = units

    @property
    def warnings(self) -> list[tuple[str, list[int]]]:
        """What the runs warn of, such as a write amplification of a drive of which nothing was erased.

        Warnings that differ in numbers alone are one: the first of them, and the rows that have such a warning, from 0 on.
        Each row has its own in the column ``warnings``, as JSON.
        """
        return [(in_python(text), rows) for text, rows in self._native.warnings()]

    def means(self) -> Table:
        """The means over the seeds: a row for each choice of the varied options.

        It has ``runs``, ``failed``, and for each number its mean, and in ``NAME.ci95`` half of the width of its 95 %
        confidence interval by Student's t. A number that only some runs of a choice have also has ``NAME.count``.
        ``warned`` is the number of runs with warnings, and ``warnings`` has these, as JSON.
        """
        return Table(self._native.means(self.varied))

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        x: str | None = None,
        y: str | None = None,
        by: str | None = None,
        title: str | None = None,
        x_title: str | None = None,
        y_title: str | None = None,
    ) -> str:
        """A self-contained HTML page with a figure and the means, which is also written to ``path``, if that is given.

        Args:
            path: The file.
            x: The column of the horizontal axis. Default: the first varied option.
            y: The column of the vertical axis. Default: ``write_amplification.steady``.
            by: The column of which each value is a line. Default: the second varied option.
            title: The title of the page.
            x_title: The title of the horizontal axis. Default: the column and its unit.
            y_title: The title of the vertical axis. Default: the name of the number.

        Raises:
            InputError: ``x`` or ``by`` is no varied option, or no run has the number ``y``.
        """
        said = [] if self.goal is None else list(self.goal.sentences)
        title = title or (f"A sweep of {len(self):,} runs" if self.goal is None else self.goal.goal)
        if y is None and self.goal is not None:
            y = self.goal.column
        page = self._native.report(title, self.varied, self._units, said, x, y, by, (x_title, y_title))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page


def sweep(
    workload: Workload | Sequence[Workload],
    on: Paths,
    *,
    seed: Values = 1,
    depth: Values | None = None,
    timed: Values | None = None,
    limit: Values | None = None,
    fill: Values | None = None,
    precondition: Values | None = None,
    verify: Values | None = None,
    size: Values | None = None,
    utilization: Values | None = None,
    fsync_every: Values | None = None,
    max_request: Values | None = None,
    repeat: Values | None = None,
    addresses: Values | None = None,
    device: Values | None = None,
    format: str | None = None,
    columns: str | None = None,
    stage: str | None = None,
    cpu: str | None = None,
    rate: str | None = None,
    age: str | None = None,
    waits: bool = False,
    goal: str | None = None,
    jobs: SupportsIndex | None = None,
    memory: SupportsIndex | None = None,
    journal: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    progress: SweepProgressOption = None,
) -> Sweep:
    """Runs every combination of the values that paths, workloads and options have, beside each other.

    An option of a path or a workload takes a list ``A:B:C``, a range ``FROM..TO`` or ``FROM..TO..STEP``, or
    ``FROM..TO..x2``, as ``flashpath sweep`` does (docs/sweep.md). An argument of this function takes the same, or a list
    or a range of Python: ``seed=range(1, 11)``, ``fill=[False, True]``.

    All runs are checked before the first one begins. A run that fails is a row with the reason in ``error``; the others
    go on. After Ctrl-C, and after a kill of Python, the same call goes on from ``journal``, if that was given.

    Args:
        workload: A workload, or several: see :func:`flashpath.run`.
        on: A path, or several.
        seed: The seeds; means and confidence intervals are taken over them.
        depth, timed, limit, fill, precondition, verify, size, utilization, fsync_every, max_request, repeat,
            addresses, device: see
            :func:`flashpath.run`; each takes several values.
        format, columns, stage, cpu: see :func:`flashpath.run`.
        rate, age, waits: see :func:`flashpath.run`; each has one value for all runs.
        goal: Search the range of the one option that has several values for the value from which a number is below or
            above a bound, ``write_amplification.total<1.5``, by bisection; ``Sweep.goal`` is the answer. All seeds are run
            with each value, and their spread says how sure it is.
        jobs: The number of runs beside each other. Default: the processors. With ``client``, its workers decide.
        memory: Bytes of memory of all runs together. Default: half of the machine's, or of the control group's limit.
        journal: The file of the runs that are done. ``flashpath sweep --journal`` can go on with the same file, unless a
            policy is in Python: then the journal is of its code and of the values that it uses, and refused with others.
        client: A ``dask.distributed.Client``: its workers do the runs. The table is the same to the last digit.
        progress: True for a bar, False for none, or a function of :class:`flashpath.SweepProgress`, which is called about
            5 times a second. Default: a bar in notebooks and terminals.

    Raises:
        InputError: A value is wrong; the message points at it. Or the journal is of another sweep. Nothing was run.
        ClusterError: The workers of ``client`` cannot run the sweep.
    """
    workloads = workloads_of(workload)
    cpu = None if cpu is None else _native.cpu_steps(cpu)
    format, columns, stage, device = reading_of(workloads, format, columns, stage, device)
    options = given({
        "seed": seed, "depth": depth, "timed": timed, "limit": limit, "fill": fill, "precondition": precondition,
        "verify": verify, "size": size, "utilization": utilization, "fsync-every": fsync_every, "max-request": max_request,
        "repeat": repeat,
        "addresses": addresses, "device": device,
    })
    beside = os.cpu_count() or 1 if jobs is None else at_least_one("jobs", jobs, "the number of runs beside each other")
    budget = _native.machine_memory() if memory is None else at_least_one("memory", memory, "bytes")
    reading: Reading = {
        "format": format, "columns": columns, "stage": stage, "cpu": cpu, "rate": rate, "age": age,
        "waits": switch("waits", waits),
    }
    asked, paths = [workload_of(one) for one in workloads], paths_of(on)
    described = _native.Description(asked, paths, options, **reading)
    before, units = _native.policy_costs(), described.units()
    if goal is not None:
        for name, value in [("journal", journal), ("client", client)]:
            if value is not None:
                raise InputError(
                    f"{name}= is of runs that are known before, and those of a goal depend on each other", "leave it out"
                )
        watch = SweepWatch(progress)
        try:
            table, varied, failed, answer = _native.search(described, goal, beside, budget, watch)
        finally:
            watch.close()
        return Sweep(table, varied, failed, costs_since(before), units, goal_found(answer))
    plan = _native.Plan(described)
    policies = digest_of([path for _, path in paths])
    watch = SweepWatch(progress)
    command = f"flashpath.sweep({[text for text, _, _ in asked]}, {[path for _, path in paths]}, {dict(options)})"
    place = None if journal is None else file_name(journal)
    opened: _native.Journal | None = None
    try:
        if client is None:
            plan.check_memory(budget)
            opened = _native.Journal(plan, place, command, policies)
            if len(opened.done()) < plan.runs:
                opened.run(plan, beside, budget, watch)
        else:
            from ._dask import Description, run_on

            to_send = Description.of(asked, paths, options, reading, policies)
            opened = _native.Journal(plan, place, command, policies)
            run_on(client, plan, to_send, opened, place, watch)
        return Sweep(opened.table(), plan.columns, opened.failed(), costs_since(before), units)
    finally:
        watch.close()
        if opened is not None:
            opened.close()
