"""The ConvNet of the literature on dataset distillation: as a classifier, and as a random embedding.

Blocks of [3x3 convolution, instance norm, ReLU, 2x2 average pooling], then a linear readout (Gidaris & Komodakis 2018;
the default of the field since Zhao et al. 2021).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.errors import RequestError
from limbeck.networks.layers import average_pool, conv3x3, instance_norm, uniform

Convolution = Callable[[Array, Array], Array]


class Block(eqx.Module):
    """Convolution (no bias: the norm would remove it), affine instance norm, ReLU, pooling."""

    kernel: Float[Array, "3 3 C width"]
    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.kernel = uniform(rng, (3, 3, channels, width), fan_in=9 * channels)
        self.scale = jnp.ones(width)
        self.shift = jnp.zeros(width)

    def __call__(self, x: Float[Array, "b H W C"], convolve: Convolution = conv3x3) -> Float[Array, "b H2 W2 width"]:
        normalised = instance_norm(convolve(x, self.kernel))
        return average_pool(jax.nn.relu(normalised * self.scale + self.shift))


def blocks_of(
    shape: tuple[int, int, int], width: int, depth: int, rng: np.random.Generator
) -> tuple[tuple[Block, ...], int]:
    """`depth` blocks on images of `shape`, and how many numbers come out of the last.

    There are fewer blocks when the image runs out of pixels first: an instance norm over one pixel is zero.
    """
    H, W, C = shape
    if min(H, W) < 2:
        raise RequestError(f"a ConvNet needs images of at least 2 x 2 pixels, and these are {H} x {W}")
    blocks: list[Block] = []
    while len(blocks) < depth and min(H, W) >= 2:
        blocks.append(Block(C, width, rng=rng))
        H, W, C = H // 2, W // 2, width
    return tuple(blocks), H * W * C


class ConvNet(eqx.Module):
    """`depth` blocks of `width` filters and a linear readout, on images of any (H, W, C)."""

    blocks: tuple[Block, ...]
    readout: Float[Array, "flat classes"]
    bias: Float[Array, " classes"]

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        width: int = 128,
        depth: int = 3,
        rng: np.random.Generator,
    ):
        self.blocks, flat = blocks_of(shape, width, depth, rng)
        self.readout = uniform(rng, (flat, classes), fan_in=flat)
        self.bias = jnp.zeros(classes)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        for block in self.blocks:
            x = block(x)
        return x.reshape(len(x), -1) @ self.readout + self.bias
