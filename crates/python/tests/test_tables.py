"""Tables in other libraries, without a copy."""

from __future__ import annotations

from pathlib import Path

import flashpath
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import DRIVE, WORK


def buffers(table: flashpath.ArrowStream) -> dict[str, list[int]]:
    """The addresses of the buffers of each column."""
    found = table.to_arrow()
    return {
        name: [buffer.address for chunk in found[name].chunks for buffer in chunk.buffers() if buffer is not None]
        for name in found.column_names
    }


def test_a_table_is_read_on_its_own_memory() -> None:
    sweep = flashpath.sweep(WORK, on=DRIVE, seed=range(1, 5))
    assert buffers(sweep) == buffers(sweep), "both are the memory of the table itself"
    frame = sweep.to_pandas()
    column = frame["write_amplification.total"]
    assert isinstance(column.dtype, pandas.ArrowDtype)
    assert [buffer.address for chunk in column.array.__arrow_array__().chunks for buffer in chunk.buffers() if buffer] == (
        buffers(sweep)["write_amplification.total"]
    )
    polar = sweep.to_polars()["write_amplification.total"].to_arrow()
    assert polar.buffers()[1].address == buffers(sweep)["write_amplification.total"][-1]


def test_all_libraries_have_the_same_values(tmp_path: Path) -> None:
    sweep = flashpath.sweep(WORK, on=DRIVE, seed=range(1, 5))
    rows = sweep.rows()
    values = [row["write_amplification.total"] for row in rows]
    assert sweep.to_pandas()["write_amplification.total"].to_list() == values
    assert sweep.to_pandas(numpy=True)["write_amplification.total"].to_numpy().tolist() == values
    assert sweep.to_polars()["write_amplification.total"].to_list() == values
    assert polars.DataFrame(sweep).equals(sweep.to_polars())
    sweep.to_parquet(tmp_path / "s.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "s.parquet").equals(sweep.to_arrow())
    assert pyarrow.schema(sweep) == sweep.to_arrow().schema
    assert sweep.columns == sweep.to_arrow().column_names
    assert sweep.to_arrow()["error"].null_count == 4
    assert repr(sweep).startswith("<Sweep of 4 rows and ")


def test_a_stream_that_nobody_takes_is_freed() -> None:
    table = flashpath.Table.of_rows([{"a": 1, "b": "x"}, {"a": None, "b": "y"}], ["b"])
    assert table.columns == ["b", "a"]
    for _ in range(1000):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
    taken = table.to_arrow()
    del table
    assert taken.to_pylist() == [{"b": "x", "a": 1}, {"b": "y", "a": None}]
    assert len(flashpath.Table.of_rows([])) == 0


def test_the_parts_of_a_result_are_tables() -> None:
    result = flashpath.run("uniform:writes=4x", on=DRIVE)
    ledger = result.ledger_table().to_pandas()
    assert ledger["blocks"].sum() == pytest.approx(sum(row.blocks for row in result.ledger))
    windows = result.windows_table().to_polars()
    assert windows.height == len(result.windows) > 10
    assert "latency_ns.write.p99" in windows.columns
    wear = result.wear_table().to_polars()
    assert wear["blocks"].sum() == result.flash.blocks
    latency = result.latency_table().to_polars().filter(polars.col("class") == "write")
    assert latency["share"].is_sorted() and latency["share"][-1] == 1.0


def test_a_trace_is_a_table_and_a_workload(trace_file: Path) -> None:
    trace = flashpath.trace(trace_file)
    summary = trace.summary
    assert (summary.format, summary.requests, summary.rejected_lines, summary.devices) == ("msr", 3000, 1, 2)
    assert summary.reads + summary.writes == len(trace) == 3000 and summary.first_rejected
    requests = trace.to_polars()
    assert requests.height == 3000
    assert requests.filter(polars.col("action") == "write")["length_bytes"].sum() == summary.written_bytes
    assert pyarrow.schema(trace) == trace.to_arrow().schema
    only = flashpath.trace(trace_file, device=1)
    assert len(only) == 1500 and only.to_polars().height == 1500
    whole = flashpath.run(trace, on=DRIVE, repeat=2)
    assert whole.workload.requests == 6000 and whole.input is not None
    assert flashpath.run(only, on=DRIVE).workload.requests == 1500
    assert flashpath.run(trace_file, on=DRIVE).ledger == flashpath.run(str(trace_file), on=DRIVE).ledger
    sweep = flashpath.sweep(trace, on="page:victim=greedy:fifo/nand:size=128M", repeat=[1, 2])
    assert [row["workload.requests"] for row in sweep.rows()] == [3000, 6000] * 2
    with pytest.raises(flashpath.InputError, match="no such|No such"):
        flashpath.trace(trace_file.with_name("none"))
    (bad := trace_file.with_name("bad")).write_text("nothing\n")
    with pytest.raises(flashpath.InputError, match="unknown format|no line"):
        flashpath.trace(bad)


def test_any_text_is_a_trace_by_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_text("1 W 0 8\n2 W 8 8\n3 R 0 8\n")
    columns = "time=1,op=2,offset=3,size=4,unit=sector"
    trace = flashpath.trace(file, columns=columns)
    assert (trace.summary.format, len(trace), trace.summary.written_bytes) == ("columns", 3, 8192)
    assert flashpath.run(trace, on=DRIVE).workload.requests == 3
    assert flashpath.run(file, on=DRIVE, columns=columns).workload.requests == 3
    sweep = flashpath.sweep(file, on=DRIVE, columns=columns, repeat=[1, 2])
    assert [row["workload.requests"] for row in sweep.rows()] == [3, 6]
    with pytest.raises(flashpath.InputError, match="offset= is missing"):
        flashpath.trace(file, columns="time=1,op=2,size=3")
    with pytest.raises(flashpath.InputError, match="has its own"):
        flashpath.run(file, on=DRIVE, columns=columns, format="msr")
    with pytest.raises(flashpath.InputError, match="is for traces"):
        flashpath.run("uniform:writes=1x", on=DRIVE, columns=columns)
