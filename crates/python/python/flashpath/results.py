"""The result of a run, as dataclasses.

The fields have the names of ``flashpath run --json`` (docs/results-format.md). Blocks are 4 KiB. A number that is
unknown is None.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any

from ._tables import Table
from ._words import in_python

__all__ = [
    "CacheEngine",
    "CauseOverTime",
    "CpuTimes",
    "Energy",
    "EnergyOperation",
    "Flash",
    "FlashCache",
    "GateWaits",
    "InFlight",
    "InputFile",
    "Latencies",
    "LatencyParts",
    "LedgerRow",
    "Machine",
    "ModeWear",
    "MovedBytes",
    "PercentileParts",
    "Percentiles",
    "Placement",
    "PlacementHandle",
    "PolicyCost",
    "Program",
    "Rate",
    "Result",
    "Stage",
    "StationMap",
    "Sum",
    "Tenant",
    "Translation",
    "Wear",
    "WearBin",
    "Window",
    "WindowLatency",
    "WorkloadCounts",
    "WriteAmplification",
    "WriteRequests",
]


@dataclass(frozen=True)
class Program:
    """The program that made a result."""

    name: str
    version: str
    #: The commit of the sources, with ``-dirty`` if they differed from it; None if they were in no repository.
    commit: str | None


@dataclass(frozen=True)
class Machine:
    """The machine on which a run was made."""

    system: str
    architecture: str
    processor: str | None
    #: The processors that the program may use.
    processors: int
    memory_bytes: int | None


@dataclass(frozen=True)
class InputFile:
    """A trace or a fio job, as it is stored."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class WorkloadCounts:
    """The workload, counted at the top of the path."""

    name: str
    #: Requests served.
    requests: int
    #: Blocks of 4 KiB touched by reads.
    read_blocks: int
    #: Blocks of 4 KiB touched by writes.
    written_blocks: int
    #: Blocks of 4 KiB touched by discards.
    discarded_blocks: int
    #: Lines of a trace that could not be read.
    rejected_lines: int
    #: Blocks of 4 KiB that applications wrote, without journal and metadata; None where nothing tells them.
    application_blocks: int | None


@dataclass(frozen=True)
class Flash:
    """The flash of all drives, from the beginning of the count."""

    #: Pages programmed. If page sizes differ, pages are counted in 4 KiB.
    programmed_pages: int
    read_pages: int
    erased_blocks: int
    #: Spare over exported pages, after reserves: 0.111 is 11.1 %.
    effective_overprovisioning: float | None
    #: Bytes of a page: of flash or, if that is smaller, of the unit of its mapping.
    page_bytes: int
    #: Programs of pages of flash, of ``program_bytes`` each.
    programs: int
    program_bytes: int
    pages_per_block: int
    #: Erase blocks.
    blocks: int
    #: Bytes of all pages.
    raw_bytes: int
    #: Bytes exported by the path.
    exported_bytes: int
    #: Bytes of mapping in the RAM of a real drive.
    mapping_ram_bytes: int | None


@dataclass(frozen=True)
class PlacementHandle:
    """A reclaim unit handle of flexible data placement."""

    #: ``initial`` or ``persistent``.
    isolation: str
    #: Bytes that hosts wrote with it.
    host_bytes: int
    #: Bytes that collection copied to its units.
    copied_bytes: int
    #: The updates to another unit that hosts asked for.
    updates: int


@dataclass(frozen=True)
class Placement:
    """The counts of flexible data placement (``page:fdp=8``)."""

    #: Bytes of a reclaim unit.
    unit_bytes: int
    #: Reclaim groups.
    groups: int
    #: Bytes that hosts wrote, that the flash stored, and that were erased.
    host_bytes: int
    media_bytes: int
    erased_bytes: int
    #: Bytes that collection copied to units which initially isolated handles share.
    shared_copied_bytes: int
    handles: tuple[PlacementHandle, ...]


