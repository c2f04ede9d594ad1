"""Sums of embeddings, a class at a time: what distribution matching asks of the records."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features import Embedding, FeatureMap
from limbeck.measure.clipping import Outer, plain_sum


class ClassSums(eqx.Module):
    """Asks for the sum of an embedding over the records of each class. Carries public state only: a random network, or
    the cells of a table's marginals.

    **Why this is private.** A record of class c contributes onehot(c) ψ(x)^T, of norm |ψ(x)| = 1: it touches one row of
    the matrix and no other. All rows of a unit are one contribution, which the session clips. The networks, the
    augmentation and what the embeddings are centred by are made from public seeds.
    """

    embedding: Embedding | FeatureMap
    shape: tuple[int, ...] = eqx.field(static=True)

    def contributions(self, inputs: Float[Array, "u k D"], y: Float[Array, "u k C"]) -> Outer | Float[Array, "u C F"]:
        """One matrix a unit; a row whose target is NaN adds zero."""
        u, k, _ = inputs.shape
        ψ = self.embedding(inputs.reshape(u * k, *self.shape)).reshape(u, k, -1)
        of_class = jnp.where(jnp.isnan(y), 0.0, y + 1 / y.shape[-1])  # targets are one-hot, less their mean
        if k == 1:
            return Outer(of_class[:, 0], ψ[:, 0])
        return jnp.einsum("ukc,ukf->ucf", of_class, ψ)

    def decoded(self, total: Float[Array, "C F"]) -> Float[Array, "F C"]:
        return total.T

    def mean(self, inputs: Float[Array, "u k D"], y: Float[Array, "u k C"]) -> Float[Array, "F C"]:
        """The sums over the rows' number, unclipped."""
        scale = 1 / jnp.maximum(jnp.sum(~jnp.isnan(y[..., 0])), 1)
        return scale * self.decoded(plain_sum(self.contributions(inputs, y)))
