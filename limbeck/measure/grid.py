"""Contributions on a grid of integers, so that a sum is exact and floating-point attacks have nothing to hold.

With normal noise a sum is a float64 and its last bits depend on what was added (Mironov 2012). Here each
contribution is rounded to multiples of C / 2^20 in every coordinate, its norm is enforced *after* rounding, in whole
numbers, and sum and noise are integers. What is left of floating point happens before the bound or after the noise.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int64

from limbeck.privacy.discrete import discrete_gaussian
from limbeck.privacy.stream import Stream

C_STEPS = 2**20  # grid steps in C: rounding a contribution of d numbers moves it by at most C sqrt(d) / 2^21


def rounded(g: Float[Array, "u *s"], clip: float) -> Int[Array, "u *s"]:
    """Each contribution in grid steps, shrunk so that rounding to the nearest step cannot carry it above C.

    What is not finite, or too large to be squared, becomes zero. `exact_sum` has the last word.
    """
    shape = g.shape
    g = g.reshape(len(g), -1) / clip
    squared = jnp.sum(g * g, axis=1)
    usable = squared < 1e36  # false for NaN
    # 1e-3 for float32's own rounding of the norm; half a grid step a coordinate for rounding to the grid.
    reach = max(0.0, 0.999 - 0.5 * g.shape[1] ** 0.5 / C_STEPS)
    factor = reach * jax.lax.rsqrt(jnp.maximum(squared, 1.0))
    scaled = C_STEPS * factor[:, None] * jnp.where(usable[:, None], g, 0.0)
    return jnp.round(scaled).astype(jnp.int32).reshape(shape)


def exact_sum(k: Int[np.ndarray, "u *s"]) -> Int64[np.ndarray, "*s"]:
    """The sum over units, in whole numbers, of every contribution whose norm is at most C; others count as zero.

    **Formal guarantee.** Removing one unit changes the result by at most C in l2 norm, exactly.
    """
    k = k.astype(np.int64)
    within = (k * k).sum(axis=tuple(range(1, k.ndim))) <= C_STEPS**2
    return k[within].sum(axis=0)


def noisy(total: Int64[np.ndarray, "*s"], sigma: float, stream: Stream) -> Int64[np.ndarray, "*s"]:
    """The sum plus a discrete Gaussian of at least sigma C."""
    return total + discrete_gaussian(stream, int(np.ceil(sigma * C_STEPS)), total.shape)


def in_units(total: Int64[np.ndarray, "*s"], clip: float) -> np.ndarray:
    """Grid steps as numbers again: post-processing."""
    return total * (clip / C_STEPS)
