"""Windows by time, rates, and how a notebook shows a result."""

from __future__ import annotations

from pathlib import Path

import flashpath
import pytest

DRIVE = "page/nand:size=64M,pages-per-block=64"


def test_windows_by_time_have_causes_and_a_queue(trace_file: Path) -> None:
    result = flashpath.run(trace_file, on="page/nand:size=4G", timed=1, addresses="wrap", window="20s")
    assert result.window_seconds == pytest.approx(20)
    table = result.windows_table()
    assert {"in_flight.max", "stored.host-write.host-write", "warned"} <= set(table.columns)
    rows = table.rows()
    stored = sum(row["stored.host-write.host-write"] for row in rows)
    assert stored == pytest.approx(sum(window.stored_blocks for window in result.windows))
    with pytest.raises(flashpath.InputError, match="no span"):
        flashpath.run(trace_file, on=DRIVE, timed=1, window="soon")


def test_a_rate_tells_the_years() -> None:
    result = flashpath.run("uniform:writes=4x", on=DRIVE, rate="1GB/day")
    rate = result.wear.rate
    assert rate is not None and rate.of == "host" and rate.years is not None
    assert result.wear.lifetime_host_tib is not None
    assert rate.years == pytest.approx(result.wear.lifetime_host_tib * 2**40 / 1e9 / 365.25)
    with pytest.raises(flashpath.InputError, match="rate"):
        flashpath.run("uniform", on=DRIVE, rate="1GB")


def test_a_notebook_shows_the_numbers_and_marks_those_of_a_run_with_warnings() -> None:
    warned = flashpath.run("uniform:writes=1M", on=DRIVE)
    shown = warned._repr_html_()
    assert len(shown) < 2000 and "1!" in shown and "nothing was erased" in shown
    assert "<script" not in flashpath.run("uniform:writes=1M", on={"<script>": DRIVE})[0]._repr_html_()


def test_a_notebook_has_a_bar_of_its_own() -> None:
    """tqdm falls back to a line of text, with a warning, where ipywidgets is missing: no requirement named it."""
    import nbformat
    from nbclient import NotebookClient

    code = f"""
import flashpath, tqdm.auto
flashpath._progress._APPEARS = 0.0
made = []
class Bar(tqdm.auto.tqdm):
    def __init__(self, *arguments, **options):
        made.append(options["total"])
        super().__init__(*arguments, **options)
tqdm.auto.tqdm = Bar
result = flashpath.run("uniform:writes=60x", on={DRIVE!r}, fill=True)
print(made, "tqdm.notebook" in [kind.__module__ for kind in Bar.__mro__])
result
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    outputs = notebook.cells[0].outputs
    streams = "".join(output.text for output in outputs if output.output_type == "stream")
    assert streams.strip() == "[1.0] True", streams
    tables = [output.data for output in outputs if output.output_type == "execute_result"]
    assert "<table>" in tables[0]["text/html"] and len(tables[0]["text/plain"]) < 200
