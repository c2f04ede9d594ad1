"""How many records each class has: a count, for the shares of a small set's classes."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class ClassCounts(eqx.Module):
    """Asks for the number of records of each class. Carries nothing.

    **Why this is private.** A record contributes the one-hot vector of its class, of norm one; all rows of a unit are
    one contribution, which the session clips. A row whose target is NaN (padding, null) adds zero.
    """

    def contributions(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Float[Array, "u C"]:
        of_class = y + 1 / y.shape[-1]  # targets are one-hot, less their mean
        return jnp.where(jnp.isnan(y), 0.0, of_class).sum(axis=1)

    def decoded(self, total: Float[Array, " C"]) -> Float[Array, " C"]:
        return total

    def mean(self, inputs: Float[Array, "u k d"], y: Float[Array, "u k C"]) -> Float[Array, " C"]:
        """The share of the rows that each class has."""
        rows = jnp.maximum(jnp.sum(~jnp.isnan(y[..., 0])), 1)
        return self.contributions(inputs, y).sum(axis=0) / rows
