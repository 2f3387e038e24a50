"""The package as its users write Python: values of NumPy, answers of policies, pickles, names of files, folders, typos."""

from __future__ import annotations

import copy
import html
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flashpath
import numpy
import pandas
import polars
import pytest
from conftest import DRIVE, ROOT, WORK
from flashpath._words import in_python
from flashpath.policies import Blocks, Candidates

SFS = "sfs:segment=512K,grouping={}/conv:size=32M"
PAGE = "page:victim={},op=14%/nand:size=128M"


def test_values_of_numpy_are_values() -> None:
    """``seed=numpy.int64(5)`` was "--seed=int64(5)" and ``fill=numpy.True_`` no iterable."""
    own = flashpath.run(WORK, on=DRIVE, seed=5, depth=8, fill=True, size=None, limit=4000)
    switches: dict[str, Any] = {"fill": numpy.True_, "waits": numpy.False_}
    theirs = flashpath.run(
        WORK, on=DRIVE, seed=numpy.int64(5), depth=numpy.uint8(8), limit=numpy.int32(4000), **switches
    )
    assert own.ledger == theirs.ledger and own.options == theirs.options
    lists = flashpath.sweep(WORK, on=DRIVE, seed=numpy.arange(1, 3), depth=pandas.Series([1, 8]), fill=numpy.array([True, False]))
    assert len(lists) == 8 and lists.varied == ["depth", "fill", "seed"]
    assert lists.to_csv() == flashpath.sweep(WORK, on=DRIVE, seed="1:2", depth="1:8", fill="on:off").to_csv()
    assert len(flashpath.sweep(WORK, on=DRIVE, jobs=numpy.int64(1), memory=numpy.int64(1 << 30))) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on": []}, "on= has no path"),
        ({"on": {}}, "on= has no path"),
        ({"on": [3]}, "on= has 3, of type int"),
        ({"on": None}, "of type NoneType"),
        ({"on": DRIVE, "depth": []}, "depth= has no value"),
        ({"on": DRIVE, "depth": {1, 8}}, "no order"),
        ({"on": DRIVE, "depth": b"8"}, "of type bytes"),
        ({"on": DRIVE, "depth": float("nan")}, "NaN"),
        ({"on": DRIVE, "waits": 3}, "waits= is 3"),
        ({"on": DRIVE, "depth": 0}, "depth"),
    ],
)
def test_what_is_no_value_is_refused_by_its_name(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(flashpath.InputError, match=said):
        flashpath.run(WORK, **arguments)


def test_a_sweep_of_nothing_or_by_nobody_is_refused() -> None:
    for arguments, said in [
        ({"jobs": 0}, "jobs= is 0"), ({"jobs": -1}, "jobs= is -1"), ({"jobs": True}, "jobs= is True"), ({"memory": 0}, "memory= is 0"),
    ]:
        with pytest.raises(flashpath.InputError, match=said):
            flashpath.sweep(WORK, on=DRIVE, **arguments)  # type: ignore[arg-type]
    with pytest.raises(flashpath.InputError, match="the list of workloads is empty"):
        flashpath.sweep([], on=DRIVE)
    with pytest.raises(flashpath.InputError, match="a workload is 7"):
        flashpath.run(7, on=DRIVE)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: [0] * (n - 1) + [0.5], r"answered 0.5, of type float for item \d+ of the batch: a group is a whole number from 0 to 1"),
        (lambda n: [0] * (n - 1) + [2], r"answered 2 for item \d+"),
        (lambda n: [0] * (n - 1) + [300], r"answered 300 for item \d+"),
        (lambda n: [-1] * n, "answered -1 for item 0"),
        (lambda n: ["x"] * n, "answered 'x', of type str for item 0"),
        (lambda n: "0" * n, "of type str: answer a list"),
        (lambda n: None, "answered None, of type NoneType"),
        (lambda n: 1, "answered 1, of type int"),
        (lambda n: {0: 1}, "of type dict"),
        (lambda n: [0] * (n + 1), r"answered \d+ numbers for \d+ blocks"),
        (lambda n: numpy.zeros(n), "answered 0.0, of type float for item 0"),
        (lambda n: numpy.full(n, 2), "answered 2 for item 0"),
        (lambda n: numpy.zeros((n, 1), int), "of shape"),
        (lambda n: pandas.Series([0.0] * n), "answered 0.0, of type float for item 0"),
        (lambda n: pandas.Series(["a"] * n), "answered 'a', of type str for item 0"),
        (lambda n: polars.Series([None] * n, dtype=polars.Int64), "answered None"),
        (lambda n: bytes([3] * n), "answered 3 for item 0"),
    ],
)
def test_an_answer_that_is_no_group_names_the_item(answer: Callable[[int], Any], said: str) -> None:
    @flashpath.grouping("answers", groups=2)
    def answers(blocks: Blocks, now: int) -> Any:
        # A writeback may have no block.
        return answer(len(blocks)) if len(blocks) > 0 else []

    with pytest.raises((TypeError, ValueError), match=f"grouping=answers .*{said}" if said.startswith("of ") else said):
        flashpath.run("zipf:writes=32M", on=SFS.format("answers"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda often: often,
        lambda often: often.tolist(),
        lambda often: [numpy.bool_(one) for one in often],
        lambda often: list(often.astype(numpy.int16)),
        lambda often: (one for one in often.tolist()),
        lambda often: often.astype(numpy.uint64),
        lambda often: pandas.Series(often, index=range(len(often), 0, -1)),
        lambda often: pandas.Series(often).astype("Int8"),
        lambda often: polars.Series(often.astype(int)),
        lambda often: bytes(often.tolist()),
    ],
)
def test_answers_of_all_kinds_are_the_same_groups(answer: Callable[[Any], Any]) -> None:
    @flashpath.grouping("kinds", groups=numpy.int64(2))
    def kinds(blocks: Blocks, now: int) -> Any:
        return answer(numpy.asarray(blocks.writes) >= 3)

    @flashpath.grouping("plain", groups=2)
    def plain(blocks: Blocks, now: int) -> list[bool]:
        return [writes >= 3 for writes in blocks.writes]

    ledgers = [flashpath.run("zipf:writes=64M", on=SFS.format(name)).ledger for name in ("kinds", "plain")]
    assert ledgers[0] == ledgers[1]


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda n: [float("nan")] * n, r"answered nan for item 0 of the batch, erase block \d+: a score is a number"),
        (lambda n: numpy.full(n, numpy.nan), "answered nan for item 0"),
        (lambda n: [0.0] * (n - 1) + [float("nan")], r"answered nan for item \d+"),
        (lambda n: ["3"] * n, "answered '3', of type str"),
        (lambda n: [1j] * n, "of type complex"),
        (lambda n: bytes(8 * n), "of type bytes: answer a list"),
        (lambda n: pandas.Series([1.0] * n, dtype="Float64").mask(lambda s: s > 0), "answered nan for item 0"),
    ],
)
def test_an_answer_that_is_no_score_names_the_erase_block(score: Callable[[int], Any], said: str) -> None:
    @flashpath.victim("scores")
    def scores(candidates: Candidates, now: int) -> Any:
        return score(len(candidates))

    with pytest.raises((TypeError, ValueError), match=said):
        flashpath.run("uniform:writes=2x", on=PAGE.format("scores"))


