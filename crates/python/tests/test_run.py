"""Runs, their results and their errors."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import flashpath
import pytest
from conftest import DRIVE, ROOT, WORK


def test_a_result_is_that_of_the_program(
    program: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    ran = program("run", WORK, "--on", DRIVE, "--seed", "7", "--fill", "--verify", "--json", file, "--quiet")
    assert ran.returncode == 0, ran.stderr
    (expected,) = json.loads(file.read_text())
    found = flashpath.run(WORK, on=DRIVE, seed=7, fill=True, verify=True).to_dict()
    assert {**found, "seconds_wall": 0} == {**expected, "seconds_wall": 0}


def test_a_result_is_shown_in_a_line() -> None:
    """The default of a dataclass had every window and every latency: 183,821 characters for one result in a notebook."""
    shown = repr(flashpath.run(WORK, on=DRIVE, seed=7, fill=True))
    assert shown.startswith("<Result of uniform") and DRIVE in shown and "write amplification" in shown, shown
    assert len(shown) < 300, shown


def test_each_field_of_the_schema_is_a_field_of_the_dataclasses(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "docs/results.schema.json").read_text())
    results = [
        flashpath.run(WORK, on=DRIVE, fill=True),
        flashpath.run(WORK, on=f"{DRIVE},energy=on", fill=True),
        flashpath.run("varmail:files=100,loops=50", on="ext/page/nand:size=256M"),
        flashpath.run("zipf:writes=48M", on="sfs:segment=512K/conv:size=32M"),
        flashpath.run("uniform:writes=2x", on="page:fdp=2/nand:size=128M", fill=True),
        flashpath.run(f"fio:{two_tenants(tmp_path)}", on=DRIVE, fill=True),
    ]
    assert results[4].translation.placement is not None and len(results[5].tenants) == 2
    for result in results:
        lost: list[str] = []
        compare(result.to_dict(), result, "", lost)
        assert not lost
    cached = flashpath.run("kvcache:writes=1x", on="page:fdp=2/nand:size=128M,timing=off")
    assert cached.cache is not None and cached.cache.buckets.objects > 0
    lost = []
    compare(cached.to_dict()["cache"], cached.cache, "", lost)
    assert not lost
    known = set(flashpath.Result.__dataclass_fields__)
    assert set(schema["$defs"]["run"]["properties"]) <= known


def two_tenants(folder: Path) -> Path:
    file = folder / "two.fio"
    file.write_text("[one]\nrw=randwrite\nbs=4k\nsize=8m\n[two]\nrw=randread\nbs=4k\noffset=8m\nsize=8m\niodepth=4\n")
    return file


def compare(value: object, found: object, place: str, lost: list[str]) -> None:
    """Lists the values of the JSON that the dataclasses lack, or have otherwise."""
    if isinstance(value, dict):
        for key, item in value.items():
            name = "from_" if key == "from" else key
            if isinstance(found, dict) and key in found:
                compare(item, found[key], f"{place}.{key}", lost)
            elif hasattr(found, name):
                compare(item, getattr(found, name), f"{place}.{key}", lost)
            elif key in getattr(found, "others", {}):
                compare(item, getattr(found, "others")[key], f"{place}.{key}", lost)
            else:
                lost.append(f"{place}.{key}")
    elif isinstance(value, list):
        if not isinstance(found, tuple) or len(found) != len(value):
            lost.append(place)
            return
        if place == ".warnings":
            return  # They advise Python's arguments where the JSON advises options.
        for one, other in zip(value, found, strict=True):
            compare(one, other, place, lost)
    elif value != found:
        lost.append(f"{place}: {value} {found}")


def test_several_paths_are_several_results() -> None:
    results = flashpath.run(WORK, on={"little": DRIVE, "much": "page:op=50%/nand:size=128M"})
    assert [result.name for result in results] == ["little", "much"]
    little, much = (result.write_amplification.total for result in results)
    assert little is not None and much is not None and little > much
    assert [result.path for result in flashpath.run(WORK, on=[DRIVE])] == [DRIVE]
    assert "write amplification" in str(results[0])


def test_the_same_seed_gives_the_same_counters_and_another_gives_others() -> None:
    first, again, other = (flashpath.run(WORK, on=DRIVE, seed=seed) for seed in (3, 3, 4))
    assert first.ledger == again.ledger
    assert first.ledger != other.ledger


@pytest.mark.parametrize(
    ("workload", "on", "options", "pointed", "said"),
    [
        (WORK, "page/nand:page=3K", {}, "3K", "page takes 2K, 4K, 8K or 16K"),
        (WORK, "pge/nand", {}, "pge", "did you mean page?"),
        ("unform", DRIVE, {}, "unform", "did you mean uniform?"),
        (WORK, DRIVE, {"depth": 0}, "0", "depth takes"),
        (WORK, DRIVE, {"fsync_every": 0}, "0", "fsync-every takes"),
        (WORK, "page:op=7%:14%/nand:size=1G", {}, None, "make a sweep of it"),
        (WORK, "kernel-ext4/page/nand", {}, None, "use the command flashpath run"),
        (WORK, DRIVE, {"timed": 1.0}, None, "recorded times"),
        (WORK, DRIVE, {"addresses": "wrap"}, None, "is for traces"),
        ("no/such/trace.csv", DRIVE, {}, None, "there is no file"),
        (WORK, DRIVE, {"format": "cvs"}, None, "known are"),
    ],
)
def test_an_error_points_at_the_wrong_characters(
    workload: str, on: str, options: dict[str, object], pointed: str | None, said: str
) -> None:
    with pytest.raises(flashpath.InputError) as raised:
        flashpath.run(workload, on=on, **options)  # type: ignore[call-overload]
    error = raised.value
    assert isinstance(error, ValueError)
    assert said in str(error)
    if pointed is not None:
        assert error.source is not None and error.span is not None
        assert error.source[slice(*error.span)] == pointed
        assert "^" * len(pointed) in str(error)
    # Errors travel between processes.
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.span) == (str(error), error.span)


def test_a_run_that_fails_says_why_and_has_what_was_measured() -> None:
    with pytest.raises(flashpath.RunFailed, match="worn out|endurance") as raised:
        flashpath.run("uniform:writes=200x", on="page:op=14%/nand:size=128M,endurance=20")
    assert isinstance(raised.value, RuntimeError)
    assert raised.value.result is not None and raised.value.result.flash.erased_blocks > 0


def test_progress_is_told_and_an_error_in_it_ends_the_run() -> None:
    told: list[flashpath.RunProgress] = []
    flashpath.run("uniform:writes=40x", on=DRIVE, progress=told.append)
    assert told and told[0].phase == "running"
    shares = [one.share for one in told if one.share is not None]
    assert shares == sorted(shares) and 0 <= shares[0] <= shares[-1] <= 1

    def fails(_: flashpath.RunProgress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        flashpath.run("uniform:writes=100000x", on=DRIVE, progress=fails)


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_a_bar_is_shown_where_it_is_asked_for(has_tqdm: bool) -> None:
    hides = "" if has_tqdm else "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
    code = (
        f"{hides}import flashpath, flashpath._progress\nflashpath._progress._APPEARS = 0\n"
        f"flashpath.sweep('uniform:writes=30x', on={DRIVE!r}, seed=range(1, 9), jobs=1, progress=SHOWN)\n"
    )
    for shown in (True, False):
        ran = subprocess.run(
            [sys.executable, "-c", code.replace("SHOWN", str(shown))], capture_output=True, text=True, check=True
        )
        assert ("of 8 runs" in ran.stderr) == shown, ran.stderr


def test_other_threads_go_on_beside_a_run() -> None:
    ended = threading.Event()
    turns = 0

    def turn() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            time.sleep(0.001)

    other = threading.Thread(target=turn)
    other.start()
    flashpath.run("uniform:writes=20x", on=DRIVE)
    ended.set()
    other.join()
    assert turns > 1


@pytest.mark.parametrize(
    "call",
    [
        'flashpath.run("uniform:writes=1000000x", on="page/nand:size=128M")',
        'flashpath.run("uniform:writes=1000001x", on="page/nand:size=128M", precondition="1000000x")',
        'flashpath.sweep("uniform:writes=1000000x", on="page/nand:size=128M", seed=range(1, 9))',
        'flashpath.run("varmail:loops=100000000", on="ext/page/nand:size=1G")',
    ],
)
def test_an_interrupt_ends_a_run_that_would_take_days(call: str) -> None:
    code = f"import flashpath\nprint('began', flush=True)\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert (rest, process.returncode) == ("interrupted\n", 0)


def test_the_layers_are_those_of_the_program(program: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    text = program("layers").stdout
    layers = flashpath.layers()
    assert len(layers) > 20
    for layer in layers:
        assert f"{layer.name}  (" in text, layer.name
        for option in layer.options:
            assert f"{option.name}={option.default or 'not set'}" in text
    page = flashpath.layer("page")
    assert (page.role, page.offers, page.takes) == ("station", "blocks", ("flash",))
    assert "greedy" in page.option("victim").words
    with pytest.raises(flashpath.InputError, match="known are"):
        flashpath.layer("pag")


def test_a_path_is_read_without_a_run() -> None:
    path = flashpath.paths.read("page:export=80%/nand:size=128M")
    assert path.exported_bytes is not None and 100 << 20 < path.exported_bytes < 110 << 20
    assert path.in_full.startswith("page:") and "victim=greedy" in path.in_full
    assert path.memory_bytes > 0
    with pytest.raises(flashpath.InputError):
        flashpath.paths.read("page:op=7%")
