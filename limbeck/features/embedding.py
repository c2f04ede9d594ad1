"""What random networks see of images: embeddings of unit norm, each by a network and an augmentation of its own."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.errors import RequestError
from limbeck.features.dead_leaves import dead_leaves
from limbeck.features.normalised import unit_norm
from limbeck.networks import Change, augmented, drawn
from limbeck.networks.convnet import Block, blocks_of, flat_size
from limbeck.networks.layers import convolution

CONSTANT = 0.1  # the last coordinate of every embedding: its sum over a class counts the class
PUBLIC_IMAGES, PUBLIC_SEED = 200, 2


class Embedding(eqx.Module):
    r"""ψ(x) = (√(1 - β²) e / |e|, β), with e = net(augmented x) - μ and β = `CONSTANT`: a vector of norm one.

    `net` is a random ConvNet without its readout. All images look alike to it, so μ, its mean over made-up public
    images, is taken off: what is left tells them apart. A sum of ψ over some images has β times their number as its
    last coordinate, so a noisy sum comes with a count that costs nothing more. With `directions`, e / |e| is projected
    on them, and ψ has norm one at most.
    """

    blocks: tuple[Block, ...]
    change: Change
    mean: Float[Array, " d"]
    directions: Float[Array, "d r"] | None = None  # orthonormal

    @property
    def dim(self) -> int:
        return (len(self.mean) if self.directions is None else self.directions.shape[1]) + 1

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b F"]:
        direction = unit_norm(self.raw(x) - self.mean) * np.float32(np.sqrt(1 - CONSTANT**2))
        if self.directions is not None:
            direction = direction @ self.directions
        return jnp.concatenate([direction, jnp.full((len(x), 1), CONSTANT)], axis=1)

    def raw(self, x: Float[Array, "b H W C"]) -> Float[Array, "b d"]:
        x = augmented(x, self.change)
        for block in self.blocks:
            x = block(x, convolution)
        return x.reshape(len(x), -1)


@dataclass(frozen=True)
class Embeddings:
    """`number` random embeddings of images of `shape`, made when they are asked for, from a public seed.

    - `width`, `depth`: of the networks. `kinds`: of augmentation, one change a network.
    - `project`: to so many directions, those in which a network's embeddings of made-up public images vary most, so
      that noise is spent on them alone. None: all.
    """

    shape: tuple[int, int, int]
    number: int
    width: int = 64
    depth: int = 3
    kinds: tuple[str, ...] = ("colour", "crop", "scale", "rotate")
    seed: int = 0
    project: int | None = None

    def __post_init__(self) -> None:
        most = min(PUBLIC_IMAGES - 1, flat_size(self.shape, self.width, self.depth))
        if self.project is not None and not 1 <= self.project <= most:
            raise RequestError(f"embeddings are to be projected to {self.project} directions; 1 to {most} is possible.")

    @classmethod
    def from_config(cls, config: dict[str, Any], shape: Sequence[int]) -> "Embeddings":
        """The embeddings whose `config()` this is, for images of `shape`."""
        try:
            options = dict(config)
            if options.pop("name") != "embeddings" or tuple(options.pop("shape")) != tuple(shape):
                raise ValueError
            H, W, C = map(int, shape)
            return cls((H, W, C), **options | {"kinds": tuple(options["kinds"])})
        except (KeyError, TypeError, ValueError):
            raise RequestError("the recipe does not say its embeddings. Try `limbeck verify`.") from None

    def config(self) -> dict[str, Any]:
        return {"name": "embeddings", **asdict(self), "shape": list(self.shape), "kinds": list(self.kinds)}

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, k: int) -> Embedding:
        return _kept(self, k)

    def made(self, k: int) -> Embedding:
        """The same, not kept: for whoever takes each of them once."""
        if not 0 <= k < self.number:
            raise IndexError(k)
        rng = np.random.default_rng([self.seed, k])
        blocks = blocks_of(self.shape, self.width, self.depth, rng)
        change = Change(*(part[0] for part in drawn(rng, 1, self.kinds)))
        bare = Embedding(blocks, change, jnp.zeros(flat_size(self.shape, self.width, self.depth)))
        seen = np.asarray(_raw(bare, jnp.asarray(_public_images(self.shape))))
        mean = seen.mean(axis=0)
        directions = None if self.project is None else jnp.asarray(_main_directions(seen - mean, self.project))
        return Embedding(blocks, change, jnp.asarray(mean), directions)

    @property
    def dim(self) -> int:
        """Coordinates of one embedding."""
        return (self.project or flat_size(self.shape, self.width, self.depth)) + 1


@eqx.filter_jit
def _raw(embedding: Embedding, x: Float[Array, "b H W C"]) -> Float[Array, "b d"]:
    return embedding.raw(x)


def _main_directions(e: Float[np.ndarray, "b d"], r: int) -> Float[np.ndarray, "d r"]:
    """The r orthonormal directions in which unit vectors along e vary most."""
    units = e / np.maximum(np.linalg.norm(e, axis=1, keepdims=True), 1e-12)
    return np.linalg.svd(units - units.mean(axis=0), full_matrices=False)[2][:r].T


@lru_cache(maxsize=4)
def _public_images(shape: tuple[int, int, int]) -> np.ndarray:
    return dead_leaves(PUBLIC_IMAGES, shape, PUBLIC_SEED)


@lru_cache(maxsize=512)
def _kept(embeddings: Embeddings, k: int) -> Embedding:
    """A third of a megabyte each; a fit comes back to all of them."""
    return embeddings.made(k)
