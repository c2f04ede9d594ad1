"""A small residual network (He et al. 2016), with instance norms as the field of distillation trains it."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from limbeck.networks.layers import Linear, NormedConvolution, average_pool, check_pixels, uniform


class Residual(eqx.Module):
    """ReLU(F(x) + x S): F two normed convolutions; S, a 1x1 convolution, only where the width changes."""

    first: NormedConvolution
    second: NormedConvolution
    shortcut: Float[Array, "C width"] | None

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.first = NormedConvolution(channels, width, rng=rng)
        self.second = NormedConvolution(width, width, rng=rng)
        self.shortcut = None if channels == width else uniform(rng, (channels, width), fan_in=channels)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b H W width"]:
        past = x if self.shortcut is None else x @ self.shortcut
        return jax.nn.relu(self.second(jax.nn.relu(self.first(x))) + past)


class ResNet(eqx.Module):
    """A stem, a residual block of each width with pooling between, the mean over pixels, and a linear readout.

    Images are pooled while two pixels each way are left: an instance norm over one pixel is zero.
    """

    stem: NormedConvolution
    blocks: tuple[Residual, ...]
    readout: Linear

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        widths: tuple[int, ...] = (32, 64, 128),
        rng: np.random.Generator,
    ):
        check_pixels("ResNet", shape)
        self.stem = NormedConvolution(shape[2], widths[0], rng=rng)
        self.blocks = tuple(
            Residual(channels, width, rng=rng) for channels, width in zip((widths[0], *widths), widths, strict=False)
        )
        self.readout = Linear(widths[-1], classes, rng=rng)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        x = jax.nn.relu(self.stem(x))
        for i, block in enumerate(self.blocks):
            if i > 0 and min(x.shape[1:3]) >= 4:
                x = average_pool(x)
            x = block(x)
        return self.readout(x.mean((1, 2)))
