"""Per-target gradients of the KIP loss with respect to the support (Algorithm 1, steps 4 and 5 of DP-KIP).

With K = k(X_s, X_s), A = K + lam tr(K)/m I and alpha = A^-1 Y_s, kernel ridge regression on the support predicts
f_t = alpha^T k_t for a target whose kernel column is k_t = k(X_s, x_t), and its loss is L_t = 1/2 |f_t - y_t|^2.
Write r_t = f_t - y_t, a_t = alpha r_t and b_t = A^-1 k_t. Then

    dL_t = a_t . dk_t - b_t^T dA a_t,        dA = dK + (lam / m) tr(dK) I,

so all of a target's gradient hangs on two m-vectors, and the backward pass through the solve is gone. For a finite
feature map the cotangent at phi(x_j) is, with N_t = a_t b_t^T and P_t = N_t + N_t^T,

    a_t[j] phi_t - sum_i P_t[i, j] phi_i - 2 (lam / m) tr(N_t) phi_j,

pulled back through phi, which is linearised once per support point. For a kernel of |x|^2, |z|^2 and <x, z> the
gradient at x_j is a combination of x_t and the support points, with no backward pass at all; it is written in
an orthonormal basis Q of the support's span, m numbers instead of D, and what x_t has outside of that span.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features import FeatureMap, Kernel, gram
from limbeck.features.ridge import solve_ridge
from limbeck.measure.clipping import Outer, plain_sum

# Coordinates in Q, and what is orthogonal to Q.
Contribution = tuple[Float[Array, "u m r"], Float[Array, "u m D"] | Outer]


class SupportGradient(eqx.Module):
    """Asks for the gradient of the KIP loss at the current support. Carries public state only."""

    features: FeatureMap | Kernel
    x_s: Float[Array, "m ..."]
    y_s: Float[Array, "m C"]
    alpha: Float[Array, "m C"]
    A_inv: Float[Array, "m m"]
    Q: Float[Array, "r D"]  # orthonormal rows that span the support; none for a feature map
    ridge: float  # lam, relative to the mean of K's diagonal

    @classmethod
    def at(cls, features: FeatureMap | Kernel, x_s: Array, y_s: Array, ridge: float) -> "SupportGradient":
        """The query at (X_s, Y_s). The m x m solve is done here, in float64: small, and public."""
        K = np.nan_to_num(np.asarray(_gram(features, x_s), np.float64))
        A_inv = solve_ridge((K + K.T) / 2, np.eye(len(K)), ridge * np.trace(K) / len(K))
        alpha = A_inv @ np.asarray(y_s, np.float64)
        flat = np.asarray(x_s, np.float64).reshape(len(x_s), -1)
        Q = np.linalg.qr(flat.T)[0].T if isinstance(features, Kernel) else np.zeros((0, flat.shape[1]))
        public = {"x_s": x_s, "y_s": y_s, "alpha": alpha, "A_inv": A_inv, "Q": Q}
        arrays = {name: jnp.asarray(v, jnp.float32) for name, v in public.items()}
        return cls(features=features, ridge=ridge, **arrays)

    def decoded(self, total: tuple[Float[Array, "m r"], Float[Array, "m D"]]) -> Float[Array, "m ..."]:
        """Back to the support's coordinates: linear, and no norm grows, since the second part is orthogonal to Q."""
        within, outside = total
        return (within @ self.Q + outside).reshape(self.x_s.shape)

    def contributions(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Contribution:
        """One gradient a unit: its coordinates in Q and what is orthogonal to Q, summed over the unit's k rows.

        A row whose target is NaN (padding, null) adds zero.
        """
        if isinstance(self.features, FeatureMap):
            return self._through_features(inputs, y)
        return self._through_kernel(inputs, y)

    def predicted(self, inputs: Float[Array, "u k d"]) -> Float[Array, "u k C"]:
        """f_t of every row: what kernel ridge regression on the support predicts."""
        k_t, *_ = self._columns(inputs)
        return k_t @ self.alpha

    def mean(
        self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]
    ) -> tuple[Float[Array, "m ..."], Float[Array, "m C"]]:
        """Gradients of the mean loss in X_s and in Y_s, unclipped: the KIP step."""
        rows, y = inputs.reshape(1, -1, inputs.shape[-1]), y.reshape(1, -1, y.shape[-1])
        k_t, *_ = self._columns(rows)
        r, _, b, _ = self._coefficients(k_t, y)
        scale = 1 / jnp.maximum(jnp.sum(~jnp.isnan(y[..., 0])), 1)
        return scale * self.decoded(plain_sum(self.contributions(rows, y))), scale * jnp.einsum("ukm,ukc->mc", b, r)

    def _columns(self, inputs: Float[Array, "u k d"]) -> tuple[Array, Array | None, Array | None]:
        """k(x_t, x_j) and, for a kernel, its derivatives in <x_t, x_j> and |x_j|^2."""
        if isinstance(self.features, FeatureMap):
            return inputs @ self.features(self.x_s).T, None, None
        u, k, d = inputs.shape
        columns = self.features.derivative(inputs.reshape(u * k, d), self._flat())
        k_t, k_s, k_q = (v.reshape(u, k, -1) for v in columns)
        return k_t, k_s, k_q

    def _coefficients(self, k_t: Float[Array, "u k m"], y: Float[Array, "u k C"]):
        """r, a, b of the module's docstring, and N = sum over a unit's rows of a b^T."""
        r = jnp.where(jnp.isnan(y), 0.0, k_t @ self.alpha - y)
        a = r @ self.alpha.T
        b = k_t @ self.A_inv
        return r, a, b, _outer(a, b)

    def _through_features(self, phi_t: Float[Array, "u k F"], y: Float[Array, "u k C"]):
        assert isinstance(self.features, FeatureMap)
        features, m = self.features, len(self.x_s)
        phi_s = features(self.x_s)
        _, a, _, N = self._coefficients(phi_t @ phi_s.T, y)
        P = N + jnp.swapaxes(N, 1, 2)
        trace = (2 * self.ridge / m) * jnp.trace(N, axis1=1, axis2=2)

        def cotangents(phi_j, a_j, P_j):
            return jnp.einsum("uk,ukf->uf", a_j, phi_t) - P_j @ phi_s - trace[:, None] * phi_j

        def at_support(x_j, *coefficients):
            _, pull = jax.vjp(lambda x: features(x[None])[0], x_j)
            return jax.vmap(lambda c: pull(c)[0])(cotangents(*coefficients))

        coefficients = phi_s, jnp.moveaxis(a, 2, 0), jnp.moveaxis(P, 2, 0)
        if len(phi_t) == 1:  # one sum over everything: all support points fit in one backward pass
            _, pull = jax.vjp(features, self.x_s)
            g = pull(jax.vmap(cotangents)(*coefficients)[:, 0])[0][:, None]
        else:
            g = jax.lax.map(lambda s: at_support(*s), (self.x_s, *coefficients))
        g = jnp.swapaxes(g.reshape(*g.shape[:2], -1), 0, 1)
        return jnp.zeros((*g.shape[:2], 0)), g

    def _through_kernel(self, x_t: Float[Array, "u k d"], y: Float[Array, "u k C"]):
        assert isinstance(self.features, Kernel)
        X_s = self._flat()
        m = len(X_s)
        k_t, k_s, k_q = self._columns(x_t)
        _, a, _, N = self._coefficients(k_t, y)
        _, S, Q = self.features.derivative(X_s, X_s)
        _, diagonal = self.features.diagonal(X_s)
        # The diagonal of K depends on |x_j|^2 alone and has a smooth derivative of its own.
        off = 1 - jnp.eye(m)
        P = (N + jnp.swapaxes(N, 1, 2)) * off
        trace = (self.ridge / m) * jnp.trace(N, axis1=1, axis2=2)[:, None]
        on_self = (
            jnp.einsum("ukj,ukj->uj", a, k_q)
            - jnp.einsum("uij,ij->uj", P, Q)
            - (jnp.diagonal(N, axis1=1, axis2=2) + trace) * diagonal
        )
        V = jnp.swapaxes(-P * S, 1, 2) + 2 * on_self[:, :, None] * jnp.eye(m)
        within = x_t @ self.Q.T
        outside = x_t - within @ self.Q
        along = a * k_s
        beyond = Outer(along[:, 0], outside[:, 0]) if along.shape[1] == 1 else _outer(along, outside)
        return _outer(along, within) + V @ (X_s @ self.Q.T), beyond

    def _flat(self) -> Float[Array, "m d"]:
        return self.x_s.reshape(len(self.x_s), -1)


def _outer(a: Float[Array, "u k i"], b: Float[Array, "u k j"]) -> Float[Array, "u i j"]:
    """sum_k a b^T for each unit; written out for the usual k = 1, which XLA then fuses with what follows.

    Explicit where k > 1: a norm from factors could lose to cancellation between a unit's rows.
    """
    if a.shape[1] == 1:
        return a[:, 0, :, None] * b[:, 0, None, :]
    return jnp.einsum("uki,ukj->uij", a, b)


@eqx.filter_jit
def _gram(features: FeatureMap | Kernel, x_s: Array) -> Float[Array, "m m"]:
    return gram(features, x_s, x_s)
