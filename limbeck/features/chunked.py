"""Features of many examples, a chunk at a time."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from limbeck.errors import RequestError
from limbeck.features.base import FeatureMap
from limbeck.features.parallel import in_parallel


def features_of(
    φ: FeatureMap,
    x: Num[np.ndarray, "n ..."],
    chunk: int = 128,
    progress: Callable[[int, int], None] | None = None,
) -> Float[np.ndarray, "n F"]:
    """φ(x) on the host, in float32, with the memory of a chunk a core beside the result.

    All chunks have one shape (the last is padded with zeros, which are dropped), so φ is compiled once,
    and an example's features do not depend on how many there are.

    **Arguments:**

    - `φ`: the feature map.
    - `x`: the examples, in any numeric type.
    - `chunk`: examples a call. Small chunks stay in the processor's cache.
    - `progress`: called with (done, total) after each chunk.
    """
    if chunk < 1:
        raise RequestError(f"chunk must be at least 1; {chunk} was given")
    n = len(x)
    features = np.empty((n, φ.dim), np.float32)

    def fill(start: int) -> int:
        stop = min(start + chunk, n)
        block = np.zeros((chunk, *x.shape[1:]), np.float32)
        block[: stop - start] = x[start:stop]
        features[start:stop] = np.asarray(_apply(φ, jnp.asarray(block)))[: stop - start]
        return stop

    for stop in in_parallel(fill, range(0, n, chunk)):
        if progress is not None:
            progress(stop, n)
    return features


@eqx.filter_jit
def _apply(φ: FeatureMap, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
    return φ(x)
