"""Which cell of each column a row lies in: what one-way marginals count."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from limbeck.features.base import FeatureMap


@dataclass(frozen=True)
class Cells:
    """The cells of one column, over the coordinates `start` to `stop` of an encoded row.

    A categorical column has a cell a category. A number in [-1, 1] has `bins` of them, evenly cut, and one more, the
    last, for rows in which its `indicator` says that it is missing.
    """

    start: int
    stop: int
    bins: int = 0
    indicator: int | None = None

    @property
    def number(self) -> int:
        return self.bins + (self.indicator is not None) if self.bins else self.stop - self.start


class Marginals(FeatureMap):
    """ψ(x) = (1/√k) times a one-hot vector a column: k ones in all, so that every row has norm one.

    A sum of ψ over some rows holds, times √k, how many of them lie in each cell of each column: all one-way marginals
    at once, each of which sums to the number of rows.
    """

    d: int = eqx.field(static=True)
    columns: tuple[Cells, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return sum(column.number for column in self.columns)

    def __call__(self, x: Float[Array, "b d"]) -> Float[Array, "b F"]:
        at, cell, bins, indicator = _places(self.columns)
        values = x[:, at]
        found = jnp.clip(jnp.floor((values + 1) / 2 * bins).astype(int), 0, bins - 1)
        missing = (indicator >= 0) & (x[:, np.maximum(indicator, 0)] > 0.5)
        ones = jnp.where(bins > 0, jnp.where(missing, bins, found) == cell, values)
        return ones / np.float32(np.sqrt(len(self.columns)))

    def config(self) -> dict[str, Any]:
        columns = [[c.start, c.stop, c.bins, c.indicator] for c in self.columns]
        return {"name": "marginals", "shape": [self.d], "columns": columns}


@lru_cache(maxsize=4)
def _places(columns: tuple[Cells, ...]) -> tuple[Int[np.ndarray, " F"], ...]:
    """For every cell of every column, in order: its coordinate, its number in the column, the column's bins, and the
    column's indicator or -1. All of them at once, since a program with an operation a column takes minutes to compile.
    """
    rows = [
        (c.start if c.bins else c.start + i, i, c.bins, -1 if c.indicator is None else c.indicator)
        for c in columns
        for i in range(c.number)
    ]
    at, cell, bins, indicator = np.array(rows, np.int32).T
    return at, cell, bins, indicator
