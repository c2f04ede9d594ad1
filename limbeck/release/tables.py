"""A released table in plain formats, so that a person's own code runs on it unchanged."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from limbeck.data import TableSchema
from limbeck.release.contents import Unreadable, kind_of

CSV, PARQUET = "data.csv", "data.parquet"
Described = tuple[list[str], int]


def with_target(schema: TableSchema, x: pd.DataFrame, labels: np.ndarray) -> pd.DataFrame:
    """The declared columns in their order, the target among them."""
    table = x.copy()
    table[schema.target.name] = labels.astype(str) if labels.dtype == object else labels
    return table[list(schema.released_names)]


def write_plain(folder: Path, table: pd.DataFrame) -> None:
    """As CSV (UTF-8, commas, a line a row) and as Parquet; a missing cell is empty in one and null in the other."""
    table.to_csv(folder / CSV, index=False, lineterminator="\n")
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), folder / PARQUET)


def read_plain_table(folder: Path, schema: TableSchema) -> pd.DataFrame:
    """The columns besides the target, as they were released."""
    names = [name for name in schema.released_names if name != schema.target.name]
    return pq.read_table(folder / PARQUET, columns=names).to_pandas()


def csv_described(path: Path) -> Described:
    """The names and the number of rows of a CSV file."""
    _check_plain(path)
    try:
        header = pd.read_csv(path, nrows=0)
        with path.open("rb") as file:
            return list(header.columns), sum(1 for _ in file) - 1
    except (OSError, ValueError, pd.errors.ParserError):
        raise Unreadable("is not readable as CSV") from None


def parquet_described(path: Path) -> Described:
    """The names and the number of rows of a Parquet file, from its footer."""
    _check_plain(path)
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow.names, file.metadata.num_rows
    except Exception:  # whatever a broken file does to its reader
        raise Unreadable("is not readable as Parquet") from None


def _check_plain(path: Path) -> None:
    try:
        kind = kind_of(path)
    except OSError:
        raise Unreadable("is missing") from None
    if kind != "file":
        raise Unreadable(f"is a {kind}; a plain file is expected")


PLAIN: dict[str, Callable[[Path], Described]] = {CSV: csv_described, PARQUET: parquet_described}
