"""Many images of few: variations of a set, labelled by the set's own kernel ridge regression.

A small release is two things, images and a regression that knows what others of their kind are. Networks learn more
from many images than from few, so let the regression label as many as can be made of those there are. Both are the
release's, so this is post-processing: nothing is spent, no other data is asked for.
"""

from collections.abc import Iterator
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import as_large_as_onehot
from limbeck.evaluate.krr import krr_fit, krr_predict
from limbeck.evaluate.training import Labels, Pace, training_steps
from limbeck.features import FeatureMap, Kernel, dead_leaves
from limbeck.features.dead_leaves import blurred
from limbeck.networks import augmented_each, drawn

TrainOn = Literal["hard", "soft", "varied"]

VARIATIONS = 48_000  # that networks are shown: each twice, which teaches more than a third as many six times
PACE = Pace(steps=12_000, batch=8)
SEED = 0  # public: of what is varied, and how
PATCH, OTHER, LIGHT = 1 / 7, 1 / 5, 1 / 9  # how smooth patches and light are: of the image's longer side
SHARPNESS = 4.0  # of a patch's edge
STRENGTH = 0.5  # of the light, in e-foldings
MOVED, RECOLOURED = ("crop", "scale", "rotate", "flip"), ("colour", "flip")
CHUNK = 1000  # images that are made at a time


def variations(
    x_s: Float[np.ndarray, "m H W C"], y_s: Float[np.ndarray, "m classes"], n: int, seed: int = SEED
) -> Float[np.ndarray, "n H W C"]:
    """n images in four equal parts, within [-1, 1], three of them made of a set's own.

    Patchworks; patchworks moved, turned, scaled and mirrored; patchworks in other colours; and dead leaves, which have
    nothing of the set. What no longer looks like its class is not mislabelled: the regression says what it looks like.
    """
    rng = np.random.default_rng(seed)
    made = patchworks(x_s, y_s, n - n // 4, rng)
    third = len(made) // 3
    for start, kinds in ((len(made) - 2 * third, MOVED), (len(made) - third, RECOLOURED)):
        for part in _chunks(start, start + third):
            changes = drawn(rng, part.stop - part.start, kinds)
            made[part] = np.clip(augmented_each(jnp.asarray(made[part]), changes), -1, 1)
    leaves = (
        dead_leaves(part.stop - part.start, x_s.shape[1:], int(rng.integers(2**31))) for part in _chunks(0, n // 4)
    )
    return np.concatenate([made, *leaves])


def patchworks(
    x_s: Float[np.ndarray, "m H W C"], y_s: Float[np.ndarray, "m classes"], n: int, rng: np.random.Generator
) -> Float[np.ndarray, "n H W C"]:
    """n images, each of several of the set, half of them in another light.

    Each begins with an image of the set, every image as often as another. A soft-edged patch of one of its own class is
    laid over it, then one of any; where patches are is a smooth random field's doing.
    """
    of_class = y_s.argmax(axis=1)
    members = [np.flatnonzero(of_class == c) for c in range(y_s.shape[1])]
    x, made = np.clip(x_s, -1, 1), np.empty((n, *x_s.shape[1:]), np.float32)
    for part in _chunks(0, n):
        first = np.arange(part.start, part.stop) % len(x)
        own = np.array([rng.choice(members[c]) for c in of_class[first]], int)
        patched = _patched(x[first], x[own], PATCH, rng)
        made[part] = _patched(patched, x[rng.integers(0, len(x), len(first))], OTHER, rng)
        lit = part.start + rng.permutation(len(first))[: -(-len(first) // 2)]
        light = np.exp(STRENGTH * _fields(len(lit), made.shape[1:3], LIGHT, rng))
        made[lit] = np.clip((made[lit] + 1) * light - 1, -1, 1)
    return made


def varied(
    x_s: Float[np.ndarray, "m H W C"],
    y_s: Float[np.ndarray, "m classes"],
    features: FeatureMap | Kernel,
    ridge: float,
    n: int = VARIATIONS,
    seed: int = SEED,
) -> tuple[Float[np.ndarray, "n H W C"], Float[np.ndarray, "n classes"]]:
    """`variations` of a set and what its own regression says of them, in the scale of centred one-hot labels."""
    if n < 1:
        raise RequestError(f"{n} variations were asked for; at least 1 is needed.")
    alpha = krr_fit(features, x_s, y_s, ridge)
    x = variations(x_s, y_s, n, seed)
    y = krr_predict(features, x_s, alpha, x)
    return x, np.asarray(as_large_as_onehot(y.astype(np.float32)))


def lessons(
    train_on: TrainOn,
    x_s: Float[np.ndarray, "m H W C"],
    y_s: Float[np.ndarray, "m classes"],
    features: FeatureMap | Kernel,
    ridge: float,
) -> tuple[Float[np.ndarray, "n H W C"], Float[np.ndarray, "n classes"], Labels]:
    """What networks are shown of a set: its images with the labels' classes or whole, or its variations."""
    if train_on == "varied":
        return *varied(x_s, y_s, features, ridge), "soft"
    return x_s, y_s, train_on


def shown_for(train_on: TrainOn, m: int) -> tuple[int, Pace]:
    """How many images networks are shown of a set of m, and at what pace."""
    return (VARIATIONS, PACE) if train_on == "varied" else (m, Pace(training_steps(m)))


def _chunks(start: int, stop: int) -> Iterator[slice]:
    """What lies between, `CHUNK` at a time: the memory of what is under way is theirs."""
    for at in range(start, stop, CHUNK):
        yield slice(at, min(at + CHUNK, stop))


def _patched(
    x: Float[np.ndarray, "n H W C"], over: Float[np.ndarray, "n H W C"], radius: float, rng: np.random.Generator
) -> Float[np.ndarray, "n H W C"]:
    """`over` laid on `x` where a field is high: little of it or much, the field's level being random too."""
    level = rng.standard_normal((len(x), 1, 1, 1))
    field = _fields(len(x), x.shape[1:3], radius, rng)
    share = (1 / (1 + np.exp(-SHARPNESS * (field + level)))).astype(np.float32)
    return share * x + (1 - share) * over


def _fields(n: int, sides: tuple[int, ...], radius: float, rng: np.random.Generator) -> Float[np.ndarray, "n H W 1"]:
    """Smooth random fields of unit variance: white noise, blurred by `radius` of the longer side."""
    noise = rng.standard_normal((n, *sides, 1))
    smooth = blurred(noise, np.full(n, radius * max(sides)))
    return (smooth / smooth.std()).astype(np.float32)
