"""Images or rows as they are: for measurements that compute their own features of them."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap


class Pixels(FeatureMap):
    """φ(x) = x, flattened. `shape` is (H, W, C) of an image, or (d,) of a row."""

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return int(np.prod(self.shape))

    def __call__(self, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
        return x.reshape(len(x), -1)

    def config(self) -> dict[str, Any]:
        return {"name": "pixels", "shape": list(self.shape)}
