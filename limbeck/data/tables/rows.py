"""Rows of a table, read a block at a time, as often as they are asked for: memory is flat in their number."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from limbeck.data.tables.cells import as_text, distinct, in_split
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.data.tables.schema import TableSchema

BLOCK = 8192  # rows read at a time

Batches = Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]


class Rows:
    """The rows of one split of a table, not yet looked at.

    How many there are does not depend on what they hold: whatever stands where a row stands is a row. Where the schema
    has a split column, its values are public, and rows of the other split are none of these.

    - `schema`: what is declared. `source`: where they come from, in words.
    - `batches`: gives the named columns of all rows, from the first, a block at a time.
    - `has_units`: whether the unit column is among them.
    - `total`: the number of rows of all splits. `split`: None for all of them.
    """

    def __init__(
        self,
        schema: "TableSchema",
        batches: Batches,
        total: int,
        split: str | None = "train",
        source: str = "",
        *,
        has_units: bool | None = None,
    ):
        self.schema, self.split, self.source = schema, split, source
        self.has_units = schema.unit_column is not None if has_units is None else has_units
        self._batches = batches
        self._chosen_by = None if split is None else schema.split_column
        column = self._chosen_by
        self._n = total if column is None else sum(batch.num_rows for batch in self.batches((column.name,)))
        if self._n == 0:
            of = "" if column is None else f" of the {split} split"
            raise RequestError(f"{source or 'the table'} holds no rows{of}; at least one is expected")

    def __len__(self) -> int:
        return self._n

    def batches(self, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """The named columns of these rows."""
        column = self._chosen_by
        if column is None or self.split is None:
            yield from self._batches(names)
            return
        for batch in self._batches(tuple(dict.fromkeys((*names, column.name)))):
            chosen = in_split(column, self.split, batch.column(column.name))
            yield batch.select(list(names)).filter(pa.array(chosen))

    def encoded(self, size: int) -> Iterator[tuple[Float[np.ndarray, "k d"], Int[np.ndarray, " k"]]]:
        """All rows as numbers, `size` at a time."""
        kept: list[tuple[np.ndarray, np.ndarray]] = []
        waiting = given = 0
        for batch in self.batches(self.schema.released_names):
            kept.append(self.schema.encode(batch))
            waiting += batch.num_rows
            if waiting < size:
                continue
            x, c = (np.concatenate(parts) for parts in zip(*kept, strict=True))
            whole = waiting - waiting % size
            for start in range(0, whole, size):
                yield x[start : start + size], c[start : start + size]
            given, waiting = given + whole, waiting - whole
            kept = [(x[whole:], c[whole:])]
        if waiting:
            x, c = (np.concatenate(parts) for parts in zip(*kept, strict=True))
            yield x, c
        if given + waiting != self._n:
            raise RequestError(f"{self.source} changed while it was read; leave it alone and begin again")

    def units(self) -> Int[np.ndarray, " n"] | None:
        """Whom each row belongs to, as a number; None where nothing says so. Labels are compared as text."""
        column = self.schema.unit_column
        if column is None or not self.has_units:
            return None
        numbers: dict[str, int] = {}
        owners = []
        for batch in self.batches((column.name,)):
            texts, place = distinct(batch.column(column.name))
            found = [numbers.setdefault(as_text(text).strip(), len(numbers)) for text in (*texts, "")]
            owners.append(np.array(found)[place])
        return np.concatenate(owners)
