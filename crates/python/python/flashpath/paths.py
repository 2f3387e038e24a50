"""Paths, and all that can stand in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _native
from ._errors import InputError

__all__ = ["Layer", "Option", "Path", "layer", "layers", "read"]


@dataclass(frozen=True)
class Option:
    """An option of a station or a workload."""

    name: str
    about: str
    #: The default as it is written in a path; None if it is not set.
    default: str | None
    #: The values that it takes, in words.
    values: str
    #: The words that it takes, each with its description; empty if it takes other values.
    words: dict[str, str]


@dataclass(frozen=True)
class Layer:
    """A station of a path, or a workload."""

    name: str
    #: ``station``, ``generator`` or ``file workload``.
    role: str
    about: str
    options: tuple[Option, ...]
    #: Of a station: the level that it belongs to.
    level: str | None = None
    #: Of a station: ``flash``, ``zones``, ``blocks``, ``memory`` or ``files``.
    offers: str | None = None
    #: Of a station: what it needs below it, one of these; empty at the bottom of a path.
    takes: tuple[str, ...] = ()
    #: Of a station: what several devices are for.
    several: str | None = None

    def option(self, name: str) -> Option:
        """The option of this name."""
        for option in self.options:
            if option.name == name:
                return option
        names = ", ".join(option.name for option in self.options)
        raise InputError(f"{self.name} has no option {name}", f"there are: {names}")


@dataclass(frozen=True)
class Path:
    """A path that was read and checked."""

    #: As written.
    text: str
    #: With every option.
    in_full: str
    #: Bytes that it exports to a block workload; None if only the running kernel can tell.
    exported_bytes: int | None
    #: An estimate of the bytes of memory that a run on it takes.
    memory_bytes: int


def _layer(value: dict[str, Any]) -> Layer:
    options = tuple(Option(**option) for option in value.pop("options"))
    return Layer(options=options, takes=tuple(value.pop("takes", ())), **value)


def layers() -> list[Layer]:
    """All stations and workloads, with every option and default: the table of ``flashpath layers``."""
    return [_layer(value) for value in json.loads(_native.layers())]


def layer(name: str) -> Layer:
    """The station or workload of this name."""
    known = layers()
    for one in known:
        if one.name == name:
            return one
    raise InputError(f"unknown station or workload '{name}'", f"known are: {', '.join(one.name for one in known)}")


def read(text: str) -> Path:
    """Reads a path without a run on it.

    Raises:
        InputError: The path is wrong; the message points at it.
    """
    return Path(**json.loads(_native.read_path(text)))
