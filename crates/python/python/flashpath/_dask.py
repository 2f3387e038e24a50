"""Sweeps on the workers of a Dask cluster.

The client keeps the plan and the journal, and hands out the numbers of runs. A worker reads the same description into the
same plan, once for each process, and returns rows as the journal has them: the table does not depend on who did a run. A
trace is sent as it is stored, once to each worker, and decoded there.

A worker that dies loses its runs, which are done again elsewhere. A run during which several workers died is a row that
says so. A worker that cannot run the sweep, such as one with another version of this package, gets no runs: a warning names
it, and the others do its share. A sweep that ends early ends the runs that workers have begun.
"""

from __future__ import annotations

import os
import pickle
import queue
import tempfile
import threading
import time
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import ClusterError, FlashpathError, InputError
from ._names import shown
from ._options import Reading
from .policies import pickled, receive

if TYPE_CHECKING:
    from distributed import Client, Future

#: Tasks for each thread of a worker: one under way, and one that waits there.
_TASKS_PER_THREAD = 2
#: Seconds of work in a task. Shorter runs are handed out several at once.
_TASK_SECONDS = 1.0
#: The most runs of a task.
_MOST_RUNS = 256
#: The times that a run is handed out again after the cluster has lost it.
_MOST_LOSSES = 10
#: The error of a run that is given up.
_DIED = "the workers died during this run: take a smaller device, or workers with more memory"
#: Seconds without any worker after which a sweep ends; a batch system may take a while to start others.
_PATIENCE_SECONDS = 300.0
#: The share of a worker's memory limit for its runs: Dask pauses a worker at 80 %.
_MEMORY_SHARE = 0.7
#: Seconds between looks at signals, and between reports of progress.
_TICK_SECONDS = 0.2
#: Seconds between two times at which the journal is made durable.
_SYNC_SECONDS = 2.0


@dataclass(frozen=True)
class Description:
    """A sweep, as it is sent to workers."""

    workloads: list[tuple[str, bool, str | None]]
    on: list[tuple[str | None, str]]
    options: list[tuple[str, str]]
    reading: Reading
    #: The digest of its policies: of their code and of the values that they use.
    policies: str
    #: The policies in Python, pickled by value; empty without any.
    pickled_policies: bytes
    #: Which workloads have files, by their index.
    files: list[int]
    #: The program that reads it.
    program: str
    #: The identity of its plan.
    identity: str = ""
    #: A name for this call, which no other has.
    session: str = ""

    @classmethod
    def of(
        cls,
        workloads: list[tuple[str, bool, str | None]],
        on: list[tuple[str | None, str]],
        options: list[tuple[str, str]],
        reading: Reading,
        policies: str,
    ) -> Description:
        """The description of a sweep on this machine."""
        sent = pickled([path for _, path in on]) if policies else b""
        files = [at for at, workload in enumerate(workloads) if _file_of(workload) is not None]
        return cls(workloads, on, options, reading, policies, sent, files, _native.program())

    def plan(self, files: dict[int, str]) -> _native.Plan:
        """The plan, with these copies in place of the files of workloads."""
        workloads = list(self.workloads)
        for at, copy in files.items():
            text, _, name = workloads[at]
            is_job = text.startswith("fio:")
            workloads[at] = (f"fio:{copy}", False, name or shown(text)) if is_job else (copy, True, name or shown(text))
        return _native.Plan(_native.Description(workloads, self.on, self.options, **self.reading))


def _file_of(workload: tuple[str, bool, str | None]) -> str | None:
    text, is_file, _ = workload
    if text.startswith("fio:"):
        return text[4:]
    return text if is_file or os.path.isfile(text) else None


# ---- On a worker ----


class _Memory:
    """The memory of a worker process, which its threads share."""

    def __init__(self, limit: int) -> None:
        self._free = self._limit = limit
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, needed: int) -> Iterator[None]:
        # A run that is larger than the limit runs alone: whether it may was asked before.
        needed = min(needed, self._limit)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= needed)
            self._free -= needed
        try:
            yield
        finally:
            with self._changed:
                self._free += needed
                self._changed.notify_all()


