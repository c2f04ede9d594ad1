"""The networks that people train on a distilled set, to see what the set is worth to them.

All follow one fixed, public recipe, so that scores of different sets and networks can be compared and nothing is tuned
on the test data.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress, accuracy, part_of
from limbeck.features.parallel import WORKERS
from limbeck.networks import KINDS, NETWORKS, Change, Network, augmented_each, drawn

Labels = Literal["hard", "soft"]

STEPS, MOST_STEPS = 300, 1000  # of sets of up to 150 images, and of 500 or more: see `training_steps`
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 5e-4
SHARPNESS = 4.0  # of soft labels: a one-hot label of ten classes becomes 0.86 for its own
AUGMENTATION = tuple(kind for kind in KINDS if kind not in ("flip", "cutout"))  # mirrored digits are other digits
STRENGTH = 0.5
BLOCK = 10  # steps between two reports of progress
TEST_CHUNK = 64  # activations of a larger chunk fall out of cache and are slower per image


class Pace(NamedTuple):
    """How long a network is trained, and on how many images at a time."""

    steps: int
    batch: int = BATCH


def as_probabilities(y: Float[Array, "m classes"]) -> Float[Array, "m classes"]:
    """Labels in the scale of centred one-hot ones as what a network is asked to say: which other classes are near."""
    return jax.nn.softmax(SHARPNESS * y)


def label_probabilities(y: Float[np.ndarray, "m classes"], labels: Labels) -> Float[np.ndarray, "m classes"]:
    """What cross-entropy is given for centred labels: all on the largest ("hard"), or `as_probabilities`."""
    if labels == "hard":
        return np.eye(y.shape[1], dtype=np.float32)[y.argmax(1)]
    return np.asarray(as_probabilities(jnp.asarray(y, jnp.float32)))


_ADAMW = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(WEIGHT_DECAY))


def _loss(net: Network, x: Float[Array, "b H W C"], p: Float[Array, "b classes"]) -> Float[Array, ""]:
    return optax.softmax_cross_entropy(net(x), p).mean()


@eqx.filter_jit
def _train_block(net, state, x, p, picks: Int[Array, "steps b"], rates: Float[Array, " steps"], changes: Change | None):
    """One step for each minibatch (indices into `x`) and learning rate."""

    def step(carry, now):
        net, state = carry
        pick, rate, change = now
        seen = x[pick] if change is None else augmented_each(x[pick], change)
        gradient = jax.grad(_loss)(net, seen, p[pick])
        updates, state = _ADAMW.update(gradient, state, net)
        return (eqx.apply_updates(net, jax.tree.map(lambda u: -rate * u, updates)), state), None

    return jax.lax.scan(step, (net, state), (picks, rates, changes))[0]


def train_network(
    name: str,
    x: Float[np.ndarray, "m H W C"],
    y: Float[np.ndarray, "m classes"],
    *,
    seed: int,
    labels: Labels = "hard",
    steps: int | None = None,
    batch: int = BATCH,
    learning_rate: float = LEARNING_RATE,
    augment: bool = False,
    progress: Progress | None = None,
) -> Network:
    """A network of `limbeck.networks.NETWORKS` trained on images `x` with centred labels `y`.

    The recipe: AdamW with a cosine schedule and weight decay 5e-4 on softmax cross-entropy, minibatches
    drawn without replacement (all images when there are no more than `batch`), `training_steps` of them unless `steps`
    says otherwise. The same seed gives the same network.

    **Arguments:**

    - `x`: encoded images. Values far outside [-1, 1] are fine for a ConvNet and a ResNet, whose instance norms remove
      their scale; an MLP and a LeNet see it.
    - `y`: centred one-hot or learned labels.
    - `seed`: a public seed, for the initial weights, the minibatches and the augmentation.
    - `labels`: what the network is asked for; its label's class, or the whole label as probabilities.
    - `augment`: every image of every minibatch is moved, turned, scaled and recoloured a little. Not by default: scores
      on a split of Fashion-MNIST were lower with it.
    - `progress`: called with (steps done, steps).
    """
    if name not in NETWORKS:
        raise RequestError(f"the network {name!r} is not known; {', '.join(NETWORKS)} is expected.")
    steps = training_steps(len(x)) if steps is None else steps
    rng = np.random.default_rng(seed)
    net = NETWORKS[name](x.shape[1:], y.shape[1], rng=rng)
    state = _ADAMW.init(net)
    images, p = jnp.asarray(x), jnp.asarray(label_probabilities(y, labels))
    picks = np.stack([rng.permutation(len(x))[:batch] for _ in range(steps)]).astype(np.int32)
    rates = (learning_rate * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2).astype(np.float32)
    for start in range(0, steps, BLOCK):
        now = slice(start, min(start + BLOCK, steps))
        changes = _changes(rng, *picks[now].shape) if augment else None
        net, state = _train_block(net, state, images, p, jnp.asarray(picks[now]), jnp.asarray(rates[now]), changes)
        if progress is not None:
            jax.block_until_ready(net)
            progress(now.stop, steps)
    return net


def _changes(rng: np.random.Generator, steps: int, batch: int) -> Change:
    """A change for each image of each minibatch."""
    flat = drawn(rng, steps * batch, AUGMENTATION, strength=STRENGTH)
    return jax.tree.map(lambda part: part.reshape(steps, batch, *part.shape[1:]), flat)


@eqx.filter_jit
def _predict_chunk(net: Network, x: Float[Array, "b H W C"]) -> Int[Array, " b"]:
    return net(x).argmax(1)


def network_predict(
    net: Network,
    x: Float[np.ndarray, "n H W C"],
    *,
    chunk: int = TEST_CHUNK,
    progress: Progress | None = None,
) -> Int[np.ndarray, " n"]:
    """The class index of every image, in chunks of bounded memory."""
    predicted = np.empty(len(x), np.int32)
    for start in range(0, len(x), chunk):
        part = x[start : start + chunk]
        # a short last chunk is padded so that it needs no compilation of its own
        padded = np.pad(part, ((0, chunk - len(part)), (0, 0), (0, 0), (0, 0)))
        predicted[start : start + chunk] = np.asarray(_predict_chunk(net, jnp.asarray(padded)))[: len(part)]
        if progress is not None:
            progress(min(start + chunk, len(x)), len(x))
    return predicted


def network_accuracies(
    name: str,
    x_s: Float[np.ndarray, "m H W C"],
    y_s: Float[np.ndarray, "m classes"],
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    seeds: int = 3,
    labels: Labels = "hard",
    steps: int | None = None,
    batch: int = BATCH,
    augment: bool = False,
    progress: Progress | None = None,
) -> tuple[float, ...]:
    """Test accuracy of networks trained on a support set from seeds 0, 1, ..., `seeds` - 1, side by side.

    `progress` is called with (done, total), in the units of `passes`.
    """
    steps = training_steps(len(x_s)) if steps is None else steps
    training, testing = 3 * steps * min(batch, len(x_s)), len(x_test)
    total = passes(len(x_s), len(x_test), seeds, steps, batch)
    report = _added_up(progress, seeds, total)

    def found(seed: int) -> float:
        mine = report(seed)
        net = train_network(
            name, x_s, y_s, seed=seed, labels=labels, steps=steps, batch=batch, augment=augment,
            progress=part_of(mine, 0, training, total),
        )  # fmt: skip
        predicted = network_predict(net, x_test, progress=part_of(mine, training, testing, total))
        return accuracy(predicted, c_test)

    with ThreadPoolExecutor(WORKERS) as pool:
        return tuple(pool.map(found, range(seeds)))


def _added_up(progress: Progress | None, parts: int, total: int) -> Callable[[int], Progress | None]:
    """A report for each of several parts that are under way at once: what is told is their sum."""
    if progress is None:
        return lambda part: None
    done, lock = [0] * parts, Lock()

    def report(part: int) -> Progress:
        def told(now: int, _: int) -> None:
            with lock:
                done[part] = now
                progress(sum(done), total)

        return told

    return report


def training_steps(m: int) -> int:
    """Two for each of m images, within bounds: on a split of Fashion-MNIST, 500 images needed more than 100 did."""
    return int(np.clip(2 * m, STEPS, MOST_STEPS))


def passes(records: int, tests: int, seeds: int, steps: int | None = None, batch: int = BATCH) -> int:
    """Forward passes of one image that `network_accuracies` takes (a training step is three): time goes with them."""
    steps = training_steps(records) if steps is None else steps
    return seeds * (3 * steps * min(batch, records) + tests)
