"""Numbers by their rank: each stretched where rows are dense, so that evenly cut pieces hold about as many rows."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap

EVEN = 0.25  # of what a number is stretched by; the rest is by density


class Warp(eqx.Module):
    """x -> x with each number t in [-1, 1] at 2 F(t) - 1, where F is its distribution function, piecewise linear.

    `heights` holds F at evenly spaced edges of [-1, 1], from 0 to 1, a row for each of `numbers`. They come from the
    noisy counts of a measurement or, in `plain`, from nowhere: either way a warp is public, and of a row alone.
    """

    numbers: tuple[int, ...] = eqx.field(static=True)
    heights: Float[Array, "s e"]

    @classmethod
    def of(cls, numbers: tuple[int, ...], shares: Float[np.ndarray, "s b"]) -> "Warp":
        """By the shares of rows in even pieces of each number's range, and `EVEN` for where there are none."""
        s, b = shares.shape
        total = shares.sum(axis=1, keepdims=True)
        dense = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / b)
        heights = np.concatenate([np.zeros((s, 1)), np.cumsum((1 - EVEN) * dense + EVEN / b, axis=1)], axis=1)
        heights[:, -1] = 1
        return cls(numbers, jnp.asarray(heights, jnp.float32))

    @classmethod
    def plain(cls) -> "Warp":
        """Nothing is moved."""
        return cls((), jnp.zeros((0, 2), jnp.float32))

    def __call__(self, x: Float[Array, "m d"]) -> Float[Array, "m d"]:
        return self._moved(x, lambda t, heights: 2 * jnp.interp(t, self._edges, heights) - 1)

    def inverse(self, x: Float[Array, "m d"]) -> Float[Array, "m d"]:
        return self._moved(x, lambda t, heights: jnp.interp((t + 1) / 2, heights, self._edges))

    @property
    def _edges(self) -> Float[Array, " e"]:
        return jnp.linspace(-1, 1, self.heights.shape[1])

    def _moved(self, x: Float[Array, "m d"], each: Callable[[Array, Array], Array]) -> Float[Array, "m d"]:
        if not self.numbers:
            return x
        at = jnp.asarray(self.numbers)
        return x.at[:, at].set(jax.vmap(each, in_axes=(1, 0), out_axes=1)(x[:, at], self.heights))


class Warped(FeatureMap):
    """φ(warp(x))."""

    base: FeatureMap
    warp: Warp

    @property
    def dim(self) -> int:
        return self.base.dim

    def __call__(self, x: Float[Array, "b d"]) -> Float[Array, "b F"]:
        return self.base(self.warp(x))

    def config(self) -> dict[str, Any]:
        """The base's: a warp is no setting but an answer, and is kept with the other answers."""
        return self.base.config()
