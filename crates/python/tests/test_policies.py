"""Policies in Python."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import flashpath
import numpy
import pytest
from flashpath.policies import Blocks, Candidates, Segments

SFS = "sfs:segment=512K,cleaner={}/conv:size=32M"
PAGE = "page:victim={},op=14%/nand:size=128M"


@flashpath.cleaner("greedy-in-python")
def greedy(segments: Segments, now: int) -> list[int]:
    """The fewest live blocks."""
    assert len(segments) > 0 and now > 0 and all(0 < live for live in segments.live)
    return [-live for live in segments.live]


@flashpath.cleaner("cost-benefit-in-python")
def cost_benefit(segments: Segments, now: int) -> numpy.ndarray:
    live, capacity = numpy.asarray(segments.live, float), numpy.asarray(segments.capacity, float)
    return (capacity - live) / (2 * live) * (float(now) - numpy.asarray(segments.youngest, float))


@flashpath.grouping("one", groups=1)
def one(blocks: Blocks, now: int) -> bytes:
    return bytes(len(blocks))


@flashpath.grouping("often", groups=2)
def often(blocks: Blocks, now: int) -> numpy.ndarray:
    """By the number of writes."""
    return numpy.asarray(blocks.writes) >= 3


@flashpath.victim("greedy-in-python")
def greedy_victim(candidates: Candidates, now: int) -> numpy.ndarray:
    return numpy.asarray(candidates.invalid, float)


@flashpath.victim("fails")
@flashpath.cleaner("fails")
@flashpath.grouping("fails", groups=2)
def fails(batch: object, now: int) -> list[int]:
    raise LookupError("mine")


@pytest.mark.parametrize(
    ("mine", "own"),
    [
        (SFS.format("greedy-in-python"), SFS.format("greedy")),
        (SFS.format("cost-benefit-in-python"), SFS.format("cost-benefit")),
        ("sfs:segment=512K,grouping=one/conv:size=32M", "sfs:segment=512K,grouping=none/conv:size=32M"),
    ],
)
def test_a_policy_of_the_program_written_again_in_python_chooses_the_same(mine: str, own: str) -> None:
    theirs = flashpath.run("zipf:writes=128M", on=own, verify=True)
    result = flashpath.run("zipf:writes=128M", on=mine, verify=True)
    assert result.ledger == theirs.ledger
    (cost,) = result.policies
    assert cost.name in mine and cost.calls > 0 and cost.items > cost.calls
    assert 0 < cost.seconds <= result.seconds_wall and 0 < cost.share <= 1
    assert theirs.policies == ()


def test_victims_in_python_are_as_good_as_those_of_the_program() -> None:
    for station in ("page", "dftl"):
        own = flashpath.run("uniform:writes=4x", on=PAGE.format("greedy").replace("page", station))
        mine = flashpath.run("uniform:writes=4x", on=PAGE.format("greedy-in-python").replace("page", station))
        assert own.write_amplification.total is not None
        # They differ in the choice among blocks with equally many invalid pages.
        assert mine.write_amplification.total == pytest.approx(own.write_amplification.total, rel=0.05)
        assert mine.policies[0].calls > 10


def test_a_policy_works_below_simulated_threads() -> None:
    own = flashpath.run("varmail:loops=2000,threads=4", on="sfs:segment=512K,grouping=none/conv:size=256M")
    mine = flashpath.run("varmail:loops=2000,threads=4", on="sfs:segment=512K,grouping=one/conv:size=256M")
    assert mine.ledger == own.ledger and mine.policies[0].calls > 0


def test_groups_have_an_effect_and_can_be_varied() -> None:
    sweep = flashpath.sweep(
        "zipf:writes=96M", on="sfs:segment=512K,grouping=none:one:often/conv:size=32M", seed=range(1, 3)
    )
    none, one, often = (row["write_amplification.total"] for row in sweep.rows()[::2])
    assert none == one != often
    assert {cost.name for cost in sweep.policies} == {"grouping=one", "grouping=often"}
    assert "often" in flashpath.layer("sfs").option("grouping").words
    assert flashpath.layer("sfs").option("grouping").words["often"] == "By the number of writes."


def test_a_class_has_a_state_for_each_volume() -> None:
    made: list[int] = []

    @flashpath.grouping("alternating", groups=2)
    class Alternating:
        def __init__(self, seed: int) -> None:
            made.append(seed)
            self.calls = 0

        def __call__(self, blocks: Blocks, now: int) -> list[int]:
            self.calls += 1
            return [self.calls % 2] * len(blocks)

    path = "sfs:segment=512K,grouping=alternating/conv:size=32M"
    first, again = (flashpath.run("zipf:writes=64M", on=path, seed=5) for _ in range(2))
    assert first.ledger == again.ledger
    assert made == [5, 5] or (len(set(made)) == 1 and len(made) == 2)


@pytest.mark.parametrize("path", [SFS.format("fails"), "sfs:grouping=fails,segment=512K/conv:size=32M", PAGE.format("fails")])
def test_an_exception_in_a_policy_ends_its_run_and_no_other(path: str) -> None:
    with pytest.raises(LookupError, match="mine"):
        flashpath.run("zipf:writes=256M", on=path)
    both = path.replace("=fails", "={greedy,fails}" if "grouping" not in path else "={none,fails}")
    sweep = flashpath.sweep("zipf:writes=256M", on=both)
    assert sweep.failed == 1
    assert sweep.rows()[0]["error"] is None
    assert "LookupError: mine" in sweep.rows()[1]["error"]


def test_wrong_answers_are_refused() -> None:
    for name, answer in [("short", []), ("many", 300), ("third", 2), ("text", "x")]:

        @flashpath.grouping(name, groups=2)
        def wrong(blocks: Blocks, now: int, answer: object = answer) -> object:
            return [answer] * len(blocks) if not isinstance(answer, list) else answer

        with pytest.raises((ValueError, TypeError, OverflowError)):
            flashpath.run("zipf:writes=32M", on=f"sfs:segment=512K,grouping={name}/conv:size=32M")


def test_names_that_no_path_can_have_are_refused() -> None:
    for name in ("", "a,b", "a/b", "a b", "greedy"):
        with pytest.raises(flashpath.InputError):
            flashpath.cleaner(name)(greedy)
    with pytest.raises(flashpath.InputError, match="take 1 to 16"):
        flashpath.grouping("too-many", groups=17)(one)
    with pytest.raises(flashpath.InputError, match="did you mean|takes"):
        flashpath.run("uniform", on="sfs:grouping=nobody/conv:size=32M")


def test_a_journal_of_other_code_is_refused(tmp_path: Path) -> None:
    def add(threshold: int) -> None:
        source = f"def rule(blocks, now):\n    return [writes >= {threshold} for writes in blocks.writes]\n"
        space: dict[str, object] = {}
        exec(compile(source, "<rule>", "exec"), space)
        flashpath.grouping("rule", groups=2)(space["rule"])  # type: ignore[type-var]

    path, journal = "sfs:segment=512K,grouping=rule/conv:size=32M", tmp_path / "j"
    add(3)
    first = flashpath.sweep("zipf:writes=64M", on=path, journal=journal)
    assert flashpath.sweep("zipf:writes=64M", on=path, journal=journal).to_csv() == first.to_csv()
    add(30)
    with pytest.raises(flashpath.InputError, match="another sweep"):
        flashpath.sweep("zipf:writes=64M", on=path, journal=journal)


#: Below, a weight decides what a policy answers.
WEIGHT = 1.0
VALUES = {"weights": numpy.array([1.0, 2.0]), "names": {"a", "b", "c"}}


def _weighted(valid: int) -> float:
    return -WEIGHT * valid


def by_global(candidates: Candidates, now: int) -> list[float]:
    return [-WEIGHT * valid for valid in candidates.valid]


def by_helper(candidates: Candidates, now: int) -> list[float]:
    return [_weighted(valid) for valid in candidates.valid]


def by_values(candidates: Candidates, now: int) -> list[float]:
    return [-VALUES["weights"][0] * valid for valid in candidates.valid]


def by_closure(weight: float) -> Callable[..., list[float]]:
    def decide(candidates: Candidates, now: int) -> list[float]:
        return [-weight * valid for valid in candidates.valid]

    return decide


def by_argument(weight: float, candidates: Candidates, now: int) -> list[float]:
    return [-weight * valid for valid in candidates.valid]


class Base:
    weight = 1.0


class ByAttribute(Base):
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, candidates: Candidates, now: int) -> list[float]:
        return [-self.weight * valid for valid in candidates.valid]


MODULE = """
WEIGHT = 1.0
def helper(valid):
    return -WEIGHT * valid
