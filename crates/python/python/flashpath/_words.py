"""Messages of the native part in Python's words: ``seed=``, where the command line has ``--seed``."""

from __future__ import annotations

import re

__all__ = ["in_python"]

#: The arguments of :func:`flashpath.run`, :func:`flashpath.sweep` and :func:`flashpath.trace`.
_ARGUMENTS = frozenset({
    "addresses", "age", "columns", "cpu", "depth", "device", "fill", "format", "fsync_every", "goal", "jobs", "journal",
    "limit", "max_request", "memory", "on", "precondition", "rate", "repeat", "seed", "size", "stage", "timed",
    "utilization", "verify", "waits", "window",
})
#: Those that are switches.
_SWITCHES = frozenset({"fill", "verify", "waits"})
#: An option of the command line. A space before its value is a part of it.
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =](?=\d|[A-Z]{2}|\S*[:/=%]|(?:wrap|scale|refuse)\b))?")
#: A command that repeats a run stays a command.
_COMMAND = re.compile(r"\bflashpath (?:run|sweep|convert|capture|calibrate)\b")


def _argument(found: re.Match[str]) -> str:
    name = found[1].replace("-", "_")
    if name not in _ARGUMENTS:
        return found[0]
    return f"{name}=True" if name in _SWITCHES and found[0].endswith(found[1]) else f"{name}="


def in_python(text: str) -> str:
    """The text with the arguments of Python in place of the options of the command line."""
    command = _COMMAND.search(text)
    end = len(text) if command is None else command.start()
    return _OPTION.sub(_argument, text[:end]) + text[end:]


def at_in_python(source: str, span: tuple[int, int]) -> tuple[str, tuple[int, int]]:
    """A text that an error points into, and the wrong characters: ``--depth 1:x`` is ``depth=1:x``."""
    found = re.match(r"--([a-z-]+) ", source)
    if found is None or found[1].replace("-", "_") not in _ARGUMENTS:
        return source, span
    name = found[1].replace("-", "_") + "="
    moved = len(name) - found.end()
    first, last = (max(0, at + moved) for at in span)
    return name + source[found.end():], (first, last)
