"""Exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._words import at_in_python, in_python

if TYPE_CHECKING:
    from .results import Result

__all__ = ["ClusterError", "FlashpathError", "InputError", "RunFailed"]


class FlashpathError(Exception):
    """The base of all exceptions of this package."""


class InputError(FlashpathError, ValueError):
    """A path, a workload, an option or a file is wrong. Nothing was run.

    Attributes:
        message: The fault.
        help: The remedy, or None.
        source: The text with the fault, such as a path, or None.
        span: The wrong characters of ``source`` (from, to), or None.
    """

    def __init__(
        self,
        message: str,
        help: str | None = None,
        source: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        message, help = in_python(message), None if help is None else in_python(help)
        if source is not None and span is not None:
            source, span = at_in_python(source, span)
        super().__init__(message, help, source, span)
        self.message = message
        self.help = help
        self.source = source
        self.span = span

    def __str__(self) -> str:
        lines = [self.message]
        if self.source is not None and self.span is not None:
            first, last = self.span
            lines += [f"    {self.source}", f"    {' ' * first}{'^' * max(1, last - first)}"]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)


class RunFailed(FlashpathError, RuntimeError):
    """The input is right, but the run failed: a drive that is too small, a sum that does not hold.

    Attributes:
        message: The reason.
        result: What was measured up to the failure.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        message = in_python(message)
        super().__init__(message, result)
        self.message = message
        self.result = result

    def __str__(self) -> str:
        return self.message


class ClusterError(FlashpathError, RuntimeError):
    """The workers of a cluster cannot run a sweep: another version of flashpath, too little memory, none left."""

    def __init__(self, message: str, *details: Any) -> None:
        super().__init__(message, *details)
        self.message = message

    def __str__(self) -> str:
        return self.message
