"""The private records, encoded by a declared schema and grouped into units."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from limbeck.data import ImageSchema
from limbeck.data.encoding import centred_onehot
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, features_of

Progress = Callable[[int, int], None]


class Records:
    """Encoded images with class indices, and which rows belong to which unit.

    A row that the schema cannot encode is a null record: it keeps its place and contributes nothing
    (GUARANTEE, property 3). A unit is one record, or all the rows of one person, of which the first
    `rows_per_unit` are kept: which ones depends on that person's rows alone.
    """

    def __init__(self, schema: ImageSchema, X, y, units=None):
        self.schema = schema
        self._x, self._c = schema.encode(X, y)
        self._rows = _group(schema, len(self._c), units)
        self._targets: tuple[dict, np.ndarray] | None = None

    def __repr__(self) -> str:
        return f"Records({self.n} units of {self.schema.unit}, private)"

    def __reduce__(self):
        raise TypeError("private records are never pickled or copied out of the process")

    @property
    def n(self) -> int:
        """The number of units: public, null ones included."""
        return len(self._rows)

    def prepare(self, features: FeatureMap | Kernel, progress: Progress | None = None) -> None:
        """Compute, once, what the features see of every record: phi(x), or x itself for a kernel."""
        if self._targets is None or self._targets[0] != features.config():
            inputs = (
                features_of(features, self._x, progress=progress)
                if isinstance(features, FeatureMap)
                else self._x.reshape(len(self._x), -1)
            )
            self._targets = (features.config(), inputs)

    def forget(self) -> None:
        """Drop what `prepare` computed."""
        self._targets = None

    def batch(self, units: Int[np.ndarray, "u"]) -> tuple[Float[np.ndarray, "u k d"], Float[np.ndarray, "u k C"]]:
        """Inputs and centred one-hot targets of some units; padding (-1) and null rows have y = NaN.

        NaN is the one mark that no record's own target can carry; contributions turn it into exact zeros.
        """
        assert self._targets is not None, "prepare() comes first"
        rows = np.where(units[:, None] >= 0, self._rows[units], -1)
        c = np.where(rows >= 0, self._c[rows], -1)
        inputs = self._targets[1][np.maximum(rows, 0)]
        return np.where((c >= 0)[..., None], inputs, 0), centred_onehot(c, len(self.schema.classes))


def _group(schema: ImageSchema, n: int, units) -> Int[np.ndarray, "u k"]:
    """Row numbers of each unit, padded with -1."""
    if schema.unit == "record":
        return np.arange(n)[:, None]
    if units is None or len(units) != n:
        given = "none" if units is None else f"{len(units)}"
        raise RequestError(
            f"the schema declares persons as the unit, which needs one unit label a record: {n} expected, "
            f"{given} given. Pass units=..., or declare unit='record'."
        )
    _, owner = np.unique(np.asarray(units).astype(str), return_inverse=True)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(owner.max() + 1))
    rank = np.arange(n) - starts[owner[order]]
    rows = np.full((owner.max() + 1, schema.rows_per_unit), -1)
    kept = rank < schema.rows_per_unit
    rows[owner[order][kept], rank[kept]] = order[kept]
    return rows
