"""The answer of a search for a goal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ._words import in_python

__all__ = ["GoalFound", "TriedValue"]


@dataclass(frozen=True)
class TriedValue:
    """A value of the option that was run, with all seeds."""

    #: As it is written in the path: ``12.25%``.
    value: str
    #: The mean of the number over the seeds; None if no run has it, or nothing was erased.
    mean: float | None
    #: Half of the width of its 95 % confidence interval; None with one seed.
    ci95: float | None
    #: True if the mean meets the goal.
    is_met: bool
    #: True if the whole interval is on that side of the bound.
    is_sure: bool
    #: True if a run has a warning, which may void it.
    is_warned: bool


@dataclass(frozen=True)
class GoalFound:
    """The answer of ``flashpath.sweep(..., goal=...)``."""

    #: The goal: ``write_amplification.total<1.5``.
    goal: str
    #: The column of the option: ``page.op``.
    option: str
    #: The value nearest to the other side that meets the goal; None if the range does not cross the bound.
    found: TriedValue | None
    #: The last value that surely misses it.
    surely_missed: TriedValue | None
    #: The first value that surely meets it.
    surely_met: TriedValue | None
    #: All values that were run, ascending.
    tried: tuple[TriedValue, ...]
    #: The answer in sentences.
    sentences: tuple[str, ...]

    @property
    def column(self) -> str:
        """The column of the number."""
        return self.goal.split("<")[0].split(">")[0]

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def goal_found(answer: str) -> GoalFound:
    """The answer from the JSON of the native part."""

    def tried(value: dict[str, Any] | None) -> TriedValue | None:
        return None if value is None else TriedValue(**value)

    found = json.loads(answer)
    return GoalFound(
        found["goal"], found["option"], tried(found["found"]), tried(found["surely_missed"]), tried(found["surely_met"]),
        tuple(TriedValue(**value) for value in found["tried"]), tuple(in_python(text) for text in found["sentences"]),
    )
