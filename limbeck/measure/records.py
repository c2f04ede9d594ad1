"""The private records as they were given, encoded by a declared schema when they are read, grouped into units."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from limbeck.data import ImageSchema, Schema
from limbeck.data.encoding import centred_onehot
from limbeck.data.private import Private
from limbeck.data.tables.table import rows_of
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel
from limbeck.features.chunked import CHUNK, features_of_chunk
from limbeck.features.parallel import in_parallel
from limbeck.measure.store import Cache, Precision, check_choice, let_go, new_store, read, write

VOTE = 2.0**20  # parts of a unit's vote

Progress = Callable[[int, int], None]
Block = tuple[slice, Float[np.ndarray, "k ..."], Int[np.ndarray, " k"]]


@dataclass(frozen=True)
class Targets:
    """What some features see of every record, computed once."""

    features: dict[str, Any]
    store: Private
    classes: Private  # the index of each record's class; -1 for a null record


class Records:
    """Images, or rows of a table, with class indices, and which of them belong to which unit.

    A row that the schema cannot encode is a null record: it keeps its place and contributes nothing
    (GUARANTEE, property 3). A unit is one record, or all the rows of one person, of which the first
    `rows_per_unit` are kept: which ones depends on that person's rows alone.

    What is given is closed into `Private` at once, and so is everything made from it. `batch` lets some of it out, to
    a session, which clips and noises what it computes; `encoded_blocks`, to `prepare` and to the fingerprint alone;
    `cells`, to what buys a schema.

    Images and tables stay as they are given, a mapped file or a CSV file for one, and are encoded a block at a time: a
    million of them work in the memory of a few blocks. They must not change while the records are in use.

    **Parameters**

    - `schema`, `X`, `y`, `units`: what is declared of the records; images, labels and owners, one a record. X may be a
      table that holds the others as columns.
    - `cache`: where features are kept: "memory", "disk" (a file without a name in the folder LIMBECK_CACHE, or in the
      system's folder for temporary files, of which nothing remains), or "auto": memory while they take less than half
      of the machine's.
    - `precision`: "float32", or "float16", which takes half the room.
    """

    def __init__(
        self,
        schema: Schema,
        X,
        y=None,
        units=None,
        *,
        cache: Cache = "auto",
        precision: Precision = "float32",
    ):
        check_choice(cache, precision)
        X, y, units = Private(X), Private(y), None if units is None else Private(units)
        self.schema = schema
        self._cache, self._precision = cache, precision
        if isinstance(schema, ImageSchema):
            images, labels = schema.raw(X.reveal(), y.reveal())
            self._given, self._labels = Private(images), Private(labels)
        else:
            table = rows_of(schema, X.reveal(), y.reveal())
            self._given, self._labels = Private(table), Private(None)
            units = Private(table.units()) if units is None and table.has_units else units
        self._rows = Private(_group(schema, len(self._given), units))
        self._targets: Targets | None = None

    def __repr__(self) -> str:
        return f"Records({self.n} units of {self.schema.unit}, private)"

    @property
    def n(self) -> int:
        """The number of units: public, null ones included."""
        return len(self._rows)

    def prepare(self, features: FeatureMap | Kernel, progress: Progress | None = None) -> None:
        """Compute, once, what the features see of every record: phi(x), or x itself for a kernel.

        Blocks are encoded one after another and go through the features side by side.
        """
        if self._targets is not None and self._targets.features == features.config():
            return
        self.forget()  # two stores at once would take twice the room
        n, φ = len(self._given), features if isinstance(features, FeatureMap) else None
        d = int(np.prod(self.schema.shape)) if φ is None else φ.dim
        store, classes = new_store(n, d, self._cache, self._precision), np.empty(n, np.int32)

        def fill(block: Block) -> int:
            rows, x, c = block
            seen = x.reshape(len(x), d) if φ is None else features_of_chunk(φ, x)
            write(store, rows, np.where(c[:, None] >= 0, seen, 0))  # null records are zeros, for features too
            classes[rows] = c
            return rows.stop

        for done in in_parallel(fill, self.encoded_blocks(CHUNK)):
            if progress is not None:
                progress(done, n)
        self._targets = Targets(features.config(), Private(store), Private(classes))

    def forget(self) -> None:
        """Drop what `prepare` computed."""
        self._targets = None

    def encoded_blocks(self, size: int) -> Iterator[Block]:
        """All records, `size` at a time: which rows they are, what they are encoded as and their class indices.

        Encoding works row by row, so blocks are slices of what encoding everything at once would give. It silences
        warnings for the whole process, so one thread takes all blocks.
        """
        given, labels = self._given.reveal(), self._labels.reveal()
        if not isinstance(self.schema, ImageSchema):
            start = 0
            for x, c in given.encoded(size):
                yield slice(start, start + len(c)), x, c
                start += len(c)
            return
        for start in range(0, len(labels), size):
            rows = slice(start, min(start + size, len(labels)))
            x, c = self.schema.encode(given[rows], labels[rows])
            if isinstance(given, np.ndarray):
                let_go(given)
            yield rows, x, c

    def batch(self, units: Int[np.ndarray, "u"]) -> tuple[Float[np.ndarray, "u k d"], Float[np.ndarray, "u k C"]]:
        """Inputs and centred one-hot targets of some units; padding (-1) and null rows have y = NaN.

        NaN is the one mark that no record's own target can carry; contributions turn it into exact zeros.
        """
        assert self._targets is not None, "prepare() comes first"
        store, classes, C = self._targets.store.reveal(), self._targets.classes.reveal(), len(self.schema.classes)
        rows = np.where(units[:, None] >= 0, self._rows.reveal()[units], -1)
        first, last = rows[0, 0], rows[-1, 0]
        if rows.shape[1] == 1 and first >= 0 and np.array_equal(rows[:, 0], np.arange(first, last + 1)):
            run = slice(first, last + 1)  # a full batch is read where it lies
            return read(store, run)[:, None], centred_onehot(classes[run, None], C)
        c = np.where(rows >= 0, classes[rows], -1)
        return np.where((c >= 0)[..., None], read(store, np.maximum(rows, 0)), 0), centred_onehot(c, C)

    def cells(self, names: tuple[str, ...]) -> Iterator[tuple[pa.RecordBatch, Float[np.ndarray, " k"]]]:
        """Columns of a table as they are in the file, a block at a time, and each row's share in the vote of its unit.

        The shares of a unit's rows are alike and at most 1 together, and parts of 2^20, so that sums of them are exact.
        """
        given, rows = self._given.reveal(), self._rows.reveal()
        kept = rows >= 0
        number = kept.sum(axis=1)
        shares = np.zeros(len(given))
        shares[rows[kept]] = np.repeat(np.floor(VOTE / np.maximum(number, 1)) / VOTE, number)
        start = 0
        for batch in given.batches(names):
            yield batch, shares[start : start + batch.num_rows]
            start += batch.num_rows
        if start != len(given):
            raise RequestError(f"{given.source} changed while it was read; leave it alone and begin again")

    def of_class(self, c: int) -> Int[np.ndarray, "u"]:
        """The units that have a record of class c: for sessions without a guarantee, which draw by class."""
        assert self._targets is not None, "prepare() comes first"
        rows, classes = self._rows.reveal(), self._targets.classes.reveal()
        return np.flatnonzero(((rows >= 0) & (classes[rows] == c)).any(axis=1))


def _group(schema: Schema, n: int, units: Private | None) -> Int[np.ndarray, "u k"]:
    """Row numbers of each unit, padded with -1."""
    if schema.unit == "record":
        return np.arange(n)[:, None]
    if units is None or len(units) != n:
        given = "none" if units is None else f"{len(units)}"
        raise RequestError(
            f"the schema declares persons as the unit, which needs one unit label a record: {n} expected, "
            f"{given} given. Pass units=..., or declare unit='record'."
        )
    owner, owners = _owners(units.reveal())
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(owners))
    rank = np.arange(n) - starts[owner[order]]
    rows = np.full((owners, schema.rows_per_unit), -1)
    kept = rank < schema.rows_per_unit
    rows[owner[order][kept], rank[kept]] = order[kept]
    return rows


def _owners(units) -> tuple[Int[np.ndarray, "n"], int]:
    """The number of each record's owner, and how many there are; equal labels, compared as text, are one owner.

    One by one: as an array, a single label of another kind or length would raise, and be quoted, or fill the memory.
    """
    if isinstance(units, np.ndarray) and units.dtype.kind in "iu" and units.ndim == 1:
        names, owner = np.unique(units, return_inverse=True)
        return owner, len(names)
    labels = [_text(label) for label in (units.tolist() if isinstance(units, np.ndarray) else units)]
    number = {label: i for i, label in enumerate(sorted(set(labels)))}
    return np.array([number[label] for label in labels], int), len(number)


def _text(label) -> str:
    try:
        return str(label)
    except Exception:  # whatever a record holds, it must not stop the run
        return ""
