"""What networks are made of, on images with their channels last."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def conv3x3(x: Float[Array, "b H W C"], kernel: Float[Array, "3 3 C width"]) -> Float[Array, "b H W width"]:
    """3x3 convolution with zero padding, as one product of patches with the kernel.

    On CPU, XLA's own convolution is more than ten times slower inside a loop, where training is, though several times
    faster outside one: `convolution`. Nine shifted products run as fast as this one, and compile more slowly.
    """
    _, H, W, C = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = [padded[:, i : i + H, j : j + W] for i in range(3) for j in range(3)]
    return jnp.concatenate(patches, axis=-1) @ kernel.reshape(9 * C, -1)


def convolution(
    x: Float[Array, "b H W C"], kernel: Float[Array, "h w C width"], padding: str = "SAME"
) -> Float[Array, "b H2 W2 width"]:
    """XLA's convolution: the same numbers as `conv3x3`, for use outside loops."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def instance_norm(x: Float[Array, "b H W C"], eps: float = 1e-5) -> Float[Array, "b H W C"]:
    """Every channel of every image to mean 0 and variance 1 over its pixels."""
    centred = x - x.mean((1, 2), keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean((1, 2), keepdims=True) + eps)


def average_pool(x: Float[Array, "b H W C"]) -> Float[Array, "b H2 W2 C"]:
    """2x2 average pooling, stride 2; an odd last row or column is dropped."""
    b, H, W, C = x.shape
    x = x[:, : H // 2 * 2, : W // 2 * 2]
    return x.reshape(b, H // 2, 2, W // 2, 2, C).mean((2, 4))


def uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Float[Array, "..."]:
    """Weights uniform in ± 1/√fan_in, drawn on the host: JAX's generator would be compiled for each shape."""
    bound = fan_in**-0.5
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(np.float32))