@dataclass(frozen=True)
class Translation:
    """The counts of the translation layers."""

    station: str
    #: Flash pages read for the mapping.
    mapping_reads: int
    #: Other counts by name, such as merges by kind.
    events: dict[str, int]
    #: Only with placement.
    placement: Placement | None = None


@dataclass(frozen=True)
class WriteAmplification:
    """Bytes stored by all media over bytes that the workload wrote."""

    #: Over the whole run.
    total: float | None
    #: Over the steady part of the run; None if there is none.
    steady: float | None
    #: The share of the host writes before the steady part, from 0 to 1.
    steady_from_fraction: float | None
    #: Over the bytes of applications, over the whole run; None if they are not known.
    application: float | None


@dataclass(frozen=True)
class LedgerRow:
    """Blocks that a station passed on."""

    #: ``workload``, then the stations of the path; the last ones, the media, count the blocks they stored.
    station: str
    #: The cause at this station: ``host-write``, ``garbage-collection``, ...
    cause: str
    #: The cause for which the first station wrote the blocks.
    origin: str
    #: ``data``, ``metadata``, ``journal`` or ``mapping``.
    content: str
    #: Blocks of 4 KiB.
    blocks: float


@dataclass(frozen=True)
class WriteRequests:
    """The write requests of a file system to a station below it."""

    station: str
    #: The calls of the file system.
    calls: int
    #: The requests that a block layer makes of them, each of up to ``max_bytes``.
    merged: int
    max_bytes: int


@dataclass(frozen=True)
class WearBin:
    """The erase blocks with erase counts in a range."""

    #: The lowest erase count.
    from_: int = field(metadata={"name": "from"})
    #: The highest erase count.
    to: int
    #: Erase blocks.
    blocks: int


@dataclass(frozen=True)
class Rate:
    """The life of the flash at a rate of writes."""

    bytes_per_day: int
    #: Whose bytes they are: ``application`` where those are known, else ``host``.
    of: str
    #: Years until the flash is worn out; None without a lifetime.
    years: float | None
    #: The rate in capacities that the path exports, a day.
    drive_writes_per_day: float | None


@dataclass(frozen=True)
class ModeWear:
    """The wear of erase blocks in one mode of their cells, since the drive was new."""

    #: The bits of a cell in this mode: ``slc``, ``mlc``, ``tlc`` or ``qlc``.
    mode: str
    #: Erase blocks that are used in this mode: with a dynamic cache all, in both.
    blocks: int
    #: Erases that ended a use in this mode.
    erases: int
    #: Erases before a block is worn out that is used in this mode alone.
    endurance: int
    #: The share of these blocks' life that was used in this mode, from 0 to 1.
    used: float


@dataclass(frozen=True)
class Wear:
    """Erase counts since the drive was new; of a zoned drive, over its zones."""

    erase_count_min: int
    erase_count_mean: float
    erase_count_max: int
    #: The endurance of an erase block, in erases.
    endurance: int
    #: Erase blocks retired at their endurance.
    worn_out_blocks: int
    #: Erase blocks in which a program or an erase has failed; None if none can.
    bad_blocks: int | None
    #: Erase blocks that the drive can still lose before it is read-only; None if none goes bad.
    spare_blocks_left: int | None
    #: TiB of host writes until the flash is worn out, with even wear.
    lifetime_host_tib: float | None
    #: TiB of host writes until the first erase block is worn out.
    lifetime_host_tib_first_block: float | None
    #: TiB that applications write until the flash is worn out; None if their bytes are not known.
    lifetime_application_tib: float | None
    #: The capacity that the path exports, written so often a day, wears the flash out in five years.
    drive_writes_per_day: float | None
    histogram: tuple[WearBin, ...]
    #: The wear in SLC mode and in that of all bits, if blocks have been in SLC mode.
    modes: tuple[ModeWear, ...] = ()
    #: Only with ``rate``.
    rate: Rate | None = None


