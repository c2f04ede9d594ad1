"""Feature maps whitened by the covariance of public noise: a preconditioner that costs no privacy."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap
from limbeck.features.chunked import features_of
from limbeck.features.normalised import unit_norm

IMAGES = 2000
RANK = 512


class Whitened(FeatureMap):
    r"""ψ(x) = M (φ(x) - μ) / |M (φ(x) - μ)|, with μ and M = (κ / (Σ + κ I))^{1/2} of features of public noise images.

    Features of images, any images, share a mean and a few strong directions, in which gradient descent is quick
    while it crawls in the others; private noise is the same in all. Σ is the covariance of φ over images that are made
    up (`noise_images`), κ its mean eigenvalue; M is the identity but for the `RANK` strongest directions. Nothing
    here depends on private records: the seed is public.

    **Arguments:**

    - `base`: the map φ. `mean`, `directions` (F, r), `shrink` (r,): μ, V and the factors of M = I + V (shrink - 1) Vᵀ.
    - `seed`: of the public noise images.

    Use `Whitened.of(base, seed)`.
    """

    base: FeatureMap
    mean: Float[Array, " F"]
    directions: Float[Array, "F r"]
    shrink: Float[Array, " r"]
    seed: int = eqx.field(static=True)

    @classmethod
    def of(cls, base: FeatureMap, seed: int = 0) -> "Whitened":
        """φ whitened by its covariance over noise images of its shape."""
        mean, directions, shrink = _statistics(base, seed)
        return cls(base, jnp.asarray(mean), jnp.asarray(directions), jnp.asarray(shrink), seed)

    @property
    def dim(self) -> int:
        return self.base.dim

    def __call__(self, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
        φ = self.base(x) - self.mean
        return unit_norm(φ + ((φ @ self.directions) * (self.shrink - 1)) @ self.directions.T)

    def config(self) -> dict[str, Any]:
        return {"name": "whitened", "seed": self.seed, "base": self.base.config()}


@lru_cache(maxsize=4)
def _statistics(base: FeatureMap, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    φ = features_of(base, noise_images(IMAGES, tuple(base.config()["shape"]), seed)).astype(np.float64)
    μ = φ.mean(axis=0)
    φ -= μ
    # The Gram matrix has the covariance's eigenvalues, and is the smaller of the two.
    λ, U = np.linalg.eigh(φ @ φ.T / len(φ))
    κ = λ.sum() / φ.shape[1]
    strong = np.flatnonzero(λ > 1e-3 * κ)[::-1][:RANK]
    V = φ.T @ (U[:, strong] / np.sqrt(λ[strong] * len(φ)))
    return μ.astype(np.float32), V.astype(np.float32), np.sqrt(κ / (λ[strong] + κ)).astype(np.float32)


def noise_images(n: int, shape: tuple[int, int, int], seed: int) -> Float[np.ndarray, "n H W C"]:
    """Public images in [-1, 1]: noise with a power spectrum of 1/f^a, smooth to rough, in all contrasts and colours."""
    H, W, C = shape
    rng = np.random.default_rng(seed)
    f = np.hypot(np.fft.fftfreq(H)[:, None], np.fft.rfftfreq(W))
    f[0, 0] = 1 / max(H, W)

    def each(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, (n, 1, 1, 1))

    white = np.fft.rfft2(rng.standard_normal((n, C, H, W)))
    x = np.fft.irfft2(white / f ** each(0.5, 3), s=(H, W))
    x -= x.mean(axis=(2, 3), keepdims=True)
    x /= x.std(axis=(2, 3), keepdims=True)
    grey = each(0, 1)  # natural colours vary together
    x = grey * x[:, :1] + (1 - grey) * x
    return np.tanh(each(0.5, 3) * x + rng.normal(size=(n, 1, 1, 1))).astype(np.float32).transpose(0, 2, 3, 1)
