"""Parquet, and Arrow's own files (Feather): columns with declared types."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from limbeck.data.readers.opening import readable
from limbeck.data.tables.header import check_table
from limbeck.data.tables.rows import BLOCK, Rows
from limbeck.data.tables.schema import TableSchema

PARQUET = (".parquet", ".pq")
BUFFER = 2**16  # bytes of a column that are read at a time: without it, all of a row group are
ARROW = (".arrow", ".feather", ".ipc", ".arrows")


def recognises(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in PARQUET + ARROW


def rows(path: Path, schema: TableSchema, split: str = "train") -> Rows:
    """The rows of a file whose columns are the schema's."""
    types, total = described(path)
    check_table(schema, types.names, str(path), types=types, empty=total == 0)

    def batches(wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        with readable(path, "a Parquet or Arrow file"):
            yield from _parquet(path, wanted) if _is_parquet(path) else _arrow(path, wanted)

    return Rows(schema, batches, total, split, str(path))


def described(path: Path) -> tuple[pa.Schema, int]:
    """The declared types of the columns and the number of rows, without reading any."""
    with readable(path, "a Parquet or Arrow file"):
        if _is_parquet(path):
            with pq.ParquetFile(path) as file:
                return file.schema_arrow, file.metadata.num_rows
        with _stream(path) as stream:
            return stream.schema, sum(batch.num_rows for batch in _pieces(stream))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def _parquet(path: Path, wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        for batch in file.iter_batches(BLOCK, columns=list(wanted), use_threads=False):
            yield batch.select(list(wanted))


def _arrow(path: Path, wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with _stream(path) as stream:
        for piece in _pieces(stream):
            columns = piece.select(list(wanted))
            for start in range(0, columns.num_rows, BLOCK):
                yield columns.slice(start, BLOCK)


@contextmanager
def _stream(path: Path) -> Iterator[pa.RecordBatchReader | pa.ipc.RecordBatchFileReader]:
    with pa.OSFile(str(path)) as file:
        in_file = file.read(6) == b"ARROW1"
        file.seek(0)
        with pa.ipc.open_file(file) if in_file else pa.ipc.open_stream(file) as stream:
            yield stream


def _pieces(stream: pa.RecordBatchReader | pa.ipc.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    if isinstance(stream, pa.ipc.RecordBatchFileReader):
        return (stream.get_batch(i) for i in range(stream.num_record_batches))
    return iter(stream)
