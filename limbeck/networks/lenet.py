"""LeNet-5 (LeCun et al. 1998), as it is trained today: ReLU, average pooling, padded convolutions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.networks.layers import Linear, average_pool, check_pixels, flattened, patch_convolution, uniform

FILTERS = (6, 16)
HIDDEN = (120, 84)


class Stage(eqx.Module):
    """5x5 convolution, ReLU, pooling."""

    kernel: Float[Array, "5 5 C width"]
    bias: Float[Array, " width"]

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.kernel = uniform(rng, (5, 5, channels, width), fan_in=25 * channels)
        self.bias = jnp.zeros(width)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b H2 W2 width"]:
        return average_pool(jax.nn.relu(patch_convolution(x, self.kernel) + self.bias))


class LeNet(eqx.Module):
    """Two stages of 6 and 16 filters, layers of 120 and 84, and a readout; no norm anywhere.

    There is one stage on images of 2 or 3 pixels: the second would have none left to pool.
    """

    stages: tuple[Stage, ...]
    hidden: tuple[Linear, ...]
    readout: Linear

    def __init__(self, shape: tuple[int, int, int], classes: int, *, rng: np.random.Generator):
        check_pixels("LeNet", shape)
        H, W, C = shape
        stages: list[Stage] = []
        for width in FILTERS:
            if min(H, W) < 2:
                break
            stages.append(Stage(C, width, rng=rng))
            H, W, C = H // 2, W // 2, width
        self.stages = tuple(stages)
        inputs = (H * W * C, *HIDDEN)
        self.hidden = tuple(Linear(n, width, rng=rng) for n, width in zip(inputs, HIDDEN, strict=False))
        self.readout = Linear(inputs[-1], classes, rng=rng)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        for stage in self.stages:
            x = stage(x)
        h = flattened(x)
        for layer in self.hidden:
            h = jax.nn.relu(layer(h))
        return self.readout(h)
