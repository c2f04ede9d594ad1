"""What a linear model sees of a row of a table: the row itself, its numbers bit by bit, and random ReLU features."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap
from limbeck.features.normalised import unit_norm

KNOTS = 16  # at most, on the range of a number
HATS = 2048  # at most, of all numbers together
WIDTH = 1024
CONSTANT, ROW, HAT, RELU = 0.25, 1.0, 0.7, 0.6  # what each part weighs


class TableFeatures(FeatureMap):
    r"""φ(x) = (β, x / √k, h(x) / √s, ReLU((x, h(x)) R + b)), each part with its weight, then of unit norm.

    x is an encoded row of k columns: s numbers in [-1, 1], and categories as one-hot. h cuts each number's declared
    range into pieces: hat functions on evenly spaced knots, which sum to one, so that a linear model on them is any
    piecewise linear function of the number. The last part are random features of the arc-cosine kernel (Cho & Saul
    2009), of which the infinite FC-NTK is made: products of what a row holds. All of it is public: the layout comes
    from the declared schema, R and b from a seed.

    **Arguments:**

    - `d`: coordinates of a row. `columns`: k.
    - `numbers`: the coordinates that are numbers in [-1, 1].
    - `width`: random features. `seed`: of R and b.
    """

    d: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    numbers: tuple[int, ...] = eqx.field(static=True)
    R: Float[Array, "e F"]
    b: Float[Array, " F"]
    seed: int = eqx.field(static=True)

    @classmethod
    def of(cls, d: int, columns: int, numbers: Sequence[int], width: int = WIDTH, seed: int = 0) -> "TableFeatures":
        numbers = tuple(int(i) for i in numbers)
        R, b = _random(d + len(numbers) * knots(len(numbers)), columns + len(numbers), width, seed)
        return cls(d, columns, numbers, jnp.asarray(R), jnp.asarray(b), seed)

    @property
    def dim(self) -> int:
        return 1 + self.R.shape[0] + self.R.shape[1]

    def __call__(self, x: Float[Array, "b d"]) -> Float[Array, "b F"]:
        h = hats(x[:, jnp.asarray(self.numbers, int)], knots(len(self.numbers)))
        seen = jnp.concatenate([x, h], axis=1)
        relu = jax.nn.relu(seen @ self.R + self.b) * np.float32(np.sqrt(2 / max(1, self.R.shape[1])))
        parts = [
            jnp.full((len(x), 1), CONSTANT),
            ROW / np.sqrt(self.columns) * x,
            HAT / np.sqrt(max(1, len(self.numbers))) * h,
            RELU * relu,
        ]
        return unit_norm(jnp.concatenate([part.astype(jnp.float32) for part in parts], axis=1))

    def config(self) -> dict[str, Any]:
        return {
            "name": "table", "shape": [self.d], "columns": self.columns, "numbers": list(self.numbers),
            "width": self.R.shape[1], "seed": self.seed,
        }  # fmt: skip


def knots(numbers: int) -> int:
    """Knots on each number's range: fewer where there are many numbers, none where there are too many."""
    each = min(KNOTS, HATS // max(1, numbers))
    return each if each >= 3 else 0


def hats(t: Float[Array, "b s"], number: int) -> Float[Array, "b h"]:
    """Hat functions at `number` even knots of [-1, 1]: each is one at its knot and zero at the others."""
    if number == 0:
        return jnp.zeros((len(t), 0))
    at = jnp.linspace(-1, 1, number)
    h = jax.nn.relu(1 - jnp.abs(t[:, :, None] - at) * (number - 1) / 2)
    return h.reshape(len(t), -1)


@lru_cache(maxsize=4)
def _random(e: int, parts: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """R and b. A row has about one unit a part, so that what ReLU sees is of order one."""
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((e, width), dtype=np.float32) / np.float32(np.sqrt(parts))
    return R, rng.standard_normal(width, dtype=np.float32)
