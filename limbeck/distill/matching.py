"""Distribution matching: images whose embeddings have the means that were measured. Post-processing throughout.

Zhao & Bilen (*Dataset condensation with distribution matching*, 2023), with the signal measured once and beforehand.
"""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from limbeck.data import ImageSchema, of_images
from limbeck.distill.inducing import Progress, check_per_class, public_seed
from limbeck.distill.pouring import LABELS, Pouring, features_of_signal, roughness
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import as_large_as_onehot, part_of
from limbeck.features import Embedding, Embeddings, FeatureMap, dead_leaves
from limbeck.features.embedding import CONSTANT
from limbeck.measure import ClassSums
from limbeck.release import Release, Signal

Serves = Literal["networks", "both"]

RATE, REFINING_RATE = 0.035, 0.02  # of matching the means, and of the teacher with them
COLOUR = 0.3  # how strong colours are beside grey: those of a picture vary mostly together
RAREST = 0.1  # of an even share: a class that is rarer, as far as the noisy counts tell, is not scaled up further


def class_sums(
    ask: Callable[[Callable[[], ClassSums]], Any],
    embeddings: Embeddings,
    progress: Progress | None = None,
) -> Float[np.ndarray, "KF C"]:
    """One answer of `ask` for every embedding, one below the other: all that is ever asked of the records."""
    answers = []
    for k in range(len(embeddings)):
        answers.append(np.asarray(ask(lambda: ClassSums(embeddings[k], embeddings.shape))))  # noqa: B023
        if progress is not None:
            progress(k + 1, len(embeddings))
    return np.concatenate(answers)


def class_means(S: Float[np.ndarray, "KF C"], networks: int) -> Float[np.ndarray, "K d C"]:
    """The mean direction of each class's embeddings, by its own count: sums and counts are of one measurement."""
    C = S.shape[1]
    S = S.reshape(networks, -1, C)
    share = S[:, -1].mean(axis=0) / CONSTANT
    return S[:, :-1] / (np.maximum(share, RAREST / C) * np.sqrt(1 - CONSTANT**2)).astype(np.float32)


def made_up_support(schema: ImageSchema, per_class: int, seed: int) -> tuple[Array, Array]:
    """Dead leaves and balanced centred labels: images with edges and flat parts, and no data in them."""
    classes = len(schema.classes)
    c = jnp.repeat(jnp.arange(classes), per_class)
    x = dead_leaves(len(c), schema.shape, seed)
    return jnp.asarray(x), jax.nn.one_hot(c, classes) - 1 / classes


def matched(
    embeddings: Embeddings,
    M: Float[np.ndarray, "K d C"],
    x_s: Float[Array, "m H W ch"],
    *,
    steps: int,
    seed: int,
    smoothness: float = 0.0,
    progress: Progress | None = None,
) -> Float[Array, "m H W ch"]:
    r"""Images in the range [-1, 1] whose embeddings, a class at a time, have means near M.

        L_k = sum_c | mean_{i in c} e_k(x_i) - M_kc |^2 + smoothness

    by Adam with a cosine schedule in the coordinates of `natural` images, one random embedding k a step; all are taken
    before one comes again. The images of class c are rows c m/C to (c + 1) m/C of x_s.
    """
    moments, weight = _ADAM.init(x_s), jnp.float32(smoothness)
    for t, k in enumerate(_order(len(embeddings), steps, seed)):
        rate = jnp.float32(RATE * (1 + np.cos(np.pi * t / steps)) / 2)
        x_s, moments = _step(embeddings[k], jnp.asarray(M[k].T), x_s, moments, rate, weight)
        if progress is not None:
            jax.block_until_ready(x_s)
            progress(t + 1, steps)
    return x_s


