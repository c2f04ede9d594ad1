"""The ConvNet of the literature on dataset distillation: as a classifier, and as a random embedding.

Blocks of [3x3 convolution, instance norm, ReLU, 2x2 average pooling], then a linear readout (Gidaris & Komodakis 2018;
the default of the field since Zhao et al. 2021).
"""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from limbeck.networks.layers import (
    Convolution,
    Linear,
    NormedConvolution,
    average_pool,
    check_pixels,
    flattened,
    patch_convolution,
)


class Block(eqx.Module):
    """Convolution, instance norm, ReLU, pooling."""

    normed: NormedConvolution

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.normed = NormedConvolution(channels, width, rng=rng)

    def __call__(
        self, x: Float[Array, "b H W C"], convolve: Convolution = patch_convolution
    ) -> Float[Array, "b H2 W2 width"]:
        return average_pool(jax.nn.relu(self.normed(x, convolve)))


def blocks_of(shape: tuple[int, int, int], width: int, depth: int, rng: np.random.Generator) -> tuple[Block, ...]:
    """`depth` blocks on images of `shape`, or as many as there are pixels for."""
    *_, C = shape
    return tuple(Block(width if i else C, width, rng=rng) for i in range(_deepest(shape, depth)))


def flat_size(shape: tuple[int, int, int], width: int, depth: int) -> int:
    """How many numbers come out of the last of these blocks."""
    H, W, C = shape
    halvings = _deepest(shape, depth)
    return (H >> halvings) * (W >> halvings) * (width if halvings else C)


def _deepest(shape: tuple[int, int, int], depth: int) -> int:
    """There are fewer blocks when the image runs out of pixels first: an instance norm over one pixel is zero."""
    check_pixels("ConvNet", shape)
    return min(depth, min(shape[:2]).bit_length() - 1)


class ConvNet(eqx.Module):
    """`depth` blocks of `width` filters and a linear readout, on images of any (H, W, C)."""

    blocks: tuple[Block, ...]
    readout: Linear

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        width: int = 128,
        depth: int = 3,
        rng: np.random.Generator,
    ):
        self.blocks, flat = blocks_of(shape, width, depth, rng), flat_size(shape, width, depth)
        self.readout = Linear(flat, classes, rng=rng)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        for block in self.blocks:
            x = block(x)
        return self.readout(flattened(x))
