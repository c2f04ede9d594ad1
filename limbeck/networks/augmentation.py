"""Differentiable siamese augmentation: one random change, the same for real images and synthetic ones.

Zhao & Bilen (*Dataset condensation with differentiable siamese augmentation*, 2021). A change is drawn with public
randomness, apart from the images it is applied to, so it costs no privacy: an augmented image is a function of that
image alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

KINDS = ("colour", "crop", "cutout", "flip", "scale", "rotate")
SHIFT = 1 / 8  # of the image's side
SCALE = 1.2
ANGLE = np.pi / 12
HOLE = 1 / 2  # the side of what is cut out


class Change(NamedTuple):
    """What is done to an image, or to each of n images where every part has a first axis of n."""

    shift: Float[Array, "*n 2"]  # down and right, of the image's sides
    scale: Float[Array, "*n 2"]
    angle: Float[Array, "*n"]
    mirror: Float[Array, "*n"]  # 1 or -1
    brightness: Float[Array, "*n"]
    contrast: Float[Array, "*n"]
    saturation: Float[Array, "*n"]
    hole: Float[Array, "*n 2"]  # its middle, of the image's sides; far away where nothing is cut out


def drawn(rng: np.random.Generator, n: int, kinds: tuple[str, ...] = KINDS, *, strength: float = 1.0) -> Change:
    """n changes of the given kinds; `strength` scales how much of each but flips and holes, which are or are not."""

    def uniform(kind: str, extent: float, *shape: int) -> np.ndarray:
        draws = rng.uniform(-1, 1, (n, *shape))  # drawn always: the other kinds' numbers stay the same
        return draws * extent * strength if kind in kinds else np.zeros_like(draws)

    shift = uniform("crop", SHIFT, 2)
    scale = np.exp(uniform("scale", np.log(SCALE), 2))
    angle = uniform("rotate", ANGLE)
    mirror = np.where(uniform("flip", 1) < 0, -1, 1)
    brightness, contrast = uniform("colour", 0.5), np.exp(uniform("colour", np.log(1.5)))
    saturation = 1 + uniform("colour", 1)
    hole = rng.uniform(0, 1, (n, 2)) + (0 if "cutout" in kinds else 10)
    parts = (shift, scale, angle, mirror, brightness, contrast, saturation, hole)
    return Change(*(jnp.asarray(part, jnp.float32) for part in parts))


def augmented(x: Float[Array, "b H W C"], change: Change) -> Float[Array, "b H W C"]:
    """The same change of every image: `change` without a first axis. Differentiable in x."""
    return jax.vmap(changed, in_axes=(0, None))(x, change)


def augmented_each(x: Float[Array, "b H W C"], changes: Change) -> Float[Array, "b H W C"]:
    """A change of its own for every image."""
    return jax.vmap(changed)(x, changes)


def changed(x: Float[Array, "H W C"], change: Change) -> Float[Array, "H W C"]:
    """One image: moved, turned, scaled and mirrored at once; then its colours; then a square is cut out."""
    x = _coloured(_moved(x, change), change)
    H, W, _ = x.shape
    down = jnp.abs(jnp.arange(H) + 0.5 - change.hole[0] * H) < HOLE * H / 2
    across = jnp.abs(jnp.arange(W) + 0.5 - change.hole[1] * W) < HOLE * W / 2
    return jnp.where((down[:, None] & across)[..., None], jnp.mean(x), x)


def _moved(x: Float[Array, "H W C"], change: Change) -> Float[Array, "H W C"]:
    """Bilinear between the four pixels around the place that each pixel comes from; the border is repeated."""
    H, W, C = x.shape
    y0, x0 = (H - 1) / 2, (W - 1) / 2
    down, across = jnp.meshgrid(jnp.arange(H) - y0, jnp.arange(W) - x0, indexing="ij")
    cos, sin = jnp.cos(change.angle), jnp.sin(change.angle)
    at_y = (cos * down - sin * across) / change.scale[0] - change.shift[0] * H + y0
    at_x = change.mirror * (sin * down + cos * across) / change.scale[1] - change.shift[1] * W + x0
    top, left = jnp.floor(at_y), jnp.floor(at_x)
    rows = x.reshape(H * W, C)
    found = jnp.zeros((H * W, C))
    for i in (0, 1):
        for j in (0, 1):
            weight = (1 - jnp.abs(at_y - top - i)) * (1 - jnp.abs(at_x - left - j))
            place = jnp.clip(top + i, 0, H - 1) * W + jnp.clip(left + j, 0, W - 1)
            found += weight.reshape(-1, 1) * rows[place.reshape(-1).astype(int)]
    return found.reshape(H, W, C)


def _coloured(x: Float[Array, "H W C"], change: Change) -> Float[Array, "H W C"]:
    grey = jnp.mean(x, axis=-1, keepdims=True)
    x = grey + change.saturation * (x - grey)
    mean = jnp.mean(x)
    return mean + change.contrast * (x - mean) + change.brightness
