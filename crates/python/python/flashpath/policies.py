"""Policies in Python: groupings and cleaners of ``sfs``, and victim policies of ``page`` and ``dftl``.

A policy is called in batches. It gets columns, which NumPy sees as arrays without a copy (``numpy.asarray(blocks.writes)``),
and answers a number for each item. Its cost is in ``Result.policies`` and ``Sweep.policies``.
"""

from __future__ import annotations

import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, SupportsIndex, TypeVar

from . import _native
from ._answers import Answers
from ._errors import ClusterError, InputError
from ._identity import Identity, identity_of
from ._options import at_least_one
from .results import PolicyCost

__all__ = ["Blocks", "Candidates", "Segments", "cleaner", "grouping", "victim"]

_Policy = TypeVar("_Policy", bound=Callable[..., Any])

#: What was added, by option and name: the policy, its description and its number of groups.
_added: dict[tuple[str, str], tuple[Callable[..., Any], str, int]] = {}


class _Columns:
    def __init__(self, types: str, columns: Sequence[bytes]) -> None:
        # A letter is a type of the module array.
        cast: Any = memoryview.cast
        self._columns: list[memoryview[Any]] = [
            cast(memoryview(column), kind) for kind, column in zip(types, columns, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def numbers(self) -> memoryview[int] | None:
        """The numbers of the items, if they have some."""
        return None


class Blocks(_Columns):
    """The blocks of a writeback. Times are on the clock of hotness of ``sfs`` (microseconds or blocks written)."""

    def __init__(self, columns: Sequence[bytes]) -> None:
        super().__init__("QQQQbb", columns)
        #: Writes of each block before this one.
        self.writes = self._columns[0]
        #: The time of the last write of each block.
        self.modified = self._columns[1]
        #: Writes of the block's file.
        self.file_writes = self._columns[2]
        #: The time of the last write of the block's file.
        self.file_modified = self._columns[3]
        #: The group of the block's last write, or -1.
        self.group = self._columns[4]
        #: Of a block that cleaning copies, the group of its segment; -1 for a write of the host.
        self.cleaned_from = self._columns[5]


class Segments(_Columns):
    """The segments that can be cleaned. Times are on the clock of hotness of ``sfs``."""

    def __init__(self, columns: Sequence[bytes]) -> None:
        super().__init__("IIIQdQQb", columns)
        #: The number of each segment.
        self.number = self._columns[0]
        #: Blocks that a segment can hold.
        self.capacity = self._columns[1]
        #: Live blocks; at least 1, and fewer than ``capacity``.
        self.live = self._columns[2]
        #: The sum of the write counts of the live blocks.
        self.writes = self._columns[3]
        #: The mean of the times at which the live blocks were written.
        self.modified = self._columns[4]
        #: The latest time at which a block was written.
        self.youngest = self._columns[5]
        #: The time at which the segment was written.
        self.written = self._columns[6]
        #: The group of the blocks, or -1 if they are of several.
        self.group = self._columns[7]

    @property
    def numbers(self) -> memoryview[int]:
        """The numbers of the segments."""
        return self.number


class Candidates(_Columns):
    """The erase blocks that can be collected. Times count the pages programmed so far."""

    def __init__(self, columns: Sequence[bytes]) -> None:
        super().__init__("IIIIQ", columns)
        #: The number of each erase block.
        self.block = self._columns[0]
        #: Valid pages, which a collection copies.
        self.valid = self._columns[1]
        #: Invalid pages, which a collection frees.
        self.invalid = self._columns[2]
        #: Erases so far.
        self.erases = self._columns[3]
        #: The time at which a page was last invalidated, or at which the block was full.
        self.touched = self._columns[4]

    @property
    def numbers(self) -> memoryview[int]:
        """The numbers of the erase blocks."""
        return self.block


def _maker(
    policy: Callable[..., Any], batch: Callable[[Sequence[bytes]], _Columns], answers: Answers
) -> Callable[[int], object]:
    """Makes the function that the native part calls: from columns as bytes to numbers as bytes."""

    def make(seed: int) -> object:
        decide: Callable[..., Any] = policy
        if isinstance(policy, type):
            made: Any = policy
            decide = made(seed)

        def call(columns: Sequence[bytes], now: int) -> bytes:
            items = batch(columns)
            return answers.bytes_of(decide(items, now), len(items), items.numbers)

        return call

    return make


def _about(policy: Callable[..., Any]) -> str:
    return (inspect.getdoc(policy) or "a policy in Python").splitlines()[0]


def _add(option: str, name: str, policy: Callable[..., Any], about: str, groups: int) -> None:
    named = f"{option}={name}"
    if option == "grouping":
        _native.add_grouping(name, about, groups, _maker(policy, Blocks, Answers(named, "B", groups, "block")))
    elif option == "cleaner":
        _native.add_cleaner(name, about, _maker(policy, Segments, Answers(named, "d", 0, "segment")))
    else:
        _native.add_victim(name, about, _maker(policy, Candidates, Answers(named, "d", 0, "erase block")))
    _added[option, name] = (policy, about, groups)


def grouping(name: str, *, groups: SupportsIndex) -> Callable[[_Policy], _Policy]:
    """Adds a grouping: the paths of this process take ``sfs:grouping=NAME``.

    The function gets :class:`Blocks` and the time, and answers the group of each block, from 0 to ``groups`` - 1. It has
    no state. A class has: it is made for each volume, with the seed of the run, and its objects are called.

    Args:
        name: Letters, digits, ``-`` and ``_``. A policy of the same name is replaced.
        groups: The number of groups, from 1 to 16.

    Example:
        >>> @flashpath.grouping("often", groups=2)
        ... def often(blocks, now):
        ...     return [writes >= 3 for writes in blocks.writes]
    """

    count = at_least_one("groups", groups, "the number of groups")

    def add(policy: _Policy) -> _Policy:
        _add("grouping", name, policy, _about(policy), count)
        return policy

    return add


def cleaner(name: str) -> Callable[[_Policy], _Policy]:
    """Adds a cleaner: the paths of this process take ``sfs:cleaner=NAME``.

    The function gets :class:`Segments` and the time, and answers a score for each: the segment with the highest score is
    cleaned next. A class is made once for each path, with 0 in place of a seed, and its objects are called.

    Args:
        name: Letters, digits, ``-`` and ``_``. A policy of the same name is replaced.

    Example:
        >>> @flashpath.cleaner("emptiest")
        ... def emptiest(segments, now):
        ...     return [-live for live in segments.live]
    """

    def add(policy: _Policy) -> _Policy:
        _add("cleaner", name, policy, _about(policy), 0)
        return policy

    return add


def victim(name: str) -> Callable[[_Policy], _Policy]:
    """Adds a victim policy: the paths of this process take ``page:victim=NAME`` and ``dftl:victim=NAME``.

    The function gets :class:`Candidates` and the time, and answers a score for each: the erase block with the highest
    score is collected next. A class is made for each drive, with the seed of the run, and its objects are called.

    Args:
        name: Letters, digits, ``-`` and ``_``. A policy of the same name is replaced.

    Example:
        >>> @flashpath.victim("least-worn")
        ... def least_worn(candidates, now):
        ...     worn = numpy.asarray(candidates.erases)
        ...     return numpy.where(numpy.asarray(candidates.invalid) > 0, -1.0 * worn, -numpy.inf)
    """

    def add(policy: _Policy) -> _Policy:
        _add("victim", name, policy, _about(policy), 0)
        return policy

    return add


def used_by(paths: Iterable[str]) -> list[tuple[str, str]]:
    """The policies in Python that may be used by these paths: option and name."""
    text = "\n".join(paths)
    return [key for key in sorted(_added) if re.search(rf"(?<![\w-]){re.escape(key[1])}(?![\w-])", text)]


def _identity(paths: Iterable[str]) -> tuple[str, Identity]:
    return identity_of(
        (f"{option}={name}", _added[option, name][0], _added[option, name][2]) for option, name in used_by(paths)
    )


def digest_of(paths: Iterable[str]) -> str:
    """A digest of the policies that paths use: of their code, of all that they call, and of the values that they use.

    Empty without any. A journal of other policies is refused.
    """
    found = list(paths)
    return _identity(found)[0] if used_by(found) else ""


def pickled(paths: Iterable[str]) -> bytes:
    """The policies that paths use, with all that is not installed by value."""
    import cloudpickle

    found = list(paths)
    policies = shipped(found)
    _, identity = _identity(found)
    # A worker would take a class that it was sent before for this one, with the attributes that it had.
    tracked = getattr(getattr(cloudpickle, "cloudpickle", None), "_DYNAMIC_CLASS_TRACKER_BY_CLASS", {})
    for kind in identity.classes:
        tracked.pop(kind, None)
    by_value: list[types.ModuleType] = []
    try:
        for module in identity.modules.values():
            if sys.modules.get(module.__name__) is module and module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                by_value.append(module)
        return bytes(cloudpickle.dumps(policies))
    except Exception as error:
        names = ", ".join(sorted(identity.modules)) or "none"
        raise InputError(
            f"the policies cannot be sent to workers: {type(error).__name__}: {error}",
            f"they and the modules that they use are sent by value (modules: {names}): take out what cannot be pickled, or "
            "install those modules as a package, here and on the workers",
        ) from error
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


def shipped(paths: Iterable[str]) -> list[tuple[str, str, Callable[..., Any], str, int]]:
    """The policies that paths use, for other processes."""
    return [(*key, *_added[key]) for key in used_by(paths)]


def receive(sent: bytes, digest: str) -> None:
    """Adds policies of another process, which must have this digest here, too."""
    try:
        policies: list[tuple[str, str, Callable[..., Any], str, int]] = pickle.loads(sent)
    except Exception as error:
        raise ClusterError(
            f"a worker cannot read the policies: {type(error).__name__}: {error}: what is sent by its name alone has to be in a "
            "package that is installed on the workers, too"
        ) from error
    try:
        found, _ = identity_of((f"{option}={name}", policy, groups) for option, name, policy, _, groups in policies)
    except InputError as error:
        raise ClusterError(
            f"a worker cannot use the policies: {error.message}: import modules at the top of the policy's file, and they are "
            "sent with it, or install them on the workers"
        ) from error
    if found != digest:
        raise ClusterError(
            "a worker has other policies than were sent to it: install the same Python and the same packages on all workers, "
            "and restart them"
        )
    for option, name, policy, about, groups in policies:
        _add(option, name, policy, about, groups)


def costs_since(before: list[tuple[str, int, int, float]]) -> tuple[PolicyCost, ...]:
    """The costs of policies since ``before``, without those that were not called."""
    earlier = {name: counts for name, *counts in before}
    costs = []
    for name, calls, items, seconds in _native.policy_costs():
        calls_before, items_before, seconds_before = earlier.get(name, [0, 0, 0.0])
        if calls > calls_before:
            costs.append(PolicyCost(
                name, int(calls - calls_before), int(items - items_before), seconds - seconds_before, 0.0
            ))
    return tuple(costs)

