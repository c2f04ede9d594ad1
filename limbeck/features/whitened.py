"""Feature maps whitened by the covariance of made-up public images: a preconditioner that costs no privacy."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap
from limbeck.features.chunked import features_of
from limbeck.features.dead_leaves import dead_leaves
from limbeck.features.normalised import unit_norm

IMAGES = 2000
RANK = 512


class Whitened(FeatureMap):
    r"""ψ(x) = M (φ(x) - μ) / |M (φ(x) - μ)|, with μ and M = (κ / (Σ + κ I))^{1/2} of made-up images.

    Features of images, any images, share a mean and a few strong directions, in which gradient descent is quick
    while it crawls in the others; private noise is the same in all. Σ is the covariance of φ over `dead_leaves`, κ its
    mean eigenvalue; M is the identity but for the `RANK` strongest directions. Nothing here depends on private
    records: the images are made up, from a public seed.

    **Arguments:**

    - `base`: the map φ. `mean`, `directions` (F, r), `shrink` (r,): μ, V and the factors of M = I + V (shrink - 1) Vᵀ.
    - `seed`: of the public images.

    Use `Whitened.of(base, seed)`.
    """

    base: FeatureMap
    mean: Float[Array, " F"]
    directions: Float[Array, "F r"]
    shrink: Float[Array, " r"]
    seed: int = eqx.field(static=True)

    @classmethod
    def of(cls, base: FeatureMap, seed: int = 0) -> "Whitened":
        """φ whitened by its covariance over dead leaves of its shape."""
        mean, directions, shrink = _statistics(base, seed)
        return cls(base, jnp.asarray(mean), jnp.asarray(directions), jnp.asarray(shrink), seed)

    @property
    def dim(self) -> int:
        return self.base.dim

    def __call__(self, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
        φ = self.base(x) - self.mean
        return unit_norm(φ + ((φ @ self.directions) * (self.shrink - 1)) @ self.directions.T)

    def config(self) -> dict[str, Any]:
        by = {"images": "dead leaves", "number": IMAGES, "rank": RANK, "seed": self.seed}
        return {"name": "whitened", **by, "base": self.base.config()}


@lru_cache(maxsize=4)
def _statistics(base: FeatureMap, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    φ = features_of(base, dead_leaves(IMAGES, tuple(base.config()["shape"]), seed)).astype(np.float64)
    μ = φ.mean(axis=0)
    φ -= μ
    n, F = φ.shape
    if n < F:  # the Gram matrix has the covariance's eigenvalues, and is the smaller of the two
        λ, U = np.linalg.eigh(φ @ φ.T / n)
    else:
        λ, U = np.linalg.eigh(φ.T @ φ / n)
    κ = λ.sum() / F
    strong = np.flatnonzero(λ > 1e-3 * κ)[::-1][:RANK]
    V = φ.T @ (U[:, strong] / np.sqrt(λ[strong] * n)) if n < F else U[:, strong]
    return μ.astype(np.float32), V.astype(np.float32), np.sqrt(κ / (λ[strong] + κ)).astype(np.float32)