class _Ended(Exception):
    """The client has ended the sweep of this run."""


class _WorkerState:
    """The plans of this process, by their identity, the sessions that their clients have ended, and its memory."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.plans: dict[str, _native.Plan] = {}
        self.places: list[tempfile.TemporaryDirectory[str]] = []
        self.ended: deque[str] = deque(maxlen=1000)
        self.memory: _Memory | None = None


_state = _WorkerState()


def _plan_of(described: Description, files: list[bytes]) -> _native.Plan:
    with _state.lock:
        known = _state.plans.get(described.identity)
        if known is not None:
            return known
        if described.pickled_policies:
            receive(described.pickled_policies, described.policies)
        place = tempfile.TemporaryDirectory(prefix="flashpath-")
        copies = {}
        for at, content in zip(described.files, files, strict=True):
            # A reader recognises some formats by their names' endings.
            name = os.path.basename(_file_of(described.workloads[at]) or "workload")
            folder = os.path.join(place.name, str(at))
            os.mkdir(folder)
            copies[at] = os.path.join(folder, name)
            with open(copies[at], "wb") as copy:
                copy.write(content)
        plan = described.plan(copies)
        if plan.identity(described.policies) != described.identity:
            raise ClusterError(
                f"a worker reads the sweep as another one, although it has {_native.program()}, too: "
                "install the same package on all of them"
            )
        plan.decode()
        # A worker is seldom part of many sweeps: the latest few stay.
        while len(_state.plans) >= 4:
            _state.plans.pop(next(iter(_state.plans)))
            _state.places.pop(0).cleanup()
        _state.plans[described.identity] = plan
        _state.places.append(place)
        return plan


def _worker_memory() -> int:
    from distributed import get_worker

    try:
        limit = get_worker().memory_manager.memory_limit
    except (AttributeError, ValueError):
        limit = None
    return int(limit * _MEMORY_SHARE) if limit else _native.machine_memory()


def _memory() -> _Memory:
    with _state.lock:
        if _state.memory is None:
            _state.memory = _Memory(_worker_memory())
        return _state.memory


def run_points(described: Description, numbers: list[int], *files: bytes) -> list[str]:
    """Runs these runs on this worker, and returns their rows as JSON."""
    # A worker that has joined later was not asked.
    if _native.program() != described.program:
        raise ClusterError(f"a worker has {_native.program()}, and the client {described.program}")
    plan, memory, rows = _plan_of(described, list(files)), _memory(), []

    def watch() -> None:
        if described.session in _state.ended:
            raise _Ended

    for number in numbers:
        with memory.taken(plan.memory_bytes(number)):
            watch()
            rows.append(plan.run_point(number, watch))
    return rows


async def end_session(session: str) -> None:
    """Ends the runs of this session on this worker, within about a tenth of a second.

    A coroutine, for whose answer a client need not wait.
    """
    _state.ended.append(session)


# ---- On the client ----


def _task() -> Callable[..., list[str]]:
    """:func:`run_points`, pickled by value, as is its description.

    A worker without this package could not take it otherwise: Dask would end that worker, and blame the runs.
    """

    def task(described: bytes, numbers: list[int], *files: bytes) -> list[str]:
        import pickle

        from flashpath._dask import run_points

        return run_points(pickle.loads(described), numbers, *files)

    return task


class _Workers:
    """The workers of a cluster, without those that cannot run the sweep."""

    def __init__(self, client: Client) -> None:
        self._client = client
        #: Those that cannot, by their addresses, with the reasons.
        self._refused: dict[str, str] = {}
        #: The threads of the others.
        self._threads: dict[str, int] = {}
        #: True once one has done runs.
        self.have_worked = False

    def look(self) -> None:
        """Learns which workers there are now."""
        threads = self._client.nthreads()
        self._threads = {address: threads[address] for address in threads if address not in self._refused}

    @property
    def threads(self) -> int:
        return sum(self._threads.values())

    @property
    def chosen(self) -> frozenset[str] | None:
        """Those that may get runs; None if all may."""
        return frozenset(self._threads) if self._refused else None

    def refuse(self, address: str, why: str) -> None:
        """Gives this worker no runs any more, and says so."""
        if address in self._refused:
            return
        self._refused[address] = why
        self._threads.pop(address, None)
        # At the call of sweep().
        warnings.warn(f"the worker {address} gets no runs: {why}", RuntimeWarning, stacklevel=5)

    @property
    def reasons(self) -> str:
        """Why some get no runs."""
        told = [f"{address}: {why}" for address, why in sorted(self._refused.items())]
        return "; ".join(told[:3]) + (f", and {len(told) - 3} more" if len(told) > 3 else "")

    def check_any(self) -> None:
        """Refuses a cluster of which no worker can run the sweep."""
        if self._refused and not self._threads and not self.have_worked:
            raise ClusterError(f"no worker can run the sweep: {self.reasons}: install the same package on all workers")


def _asked_of_workers(client: Client) -> dict[str, tuple[str | None, int, int] | BaseException]:
    """For each worker: its program, or None without the package; the memory for runs; its threads. Or why it does not answer."""

    def answer(dask_worker: Any) -> tuple[str | None, int, int]:
        limit = dask_worker.memory_manager.memory_limit or 0
        try:
            # A worker with an old package may lack what the client calls.
            from flashpath import _native
        except ImportError:
            return (None, limit, dask_worker.state.nthreads)
        return (_native.program(), limit, dask_worker.state.nthreads)

    found: dict[str, tuple[str | None, int, int] | BaseException] = client.run(answer, on_error="return")
    return found


def check_workers(client: Client, workers: _Workers, plan: _native.Plan, program: str) -> None:
    """Refuses the workers that do not have this program, and a sweep with runs that do not fit the others."""
    asked = _asked_of_workers(client)
    if not asked:
        client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
        asked = _asked_of_workers(client)
    workers.look()
    limits: list[int] = []
    for address, answer in sorted(asked.items()):
        if isinstance(answer, BaseException):
            workers.refuse(address, f"it does not answer: {type(answer).__name__}: {answer}")
        elif answer[0] != program:
            workers.refuse(address, f"it has {answer[0] or 'no package flashpath'}, and this is {program}")
        elif answer[1] > 0:
            limits.append(answer[1])
    workers.check_any()
    if limits:
        plan.check_memory(int(min(limits) * _MEMORY_SHARE))


def _is_loss(error: BaseException) -> bool:
    """True if a task was lost with its worker, and not because of what it did."""
    from concurrent.futures import CancelledError as FutureCancelled

    from distributed import CancelledError, KilledWorker
    from distributed.comm.core import CommClosedError

    return isinstance(error, (KilledWorker, CancelledError, FutureCancelled, CommClosedError))


class _Tasks:
    """The runs of a sweep: those that wait, and the tasks on the cluster."""

    def __init__(self, client: Client, described: Description, waiting: list[int]) -> None:
        self._client = client
        self._described = described
        self._waiting = deque(waiting)
        self._again: deque[int] = deque()
        self._task, self._pickled = _task(), pickle.dumps(described)
        self._files: list[Future[Any]] = []
        self.under_way: dict[Any, tuple[Future[Any], list[int]]] = {}
        #: The workers among which a task must stay.
        self._bound: dict[Any, frozenset[str]] = {}
        self.ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._losses: Counter[int] = Counter()
        self._seconds, self._runs = 0.0, 0

    def send_files(self) -> None:
        """Sends the files of the workloads, once to each worker; one that joins later gets them of another.

        They are sent again if all workers that had them are gone.
        """
        if self._files and all(file.status == "finished" for file in self._files):
            return
        self._files = []
        for at in self._described.files:
            with open(_file_of(self._described.workloads[at]) or "", "rb") as file:
                self._files += self._client.scatter([file.read()], broadcast=True, hash=False)

    @property
    def is_done(self) -> bool:
        return not (self._waiting or self._again or self.under_way)

    def took(self, seconds: float, runs: int) -> None:
        self._seconds += seconds
        self._runs += runs

    def lost(self, numbers: list[int], killed_workers: bool) -> list[int]:
        """Notes the runs of a task that was lost; returns those that are not done again.

        Dask itself repeats a task whose worker has died. It gives up after several workers: then the runs of the task are
        repeated one by one, to find the one at fault.
        """
        self._losses.update(numbers)
        if killed_workers and len(numbers) == 1:
            return numbers
        self._again.extend(number for number in numbers if self._losses[number] < _MOST_LOSSES)
        return [number for number in numbers if self._losses[number] >= _MOST_LOSSES]

    def give_back(self, numbers: list[int]) -> None:
        """Takes runs back that a worker could not do, by no fault of theirs."""
        self._waiting.extendleft(reversed(numbers))

    def _next(self, threads: int) -> list[int]:
        # What was lost with workers runs alone: it may be the reason.
        if self._again:
            return [self._again.popleft()]
        runs = 1
        if self._runs and self._seconds > 0:
            runs = int(_TASK_SECONDS * self._runs / self._seconds)
        runs = max(1, min(runs, _MOST_RUNS, len(self._waiting) // (2 * threads)))
        return [self._waiting.popleft() for _ in range(min(runs, len(self._waiting)))]

    def hand_out(self, workers: _Workers) -> None:
        """Gives each thread of the workers work."""
        threads, chosen = max(1, workers.threads), workers.chosen
        if chosen is not None:
            # Their workers may have gone, and no others take such tasks.
            for key in [key for key, bound in self._bound.items() if not bound & chosen]:
                del self._bound[key]
                if key in self.under_way:
                    task, numbers = self.under_way.pop(key)
                    self._client.cancel([task], force=True)
                    self.give_back(numbers)
            if not chosen:
                return
        while (self._waiting or self._again) and len(self.under_way) < threads * _TASKS_PER_THREAD:
            numbers = self._next(threads)
            task = self._client.submit(
                self._task, self._pickled, numbers, *self._files, pure=False, retries=0,
                workers=None if chosen is None else sorted(chosen),
            )
            self.under_way[task.key] = (task, numbers)
            if chosen is not None:
                self._bound[task.key] = chosen
            task.add_done_callback(self.ended.put)

    def took_off(self, task: Future[Any]) -> list[int]:
        """The runs of a task that has ended."""
        self._bound.pop(task.key, None)
        return self.under_way.pop(task.key)[1]

    def cancel(self) -> None:
        """Ends the tasks under way: those that wait, and those that workers have begun."""
        if not self.under_way:
            return
        self._client.cancel([task for task, _ in self.under_way.values()], force=True)
        # A worker that cannot be asked is one that has died.
        self._client.run(end_session, self._described.session, wait=False, on_error="ignore")


def run_on(
    client: Client,
    plan: _native.Plan,
    described: Description,
    journal: _native.Journal,
    place: str | None,
    tell: Callable[[int, int, int, int, float, float | None], object],
) -> None:
    """Runs what the journal lacks on the workers of a cluster, and adds it. ``place`` is the file of the journal, if it stays."""
    import dataclasses
    import json

    described = dataclasses.replace(
        described, identity=plan.identity(described.policies), session=uuid.uuid4().hex
    )
    before = set(journal.done())
    tasks = _Tasks(client, described, [number for number in range(plan.runs) if number not in before])
    if tasks.is_done:
        return
    done, failed, began = len(before), journal.failed(), time.monotonic()
    told = synced = seen = began
    workers = _Workers(client)

    def take(task: Future[Any], numbers: list[int]) -> None:
        nonlocal done, failed
        rows = _rows_of(task)
        if isinstance(rows, BaseException):
            _check_scheduler(client)
            if not _is_loss(rows):
                _refuse_worker_of(client, workers, task, rows)
                tasks.give_back(numbers)
                workers.check_any()
                return
            rows = [plan.failed_point(number, _DIED) for number in tasks.lost(numbers, _has_killed(rows))]
            tasks.send_files()
        else:
            workers.have_worked = True
        for row in rows:
            journal.add(row)
            read = json.loads(row)
            done, failed = done + 1, failed + (read["row"]["error"] is not None)
            tasks.took(read["seconds"], 1)

    try:
        check_workers(client, workers, plan, described.program)
        workers.look()
        tasks.send_files()
        while not tasks.is_done:
            tasks.hand_out(workers)
            try:
                task = tasks.ended.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                task = None
            now = time.monotonic()
            if task is not None and task.key in tasks.under_way:
                take(task, tasks.took_off(task))
            _check_scheduler(client)
            if now - synced > _SYNC_SECONDS:
                journal.sync()
                workers.look()
                seen = now if workers.threads else seen
                synced = now
                if now - seen > _PATIENCE_SECONDS:
                    others = f" (others get no runs: {workers.reasons})" if workers.reasons else ""
                    raise ClusterError(f"no worker is left since {_PATIENCE_SECONDS:.0f} s: start workers{others}")
            if now - told > _TICK_SECONDS or tasks.is_done:
                told = now
                mine = done - len(before)
                left = (now - began) / mine * (plan.runs - done) if mine else None
                tell(plan.runs, done, failed, min(len(tasks.under_way), workers.threads), done / plan.runs, left)
    except InputError:
        raise
    except _of_cluster() as error:
        if not isinstance(error, (FlashpathError, *_of_comm())) and client.status == "running":
            # It is not of the cluster, but of the journal or of the progress.
            raise
        # What others have done stays.
        for task, numbers in list(tasks.under_way.values()):
            if task.status == "finished":
                with suppress(Exception):
                    take(task, numbers)
        journal.sync()
        why = str(error) if isinstance(error, ClusterError) else f"{_NO_SCHEDULER}: {type(error).__name__}: {error}"
        kept = f"are in the journal {place}: repeat the sweep with it" if place else "are lost: give journal=, and repeat it"
        raise ClusterError(f"{why}; {done} of {plan.runs} runs are done, and {kept}") from error
    finally:
        if client.status == "running":
            with suppress(*_of_connection()):
                tasks.cancel()
        journal.sync()


#: The error of a cluster that is gone.
_NO_SCHEDULER = "the scheduler of the cluster cannot be reached"


def _check_scheduler(client: Client) -> None:
    """Refuses a cluster without a scheduler: its tasks are lost, and not by their own fault."""
    if client.status != "running":
        raise ClusterError(f"{_NO_SCHEDULER}: the client is {client.status}")


def _of_cluster() -> tuple[type[BaseException], ...]:
    """The exceptions with which the cluster ends a sweep."""
    return (FlashpathError, *_of_connection())


def _of_comm() -> tuple[type[BaseException], ...]:
    """The exceptions of a connection that is gone, and of nothing else."""
    import asyncio
    from concurrent.futures import CancelledError as FutureCancelled

    from distributed import CancelledError
    from distributed.comm.core import CommClosedError

    return (ConnectionError, CommClosedError, CancelledError, FutureCancelled, TimeoutError, asyncio.TimeoutError)


def _of_connection() -> tuple[type[BaseException], ...]:
    """The same, and those of a client that has ended itself."""
    return (OSError, RuntimeError, *_of_comm())


def _rows_of(task: Future[Any]) -> list[str] | BaseException:
    """The rows of a task that has ended, or why there are none. An error of the input ends the sweep."""
    try:
        rows: list[str] = task.result()
        return rows
    except InputError:
        raise
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return error


def _has_killed(error: BaseException) -> bool:
    """True for a task that was lost because several workers died during it."""
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


def _refuse_worker_of(client: Client, workers: _Workers, task: Future[Any], error: BaseException) -> None:
    """Gives no runs any more to the worker on which a task has failed, which is not by its runs: these fail in their rows."""
    key = task.key

    def failed_on(dask_scheduler: Any) -> list[str]:
        found = dask_scheduler.tasks.get(key)
        return sorted(found.erred_on or ()) if found is not None else []

    why = str(error) if isinstance(error, FlashpathError) else f"{type(error).__name__}: {error}"
    addresses: list[str] = client.run_on_scheduler(failed_on)
    if not addresses:
        raise ClusterError(f"a worker cannot run the sweep: {why}") from error
    for address in addresses:
        workers.refuse(address, why)