@dataclass(frozen=True)
class EnergyOperation:
    """The operations of one kind, and the energy of one of them."""

    #: ``read``, ``program``, ``erase`` or ``transfer``.
    operation: str
    #: The kind of page, or what else it is done with.
    of: str
    count: int
    joules_each: float


@dataclass(frozen=True)
class Energy:
    """The energy of the flash, in joules: of operations, and of dies that are powered."""

    total_j: float
    reads_j: float
    programs_j: float
    erases_j: float
    transfers_j: float
    #: What dies take beside their operations; None where no time was simulated.
    idle_j: float | None
    #: Joules for each GiB that the workload wrote; None if it wrote nothing.
    total_j_per_host_gib: float | None
    operations: tuple[EnergyOperation, ...]


@dataclass(frozen=True)
class CacheEngine:
    """An engine of a flash cache: that of small objects or that of large ones."""

    #: Objects found.
    hits: int
    #: Objects put, and their bytes.
    objects: int
    object_bytes: int
    #: Bytes written to the drive.
    written_bytes: int
    #: Bytes written over those of objects; None if none was put.
    write_amplification: float | None
    #: Objects that left for others.
    evicted: int


@dataclass(frozen=True)
class FlashCache:
    """A flash cache of objects whose drive the path is, of the workload ``kvcache``."""

    #: Objects asked for.
    gets: int
    #: The share of them that was found; None if none was asked for.
    hit_ratio: float | None
    #: Those found in memory.
    memory_hits: int
    #: Objects set, also those that were asked for and not there, and their bytes.
    sets: int
    set_bytes: int
    deletes: int
    #: Objects that left memory and were not admitted to the drive.
    not_admitted: int
    #: Objects that are larger than a region, and were not stored.
    too_large: int
    #: Bytes written to the drive over those of the objects that were put there; None if none was.
    write_amplification: float | None
    #: The engine of small objects.
    buckets: CacheEngine
    #: The engine of large objects.
    regions: CacheEngine


@dataclass(frozen=True)
class StationMap:
    """The erase blocks, zones or segments of a station at the end, in at most 1,024 cells."""

    station: str
    #: ``erase block``, ``zone`` or ``segment``.
    unit: str
    units: int
    #: Units of a cell; the last cell may have fewer.
    units_per_cell: int
    #: The share of each cell that is written, from 0 to 1.
    written: tuple[float, ...] = ()
    #: The share of each cell that is live, from 0 to 1.
    live: tuple[float, ...] = ()
    #: The mean erase count of each cell.
    erases_mean: tuple[float, ...] = ()
    #: The highest erase count of each cell.
    erases_max: tuple[int, ...] = ()
    #: The state of each cell: ``free``, ``open``, ``full``, ..., or ``mixed``.
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class Percentiles:
    """Latencies from issue to completion, in simulated nanoseconds."""

    min: int
    p50: int
    p99: int
    p999: int
    max: int
    mean: float
    #: The standard deviation.
    stddev: float
    #: The number of requests.
    count: int
    #: Pairs: nanoseconds, and the share of the requests with at most this latency.
    cumulative: tuple[tuple[int, float], ...]
    #: What they are made of; None unless the run was asked with ``waits``.
    parts: PercentileParts | None = None


@dataclass(frozen=True)
class LatencyParts:
    """The parts of a latency, in simulated nanoseconds."""

    #: Waiting for a die (a plane) that other requests used.
    die_wait: float
    #: Waiting for a channel that other requests used.
    channel_wait: float
    #: Waiting for a die or channel in use for collection; operations for collection.
    collection: float
    #: The same of erases.
    erase: float
    #: The same of the map of a translation layer.
    mapping: float
    #: Waiting for a place in a drive's write buffer.
    buffer: float
    #: Reading again what could not be corrected.
    retry: float
    #: The device's work for the request itself.
    service: float
    #: Outside of devices with a timing model.
    other: float


@dataclass(frozen=True)
class PercentileParts:
    """What the latencies at each percentile are made of: means over the requests within a 64th of it."""

    p50: LatencyParts
    p99: LatencyParts
    p999: LatencyParts
    max: LatencyParts
    #: The means over all requests.
    mean: LatencyParts


