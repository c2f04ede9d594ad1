"""The wavelet scattering transform of order two (ScatterNet), on images."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.errors import RequestError
from limbeck.features.base import FeatureMap
from limbeck.features.normalised import unit_norm
from limbeck.features.transform import transform
from limbeck.features.wavelets import bank


class Scattering(FeatureMap):
    r"""Scattering coefficients of orders 0, 1 and 2, at most one number for each 2^J x 2^J pixels.

        S_0 = x * φ_J,   S_1 = |x * ψ_λ1| * φ_J,   S_2 = ||x * ψ_λ1| * ψ_λ2| * φ_J   (j1 < j2)

    with Morlet wavelets ψ_λ at scales 2^j and L angles, φ_J a Gaussian, reflection padding: the numbers
    of kymatio's `ScatteringJax2D`, a colour channel at a time, flattened as (C, K, h, w) with
    K = 1 + JL + J(J-1)/2 L² channels (81 for J=2, L=8). Then, as Tramer & Boneh do:

    - the C·K channels are normalised in `groups` groups, per example (`GroupNorm` without scale or
      shift, ε = 1e-5), if `groups` is given;
    - the features are divided by their L2 norm, if `unit_norm`. All-zero features stay zero.

    The modulus has derivative 0 at 0, as kymatio's; so have the norms, and gradients are finite for
    constant and for all-zero images.

    **Arguments:**

    - `shape`: (H, W, C) of an image, H and W at least 2^J.
    - `J`, `L`: scales and angles.
    - `groups`: groups of channels to normalise (a divisor of C·K), or None.
    - `unit_norm`: whether to divide by the L2 norm.

    **References:** Bruna & Mallat, *Invariant scattering convolution networks*, 2013; Andreux et al.,
    *Kymatio*, 2020; Tramer & Boneh, *Differentially private learning needs better features*, 2021.

    **Example:**

    >>> phi = Scattering((28, 28, 1))
    >>> phi(jnp.zeros((2, 28, 28, 1))).shape
    (2, 3969)
    """

    shape: tuple[int, int, int] = eqx.field(static=True)
    J: int = eqx.field(static=True, default=2)
    L: int = eqx.field(static=True, default=8)
    groups: int | None = eqx.field(static=True, default=27)
    unit_norm: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        H, W, C = self.shape
        bank(H, W, self.J, self.L)
        if self.groups is not None and (self.groups < 1 or (C * self.channels) % self.groups):
            raise RequestError(
                f"groups must divide the {C * self.channels} channels of this transform; {self.groups} was given"
            )

    @property
    def channels(self) -> int:
        """Scattering channels of one colour channel, K."""
        J, L = self.J, self.L
        return 1 + J * L + J * (J - 1) // 2 * L**2

    @property
    def dim(self) -> int:
        H, W, C = self.shape
        return C * self.channels * (H >> self.J) * (W >> self.J)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b F"]:
        if x.shape[1:] != self.shape:
            raise RequestError(f"these features are of images of shape {self.shape}; {x.shape[1:]} was given")
        b, H, W, C = x.shape
        S = transform(H, W, self.J, self.L)(jnp.moveaxis(x, -1, 1).reshape(b * C, H, W))
        S = S.reshape(b, C * self.channels, -1)
        if self.groups is not None:
            S = _group_norm(S, self.groups)
        S = S.reshape(b, -1)
        return unit_norm(S) if self.unit_norm else S

    def config(self) -> dict[str, Any]:
        return {
            "name": "scattering",
            "shape": list(self.shape),
            "J": self.J,
            "L": self.L,
            "groups": self.groups,
            "unit_norm": self.unit_norm,
        }


def _group_norm(S: Float[Array, "b K hw"], groups: int) -> Float[Array, "b K hw"]:
    G = S.reshape(len(S), groups, -1)
    G = G - jnp.mean(G, axis=2, keepdims=True)
    G = G / jnp.sqrt(jnp.mean(G * G, axis=2, keepdims=True) + 1e-5)
    return G.reshape(S.shape)
