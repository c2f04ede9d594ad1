"""Rows of a table as something that gradients can move, and that is a row all the same."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from limbeck.data import TableSchema
from limbeck.data.tables.columns import Boolean, Ordinal
from limbeck.distill.inducing import Look
from limbeck.features import FeatureMap
from limbeck.measure import Query

SHARPNESS = 4.0


class Relaxed(eqx.Module):
    """From free numbers z, each held in [-1, 1], to an encoded row that fits the schema.

    Categories are the softmax of their coordinates, times `SHARPNESS`; a number is its coordinate. With `straight`, the
    row is the one that would be released (one category, a level, a sign) while gradients are those of the soft one:
    what is optimised is then what goes out (Bengio et al. 2013).
    """

    groups: tuple[tuple[int, int], ...] = eqx.field(static=True)
    indicators: tuple[int, ...] = eqx.field(static=True)
    levels: tuple[tuple[int, int], ...] = eqx.field(static=True)  # coordinates of few values, and how many
    straight: bool = eqx.field(static=True, default=True)

    @classmethod
    def of(cls, schema: TableSchema, straight: bool = True) -> "Relaxed":
        layout = schema.layout
        levels = tuple(
            (slot.start, 2 if isinstance(slot.column, Boolean) else len(slot.column.levels))
            for slot in layout.slots
            if isinstance(slot.column, Boolean | Ordinal)
        )
        return cls(layout.groups, tuple(int(i) for i in layout.indicators), levels, straight)

    def __call__(self, z: Float[Array, "m d"]) -> Float[Array, "m d"]:
        x = jnp.clip(z, -1, 1)
        if self.groups:
            at, group = _members(self.groups)
            soft, hard = _softmax(SHARPNESS * z[:, at], group, len(self.groups))
            x = x.at[:, at].set(self._through(soft, hard))
        indicator = np.array(self.indicators, int)
        soft = jax.nn.sigmoid(SHARPNESS * z[:, indicator])
        x = x.at[:, indicator].set(self._through(soft, (soft > 0.5).astype(soft.dtype)))
        level, number = np.array(self.levels, int).reshape(-1, 2).T
        hard = 2 * jnp.round((x[:, level] + 1) / 2 * (number - 1)) / (number - 1) - 1
        x = x.at[:, level].set(self._through(x[:, level], hard))
        present = 1 - x[:, indicator]  # a missing number is 0, as a reader will have it
        return x.at[:, indicator - 1].multiply(present, unique_indices=True)

    def inverse(self, x: Float[np.ndarray, "m d"]) -> Float[Array, "m d"]:
        """Numbers z, not at the ends of their range for categories, whose row is x."""
        z = np.array(x, np.float32)
        for start, stop in self.groups:
            z[:, start:stop] = z[:, start:stop] - 0.5
        for i in self.indicators:
            z[:, i] = z[:, i] - 0.5
        return jnp.asarray(z)

    def _through(self, soft: Array, hard: Array) -> Array:
        return soft + jax.lax.stop_gradient(hard - soft) if self.straight else soft


def _members(groups: tuple[tuple[int, int], ...]) -> tuple[Int[np.ndarray, " g"], Int[np.ndarray, " g"]]:
    """The coordinates of all groups, and the group of each."""
    at = np.concatenate([np.arange(start, stop) for start, stop in groups])
    return at, np.repeat(np.arange(len(groups)), [stop - start for start, stop in groups])


def _softmax(
    z: Float[Array, "m g"], group: Int[np.ndarray, " g"], number: int
) -> tuple[Float[Array, "m g"], Float[Array, "m g"]]:
    """The softmax within each group, and one at the first of its largest: of all groups in one program, since an
    operation a group would take minutes to compile where there are thousands."""

    def in_group(reduce: Any, values: Array) -> Array:
        return reduce(values.T, group, number, indices_are_sorted=True).T[:, group]

    top = in_group(jax.ops.segment_max, jax.lax.stop_gradient(z))
    e = jnp.exp(z - top)
    place = jnp.where(z >= top, jnp.arange(z.shape[1]), z.shape[1])
    return e / in_group(jax.ops.segment_sum, e), (place == in_group(jax.ops.segment_min, place)).astype(z.dtype)


class Through(FeatureMap):
    """Features of relaxed rows: φ(row(z))."""

    base: FeatureMap
    row: Relaxed

    @property
    def dim(self) -> int:
        return self.base.dim

    def __call__(self, x: Float[Array, "b d"]) -> Float[Array, "b F"]:
        return self.base(self.row(x))

    def config(self) -> dict[str, Any]:
        return {"name": "through", "base": self.base.config()}


@dataclass(frozen=True)
class AtRows:
    """A look at rows of a table: it asks at the rows, and moves the numbers z behind them.

    **Why this is private.** The rows are a function of z, which is private output, and what the records answer is
    clipped and noised in the rows' own coordinates, as of images. (d row/dz)^T G is then a function of private outputs.
    """

    look: Look
    row: Relaxed

    @property
    def decays(self) -> bool:
        return self.look.decays

    def query(self, x_s: Array, y_s: Array) -> Query:
        return self.look.query(_row(self.row, x_s), y_s)

    def gradients(self, x_s: Array, y_s: Array, answer: Any) -> tuple[Any, ...]:
        in_rows, *in_labels = self.look.gradients(_row(self.row, x_s), y_s, answer)
        return _behind(self.row, x_s, jnp.asarray(in_rows)), *in_labels

    def held(self, x_s: Array) -> Array:
        """A number beyond its range would feel nothing any more."""
        return jnp.clip(x_s, -1, 1)


@eqx.filter_jit
def _row(row: Relaxed, z: Float[Array, "m d"]) -> Float[Array, "m d"]:
    return row(z)


@eqx.filter_jit
def _behind(row: Relaxed, z: Float[Array, "m d"], G: Float[Array, "m d"]) -> Float[Array, "m d"]:
    """(d row/dz)^T G."""
    return jax.vjp(row, z)[1](G)[0]