@dataclass(frozen=True)
class Latencies:
    """Latencies by class, in simulated nanoseconds."""

    read: Percentiles | None
    write: Percentiles | None
    #: The other classes of a file workload: ``create``, ``fsync``, ...
    others: dict[str, Percentiles] = field(default_factory=dict, metadata={"rest": True})


@dataclass(frozen=True)
class MovedBytes:
    """Bytes of the counted stages."""

    read: int
    written: int


@dataclass(frozen=True)
class GateWaits:
    """The waits of simulated threads for each other, at all gates of a name."""

    gate: str
    waits: int
    #: Simulated seconds of all threads together.
    seconds: float


@dataclass(frozen=True)
class Stage:
    """A stage of a file workload."""

    name: str
    #: True if it is counted.
    counted: bool
    #: Simulated seconds; None without a timing model.
    seconds: float | None
    #: Operations.
    requests: int
    gate_waits: tuple[GateWaits, ...]


@dataclass(frozen=True)
class WindowLatency:
    """Latencies within a window, in simulated nanoseconds."""

    p50: int
    p99: int
    max: int
    count: int


@dataclass(frozen=True)
class InFlight:
    """The requests in flight within a window: the queue."""

    #: Their mean number when a request is issued, with that one.
    mean: float
    #: Their greatest number.
    max: int


@dataclass(frozen=True)
class Window:
    """A part of the run. All windows have the same number of host writes or, with ``window``, the same time."""

    #: Blocks of 4 KiB written by the host up to its end.
    written_blocks: int
    #: Simulated seconds at its end.
    seconds_simulated: float | None
    #: Within the window; None if nothing was written in it.
    write_amplification: float | None
    #: Blocks of 4 KiB that all media stored within the window.
    stored_blocks: float
    #: MiB read and written a simulated second within the window.
    throughput_mib_s: float | None
    #: Free erase blocks, zones or segments at its end.
    free_blocks: int | None
    #: By class of requests.
    latency_ns: dict[str, WindowLatency] = field(default_factory=dict)
    #: Only of windows by time.
    in_flight: InFlight | None = None


@dataclass(frozen=True)
class Tenant:
    """A source of requests with a queue of its own, such as a section of a fio job."""

    name: str
    queue_depth: int
    requests: int
    #: In blocks of 4 KiB.
    read_blocks: int
    written_blocks: int
    discarded_blocks: int
    #: MiB read and written a simulated second; None without a timing model.
    throughput_mib_s: float | None
    #: None without a timing model.
    latency_ns: Latencies | None = None


@dataclass(frozen=True)
class CauseOverTime:
    """The write amplification of the windows for one cause and origin."""

    cause: str
    origin: str
    #: A number for each window; None if nothing was written in it.
    write_amplification: tuple[float | None, ...]
    #: Blocks of 4 KiB stored for it in each window.
    blocks: tuple[float, ...]


@dataclass(frozen=True)
class Sum:
    """A checked sum of the ledger."""

    name: str
    left: float
    right: float
    holds: bool


@dataclass(frozen=True)
class CpuTimes:
    """The CPU times that counted as simulated time."""

    #: Where the table is from; ``off`` if no CPU time counted.
    table: str
    #: Nanoseconds of each kind of step.
    ns: dict[str, int]


