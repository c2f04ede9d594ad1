"""A multilayer perceptron: the network that knows nothing of images."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from limbeck.networks.layers import Linear, flattened


class MLP(eqx.Module):
    """`depth` hidden layers of `width` ReLUs on the pixels, and a linear readout."""

    hidden: tuple[Linear, ...]
    readout: Linear

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        width: int = 128,
        depth: int = 2,
        rng: np.random.Generator,
    ):
        H, W, C = shape
        inputs = [H * W * C] + [width] * depth
        self.hidden = tuple(Linear(n, width, rng=rng) for n in inputs[:-1])
        self.readout = Linear(inputs[-1], classes, rng=rng)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        h = flattened(x)
        for layer in self.hidden:
            h = jax.nn.relu(layer(h))
        return self.readout(h)
