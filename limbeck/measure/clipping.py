"""Bounded contributions: clip each unit's, then sum. What is summed is what was measured."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from limbeck.privacy.plan import ROUNDING


class Outer(eqx.Module):
    """A contribution a_u b_u^T kept as its two factors: its norm is |a_u| |b_u|, and a sum is one product."""

    a: Float[Array, "u m"]
    b: Float[Array, "u d"]


def clipped_sum(g: PyTree[Any], clip: float) -> PyTree[Any]:
    """Sum over units of g_u * min(1, C / |g_u|), where a contribution that is not finite counts as zero.

    A contribution is a tree of arrays with the units first, or of `Outer`; its norm is that of all its numbers
    together.

    **Formal guarantee.** Removing one unit changes the result by at most `clip` in l2 norm, whatever g holds.
    The norm is taken of the very numbers that are summed, so no cancellation can hide in it.

    | contribution | becomes |
    | --- | --- |
    | zeros | zeros |
    | any NaN or Inf, a norm above 1e18 C, a factor b above 1e10 | zeros |
    | norm <= C | itself |
    """
    # In units of C: what is too small for its square to be a float32 is also too small to matter.
    parts = [_squared(v, clip) for v in jax.tree.leaves(g, is_leaf=_is_outer)]
    squared = sum(parts[1:], start=parts[0])
    usable = squared < 1e36  # false for NaN
    factor = jnp.where(usable, ROUNDING * jax.lax.rsqrt(jnp.maximum(squared, 1.0)), 0.0)
    return jax.tree.map(lambda v: _weighted_sum(v, factor, usable), g, is_leaf=_is_outer)


def plain_sum(g: PyTree[Any]) -> PyTree[Any]:
    """The same without clipping, for what carries no guarantee."""
    everyone = jnp.ones(len(jax.tree.leaves(g)[0]))
    return jax.tree.map(lambda v: _weighted_sum(v, everyone, everyone > 0), g, is_leaf=_is_outer)


def explicit(g: PyTree[Any]) -> PyTree[Any]:
    """Contributions with their outer products written out."""
    return jax.tree.map(
        lambda v: v.a[:, :, None] * v.b[:, None, :] if isinstance(v, Outer) else v, g, is_leaf=_is_outer
    )


def _squared(v: Array | Outer, clip: float) -> Float[Array, " u"]:
    if isinstance(v, Outer):
        b = _squared(v.b, 1.0)
        return _squared(v.a, clip) * jnp.where(b < 1e20, b, jnp.nan)
    return jnp.sum((v.reshape(len(v), -1) / clip) ** 2, axis=1)


def _weighted_sum(v: Array | Outer, factor: Float[Array, " u"], usable: Bool[Array, " u"]) -> Array:
    def kept(rows):  # NaN times zero is NaN: what is not usable is taken out before it is weighed
        return jnp.where(usable[:, None], rows.reshape(len(rows), -1), 0.0)

    if isinstance(v, Outer):
        return (factor[:, None] * kept(v.a)).T @ kept(v.b)
    return (factor @ kept(v)).reshape(v.shape[1:])


def _is_outer(v: Any) -> bool:
    return isinstance(v, Outer)
