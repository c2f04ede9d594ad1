"""The private records, encoded by a declared schema and grouped into units."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from limbeck.data import ImageSchema
from limbeck.data.encoding import centred_onehot
from limbeck.data.private import Private
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, features_of

Progress = Callable[[int, int], None]


class Records:
    """Encoded images with class indices, and which rows belong to which unit.

    A row that the schema cannot encode is a null record: it keeps its place and contributes nothing
    (GUARANTEE, property 3). A unit is one record, or all the rows of one person, of which the first
    `rows_per_unit` are kept: which ones depends on that person's rows alone.

    What is given is closed into `Private` at once, and so is everything made from it. Only `batch` lets some of it
    out, to a session, which clips and noises what it computes.
    """

    def __init__(self, schema: ImageSchema, X, y, units=None):
        X, y, units = Private(X), Private(y), None if units is None else Private(units)
        x, c = schema.encode(X.reveal(), y.reveal())
        self.schema = schema
        self._x, self._c = Private(x), Private(c)
        self._rows = Private(_group(schema, len(c), units))
        self._targets: tuple[dict, Private] | None = None

    def __repr__(self) -> str:
        return f"Records({self.n} units of {self.schema.unit}, private)"

    @property
    def n(self) -> int:
        """The number of units: public, null ones included."""
        return len(self._rows)

    def prepare(self, features: FeatureMap | Kernel, progress: Progress | None = None) -> None:
        """Compute, once, what the features see of every record: phi(x), or x itself for a kernel."""
        if self._targets is None or self._targets[0] != features.config():
            x = self._x.reveal()
            if isinstance(features, FeatureMap):
                x = features_of(features, x, progress=progress)
            x = x.reshape(len(x), -1)
            x[self._c.reveal() < 0] = 0  # null records are zeros, for features too
            self._targets = (features.config(), Private(x))

    def forget(self) -> None:
        """Drop what `prepare` computed."""
        self._targets = None

    def batch(self, units: Int[np.ndarray, "u"]) -> tuple[Float[np.ndarray, "u k d"], Float[np.ndarray, "u k C"]]:
        """Inputs and centred one-hot targets of some units; padding (-1) and null rows have y = NaN.

        NaN is the one mark that no record's own target can carry; contributions turn it into exact zeros.
        """
        assert self._targets is not None, "prepare() comes first"
        targets, classes = self._targets[1].reveal(), len(self.schema.classes)
        rows = np.where(units[:, None] >= 0, self._rows.reveal()[units], -1)
        first, last = rows[0, 0], rows[-1, 0]
        if rows.shape[1] == 1 and first >= 0 and np.array_equal(rows[:, 0], np.arange(first, last + 1)):
            run = slice(first, last + 1)  # a full batch is read where it lies
            return targets[run, None], centred_onehot(self._c.reveal()[run, None], classes)
        c = np.where(rows >= 0, self._c.reveal()[rows], -1)
        return np.where((c >= 0)[..., None], targets[np.maximum(rows, 0)], 0), centred_onehot(c, classes)


def _group(schema: ImageSchema, n: int, units: Private | None) -> Int[np.ndarray, "u k"]:
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
    labels = [_text(label) for label in (units.tolist() if isinstance(units, np.ndarray) else units)]
    number = {label: i for i, label in enumerate(sorted(set(labels)))}
    return np.array([number[label] for label in labels], int), len(number)


def _text(label) -> str:
    try:
        return str(label)
    except Exception:  # whatever a record holds, it must not stop the run
        return ""