def _order(networks: int, steps: int, seed: int) -> list[int]:
    """Which embedding each step takes: all of them, in random order, again and again."""
    rng = np.random.default_rng([seed, steps])
    rounds = [rng.permutation(networks) for _ in range(-(-steps // networks))]
    return np.concatenate(rounds)[:steps].tolist() if rounds else []


_ADAM = optax.scale_by_adam()


@eqx.filter_jit
def _step(
    embedding: Embedding,
    M: Float[Array, "C d"],
    x_s: Float[Array, "m H W ch"],
    moments: Any,
    rate: Float[Array, ""],
    smoothness: Float[Array, ""],
) -> tuple[Float[Array, "m H W ch"], Any]:
    def loss(x: Array) -> Array:
        return mismatch(embedding, M, x) + smoothness * roughness(x)

    direction, moments = _ADAM.update(natural(jax.grad(loss)(x_s)), moments)
    return jnp.clip(x_s - rate * natural(direction), -1, 1), moments


def natural(x: Float[Array, "m H W ch"]) -> Float[Array, "m H W ch"]:
    r"""T x, where T weighs frequencies f by 1 / f, as pictures of anything have them, and colours less than grey.

    Images x = T z are fitted by Adam on z, whose gradient is T times that of x, so a step moves x by T times Adam's
    direction. That is like an image too, where Adam's on x itself is noise of all frequencies and colours, which
    neither the embeddings nor the teacher see, and networks do. White noise keeps its size.
    """
    H, W = x.shape[1:3]
    f = np.maximum(np.hypot(*np.meshgrid(np.fft.fftfreq(H, 1 / H), np.fft.fftfreq(W, 1 / W), indexing="ij")), 1)
    amplitude = (1 / f / np.sqrt(np.mean(1 / f**2)))[:, : W // 2 + 1, None]
    grey = jnp.mean(x, axis=-1, keepdims=True)
    spectrum = jnp.fft.rfft2(grey + COLOUR * (x - grey), axes=(1, 2)) * jnp.asarray(amplitude, jnp.float32)
    return jnp.fft.irfft2(spectrum, s=(H, W), axes=(1, 2))


def mismatch(embedding: Embedding, M: Float[Array, "C d"], x_s: Float[Array, "m H W ch"]) -> Float[Array, ""]:
    """How far the means of the images' embeddings, a class at a time, are from M."""
    e = embedding(x_s)[:, :-1] / np.float32(np.sqrt(1 - CONSTANT**2))
    return jnp.sum((jnp.mean(e.reshape(len(M), -1, e.shape[1]), axis=1) - M) ** 2)


def refined(
    embeddings: Embeddings,
    M: Float[np.ndarray, "K d C"],
    pouring: Pouring,
    x_s: Float[Array, "m H W ch"],
    y_s: Float[Array, "m C"],
    *,
    steps: int,
    seed: int,
    serves: Serves,
    progress: Progress | None = None,
) -> tuple[Float[Array, "m H W ch"], Float[Array, "m C"]]:
    r"""Matched images on which the teacher agrees with their labels and, for "both", regression is the teacher.

        L_k + cross-entropy of the teacher at X_s + the loss of `Pouring`, in which its labels' correction U is learned

    What regression needs is little: patterns that neither a person nor a network makes much of.
    """
    support = (x_s, jnp.zeros_like(y_s))
    moments, also = _ADAM.init(support), jnp.float32(serves == "both")
    for t, k in enumerate(_order(len(embeddings), steps, seed)):
        rate = jnp.float32(REFINING_RATE * (1 + np.cos(np.pi * t / steps)) / 2)
        M_k = jnp.asarray(M[k].T)
        support, moments = _refining_step(embeddings[k], M_k, pouring, support, y_s, moments, rate, also)
        if progress is not None:
            jax.block_until_ready(support)
            progress(t + 1, steps)
    return support


@eqx.filter_jit
def _refining_step(
    embedding: Embedding,
    M: Float[Array, "C d"],
    pouring: Pouring,
    support: tuple[Float[Array, "m H W ch"], Float[Array, "m C"]],
    y_s: Float[Array, "m C"],
    moments: Any,
    rate: Float[Array, ""],
    also: Float[Array, ""],
) -> tuple[tuple[Float[Array, "m H W ch"], Float[Array, "m C"]], Any]:
    def loss(support: tuple[Array, Array]) -> Array:
        x, U = support
        said = pouring.labels(x, jnp.zeros_like(U))
        classified = jnp.mean(optax.softmax_cross_entropy(said, y_s + 1 / y_s.shape[1]))
        return mismatch(embedding, M, x) + classified + also * pouring.loss((x, U))

    slope, slope_U = jax.grad(loss)(support)
    (direction, direction_U), moments = _ADAM.update((natural(slope), slope_U), moments)
    x, U = support[0] - rate * natural(direction), support[1] - rate * direction_U
    return (jnp.clip(x, -1, 1), U), moments


def fit_matched(
    signal: Signal,
    per_class: int = 10,
    *,
    serves: Serves = "both",
    steps: int | None = None,
    refining_steps: int | None = None,
    ridge: float = 1e-3,
    smoothness: float = 0.0,
    init_seed: int | None = None,
    features: FeatureMap | None = None,
    progress: Progress | None = None,
) -> Release:
    """Fit images to the class sums and to the teacher of a signal: no records, no budget, any number of times.

    **Guarantee.** The signal's own: this is a function of the signal and of public inputs.

    **Parameters**

    - `signal`: as `PrivateDM` measures it. `per_class`: images a class. An image's label is what the teacher
      sees in it: nearly always the class that it was made for.
    - `serves`: "networks" learn from the set; or "both": so does kernel ridge regression, which is the teacher then.
    - `steps`: of matching; `refining_steps`: of matching and agreeing with the teacher. By the number of images when
      None (`default_steps`).
    - `ridge` (lam) of the regression, `smoothness` of the images. `init_seed`: of the initial images, dead leaves.
    - `features`: the recipe's, if they are at hand.
    """
    check_per_class(per_class)
    if signal.S is None:
        raise RequestError("this signal has a teacher and no class sums: fit it for krr, or measure with private-dm.")
    schema = of_images(signal.schema, "matching networks")
    seed = public_seed() if init_seed is None else init_seed
    embeddings = Embeddings.from_config(signal.recipe.get("embeddings", {}), schema.shape)
    if len(signal.S) != len(embeddings) * embeddings.dim:
        raise RequestError(
            f"the signal has sums of {len(signal.S)} coordinates, and its recipe's embeddings have "
            f"{len(embeddings) * embeddings.dim}: it is not what it says. Try `limbeck verify`."
        )
    usual = default_steps(per_class * len(schema.classes))
    steps, refining_steps = (a if b is None else b for a, b in zip(usual, (steps, refining_steps), strict=True))
    M = class_means(signal.S, len(embeddings))
    pouring = Pouring.towards(features_of_signal(signal, features), signal.W, schema.shape, ridge=ridge)
    total = steps + refining_steps
    first, second = part_of(progress, 0, steps, total), part_of(progress, steps, refining_steps, total)
    x_s, y_s = made_up_support(schema, per_class, seed)
    x_s = matched(embeddings, M, x_s, steps=steps, seed=seed, smoothness=smoothness, progress=first)
    x_s, U = refined(embeddings, M, pouring, x_s, y_s, steps=refining_steps, seed=seed, serves=serves, progress=second)
    if not bool(jnp.all(jnp.isfinite(x_s))):
        raise RequestError("the images are no longer finite: the signal is not what it says. Try `limbeck verify`.")
    images = schema.encoded(schema.decode(x_s, whole=True))  # what a reader will have is what is labelled
    logits = eqx.filter_jit(Pouring.labels)(pouring, jnp.asarray(images), U)
    recipe = matching_recipe(
        per_class, serves=serves, steps=steps, refining_steps=refining_steps, ridge=ridge, smoothness=smoothness,
        init_seed=seed,
    )  # fmt: skip
    return Release.of(
        schema, images, np.asarray(as_large_as_onehot(logits)), signal.guarantee, signal.recipe | recipe, signal.plan,
        whole=True, ledger=signal.ledger, derived_from=signal.digest,
    )  # fmt: skip


def matching_recipe(per_class: int, *, serves: Serves, **settings: Any) -> dict[str, Any]:
    """Every hyper-parameter of the fit; public."""
    return {
        "per_class": per_class,
        "serves": serves,
        **{("fit_steps" if name == "steps" else name): value for name, value in settings.items()},
        "fit_learning_rate": RATE,
        "refining_learning_rate": REFINING_RATE,
        "valid_range": True,
        "labels": LABELS,
        "init": "dead leaves",
    }


def default_steps(m: int) -> tuple[int, int]:
    """Of matching and refining m images: a step costs as much as it has images, and more images need fewer.

    Refining matches on, and goes on until the regression says nearly what its teacher does of made-up images.
    """
    return int(np.clip(2e4 / m, 150, 200)), int(np.clip(6e4 / m, 200, 600))
