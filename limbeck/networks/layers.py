"""What networks are made of, on images with their channels last."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.errors import RequestError

Convolution = Callable[[Array, Array], Array]


def patch_convolution(x: Float[Array, "b H W C"], kernel: Float[Array, "k k C width"]) -> Float[Array, "b H W width"]:
    """Convolution with zero padding and an odd kernel, as one product of patches with the kernel.

    On CPU, XLA's own convolution is more than ten times slower inside a loop, where training is, though several times
    faster outside one: `convolution`. Shifted products, one a place of the kernel, run as fast as this one, and compile
    more slowly.
    """
    _, H, W, C = x.shape
    k = len(kernel)
    r = k // 2
    padded = jnp.pad(x, ((0, 0), (r, r), (r, r), (0, 0)))
    patches = [padded[:, i : i + H, j : j + W] for i in range(k) for j in range(k)]
    return jnp.concatenate(patches, axis=-1) @ kernel.reshape(k * k * C, -1)


def convolution(
    x: Float[Array, "b H W C"], kernel: Float[Array, "h w C width"], padding: str = "SAME"
) -> Float[Array, "b H2 W2 width"]:
    """XLA's convolution: the same numbers as `patch_convolution`, for use outside loops."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


class NormedConvolution(eqx.Module):
    """3x3 convolution (no bias: the norm would remove it), then affine instance norm."""

    kernel: Float[Array, "3 3 C width"]
    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.kernel = uniform(rng, (3, 3, channels, width), fan_in=9 * channels)
        self.scale = jnp.ones(width)
        self.shift = jnp.zeros(width)

    def __call__(
        self, x: Float[Array, "b H W C"], convolve: Convolution = patch_convolution
    ) -> Float[Array, "b H W width"]:
        return instance_norm(convolve(x, self.kernel)) * self.scale + self.shift


class Linear(eqx.Module):
    """x W + b, with no bias at first."""

    weights: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, rng: np.random.Generator):
        self.weights = uniform(rng, (inputs, outputs), fan_in=inputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "b inputs"]) -> Float[Array, "b outputs"]:
        return x @ self.weights + self.bias


def instance_norm(x: Float[Array, "b H W C"], eps: float = 1e-5) -> Float[Array, "b H W C"]:
    """Every channel of every image to mean 0 and variance 1 over its pixels."""
    centred = x - x.mean((1, 2), keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean((1, 2), keepdims=True) + eps)


def average_pool(x: Float[Array, "b H W C"]) -> Float[Array, "b H2 W2 C"]:
    """2x2 average pooling, stride 2; an odd last row or column is dropped."""
    b, H, W, C = x.shape
    x = x[:, : H // 2 * 2, : W // 2 * 2]
    return x.reshape(b, H // 2, 2, W // 2, 2, C).mean((2, 4))


def flattened(x: Float[Array, "b H W C"]) -> Float[Array, "b D"]:
    return x.reshape(len(x), -1)


def uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Float[Array, "..."]:
    """Weights uniform in ± 1/√fan_in, drawn on the host: JAX's generator would be compiled for each shape."""
    bound = fan_in**-0.5
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(np.float32))


def check_pixels(network: str, shape: tuple[int, int, int]) -> None:
    """Pooling needs two pixels each way, and so does a norm that is not to be zero."""
    H, W, _ = shape
    if min(H, W) < 2:
        raise RequestError(
            f"a {network} needs images of at least 2 x 2 pixels, and these are {H} x {W}; an MLP takes any."
        )
