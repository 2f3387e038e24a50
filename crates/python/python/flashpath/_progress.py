"""Progress of runs: a bar in notebooks and terminals, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["RunProgress", "SweepProgress"]


@dataclass(frozen=True)
class RunProgress:
    """The progress of one run."""

    #: ``filling``, ``preconditioning`` or ``running``.
    phase: str
    #: Requests done in the phase.
    requests: int
    #: The share of the phase that is done, from 0 to 1; None if it is not known.
    share: float | None


@dataclass(frozen=True)
class SweepProgress:
    """The progress of a sweep."""

    runs: int
    #: Runs that are done, with those of earlier sessions and those that failed.
    done: int
    failed: int
    running: int
    #: The share of the work that is done, from 0 to 1.
    share: float
    #: Seconds until all is done; None if they cannot be told yet.
    seconds_left: float | None


#: True for a bar, False for none, None for a bar where somebody looks, or a function of the progress.
RunProgressOption: TypeAlias = "bool | None | Callable[[RunProgress], object]"
SweepProgressOption: TypeAlias = "bool | None | Callable[[SweepProgress], object]"

#: Seconds after which a bar appears: short runs have none.
_APPEARS = 1.0


def _somebody_looks() -> bool:
    return "ipykernel" in sys.modules or sys.stderr.isatty()


class _Bar:
    """A bar of tqdm, if it is installed; a line of text otherwise."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._bar: Any = None
        self._has_line = False

    def show(self, share: float | None, text: str) -> None:
        if time.monotonic() - self._began < _APPEARS:
            return
        if self._bar is None and not self._has_line:
            try:
                from tqdm.auto import tqdm

                self._bar = tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed} {postfix}", leave=False)
            except ImportError:
                self._has_line = True
        if self._bar is not None:
            self._bar.n = min(1.0, share or 0.0)
            self._bar.set_postfix_str(text)
        else:
            percent = "" if share is None else f"{share:4.0%} "
            print(f"\r\x1b[K{percent}{text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_line:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class RunWatch:
    """Tells the progress of a run."""

    def __init__(self, option: RunProgressOption) -> None:
        self._function = option if callable(option) else None
        shows = option is True or (option is None and _somebody_looks())
        self._bar = _Bar() if shows else None

    def __call__(self, phase: str, requests: int, share: float | None) -> None:
        if self._function is not None:
            self._function(RunProgress(phase, requests, share))
        if self._bar is not None:
            self._bar.show(share, f"{phase}, {requests:,} requests")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class SweepWatch:
    """Tells the progress of a sweep."""

    def __init__(self, option: SweepProgressOption) -> None:
        self._function = option if callable(option) else None
        shows = option is True or (option is None and _somebody_looks())
        self._bar = _Bar() if shows else None

    def __call__(
        self, runs: int, done: int, failed: int, running: int, share: float, seconds_left: float | None
    ) -> None:
        if self._function is not None:
            self._function(SweepProgress(runs, done, failed, running, share, seconds_left))
        if self._bar is not None:
            text = f"{done} of {runs} runs" + (f", {failed} failed" if failed else "")
            if seconds_left is not None:
                text += f", {seconds_left:.0f} s left"
            self._bar.show(share, text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
