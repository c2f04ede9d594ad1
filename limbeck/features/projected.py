"""Feature maps projected to fewer dimensions at random: a public projection, that costs no privacy."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.errors import RequestError
from limbeck.features.base import FeatureMap
from limbeck.features.normalised import unit_norm


class Projected(FeatureMap):
    r"""ψ(x) = R φ(x) / |R φ(x)|, with R a (dim, F) matrix of independent normal numbers from a public seed.

    Inner products, and so a linear model's predictions, are kept to about 1/√dim (Johnson & Lindenstrauss 1984), while
    features take dim numbers a record and not F, in memory and in every private step. For records in their millions, or
    images of many pixels; a loss of accuracy where there is room for all F.

    **Arguments:**

    - `base`: the map φ. `R`: the projection. `seed`: its public seed.

    Use `Projected.of(base, dim, seed)`.
    """

    base: FeatureMap
    R: Float[Array, "F dim"]
    seed: int = eqx.field(static=True)

    @classmethod
    def of(cls, base: FeatureMap, dim: int, seed: int = 0) -> "Projected":
        """φ projected to `dim` dimensions, which are fewer than its own."""
        if not 1 <= dim < base.dim:
            raise RequestError(f"a projection to {dim} dimensions was asked for; 1 to {base.dim - 1} is possible here.")
        return cls(base, jnp.asarray(_matrix(base.dim, dim, seed)), seed)

    @property
    def dim(self) -> int:
        return self.R.shape[1]

    def __call__(self, x: Float[Array, "b ..."]) -> Float[Array, "b dim"]:
        return unit_norm(self.base(x) @ self.R)

    def config(self) -> dict[str, Any]:
        return {"name": "projected", "dim": self.dim, "seed": self.seed, "base": self.base.config()}


@lru_cache(maxsize=2)
def _matrix(F: int, dim: int, seed: int) -> Float[np.ndarray, "F dim"]:
    return np.random.default_rng(seed).standard_normal((F, dim), dtype=np.float32) / np.float32(np.sqrt(dim))