def decide(candidates, now):
    return [helper(valid) for valid in candidates.valid]
"""

ON = "page:victim=weighted,op=14%/nand:size=128M"


def _sweep(policy: Callable[..., Any], journal: Path) -> flashpath.Sweep:
    flashpath.victim("weighted")(policy)
    return flashpath.sweep("uniform:writes=2x", on=ON, journal=journal)


def _module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (folder / "weighing.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("weighing", None)
    return importlib.import_module("weighing")


def test_a_policy_is_its_values_and_what_it_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest was that of the source of the function: W=1.0 and W=0.5 were one policy, and a journal of the first was taken.

    No test changed anything but the source.
    """
    module = _module(tmp_path, monkeypatch)
    here = sys.modules[__name__]
    changes: list[tuple[Callable[..., Any], Callable[..., Any], Any, str]] = [
        (by_global, by_global, here, "WEIGHT"),
        (by_helper, by_helper, here, "WEIGHT"),
        (by_closure(1.0), by_closure(0.5), None, ""),
        (functools.partial(by_argument, 1.0), functools.partial(by_argument, 0.5), None, ""),
        (ByAttribute, ByAttribute, ByAttribute, "weight"),
        (ByAttribute, ByAttribute, Base, "weight"),
        (module.decide, module.decide, module, "WEIGHT"),
        (lambda c, now: module.decide(c, now), lambda c, now: module.decide(c, now), module, "WEIGHT"),
        (by_values, by_values, here, "VALUES"),
    ]
    for at, (first, second, owner, name) in enumerate(changes):
        journal = tmp_path / f"journal{at}"
        table = _sweep(first, journal).to_csv()
        assert _sweep(first, journal).to_csv() == table
        with monkeypatch.context() as patched:
            if owner is not None:
                changed = {"weights": numpy.array([0.5, 2.0]), "names": {"a"}} if name == "VALUES" else 0.5
                patched.setattr(owner, name, changed, raising=False)
            with pytest.raises(flashpath.InputError, match="another sweep"):
                _sweep(second, journal)
        assert _sweep(first, journal).to_csv() == table, "it is the first one again"


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import flashpath, numpy, weighing
NAMES = {{"a", "b", "c", "dd", "eee", "ffff"}}
ARRAY = numpy.arange(8.0)
class Weighs:
    def __init__(self, seed):
        self.weight = 1.0 if "a" in NAMES else 0.5
    def __call__(self, candidates, now):
        return [weighing.helper(valid) * self.weight + ARRAY[0] for valid in candidates.valid]