@dataclass(frozen=True)
class PolicyCost:
    """The time that a policy in Python took."""

    #: The option that names it: ``grouping=often``.
    name: str
    calls: int
    #: Blocks or segments, of all calls.
    items: int
    #: Wall-clock seconds in Python, with the conversion of its arguments.
    seconds: float
    #: The share of the run's wall-clock time, from 0 to 1; 0 if the run's time is not known.
    share: float


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    #: The version of the format.
    schema: int
    program: Program
    machine: Machine | None
    #: The trace or the fio job; None if the workload has no file.
    input: InputFile | None
    #: The path as written.
    path: str
    #: The path with every option.
    path_in_full: str
    seed: int
    #: Wall-clock seconds of the run.
    seconds_wall: float
    #: None without a timing model.
    seconds_simulated: float | None
    interrupted: bool
    workload: WorkloadCounts
    flash: Flash
    translation: Translation
    write_amplification: WriteAmplification
    ledger: tuple[LedgerRow, ...]
    #: The stations of the ledger that store.
    media: tuple[str, ...]
    #: The write requests of a file system to each station below it; empty without a file system.
    write_requests: tuple[WriteRequests, ...]
    wear: Wear
    maps: tuple[StationMap, ...]
    #: MiB read and written a simulated second; None without a timing model.
    throughput_mib_s: float | None
    #: Seconds of each window but the last, if they are by time.
    window_seconds: float | None
    windows: tuple[Window, ...]
    window_causes: tuple[CauseOverTime, ...]
    sums: tuple[Sum, ...]
    warnings: tuple[str, ...]
    #: The options beyond the seed that repeat the run.
    options: tuple[str, ...]
    #: The short name of the path, if it has one.
    name: str | None = None
    #: None without a timing model.
    latency_ns: Latencies | None = None
    #: Only of file workloads: seconds of the counted stages.
    seconds_counted: float | None = None
    #: Only of file workloads.
    threads: int | None = None
    #: Only of file workloads: bytes of the counted stages.
    bytes: MovedBytes | None = None
    #: Only of file workloads.
    stages: tuple[Stage, ...] = ()
    #: Only of paths with a file system of this program.
    cpu: CpuTimes | None = None
    #: Only with ``nand:energy=on``.
    energy: Energy | None = None
    #: Only of ``kvcache``.
    cache: FlashCache | None = None
    #: Only of workloads with several queues.
    tenants: tuple[Tenant, ...] = ()
    #: The policies in Python that the run used, and their cost. They are no part of the JSON.
    policies: tuple[PolicyCost, ...] = field(default=(), metadata={"is_ours": True})
    _json: str = field(default="", repr=False, compare=False, metadata={"is_ours": True})

    def __repr__(self) -> str:
        total = self.write_amplification.total
        amplification = "no write amplification" if total is None else f"write amplification {total:.4g}"
        ends = ", interrupted" if self.interrupted else ""
        warned = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"<Result of {self.workload.name} on {self.path}, seed {self.seed}: {amplification}{ends}{warned}>"

    def to_json(self) -> str:
        """The object of this run in ``flashpath run --json``."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        loaded: dict[str, Any] = json.loads(self._json)
        return loaded

    def ledger_table(self) -> Table:
        """The ledger as an Arrow table: station, cause, origin, content, blocks (of 4 KiB)."""
        return self._list("ledger", ["station", "cause", "origin", "content", "blocks"])

    def windows_table(self) -> Table:
        """The run over time as an Arrow table, a row for each window; latencies are ``latency_ns.write.p99``, ...

        ``stored.CAUSE.ORIGIN`` has the blocks of 4 KiB that the media stored for a cause, and ``warned`` is true if the run
        has warnings, which may void its numbers.
        """
        rows = [dict(row, warned=bool(self.warnings)) for row in self.to_dict()["windows"]]
        for cause in self.window_causes:
            for row, blocks in zip(rows, cause.blocks, strict=True):
                row[f"stored.{cause.cause}.{cause.origin}"] = blocks
        return Table.of_rows(rows, ["written_blocks", "seconds_simulated", "write_amplification", "stored_blocks"])

    def wear_table(self) -> Table:
        """The distribution of erase counts as an Arrow table: from, to, blocks."""
        return Table.of_rows([dict(row) for row in self.to_dict()["wear"]["histogram"]], ["from", "to", "blocks"])

    def latency_table(self) -> Table:
        """The cumulative distributions of latencies as an Arrow table: class, latency_ns, share."""
        classes = self.to_dict().get("latency_ns") or {}
        rows = [
            {"class": name, "latency_ns": latency, "share": share}
            for name, found in classes.items()
            if found is not None
            for latency, share in found["cumulative"]
        ]
        return Table.of_rows(rows, ["class", "latency_ns", "share"])

    def _list(self, name: str, first: list[str]) -> Table:
        return Table.of_rows([dict(row) for row in self.to_dict()[name]], first)

    def _repr_html_(self) -> str:
        """A table of the main numbers, for notebooks."""

        def number(value: float | None, unit: str = "") -> str:
            return "unknown" if value is None else f"{value:,.4g}{unit}"

        amplification, wear = self.write_amplification, self.wear
        rows = [
            ("write amplification, steady", number(amplification.steady)),
            ("write amplification, total", number(amplification.total)),
            ("write amplification, application bytes", number(amplification.application)),
            ("lifetime, host writes", number(wear.lifetime_host_tib, " TiB")),
            ("lifetime, application bytes", number(wear.lifetime_application_tib, " TiB")),
            ("pages programmed", f"{self.flash.programmed_pages:,}"),
            ("blocks erased", f"{self.flash.erased_blocks:,}"),
            ("throughput", number(self.throughput_mib_s, " MiB/s")),
            ("energy of the flash", number(None if self.energy is None else self.energy.total_j, " J")),
        ]
        mark = "!" if self.warnings else ""
        lines = "".join(f"<tr><th>{label}</th><td>{value}{mark}</td></tr>" for label, value in rows if value != "unknown")
        notes = "".join(f"<p>! {html.escape(warning)}</p>" for warning in self.warnings)
        caption = f"{html.escape(self.workload.name)} on {html.escape(self.name or self.path)}"
        return f"<table><caption>{caption}</caption>{lines}</table>{notes}"

    def __str__(self) -> str:
        def number(value: float | None) -> str:
            return "unknown" if value is None else f"{value:.3f}"

        amplification = self.write_amplification
        return (
            f"{self.workload.name} on {self.name or self.path}: write amplification {number(amplification.total)}"
            f" (steady {number(amplification.steady)}), {self.flash.programmed_pages:,} pages programmed,"
            f" {self.flash.erased_blocks:,} blocks erased"
        )


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decoded(kind: Any, value: Any) -> Any:
    """A value of JSON as a value of this type."""
    if value is None:
        return None
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (kind,) = [one for one in arguments if one is not type(None)]
        return _decoded(kind, value)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return tuple(_decoded(arguments[0], item) for item in value)
        return tuple(_decoded(one, item) for one, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {key: _decoded(arguments[1], item) for key, item in value.items()}
    if not dataclasses.is_dataclass(kind):
        # JSON writes the number 2.0 as it is, and a whole number of any field as an int.
        return float(value) if kind is float else value
    hints, left = _hints(typing.cast(type, kind)), dict(value)
    found: dict[str, Any] = {}
    for one in dataclasses.fields(kind):
        name = one.metadata.get("name", one.name)
        if name in left and not one.metadata.get("is_ours"):
            found[one.name] = _decoded(hints[one.name], left.pop(name))
    rest = [one for one in dataclasses.fields(kind) if one.metadata.get("rest")]
    if rest:
        found[rest[0].name] = _decoded(hints[rest[0].name], left)
    # A newer program may have fields that this package does not know: they are in to_dict().
    return typing.cast(type, kind)(**found)


def result_of(document: str, name: str | None, costs: list[tuple[str, int, int, float]]) -> Result:
    """The result from the JSON of a run, an array of one object."""
    (value,) = json.loads(document)
    if name is not None:
        value["name"] = name
    result: Result = _decoded(Result, value)
    wall = result.seconds_wall

    def cost(of: tuple[str, int, int, float]) -> PolicyCost:
        return PolicyCost(*of, share=min(1.0, of[3] / wall) if wall > 0 else 0.0)

    return dataclasses.replace(
        result, policies=tuple(map(cost, costs)), warnings=tuple(map(in_python, result.warnings)), _json=json.dumps(value)
    )
