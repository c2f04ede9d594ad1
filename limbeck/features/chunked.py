"""Features of many examples, a chunk at a time."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from limbeck.errors import RequestError
from limbeck.features.base import FeatureMap
from limbeck.features.parallel import in_parallel

CHUNK = 128  # examples a call: small chunks stay in the processor's cache


def features_of(
    φ: FeatureMap,
    x: Num[np.ndarray, "n ..."],
    chunk: int = CHUNK,
    progress: Callable[[int, int], None] | None = None,
) -> Float[np.ndarray, "n F"]:
    """φ(x) on the host, in float32, with the memory of a chunk a core beside the result.

    **Arguments:**

    - `φ`: the feature map.
    - `x`: the examples, in any numeric type.
    - `chunk`: examples a call.
    - `progress`: called with (done, total) after each chunk.
    """
    if chunk < 1:
        raise RequestError(f"chunk must be at least 1; {chunk} was given")
    n = len(x)
    features = np.empty((n, φ.dim), np.float32)

    def fill(start: int) -> int:
        stop = min(start + chunk, n)
        features[start:stop] = features_of_chunk(φ, x[start:stop], chunk)
        return stop

    for stop in in_parallel(fill, range(0, n, chunk)):
        if progress is not None:
            progress(stop, n)
    return features


def features_of_chunk(φ: FeatureMap, x: Num[np.ndarray, "k ..."], chunk: int = CHUNK) -> Float[np.ndarray, "k F"]:
    """φ of at most `chunk` examples.

    All chunks have one shape (the last is padded with zeros, which are dropped), so φ is compiled once, and an
    example's features do not depend on how many there are.
    """
    padded = np.zeros((chunk, *x.shape[1:]), np.float32)
    padded[: len(x)] = x
    return np.asarray(_apply(φ, jnp.asarray(padded)))[: len(x)]


@eqx.filter_jit
def _apply(φ: FeatureMap, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
    return φ(x)
