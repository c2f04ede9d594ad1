"""The ConvNet that the literature trains on a distilled set to see what the set is worth.

Blocks of [3x3 convolution, instance norm, ReLU, 2x2 average pooling], then a linear readout (Gidaris &
Komodakis 2018; the default of dataset distillation since Zhao et al. 2021). Training follows one fixed,
public recipe, so that scores of different sets can be compared and nothing is tuned on the test data.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress, accuracy, part_of, probabilities

Labels = Literal["hard", "soft"]

STEPS = 300
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 5e-4
BLOCK = 10  # steps between two reports of progress
TEST_CHUNK = 64  # activations of a larger chunk fall out of cache and are slower per image


def conv3x3(x: Float[Array, "b H W C"], kernel: Float[Array, "3 3 C width"]) -> Float[Array, "b H W width"]:
    """3x3 convolution with zero padding, as one product of patches with the kernel.

    On CPU, XLA's own convolution is more than ten times slower inside a loop, where training is, though
    somewhat faster outside one. Nine shifted products run as fast as this one, and compile more slowly.
    """
    _, H, W, C = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = [padded[:, i : i + H, j : j + W] for i in range(3) for j in range(3)]
    return jnp.concatenate(patches, axis=-1) @ kernel.reshape(9 * C, -1)


def instance_norm(x: Float[Array, "b H W C"], eps: float = 1e-5) -> Float[Array, "b H W C"]:
    """Every channel of every image to mean 0 and variance 1 over its pixels."""
    centred = x - x.mean((1, 2), keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean((1, 2), keepdims=True) + eps)


def average_pool(x: Float[Array, "b H W C"]) -> Float[Array, "b H2 W2 C"]:
    """2x2 average pooling, stride 2; an odd last row or column is dropped."""
    b, H, W, C = x.shape
    x = x[:, : H // 2 * 2, : W // 2 * 2]
    return x.reshape(b, H // 2, 2, W // 2, 2, C).mean((2, 4))


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Array:
    # Drawn on the host: a generator of JAX's would be compiled for each shape, which takes seconds.
    bound = fan_in**-0.5
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(np.float32))


class Block(eqx.Module):
    """Convolution (no bias: the norm would remove it), affine instance norm, ReLU, pooling."""

    kernel: Float[Array, "3 3 C width"]
    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, channels: int, width: int, *, rng: np.random.Generator):
        self.kernel = _uniform(rng, (3, 3, channels, width), fan_in=9 * channels)
        self.scale = jnp.ones(width)
        self.shift = jnp.zeros(width)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b H2 W2 width"]:
        normalised = instance_norm(conv3x3(x, self.kernel))
        return average_pool(jax.nn.relu(normalised * self.scale + self.shift))


class ConvNet(eqx.Module):
    """`depth` blocks of `width` filters and a linear readout, on images of any (H, W, C).

    There are fewer blocks when the image runs out of pixels first: an instance norm over one pixel is zero.
    """

    blocks: tuple[Block, ...]
    readout: Float[Array, "flat classes"]
    bias: Float[Array, " classes"]

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        width: int = 128,
        depth: int = 3,
        rng: np.random.Generator,
    ):
        H, W, C = shape
        if min(H, W) < 2:
            raise RequestError(f"a ConvNet needs images of at least 2 x 2 pixels, and these are {H} x {W}")
        blocks: list[Block] = []
        for _ in range(depth):
            if min(H, W) < 2:
                break
            blocks.append(Block(C, width, rng=rng))
            H, W, C = H // 2, W // 2, width
        self.blocks = tuple(blocks)
        self.readout = _uniform(rng, (H * W * C, classes), fan_in=H * W * C)
        self.bias = jnp.zeros(classes)

    def __call__(self, x: Float[Array, "b H W C"]) -> Float[Array, "b classes"]:
        for block in self.blocks:
            x = block(x)
        return x.reshape(len(x), -1) @ self.readout + self.bias


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
