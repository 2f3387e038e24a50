"""The options of runs: from Python's values to the texts of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, TypedDict

from ._errors import InputError
from ._names import file_name, shown
from .traces import Trace

#: A workload: an expression such as ``uniform:writes=6x``, ``fio:JOBFILE``, the file of a trace, or a read trace.
Workload: TypeAlias = "str | os.PathLike[str] | os.PathLike[bytes] | Trace"
#: A value of an option: a number, a switch, or a text with a unit such as ``512M``, ``7%`` or ``6x``. NumPy's scalars, too.
Value: TypeAlias = "bool | int | float | str | SupportsIndex"
#: One value, or several of a sweep; a text may also be a list or a range: ``1:8:32``, ``1..10``.
Values: TypeAlias = "Value | Iterable[Value]"
#: A path, or several: a list, or a dictionary from short names to paths.
Paths: TypeAlias = "str | Sequence[str] | Mapping[str, str]"
#: A workload as the native part takes it: its text, true if that is the name of a file, and its name in results.
Asked: TypeAlias = "tuple[str, bool, str | None]"


class Reading(TypedDict):
    """The options of a description that have one value for all runs."""

    format: str | None
    columns: str | None
    stage: str | None
    cpu: str | None
    rate: str | None
    age: str | None
    waits: bool


def plain(value: Any) -> Any:
    """A scalar of NumPy, or of another library that has ``item``, as a value of Python."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def _text_of(name: str, value: Any) -> str:
    value = plain(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:
        raise InputError(f"{name}= is NaN", "give a number")
    if isinstance(value, (int, float)):
        return str(value)
    raise InputError(
        f"{name}= has the value {value!r}, of type {type(value).__name__}",
        "give a number, True or False, a text with a unit such as '512M', or in a sweep a list or a range of these",
    )


def _texts_of(name: str, values: Any) -> str:
    values = plain(values)
    if isinstance(values, range) and len(values) > 1:
        # A million seeds are one range.
        if values.step > 0:
            return f"{values[0]}..{values[-1]}..{values.step}"
        return ":".join(map(str, values))
    if isinstance(values, (str, bytes, bool, int, float)) or not isinstance(values, Iterable):
        return _text_of(name, values)
    if isinstance(values, (set, frozenset, Mapping)):
        raise InputError(f"{name}= is a {type(values).__name__}, which has no order of values", "give a list")
    texts = [_text_of(name, value) for value in values]
    if not texts:
        raise InputError(f"{name}= has no value", "give at least one, or leave it out")
    return ":".join(texts)


def given(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The options that are given, by their names on the command line."""
    return [
        (name.replace("_", "-"), _texts_of(name, values)) for name, values in options.items() if values is not None
    ]


def switch(name: str, value: Any) -> bool:
    """True or false, which may be of NumPy."""
    value = plain(value)
    if not isinstance(value, bool):
        raise InputError(f"{name}= is {value!r}", "give True or False")
    return value


def at_least_one(name: str, value: Any, what: str) -> int:
    """A whole number from 1 on, which may be of NumPy."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name}= is {value!r}", f"give {what}: a whole number from 1 on")
    return value


def workload_of(workload: Workload) -> Asked:
    """A workload as the native part takes it."""
    if isinstance(workload, Trace):
        # A trace that was opened by a relative name is found from any folder, and keeps its name in results.
        return (workload.absolute, True, shown(workload.file))
    if isinstance(workload, str):
        return (workload, False, None)
    if isinstance(workload, (bytes, os.PathLike)):
        return (file_name(workload), True, None)
    raise InputError(
        f"a workload is {workload!r}, of type {type(workload).__name__}",
        "give a text such as 'uniform:writes=6x', the file of a trace, or what flashpath.trace returns",
    )


def workloads_of(workload: Workload | Sequence[Workload]) -> list[Workload]:
    """One workload, or several."""
    if isinstance(workload, (str, bytes, os.PathLike, Trace)):
        return [workload]
    found = list(workload)
    if not found:
        raise InputError("the list of workloads is empty", "give one, such as 'uniform:writes=6x'")
    return found


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
    named: list[tuple[Any, Any]]
    if isinstance(on, str):
        named = [(None, on)]
    elif isinstance(on, Mapping):
        named = list(on.items())
    elif isinstance(on, (bytes, os.PathLike)) or not isinstance(on, Iterable):
        raise InputError(f"on= is {on!r}, of type {type(on).__name__}", "give a path such as 'page:op=7%/nand:size=1G'")
    else:
        named = [(None, path) for path in on]
    if not named:
        raise InputError("on= has no path", "give at least one, such as on='page:op=7%/nand:size=1G'")
    for name, path in named:
        for text in (path,) if name is None else (name, path):
            if not isinstance(text, str):
                raise InputError(f"on= has {text!r}, of type {type(text).__name__}", "paths and their names are texts")
            if not _is_utf8(text):
                raise InputError(f"on= has {text!r}", "paths are UTF-8: give a file in it a name that is")
    return [(name, path) for name, path in named]


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
