"""What a reader of tables returns: rows not yet looked at, and private; and the one function that reads them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from limbeck.data.private import Private
from limbeck.data.tables import columnar, delimited
from limbeck.data.tables.rows import BLOCK, Rows
from limbeck.data.tables.schema import TableSchema
from limbeck.errors import RequestError

KNOWN = "CSV (any delimiter, .gz), Parquet, Arrow and Feather files, and pandas DataFrames in Python"


class Table:
    """A table as it is in a file, for `limbeck.measure.Records(schema, table.x, table.y, table.units)`.

    Attributes:
        x: the rows, target included. y: nothing.
        units: whom each row belongs to, where the schema has a unit column.
        source: the file they were read from.
    """

    def __init__(self, rows: Rows):
        self.x, self.y = Private(rows), None
        units = rows.units()
        self.units = None if units is None else Private(units)
        self.source = rows.source

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Table({len(self)} records from {self.source!r})"


def read_table(path: str | os.PathLike[str], schema: TableSchema, *, split: str = "train") -> Table:
    """Read a table from a file of any known kind. What single cells hold never stops it.

    Raises:
        RequestError: the file is missing, damaged or of another kind; its header or its types are not the schema's; or
            it holds no rows.
    """
    path = Path(path)
    if split not in ("train", "test"):
        raise RequestError(f"the split is {split!r}; train or test is expected")
    if not path.exists():
        raise RequestError(f"{path} does not exist")
    reader = next((kind for kind in (delimited, columnar) if kind.recognises(path)), None)
    if reader is None:
        raise RequestError(f"{path} is no table of a known kind; known are {KNOWN}")
    return Table(reader.rows(path, schema, split))


def rows_of(schema: TableSchema, X: Any, y: Any = None) -> Rows:
    """All rows that a person has in Python: a DataFrame, with the target as a column or apart."""
    from limbeck.data.tables.frames import batch_of

    if isinstance(X, Rows):
        return X
    owners = schema.unit_column
    owned = owners is not None and owners.name in getattr(X, "columns", ())
    names = (*schema.released_names, owners.name) if owners and owned else schema.released_names
    whole = batch_of(schema, X, y, names)

    def batches(wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for start in range(0, whole.num_rows, BLOCK):
            yield whole.slice(start, BLOCK).select(list(wanted))

    return Rows(schema, batches, whole.num_rows, None, "the given table", has_units=owned)
