"""The ConvNet that the literature trains on a distilled set to see what the set is worth.

Training follows one fixed, public recipe, so that scores of different sets can be compared and nothing is tuned on
the test data.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from limbeck.evaluate.accuracy import Progress, accuracy, part_of, probabilities
from limbeck.networks import ConvNet

Labels = Literal["hard", "soft"]

STEPS = 300
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 5e-4
BLOCK = 10  # steps between two reports of progress
TEST_CHUNK = 64  # activations of a larger chunk fall out of cache and are slower per image


def label_probabilities(y: Float[np.ndarray, "m classes"], labels: Labels) -> Float[np.ndarray, "m classes"]:
    """What cross-entropy is given for centred labels: all on the largest ("hard"), or `probabilities`."""
    y = y.astype(np.float32)
    return np.eye(y.shape[1], dtype=np.float32)[y.argmax(1)] if labels == "hard" else probabilities(y)


_ADAMW = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(WEIGHT_DECAY))


def _loss(net: ConvNet, x: Float[Array, "b H W C"], p: Float[Array, "b classes"]) -> Float[Array, ""]:
    return optax.softmax_cross_entropy(net(x), p).mean()


@eqx.filter_jit
def _train_block(net, state, x, p, picks: Int[Array, "steps b"], rates: Float[Array, " steps"]):
    """One step for each minibatch (indices into `x`) and learning rate."""

    def step(carry, now):
        net, state = carry
        pick, rate = now
        gradient = jax.grad(_loss)(net, x[pick], p[pick])
        updates, state = _ADAMW.update(gradient, state, net)
        return (eqx.apply_updates(net, jax.tree.map(lambda u: -rate * u, updates)), state), None

    return jax.lax.scan(step, (net, state), (picks, rates))[0]


def train_convnet(
    x: Float[np.ndarray, "m H W C"],
    y: Float[np.ndarray, "m classes"],
    *,
    seed: int,
    labels: Labels = "hard",
    steps: int = STEPS,
    batch: int = BATCH,
    learning_rate: float = LEARNING_RATE,
    progress: Progress | None = None,
) -> ConvNet:
    """A ConvNet trained on images `x` with centred labels `y`.

    The recipe: AdamW with a cosine schedule and weight decay 5e-4 on softmax cross-entropy, minibatches
    drawn without replacement (all images when there are no more than `batch`). The same seed gives the same
    network.

    **Arguments:**

    - `x`: encoded images. Values far outside [-1, 1] are fine: the instance norms remove their scale.
    - `y`: centred one-hot or learned labels.
    - `seed`: a public seed, for the initial weights and the minibatches.
    - `labels`: what the network is asked for; its label's class, or the whole label as probabilities.
    - `progress`: called with (steps done, steps).
    """
    rng = np.random.default_rng(seed)
    net = ConvNet(x.shape[1:], y.shape[1], rng=rng)
    state = _ADAMW.init(net)
    images, p = jnp.asarray(x), jnp.asarray(label_probabilities(y, labels))
    picks = np.stack([rng.permutation(len(x))[:batch] for _ in range(steps)]).astype(np.int32)
    rates = (learning_rate * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2).astype(np.float32)
    for start in range(0, steps, BLOCK):
        now = slice(start, min(start + BLOCK, steps))
        net, state = _train_block(net, state, images, p, jnp.asarray(picks[now]), jnp.asarray(rates[now]))
        if progress is not None:
            jax.block_until_ready(net)
            progress(now.stop, steps)
    return net


@eqx.filter_jit
def _predict_chunk(net: ConvNet, x: Float[Array, "b H W C"]) -> Int[Array, " b"]:
    return net(x).argmax(1)


def convnet_predict(
    net: ConvNet,
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


def convnet_accuracies(
    x_s: Float[np.ndarray, "m H W C"],
    y_s: Float[np.ndarray, "m classes"],
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    seeds: int = 3,
    labels: Labels = "hard",
    steps: int = STEPS,
    progress: Progress | None = None,
) -> list[float]:
    """Test accuracy of ConvNets trained on a support set from seeds 0, 1, ..., `seeds` - 1.

    `progress` is called with (done, total), counted in forward passes of one image (a training step is three
    an image): the time goes with them.
    """
    training, testing = 3 * steps * min(BATCH, len(x_s)), len(x_test)
    total = seeds * (training + testing)
    found = []
    for seed in range(seeds):
        before = seed * (training + testing)
        net = train_convnet(
            x_s,
            y_s,
            seed=seed,
            labels=labels,
            steps=steps,
            progress=part_of(progress, before, training, total),
        )
        predicted = convnet_predict(net, x_test, progress=part_of(progress, before + training, testing, total))
        found.append(accuracy(predicted, c_test))
    return found
