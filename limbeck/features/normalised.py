"""Features of norm one."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def unit_norm(φ: Float[Array, "b F"]) -> Float[Array, "b F"]:
    """Each row divided by its norm; zeros stay zero, and have derivative zero."""
    squared = jnp.sum(φ * φ, axis=1, keepdims=True)
    zero = squared == 0
    return jnp.where(zero, 0, φ / jnp.sqrt(jnp.where(zero, 1, squared)))
