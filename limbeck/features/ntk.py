"""The neural tangent kernel of an infinitely wide fully-connected ReLU network, in closed form."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.errors import RequestError
from limbeck.features.base import Kernel


class FCNTK(Kernel):
    r"""Infinite-width NTK of a fully-connected ReLU network with `depth` hidden layers.

    In the NTK parameterisation, with D the input dimension, σ_w = `w_std`, σ_b = `b_std`:

        Σ_0 = σ_w² <x, z>/D + σ_b²,                Θ_0 = Σ_0
        Σ_l = σ_w² T(Σ_{l-1}) + σ_b²,              Θ_l = Σ_l + σ_w² T'(Σ_{l-1}) Θ_{l-1}

    where T = E[relu(u) relu(v)] and T' = E[relu'(u) relu'(v)] for (u, v) Gaussian with covariance Σ:
    the arc-cosine kernels. k(x, z) = Θ_depth, the value of `neural_tangents.stax` for
    `[Dense, Relu] * depth + [Dense]`.

    k has a cusp where x and z are parallel: the angle between them is not differentiable there, though
    k's gradient stays bounded. There, and at zero inputs, the derivative of the angle is taken as 0,
    which is the mean of the one-sided ones.

    **Arguments:**

    - `depth`: hidden layers, at least 1.
    - `w_std`, `b_std`: standard deviations of weights and biases, the readout's included.

    **References:** Cho & Saul, *Kernel methods for deep learning*, 2009; Jacot, Gabriel & Hongler,
    *Neural tangent kernel*, 2018; Novak et al., *Neural Tangents*, 2020.

    **Example:**

    >>> k = FCNTK(depth=1)
    >>> k(jnp.ones((2, 5)), jnp.ones((3, 5))).shape
    (2, 3)
    """

    depth: int = eqx.field(static=True, default=1)
    w_std: float = eqx.field(static=True, default=math.sqrt(2))
    b_std: float = eqx.field(static=True, default=0.1)

    def __check_init__(self):
        if self.depth < 1:
            raise RequestError(f"depth counts hidden layers and must be at least 1; {self.depth} was given")
        if not (self.w_std > 0 and self.b_std >= 0):
            raise RequestError(f"w_std must be positive and b_std not negative; {self.w_std}, {self.b_std} given")

    def __call__(self, x: Float[Array, "a ..."], z: Float[Array, "b ..."]) -> Float[Array, "a b"]:
        return self._kernels(*_moments(x, z))[1]

    def nngp(self, x: Float[Array, "a ..."], z: Float[Array, "b ..."]) -> Float[Array, "a b"]:
        """The network's covariance at initialisation, Σ_depth."""
        return self._kernels(*_moments(x, z))[0]

    def derivative(
        self, x: Float[Array, "a ..."], z: Float[Array, "b ..."]
    ) -> tuple[Float[Array, "a b"], Float[Array, "a b"], Float[Array, "a b"]]:
        p, q, s, D = _moments(x, z)
        # Both in one pass: between near points k_s and k_q are large and nearly cancel in ∇_z k, so they
        # must come of the same rounding.
        k, pull = jax.vjp(lambda q, s: self._kernels(p, q, s, D)[1], jnp.broadcast_to(q, s.shape), s)
        k_q, k_s = pull(jnp.ones_like(k))
        return k, k_s, k_q

    def diagonal(self, x: Float[Array, "a ..."]) -> tuple[Float[Array, " a"], Float[Array, " a"]]:
        # On the diagonal T(p, p, p) = p/2 and T' = 1/2, so k(x, x) is affine in p.
        x = x.reshape(len(x), -1)

        def k(p):
            Θ = p = self._dense(p / x.shape[1])
            for _ in range(self.depth):
                p = self._dense(p / 2)
                Θ = p + self.w_std**2 / 2 * Θ
            return Θ

        p = jnp.sum(x * x, axis=1)
        return jax.jvp(k, (p,), (jnp.ones_like(p),))

    def config(self) -> dict[str, Any]:
        return {"name": "fc-ntk", "depth": self.depth, "w_std": self.w_std, "b_std": self.b_std}

    def _dense(self, Σ: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return self.w_std**2 * Σ + self.b_std**2

    def _kernels(
        self, p: Float[Array, "a 1"], q: Float[Array, "#a b"], s: Float[Array, "a b"], D: int
    ) -> tuple[Float[Array, "a b"], Float[Array, "a b"]]:
        p, q, Σ = self._dense(p / D), self._dense(q / D), self._dense(s / D)
        Θ = Σ
        for _ in range(self.depth):
            Ṫ = _T_dot(p, q, Σ)
            p, q, Σ = self._dense(p / 2), self._dense(q / 2), self._dense(_T(p, q, Σ))
            Θ = Σ + self.w_std**2 * Ṫ * Θ
        return Σ, Θ


def _moments(
    x: Float[Array, "a ..."], z: Float[Array, "b ..."]
) -> tuple[Float[Array, "a 1"], Float[Array, "1 b"], Float[Array, "a b"], int]:
    x, z = jnp.asarray(x), jnp.asarray(z)
    x, z = x.reshape(len(x), -1), z.reshape(len(z), -1)
    return jnp.sum(x * x, axis=1)[:, None], jnp.sum(z * z, axis=1)[None], x @ z.T, x.shape[1]


@jax.custom_jvp
def _T(p: Float[Array, "a 1"], q: Float[Array, "#a b"], s: Float[Array, "a b"]) -> Float[Array, "a b"]:
    """E[relu(u) relu(v)] = (r + (π - θ) s) / 2π, with r = √(pq - s²) and θ the angle, tan θ = r/s."""
    r, θ = _angle(p, q, s)
    return (r + (math.pi - θ) * s) / (2 * math.pi)


@jax.custom_jvp
def _T_dot(p: Float[Array, "a 1"], q: Float[Array, "#a b"], s: Float[Array, "a b"]) -> Float[Array, "a b"]:
    """E[relu'(u) relu'(v)] = (π - θ) / 2π."""
    _, θ = _angle(p, q, s)
    return (math.pi - θ) / (2 * math.pi)


def _angle(
    p: Float[Array, "a 1"], q: Float[Array, "#a b"], s: Float[Array, "a b"]
) -> tuple[Float[Array, "a b"], Float[Array, "a b"]]:
    # atan2 is accurate at every angle, as arccos of a rounded cosine is not. What of r² is below rounding
    # is taken as zero: the points are parallel, and k(x, x) is the diagonal's value.
    pq = p * q
    r2 = pq - s * s
    parallel = r2 <= 4 * jnp.finfo(s.dtype).eps * pq
    r = jnp.sqrt(jnp.where(parallel, 1, r2))
    r = jnp.where(parallel, 0, r)
    return r, jnp.arctan2(r, s)


# The derivatives are written out: as a chain of its parts, dT/ds is a difference of two terms in 1/r.
# 1/r is bounded by rounding above, and 0 stands for it at parallel points (the cusp), as for 1/p at p = 0.


@_T.defjvp
def _T_jvp(primals, tangents):
    p, q, s = primals
    dp, dq, ds = tangents
    r, _ = _angle(p, q, s)
    return _T(p, q, s), _T_dot(p, q, s) * ds + r / (4 * math.pi) * (_inverse(p) * dp + _inverse(q) * dq)


@_T_dot.defjvp
def _T_dot_jvp(primals, tangents):
    p, q, s = primals
    dp, dq, ds = tangents
    r, _ = _angle(p, q, s)
    dθ = -_inverse(r) * (ds - s / 2 * (_inverse(p) * dp + _inverse(q) * dq))
    return _T_dot(p, q, s), -dθ / (2 * math.pi)


def _inverse(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    zero = x == 0
    return jnp.where(zero, 0, 1 / jnp.where(zero, 1, x))
