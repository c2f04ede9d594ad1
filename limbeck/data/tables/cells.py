"""From cells to numbers: what a cell becomes is a function of that cell and of its column's declaration alone.

A column is taken apart into its distinct values, each is looked at once, in plain Python, and the results are put back
in place: exact, quick, and no cell can change how another is read. Nothing here raises, warns or counts.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from limbeck.data.tables.columns import Boolean, Categorical, Numerical, Ordinal, Split, Target, Value

MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none", "<na>", "nat"))
TRUE, FALSE = frozenset(("true", "t", "yes", "y", "1")), frozenset(("false", "f", "no", "n", "0"))
ABSENT = -1  # the index of a value that is missing

Index = Callable[[str], int]


def numbers(cells: pa.Array, decimal: str = ".") -> Float[np.ndarray, " n"]:
    """Each cell as a finite float64; NaN for what is no number."""
    if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type) or pa.types.is_boolean(cells.type):
        values = np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        return np.where(np.isfinite(values), values, np.nan)
    if decimal == "." and (quick := _all_numbers(cells)) is not None:
        return quick
    texts, place = distinct(cells)
    seen = np.array([*(as_number(text, decimal) for text in texts), np.nan])
    return seen[place]


def _all_numbers(cells: pa.Array) -> Float[np.ndarray, " n"] | None:
    """The same at once, where every cell is empty or what Arrow reads as a number, which Python then reads alike."""
    if not pa.types.is_string(cells.type):
        return None
    try:
        values = pc.if_else(pc.equal(cells, ""), None, cells).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return numbers(values)


def indices(cells: pa.Array, index: Index) -> Int[np.ndarray, " n"]:
    """The index of each cell's value, by a function of its text; ABSENT for a cell without one."""
    texts, place = distinct(cells)
    return np.array([*map(index, texts), ABSENT], np.int32)[place]


def distinct(cells: pa.Array) -> tuple[list[str], Int[np.ndarray, " n"]]:
    """The distinct texts of some cells, and the place of each cell's among them; the last place + 1 if it is null."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    kept = cells if pa.types.is_dictionary(cells.type) else pc.dictionary_encode(cells)
    if isinstance(kept, pa.ChunkedArray):
        kept = kept.combine_chunks()
    texts = [as_text(value) for value in _listed(kept.dictionary)]
    place = np.asarray(pc.fill_null(kept.indices.cast(pa.int64()), len(texts)).to_numpy(zero_copy_only=False))
    return texts, place.astype(np.int64)


def _listed(values: pa.Array) -> list[Any]:
    """Values as Python has them; bytes for text that is none, which a file may hold all the same."""
    try:
        return values.to_pylist()
    except UnicodeDecodeError:
        return values.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()


def as_text(cell: Any) -> str:
    """One cell as it would stand in a CSV file; empty for what has no plain form."""
    try:
        if cell is None or isinstance(cell, str):
            return cell or ""
        if isinstance(cell, bytes):
            return cell.decode("utf-8", "replace")
        if getattr(cell, "ndim", None) == 0:
            cell = cell.item()
        if isinstance(cell, float):
            return str(int(cell)) if math.isfinite(cell) and cell.is_integer() and abs(cell) < 2**63 else repr(cell)
        return str(cell)
    except Exception:  # whatever a record holds, it must not stop the run
        return ""


def index_of(values: tuple[Value, ...], members: Callable[[Value], tuple[Value, ...]] | None = None) -> Index:
    """The index among declared values of what a text stands for: the very text, the same without blanks around it, or,
    for a value declared as a number, any way to write that number."""
    texts, whole = {}, {}
    for i, value in enumerate(values):
        for member in (value,) if members is None else members(value):
            texts[str(member)] = i
            if isinstance(member, int):
                whole[member] = i

    def index(text: str) -> int:
        bare = text.strip()
        found = texts.get(text, texts.get(bare, ABSENT))
        if found == ABSENT and whole:
            number = float(bare == "True") if bare in ("True", "False") else as_number(bare)
            found = whole.get(int(number), ABSENT) if number.is_integer() else ABSENT
        return found

    return index


def category_index(column: Categorical) -> Index:
    """As `index_of`; what is neither declared nor missing is `other`."""
    known = index_of(column.values)
    if column.other is None:
        return known
    other = [str(value) for value in column.values].index(str(column.other))

    def index(text: str) -> int:
        found = known(text)
        return other if found == ABSENT and text.strip().lower() not in MISSING else found

    return index


def boolean_index(column: Boolean) -> Index:
    """0 for false, 1 for true."""
    if column.true is not None and column.false is not None:
        return index_of((column.false, column.true))

    def index(text: str) -> int:
        bare = text.strip().lower()
        if bare in TRUE | FALSE:
            return int(bare in TRUE)
        number = as_number(bare)
        return int(number) if number in (0.0, 1.0) else ABSENT

    return index


def feature_values(column: Numerical | Categorical | Ordinal | Boolean, cells: pa.Array, decimal: str) -> np.ndarray:
    """A feature column in float64: numbers, or indices; NaN where it is missing."""
    if isinstance(column, Numerical):
        return numbers(cells, decimal)
    index = (
        category_index(column)
        if isinstance(column, Categorical)
        else boolean_index(column)
        if isinstance(column, Boolean)
        else index_of(column.levels)
    )
    found = indices(cells, index)
    return np.where(found == ABSENT, np.nan, found)


def class_indices(column: Target, cells: pa.Array) -> Int[np.ndarray, " n"]:
    return indices(cells, index_of(column.classes, column.members))


def in_split(column: Split, split: str, cells: pa.Array) -> Bool[np.ndarray, " n"]:
    return indices(cells, index_of(column.train if split == "train" else column.test)) != ABSENT


def as_number(text: str, decimal: str = ".") -> float:
    """A finite number, or NaN. Python reads 1_000 as a number; people who write tables do not."""
    try:
        value = float(text if decimal == "." else text.replace(decimal, "."))
    except ValueError:
        return math.nan
    return value if math.isfinite(value) and "_" not in text else math.nan
