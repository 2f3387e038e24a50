"""Names of files, which need not be UTF-8."""

from __future__ import annotations

import os

__all__ = ["file_name", "shown"]


def file_name(file: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The name of a file. Bytes that are no UTF-8 are kept, as Python's own functions keep them."""
    return os.fsdecode(file)


def shown(name: str) -> str:
    """The name of a file as a text for people: what is no UTF-8 in it is replaced."""
    return os.fsencode(name).decode("utf-8", "replace")
