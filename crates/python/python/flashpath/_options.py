"""The options of runs: from Python's values to the texts of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from .traces import Trace

#: A workload: an expression such as ``uniform:writes=6x``, ``fio:JOBFILE``, the file of a trace, or a read trace.
Workload: TypeAlias = "str | os.PathLike[str] | Trace"
#: A value of an option: a number, a switch, or a text with a unit such as ``512M``, ``7%`` or ``6x``.
Value: TypeAlias = "bool | int | float | str"
#: One value, or several of a sweep; a text may also be a list or a range: ``1:8:32``, ``1..10``.
Values: TypeAlias = "Value | Iterable[Value]"
#: A path, or several: a list, or a dictionary from short names to paths.
Paths: TypeAlias = "str | Sequence[str] | Mapping[str, str]"


def text_of(value: Value) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def given(options: Mapping[str, Values | None]) -> list[tuple[str, str]]:
    """The options that are given, by their names on the command line."""
    found = []
    for name, values in options.items():
        if values is None:
            continue
        if isinstance(values, (bool, int, float, str)):
            text = text_of(values)
        elif isinstance(values, range) and len(values) > 1:
            # A million seeds are one range.
            text = f"{values[0]}..{values[-1]}..{values.step}" if values.step > 0 else ":".join(map(str, values))
        else:
            text = ":".join(text_of(value) for value in values)
        found.append((name.replace("_", "-"), text))
    return found


def workload_of(workload: Workload) -> tuple[str, bool, str | None]:
    """A workload as the native part takes it: its text, and true if that is the name of a file."""
    if isinstance(workload, Trace):
        return (workload.file, True, None)
    return (os.fspath(workload), not isinstance(workload, str), None)


def reading_of(
    workloads: Sequence[Workload],
    format: str | None,
    columns: str | None,
    stage: str | None,
    device: Values | None,
) -> tuple[str | None, str | None, str | None, Values | None]:
    """The options for reading traces. A read trace brings its own, if none are given."""
    for workload in workloads:
        if isinstance(workload, Trace):
            own_format, own_columns, own_stage, own_device = workload.reading
            # A format and a description exclude each other.
            if format is None and columns is None:
                format, columns = own_format, own_columns
            stage = own_stage if stage is None else stage
            device = own_device if device is None else device
    return format, columns, stage, device


def paths_of(on: Paths) -> list[tuple[str | None, str]]:
    """Paths with their short names."""
    if isinstance(on, str):
        return [(None, on)]
    if isinstance(on, Mapping):
        return [(name, path) for name, path in on.items()]
    return [(None, path) for path in on]
