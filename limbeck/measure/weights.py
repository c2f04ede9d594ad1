"""Gradients of a linear model's loss in its weights: rank one a record, and no backward pass.

For features phi_t, target y_t and predictions f_t = W^T phi_t, both losses have the gradient phi_t r_t^T:

    quadratic  L_t = 1/2 |f_t - y_t|^2            r_t = f_t - y_t
    softmax    L_t = -log softmax(f_t)[class]     r_t = softmax(f_t) - onehot(class)

so a contribution's norm is |phi_t| |r_t|, and a clipped sum over a batch is one matrix product.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features import FeatureMap
from limbeck.measure.clipping import Outer, plain_sum

Loss = Literal["quadratic", "softmax"]


class WeightGradient(eqx.Module):
    """Asks for the gradient of the loss at the current weights. Carries public state only: W is an earlier output."""

    W: Float[Array, "F C"]
    loss: Loss = eqx.field(static=True, default="quadratic")

    def contributions(self, inputs: Float[Array, "u k F"], y: Float[Array, "u k C"]) -> Outer | Float[Array, "u C F"]:
        """One gradient a unit, transposed, summed over the unit's k rows. A row whose target is NaN adds zero."""
        r = jnp.where(jnp.isnan(y), 0.0, self.residuals(inputs @ self.W, y))
        if inputs.shape[1] == 1:
            return Outer(r[:, 0], inputs[:, 0])
        return jnp.einsum("ukc,ukf->ucf", r, inputs)

    def residuals(self, f: Float[Array, "u k C"], y: Float[Array, "u k C"]) -> Float[Array, "u k C"]:
        if self.loss == "quadratic":
            return f - y
        return jax.nn.softmax(f) - (y + 1 / y.shape[-1])  # targets are one-hot, less their mean

    def decoded(self, total: Float[Array, "C F"]) -> Float[Array, "F C"]:
        return total.T

    def mean(self, inputs: Float[Array, "u k F"], y: Float[Array, "u k C"]) -> Float[Array, "F C"]:
        """The gradient of the mean loss, unclipped."""
        scale = 1 / jnp.maximum(jnp.sum(~jnp.isnan(y[..., 0])), 1)
        return scale * self.decoded(plain_sum(self.contributions(inputs, y)))


class FeatureGradient(eqx.Module):
    """The same of records that are kept as they are: their features are computed whenever they are asked for.

    For records in their millions, whose features would fill a disk. A row of no record is all zeros and has features
    all the same; its target is NaN, so that it adds zero.
    """

    features: FeatureMap
    gradient: WeightGradient

    def contributions(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Outer | Float[Array, "u C F"]:
        u, k, d = inputs.shape
        return self.gradient.contributions(self.features(inputs.reshape(u * k, d)).reshape(u, k, -1), y)

    def decoded(self, total: Float[Array, "C F"]) -> Float[Array, "F C"]:
        return self.gradient.decoded(total)

    def mean(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Float[Array, "F C"]:
        u, k, d = inputs.shape
        return self.gradient.mean(self.features(inputs.reshape(u * k, d)).reshape(u, k, -1), y)