def test_infinite_scores_of_both_signs_are_scores() -> None:
    @flashpath.victim("infinite")
    def infinite(candidates: Candidates, now: int) -> list[float]:
        most = max(candidates.invalid)
        return [float("inf") if invalid == most else -float("inf") for invalid in candidates.invalid]

    assert flashpath.run("uniform:writes=2x", on=PAGE.format("infinite")).policies[0].calls > 0


def test_tables_sweeps_traces_and_results_pickle(trace_file: Path) -> None:
    """A sweep could not be sent to another process, or kept in a cache: "cannot pickle Table"."""
    sweep = flashpath.sweep(WORK, on="page:op=14%:28%/nand:size=128M", seed=range(1, 3))
    for again in (pickle.loads(pickle.dumps(sweep)), copy.deepcopy(sweep)):
        assert again.to_csv() == sweep.to_csv() and again.varied == sweep.varied and again.failed == 0
        assert again.to_arrow().equals(sweep.to_arrow()) and again.means().to_csv() == sweep.means().to_csv()
        assert again.report() == sweep.report()
    table = pickle.loads(pickle.dumps(sweep.means()))
    assert table.columns == sweep.means().columns
    trace = flashpath.trace(trace_file, device=1)
    again = pickle.loads(pickle.dumps(trace))
    assert len(again) == 1500 and again.reading == trace.reading
    result = flashpath.run(trace, on=DRIVE)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(flashpath.InputError) as raised:
        flashpath.run(WORK, on=DRIVE, depth="1:x")  # type: ignore[call-overload]
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_names_of_files_need_not_be_utf8(trace_file: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/tr\xffce.csv"
    os.link(trace_file, name)
    plain = flashpath.run(trace_file, on=DRIVE)
    text = os.fsdecode(name)
    trace = flashpath.trace(Path(text))
    assert "tr\ufffdce.csv" in repr(trace) and len(trace.to_polars()) == len(trace)
    for workload in (trace, text, Path(text)):
        result = flashpath.run(workload, on=DRIVE)
        assert result.ledger == plain.ledger and "tr\ufffdce.csv" in result.workload.name
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe"))
    folder.mkdir()
    sweep = flashpath.sweep(trace, on=DRIVE, journal=folder / "j")
    sweep.to_csv(folder / "s.csv")
    sweep.to_parquet(folder / "s.parquet")
    sweep.report(folder / "s.html")
    assert len(polars.read_csv((folder / "s.csv").read_bytes())) == 1
    with pytest.raises(flashpath.InputError, match="UTF-8"):
        flashpath.run(WORK, on=f"page/nand:size=128M/{text}")


def test_a_trace_of_a_relative_name_survives_a_change_of_folder(
    trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace_file.parent)
    trace = flashpath.trace(trace_file.name)
    before = flashpath.run(trace, on=DRIVE)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert len(trace.to_polars()) == len(trace)
    after = flashpath.run(trace, on=DRIVE)
    assert after.ledger == before.ledger and after.workload.name == before.workload.name == trace_file.name
    assert len(pickle.loads(pickle.dumps(trace))) == len(trace)


def test_messages_have_the_words_of_python(trace_file: Path) -> None:
    with pytest.raises(flashpath.InputError) as raised:
        flashpath.sweep(WORK, on=DRIVE, depth="8:0")
    error = raised.value
    assert error.source == "depth=8:0" and error.span is not None and error.source[slice(*error.span)] == "0"
    calls: list[Callable[[], object]] = [
        lambda: flashpath.run(WORK, on=DRIVE, timed=1),
        lambda: flashpath.run(WORK, on=DRIVE, repeat=2),
        lambda: flashpath.run(trace_file, on=DRIVE, window="1s"),
        lambda: flashpath.sweep(WORK, on=DRIVE, memory=1 << 20),
        lambda: flashpath.sweep(trace_file, on=DRIVE, depth=1, timed=1),
        lambda: flashpath.run(WORK, on=DRIVE, fsync_every="x"),  # type: ignore[call-overload]
    ]
    for call in calls:
        with pytest.raises(flashpath.InputError) as raised:
            call()
        text = f"{raised.value.message} {raised.value.help or ''} {raised.value.source or ''}"
        assert not re.search(r"--[a-z]", text.split("flashpath run")[0]), text
    warned = flashpath.run("uniform:writes=1M", on=DRIVE)
    assert "fill=True" in warned.warnings[0] and "--fill" in warned.to_json()
    sweep = flashpath.sweep("uniform:writes=1M", on=DRIVE)
    assert "fill=True" in sweep.warnings[0][0]


def test_options_of_the_command_line_have_their_words() -> None:
    for text, words in [
        ("add --seed 1..5", "add seed=1..5"),
        ("take a larger --size", "take a larger size="),
        ("write more, or --fill and --precondition before", "write more, or fill=True and precondition= before"),
        ("--fsync-every=4 is none", "fsync_every=4 is none"),
        ("--addresses wrap or --addresses scale", "addresses=wrap or addresses=scale"),
        ("add --on PATH, such as --on page:op=7%", "add on=PATH, such as on=page:op=7%"),
        ("use --in DIR", "use --in DIR"),
        ("it fails; in flashpath run w --on page/nand --seed 3", "it fails; in flashpath run w --on page/nand --seed 3"),
        ("a--seed", "a--seed"),
    ]:
        assert in_python(text) == words


def test_a_typo_in_the_name_of_a_number_is_an_error() -> None:
    """``report(y="write_amplification.totl")`` wrote a page without a figure."""
    sweep = flashpath.sweep(WORK, on="page:op=14%:28%/nand:size=128M")
    with pytest.raises(flashpath.InputError, match="did you mean write_amplification.total"):
        sweep.report(y="write_amplification.totl")
    with pytest.raises(flashpath.InputError, match="the same column"):
        sweep.report(x="page.op", by="page.op")
    page = sweep.report(y="write_amplification.total", x_title="spare space", y_title="WA")
    assert "WA over spare space" in page and ">spare space<" in page
    assert "page.op, %" in sweep.report(y="write_amplification.total"), "the axis has its unit"


def test_a_goal_is_sought_as_the_program_does(program: Callable[..., Any], tmp_path: Path) -> None:
    on, goal = "page:export=64M,op=7%..60%/nand:pages-per-block=64", "write_amplification.total<2.5"
    sweep = flashpath.sweep("uniform:writes=4x", on=on, fill=True, precondition="2x", seed=range(1, 4), goal=goal)
    found = sweep.goal
    assert found is not None and found.found is not None and found.option == "page.op"
    assert found.found.mean is not None and found.found.mean < 2.5 and found.found.is_met
    assert found.surely_missed is not None and found.surely_met is not None
    assert len(sweep) == 3 * len(found.tried) and [one.value for one in found.tried][0] == "7%"
    ran = program(
        "sweep", "uniform:writes=4x", "--fill", "--precondition", "2x", "--on", on, "--seed", "1..3", "--goal", goal,
        "--csv", tmp_path / "goal.csv", "--quiet",
    )
    assert ran.returncode == 0 and ran.stdout.startswith(f"{goal}: met from page.op={found.found.value} "), ran.stdout
    assert sweep.to_csv() == (tmp_path / "goal.csv").read_text()
    # Words may be broken behind names.
    page = sweep.report().replace("<wbr>", "")
    assert str(found).startswith(found.sentences[0]) and html.escape(found.sentences[0]) in page
    assert pickle.loads(pickle.dumps(sweep)).goal == found
    for arguments, said in [
        ({"goal": "write_amplification.total"}, "expected COLUMN<NUMBER"),
        ({"goal": goal, "journal": tmp_path / "j"}, "journal= is of runs that are known before"),
    ]:
        with pytest.raises(flashpath.InputError, match=said):
            flashpath.sweep("uniform:writes=4x", on=on, **arguments)  # type: ignore[arg-type]
    with pytest.raises(flashpath.InputError, match="over one option"):
        flashpath.sweep("uniform:writes=4x", on=DRIVE, goal=goal)


def test_ages_rates_and_waits_are_options_of_a_sweep(program: Callable[..., Any], tmp_path: Path) -> None:
    on = "page:op=14%:28%/nand:size=128M,errors=on"
    sweep = flashpath.sweep(
        WORK, on=on, fill=True, age="years=1,cycles=50%", waits=True, rate="1GB/day",
    )
    new = flashpath.sweep(WORK, on=on, fill=True)
    columns = set(sweep.columns)
    assert {"latency_ns.write.parts.p99.collection", "wear.rate.years"} <= columns and not columns <= set(new.columns)
    file = tmp_path / "aged.csv"
    ran = program(
        "sweep", WORK, "--on", on, "--fill", "--age", "years=1,cycles=50%", "--waits", "--rate", "1GB/day", "--csv", file, "--quiet"
    )
    assert ran.returncode == 0, ran.stderr
    assert sweep.to_csv() == file.read_text()
    with pytest.raises(flashpath.InputError, match="age"):
        flashpath.sweep(WORK, on=on, age="old")


#: The documents whose examples in Python are read by a type checker.
DOCUMENTS = [file for file in [ROOT / "README.md", ROOT / "crates/python/README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if "```python" in file.read_text()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_examples_of_the_documents_are_typed(document: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    blocks = re.findall(r"(<!-- not run -->\n)?```python\n(.*?)```", document.read_text(), re.DOTALL)
    file = tmp_path / "example.py"
    # Those of other systems need packages that are not here.
    file.write_text("\n".join(text for skipped, text in blocks if not skipped))
    package = Path(flashpath.__file__).parent.parent
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "crates/python/pyproject.toml",
         "--untyped-calls-exclude=distributed", file],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(package)},
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
