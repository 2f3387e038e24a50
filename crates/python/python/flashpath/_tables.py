"""Tables that other libraries read without a copy, through Arrow's C stream interface."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._names import file_name, shown

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["ArrowStream", "Table"]


class ArrowStream:
    """Columns that pandas, polars, pyarrow, DuckDB and others read through ``__arrow_c_stream__``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns as Arrow's C stream, in a capsule."""
        raise NotImplementedError

    def __arrow_c_schema__(self) -> object:
        """The types of the columns, in a capsule."""
        raise NotImplementedError

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow table, on the same memory. Needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self, *, numpy: bool = False) -> pandas.DataFrame:
        """A pandas frame. Needs pandas and pyarrow.

        Args:
            numpy: True for columns of NumPy, which are copied. The columns are Arrow's otherwise, on the same memory.
        """
        import pandas

        if numpy:
            return self.to_arrow().to_pandas()
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def to_polars(self) -> polars.DataFrame:
        """A polars frame, on the same memory. Needs polars."""
        import polars

        return polars.DataFrame(self)


class Table(ArrowStream):
    """A table of typed columns."""

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> Table:
        """The table of these rows; the columns of ``first`` come first."""
        return Table(_native.Table.from_json(json.dumps(list(rows)), list(first)))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.column_names

    def __len__(self) -> int:
        """The number of rows."""
        return self._native.num_rows

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries with all columns; None is an empty cell."""
        rows: list[dict[str, Any]] = json.loads(self._native.json())
        columns = self.columns
        return [{name: row.get(name) for name in columns} for row in rows]

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table as comma-separated text, which is also written to ``path``, if that is given."""
        text = self._native.csv()
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        return text

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a Parquet file."""
        content = self._native.parquet(shown(file_name(path)))
        with open(path, "wb") as file:
            file.write(content)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __getstate__(self) -> dict[str, Any]:
        """A pickled table is its rows; it is the same to the last digit in another process."""
        return {**self.__dict__, "_native": (self._native.json(), self._native.first)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows, first = state["_native"]
        self.__dict__.update(state, _native=_native.Table.from_json(rows, first))

    def __repr__(self) -> str:
        names = self.columns
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"<{type(self).__name__} of {len(self):,} rows and {len(names)} columns: {shown}>"
