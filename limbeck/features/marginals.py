"""Which cell of each column a row lies in: what one-way marginals count."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

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
        parts = [_one_hot(x, column) for column in self.columns]
        return jnp.concatenate(parts, axis=1) / np.float32(np.sqrt(len(self.columns)))

    def config(self) -> dict[str, Any]:
        columns = [[c.start, c.stop, c.bins, c.indicator] for c in self.columns]
        return {"name": "marginals", "shape": [self.d], "columns": columns}


def _one_hot(x: Float[Array, "b d"], column: Cells) -> Float[Array, "b v"]:
    if not column.bins:
        return x[:, column.start : column.stop]
    share = (x[:, column.start] + 1) / 2
    place = jnp.clip(jnp.floor(share * column.bins).astype(int), 0, column.bins - 1)
    if column.indicator is not None:
        place = jnp.where(x[:, column.indicator] > 0.5, column.bins, place)
    return jax.nn.one_hot(place, column.number)