flashpath.victim("weighted")(Weighs)
print(flashpath.sweep("uniform:writes=2x", on={on!r}, journal={journal!r}, progress=False).to_csv())
"""


def test_the_same_policy_goes_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "weighing.py").write_text(MODULE)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path), on=ON, journal=str(tmp_path / "journal")))

    def run(seed: str) -> subprocess.CompletedProcess[str]:
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        return subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)

    first, second = run("1"), run("2")
    assert first.returncode == 0 and second.returncode == 0, first.stderr + second.stderr
    assert first.stdout == second.stdout
    # A helper in another file is a part of it.
    (tmp_path / "weighing.py").write_text(MODULE.replace("-WEIGHT", "-2 * WEIGHT"))
    changed = run("1")
    assert changed.returncode != 0 and "another sweep" in changed.stderr, changed.stderr


def test_a_policy_that_cannot_be_told_from_another_is_refused() -> None:
    lock = threading.Lock()

    @flashpath.victim("locked")
    def locked(candidates: Candidates, now: int) -> list[int]:
        with lock:
            return list(candidates.invalid)

    with pytest.raises(flashpath.InputError, match="lock is a lock, by which a policy cannot be told"):
        flashpath.sweep("uniform:writes=2x", on=PAGE.format("locked"))


def test_a_sweep_has_the_warnings_of_its_runs() -> None:
    table = flashpath.sweep("uniform:writes=4M:6x", on="page:op=14%/nand:size=128M")
    (text, rows), *_ = table.warnings
    # The table has the words of the command line, as that of the program.
    assert rows == [0] and "fill=True" in text and text.replace("fill=True", "--fill").split(";")[0] in table.to_csv()
    assert flashpath.run("uniform:writes=4M", on="page:op=14%/nand:size=128M").warnings[0] == text
    means = table.means().to_csv().splitlines()
    assert "warned" in means[0] and text[:20] in means[1] and text[:20] not in means[2]
    assert "<h2>Warnings</h2>" in table.report()
