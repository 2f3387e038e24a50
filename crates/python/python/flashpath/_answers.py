"""Answers of policies, checked: a number for each item, of the right kind.

An answer is a list, an array of NumPy, a series of pandas or polars, or another iterable; groups may be bytes. What is wrong
is told with the item: its place in the batch and, where it has one, its number.
"""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._options import plain

__all__ = ["Answers"]

#: The kinds of NumPy's numbers: of groups (booleans and whole numbers), and of scores.
_KINDS = {"B": "biu", "d": "biuf"}


@dataclass(frozen=True)
class Answers:
    """What a policy may answer."""

    #: The option and the name, as in a path: ``grouping=often``.
    policy: str
    #: The type of the numbers as the module array has it: ``B`` for groups, ``d`` for scores.
    kind: str
    #: The number of groups; 0 for scores.
    groups: int
    #: What the items are: ``block``, ``segment``, ``erase block``.
    item: str

    def bytes_of(self, answered: Any, items: int, numbers: Any | None) -> bytes:
        """The answer as the native part takes it. ``numbers`` are those of the items, if they have one.

        Raises:
            TypeError: The answer, or one number of it, is of another kind.
            ValueError: The answer has too many or too few numbers, or one is not possible.
        """
        if self.kind == "B" and isinstance(answered, (bytes, bytearray)):
            found = array.array("B", answered)
        elif hasattr(answered, "dtype"):
            found = self._of_array(answered, items, numbers)
        else:
            found = self._of_iterable(answered, items, numbers)
        if len(found) != items:
            raise ValueError(f"{self.policy} answered {len(found)} numbers for {items} {self.item}s: answer one for each")
        if self.groups > 0 and items > 0 and max(found) >= self.groups:
            self._find(found, numbers)
        if self.kind == "d" and math.isnan(sum(found)):
            # Infinite scores of both signs have no sum, and are right.
            self._find(found, numbers)
        return found.tobytes()

    def _of_array(self, answered: Any, items: int, numbers: Any | None) -> array.array[Any]:
        """An array of NumPy, or a series, which is converted as a whole."""
        kind = getattr(answered.dtype, "kind", None)
        if not (isinstance(kind, str) and kind in _KINDS[self.kind] and hasattr(answered, "astype")):
            # A series of objects or of types of its own: its values are looked at one by one.
            return self._of_iterable(answered, items, numbers)
        to_numpy = getattr(answered, "to_numpy", None)
        values = answered if to_numpy is None else to_numpy()
        if getattr(values.dtype, "kind", None) != kind:
            # A series with missing values.
            return self._of_iterable(answered, items, numbers)
        if len(values.shape) != 1:
            raise ValueError(f"{self.policy} answered an array of shape {values.shape} for {items} {self.item}s: answer a row")
        if self.kind == "B" and len(values) > 0 and not (0 <= int(values.min()) and int(values.max()) < 256):
            return self._of_iterable(values, items, numbers)
        found = array.array(self.kind)
        found.frombytes(values.astype(self.kind).tobytes())
        return found

    def _of_iterable(self, answered: Any, items: int, numbers: Any | None) -> array.array[Any]:
        if isinstance(answered, (str, bytes, bytearray, Mapping, set, frozenset)) or not isinstance(answered, Iterable):
            raise TypeError(
                f"{self.policy} answered {_short(answered)}, of type {type(answered).__name__}: "
                f"answer a list or an array with a number for each of {items} {self.item}s"
            )
        if isinstance(answered, Iterator):
            answered = list(answered)
        try:
            return array.array(self.kind, answered)
        except (TypeError, ValueError, OverflowError):
            return array.array(self.kind, self._checked(answered, numbers))

    def _checked(self, answered: Iterable[Any], numbers: Any | None) -> list[Any]:
        """The numbers one by one: the first that is none is told."""
        found = []
        for at, value in enumerate(answered):
            value = plain(value)
            is_whole = isinstance(value, int) or hasattr(value, "__index__")
            if not (is_whole or self.kind == "d" and hasattr(value, "__float__")):
                raise TypeError(self._wrong(at, f"{_short(value)}, of type {type(value).__name__}", numbers))
            if self.kind == "B" and not 0 <= int(value) < self.groups:
                raise ValueError(self._wrong(at, str(value), numbers))
            found.append(int(value) if self.kind == "B" else float(value))
        return found

    def _find(self, found: Iterable[Any], numbers: Any | None) -> None:
        """Raises for the first number that is not possible, if there is one."""
        for at, value in enumerate(found):
            if value != value or (self.groups > 0 and value >= self.groups):
                raise ValueError(self._wrong(at, str(value), numbers))

    def _wrong(self, at: int, answered: str, numbers: Any | None) -> str:
        which = f"item {at} of the batch" + ("" if numbers is None else f", {self.item} {numbers[at]}")
        takes = (
            f"a group is a whole number from 0 to {self.groups - 1}" if self.groups > 0
            else "a score is a number, and not NaN (-inf: not this one)"
        )
        return f"{self.policy} answered {answered} for {which}: {takes}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
