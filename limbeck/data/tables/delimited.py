"""CSV files: any delimiter and encoding, plain or gzipped.

**A row is a line.** Quotes are understood within a line and never across lines: a quote that one record forgets to
close must not swallow the records after it, or n and their contents would depend on that record. A line with too few or
too many cells, with a quote that is not closed or with bytes that its encoding does not know is a row all the same.
Lines are told apart before they are decoded, each by itself: in some encodings a text sets how all after it is read.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from limbeck.data.readers.opening import readable
from limbeck.data.tables.header import check_table
from limbeck.data.tables.rows import BLOCK, Rows
from limbeck.data.tables.schema import TableSchema
from limbeck.errors import RequestError

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data")
DELIMITERS = (",", ";", "\t", "|", " ")
APART = "\x1f"  # ASCII's own sign between cells
SIGNS = {ord(sign): "\ufffd" for sign in (APART, "\r", "\n")}
LONGEST = 2**24  # bytes that a line may take; a longer one is a row of empty cells
ROOM = 2**26  # bytes that a block of lines may take

Line = bytes | str


def recognises(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return path.is_file() and name.endswith(SUFFIXES)


def rows(path: Path, schema: TableSchema, split: str = "train") -> Rows:
    """The rows of a CSV file whose header is the schema's."""
    header = read_header(path, schema.encoding)
    delimiter = schema.delimiter or found_delimiter(header, schema.names)
    names = names_of(header, delimiter, schema.names)
    with _lines(path, schema.encoding) as lines:
        next(lines)
        check_table(schema, names, str(path), empty=next(lines, None) is None)

    def batches(wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        with _lines(path, schema.encoding) as lines:
            next(lines)
            for block in _blocks(lines):
                yield _batch([_text(line, schema.encoding) for line in block], delimiter, names, wanted)

    with _lines(path, schema.encoding) as lines:
        total = sum(1 for _ in lines) - 1
    return Rows(schema, batches, total, split, str(path))


def read_header(path: Path, encoding: str) -> str:
    """The first line, which must be text in the declared encoding; what follows is records, and is not judged."""
    with _lines(path, encoding) as lines:
        try:
            line = next(lines, None)
        except UnicodeError:  # no mark at its start, which these encodings need
            line = b"\0"
    if line is None:
        raise RequestError(f"{path} is empty; a header line with the names of the columns is expected")
    if isinstance(line, bytes) and b"\0" in line:
        raise RequestError(
            f"{path} is no text in {encoding}, the encoding of its schema: it is a file of another kind, or of another "
            "encoding (utf-8, utf-16), and the schema should say so"
        )
    header = _text(line, _with_mark(encoding))
    if "\ufffd" in header:
        raise RequestError(
            f"the header of {path} is no text in {encoding}: name the file's encoding in the schema, as in "
            '"encoding": "latin-1"'
        )
    if "\r" in header:
        raise RequestError(
            f"the first line of {path} holds carriage returns: lines end with a line feed. Save it anew with the line "
            "ends of Unix or Windows."
        )
    return header


def names_of(header: str, delimiter: str, declared: Sequence[str] = ()) -> list[str]:
    """The names in a header, without blanks around them unless they are declared so."""
    return [name if name in declared else name.strip() for name in _cells(header, delimiter) or []]


def found_delimiter(header: str, declared: tuple[str, ...]) -> str:
    """The delimiter by which the header has most of the declared names: of the header alone, which is public."""

    def matches(delimiter: str) -> int:
        return len(set(names_of(header, delimiter)) & set(declared))

    return max(DELIMITERS, key=matches)


def _batch(lines: list[str], delimiter: str, names: list[str], wanted: tuple[str, ...]) -> pa.RecordBatch:
    """Some lines as columns of text; a line that has not a cell for each name is a row of empty ones.

    Each line is first written in one form, in which cells are set apart by a sign that stands in none of them and
    nothing is quoted: Arrow then reads all of them at once, and no line can be taken for a part of another.
    """
    content = "\n".join([_plain(line, delimiter, len(names)) for line in lines]) + "\n"
    table = pa.csv.read_csv(
        pa.py_buffer(content.encode("utf-8", "replace")),
        pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=2**30),
        pa.csv.ParseOptions(delimiter=APART, quote_char=False, double_quote=False, ignore_empty_lines=False),
        pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=list(wanted)),
    )
    (batch,) = table.combine_chunks().to_batches()
    return batch


def _plain(line: str, delimiter: str, width: int) -> str:
    """A line with its cells set apart by `APART`; empty cells if they are not `width`."""
    if (
        '"' not in line
        and line.count(delimiter) == width - 1
        and APART not in line
        and "\r" not in line
        and "\n" not in line
    ):
        return line.replace(delimiter, APART)
    cells = _cells(line, delimiter)
    if cells is None or len(cells) != width:
        cells = [""] * width
    return APART.join([cell.translate(SIGNS) for cell in cells])


def _cells(line: str, delimiter: str) -> list[str] | None:
    """The cells of one line; None if its quotes are not closed."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), None)
    except csv.Error:
        return None


@contextmanager
def _lines(path: Path, encoding: str) -> Iterator[Iterator[Line]]:
    """The lines of a file, not yet decoded; as text if a line feed is not one byte. No other sign ends a line."""
    with _bytes(path) as file:
        if "\n".encode(encoding) == b"\n":
            yield _whole(file)
            return
        with io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n") as text:
            yield _whole(text)


def _whole(file: Any) -> Iterator[Line]:
    """Line by line; nothing of a line that is too long, so that no record can fill the memory."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not _ends(line):
            while (more := file.readline(LONGEST)) and not _ends(more):
                pass
            line = line[:0]
        yield line


def _ends(line: Line) -> bool:
    return line.endswith("\n") if isinstance(line, str) else line.endswith(b"\n")


def _blocks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    block: list[Line] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if len(block) >= BLOCK or size >= ROOM:
            yield block
            block, size = [], 0
    if block:
        yield block


def _text(line: Line, encoding: str) -> str:
    """A line without its end."""
    if isinstance(line, str):
        return line.removesuffix("\n").removesuffix("\r")
    return line.removesuffix(b"\n").removesuffix(b"\r").decode(encoding, "replace")


@contextmanager
def _bytes(path: Path) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked if they are gzipped; a file that cannot be read is a wrong request."""
    with readable(path, "a CSV file"):
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            yield file  # type: ignore[misc]


def _with_mark(encoding: str) -> str:
    """Excel opens UTF-8 with a byte-order mark, which belongs to no name."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
