"""How often the model of a support is right: a count over private units, for `limbeck.distill.tuning`."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.measure.gradients import SupportGradient


class CorrectPredictions(eqx.Module):
    """Asks for the share of a unit's rows that kernel ridge regression on the support classifies right.

    A unit contributes a number between 0 and 1, so the sensitivity of the sum is 1: clip it there. A row whose
    target is NaN (padding, null) is no row, and a unit without rows contributes 0.
    """

    support: SupportGradient

    def contributions(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Float[Array, "u 1"]:
        there = ~jnp.isnan(y[..., 0])
        right = there & (self.support.predicted(inputs).argmax(-1) == jnp.nan_to_num(y).argmax(-1))
        return (right.sum(1) / jnp.maximum(there.sum(1), 1))[:, None]

    def decoded(self, total: Float[Array, "1"]) -> Float[Array, "1"]:
        return total

    def mean(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Float[Array, "1"]:
        return self.contributions(inputs, y).mean(axis=0)
