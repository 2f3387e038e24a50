"""Traces of real programs on real devices."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any

from . import _native
from ._names import file_name, shown
from ._tables import ArrowStream

__all__ = ["Trace", "TraceSummary", "trace"]


@dataclass(frozen=True)
class TraceSummary:
    """The content of a trace."""

    file: str
    #: The format, recognised or given.
    format: str
    compression: str
    requests: int
    rejected_lines: int
    #: The first rejected lines, with the reasons.
    first_rejected: tuple[str, ...]
    reads: int
    writes: int
    discards: int
    flushes: int
    read_bytes: int
    written_bytes: int
    discarded_bytes: int
    #: The number of devices.
    devices: int
    #: The sum of the devices' least sizes in bytes: a path that exports as much takes the trace.
    span_bytes: int
    #: The time of the first request, in nanoseconds since the first record.
    first_time_ns: int
    #: The time of the last request, in nanoseconds since the first record.
    last_time_ns: int
    warnings: tuple[str, ...]


class Trace(ArrowStream):
    """A trace that was read once: a workload of :func:`flashpath.run` and :func:`flashpath.sweep`.

    As a table it has a row for each request: ``time_ns`` (nanoseconds since the first record), ``action`` (``read``,
    ``write``, ``discard`` or ``flush``), ``offset_bytes``, ``length_bytes``, ``device``, ``content`` and ``stream``. The
    file is read in batches as they are taken.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | os.PathLike[bytes],
        *,
        format: str | None = None,
        columns: str | None = None,
        stage: str | None = None,
        device: int | None = None,
        limit: int | None = None,
    ) -> None:
        #: The file.
        self.file = file_name(file)
        #: The file by a name that holds in any folder.
        self.absolute = os.path.abspath(self.file)
        self._native = _native.Trace(
            self.absolute, format=format, columns=columns, stage=stage, device=device, limit=limit
        )
        self._limit = limit
        #: The options with which it is read: format, columns, stage, device.
        self.reading = (format, columns, stage, device)
        found: dict[str, Any] = {**json.loads(self._native.summary()), "file": shown(self.file)}
        values: dict[str, Any] = {
            one.name: tuple(value) if isinstance(value := found[one.name], list) else value for one in fields(TraceSummary)
        }
        #: The result of the pass over the trace.
        self.summary = TraceSummary(**values)

    def __len__(self) -> int:
        """The number of requests."""
        return self.summary.requests

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<Trace {shown(self.file)}: {self.summary.format}, {len(self):,} requests>"

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled trace is its file, which is read again."""
        return _opened, (self.absolute, self.reading, self._limit)


def _opened(
    file: str, reading: tuple[str | None, str | None, str | None, int | None], limit: int | None
) -> Trace:
    format, columns, stage, device = reading
    return Trace(file, format=format, columns=columns, stage=stage, device=device, limit=limit)


def trace(
    file: str | os.PathLike[str] | os.PathLike[bytes],
    *,
    format: str | None = None,
    columns: str | None = None,
    stage: str | None = None,
    device: int | None = None,
    limit: int | None = None,
) -> Trace:
    """Reads a trace, plain or compressed, in any of the formats of docs/traces.md.

    Args:
        file: The file.
        format: The format. Default: recognised by its content.
        columns: The columns of any text, from 1 or by the names in its header, in place of a format:
            ``time=1,op=3,offset=4,size=5,unit=sector``. docs/traces.md has all keys.
        stage: The stage of requests in a blktrace trace: ``Q``, ``D`` or ``C``.
        device: Only this device, numbered from 0 in order of appearance.
        limit: Only this many requests of the table and the summary; a run has its own limit.

    Raises:
        InputError: The file cannot be read, or is no trace.
    """
    return Trace(file, format=format, columns=columns, stage=stage, device=device, limit=limit)
