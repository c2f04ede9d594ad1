"""Labels, probabilities, accuracy and progress, the same for every model."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from limbeck.errors import RequestError

Progress = Callable[[int, int], None]


def probabilities(y: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, "n classes"]:
    """Centred labels or scores as probabilities: the centring undone, negative values dropped, normalised.

    A row with nothing left is uniform.
    """
    classes = y.shape[1]
    p = np.clip(y + y.dtype.type(1 / classes), 0, None)
    total = p.sum(1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1), y.dtype.type(1 / classes))


def as_large_as_onehot(Y: ArrayLike) -> Float[Array, "m C"]:
    """Predictions in the scale of centred one-hot labels, on average: regression on them predicts the same classes."""
    Y = jnp.asarray(Y)
    Y = Y - jnp.mean(Y, axis=1, keepdims=True)
    largest = jnp.mean(jnp.max(Y, axis=1))
    return Y * (1 - 1 / Y.shape[1]) / jnp.where(largest > 0, largest, 1)


def accuracy(predicted: Int[np.ndarray, " n"], c: Int[np.ndarray, " n"], weight: Any = None) -> float:
    """The share of records whose class index was predicted; null records (-1) are left out."""
    valid = c >= 0
    if not valid.any():
        raise RequestError("there is no record with a declared class to score on")
    weight = None if weight is None else np.asarray(weight)[valid]
    return float(np.average(predicted[valid] == c[valid], weights=weight))


def part_of(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """Progress of one stage, which is `size` of `total` and starts when `before` is done."""
    if progress is None:
        return None
    return lambda done, of: progress(before + size * done // of, total)
