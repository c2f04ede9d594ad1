"""Fitting a small set to a signal: post-processing, without records and without budget."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Float

from limbeck.data import ImageSchema, TableSchema
from limbeck.distill.inducing import Progress, check_per_class, public_seed, random_support, ridge_weights
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import as_large_as_onehot
from limbeck.features import FeatureMap, dead_leaves, features_of, from_config
from limbeck.release import Release, Signal

RATE = 0.05
PUBLIC_IMAGES, PUBLIC_SEED = 2000, 1  # not the images that features are whitened with
TERMS = {"ridge": 1e-3, "temperature": 3.0, "nearness": 1.0, "smoothness": 0.0}
LABELS = "the teacher's predictions, corrected, centred and scaled"


class Pouring(eqx.Module):
    r"""How well a support stands for the teacher W*, and the weights that are learned from it.

        W(X_s, U) = Phi_s^T (K + lam tr(K)/m I)^-1 Y_s,    Y_s = Phi_s W* + U

        L = T^2 mean_p KL( softmax(phi_p W* / T) || softmax(phi_p W / T) ) + nu |W - W*|^2 / |W*|^2 + smoothness

    Labelled by the teacher, W(X_s) is the ridge-regularised projection of W* on the span of the support's features.
    With many images that is W* itself, and the second term says how nearly; with few it must choose what to keep, and
    the first term says what W is for: its predictions, softened (Hinton et al. 2015), on made-up public images p. The
    correction U of the labels, learned too, makes up for the directions that few images cannot span.
    """

    features: FeatureMap
    W_star: Float[Array, "F C"]
    Phi_p: Float[Array, "p F"]
    ridge: float  # lam
    temperature: float  # T
    nearness: float  # nu
    smoothness: float  # times the mean squared difference of neighbouring pixels

    @classmethod
    def towards(cls, features: FeatureMap, W: ArrayLike, shape: tuple[int, int, int], **terms: float) -> "Pouring":
        """Towards the teacher of weights W, on images of `shape`; what is not among `terms` is as in `TERMS`."""
        Phi_p = features_of(features, dead_leaves(PUBLIC_IMAGES, shape, PUBLIC_SEED))
        return cls(features, centred(jnp.asarray(W, jnp.float32)), jnp.asarray(Phi_p), **(TERMS | terms))

    def labels(self, x_s: Float[Array, "m ..."], U: Float[Array, "m C"]) -> Float[Array, "m C"]:
        return self.features(x_s) @ self.W_star + U

    def weights(self, x_s: Float[Array, "m ..."], U: Float[Array, "m C"]) -> Float[Array, "F C"]:
        Phi_s = self.features(x_s)
        return ridge_weights(Phi_s, Phi_s @ self.W_star + U, self.ridge)

    def loss(self, support: tuple[Float[Array, "m ..."], Float[Array, "m C"]]) -> Float[Array, ""]:
        x_s, U = support
        W = self.weights(x_s, U)
        wanted, found = (jax.nn.log_softmax(self.Phi_p @ V / self.temperature) for V in (self.W_star, W))
        divergence = jnp.mean(jnp.sum(jnp.exp(wanted) * (wanted - found), axis=1))
        distance = jnp.sum((W - self.W_star) ** 2) / jnp.sum(self.W_star**2)
        return self.temperature**2 * divergence + self.nearness * distance + self.smoothness * roughness(x_s)


def fit_signal(
    signal: Signal,
    per_class: int = 10,
    *,
    steps: int | None = None,
    valid_range: bool = True,
    init_seed: int | None = None,
    features: FeatureMap | None = None,
    progress: Progress | None = None,
    **terms: float,
) -> Release:
    """Fit a support to a private teacher: images and labels on which kernel ridge regression is that teacher.

    Minimises the loss of `Pouring` by Adam, from random images. Labels are centred and released in the scale of
    one-hot labels: which class wins is the same.

    **Guarantee.** The signal's own: this is a function of the signal and of public inputs. The release carries the
    signal's plan and ledger, and names the signal in its certificate.

    **Parameters**

    - `signal`: as measured, or `load_signal(folder)`. `per_class`: images a class.
    - `steps`: of Adam with a cosine schedule; more for small sets when None.
    - `valid_range`: hold the images within the declared range of values, by projection after every step; where that is
      a range of bytes, as 0 to 255, they are released as such (uint8).
    - `init_seed`: the seed of the initial images: public, stored, drawn afresh when None.
    - `features`: the recipe's, if they are at hand.
    - `terms`: `ridge` (lam), `temperature`, `nearness` (nu), `smoothness` of the loss; those of `TERMS` when not given.
    """
    check_per_class(per_class)
    if isinstance(signal.schema, TableSchema):
        raise RequestError("this signal is of a table: fit_table makes rows of it.")
    seed = public_seed() if init_seed is None else init_seed
    features = features_of_signal(signal, features)
    schema = signal.schema
    recipe = pouring_recipe(schema, per_class, valid_range=valid_range, init_seed=seed, steps=steps, **terms)
    pouring = Pouring.towards(features, signal.W, schema.shape, **terms)
    x_s, _ = random_support(schema, per_class, seed)
    x_s, U = poured(pouring, x_s, steps=recipe["fit_steps"], valid_range=valid_range, progress=progress)
    if not bool(jnp.all(jnp.isfinite(x_s))):
        raise RequestError("the support diverged: its images are no longer finite. Try a larger ridge.")
    images = schema.encoded(schema.decode(x_s, whole=valid_range))  # what a reader will have is what is labelled
    y_s = as_large_as_onehot(eqx.filter_jit(Pouring.labels)(pouring, jnp.asarray(images), U))
    return Release.of(
        schema,
        images,
        np.asarray(y_s),
        signal.guarantee,
        signal.recipe | recipe,
        signal.plan,
        whole=valid_range,
        ledger=signal.ledger,
        derived_from=signal.digest,
    )


def pouring_recipe(
    schema: ImageSchema,
    per_class: int,
    *,
    valid_range: bool,
    init_seed: int | None,
    steps: int | None = None,
    **terms: float,
) -> dict[str, Any]:
    """Every hyper-parameter of the fit, the `terms` of its loss among them; public."""
    m = per_class * len(schema.classes)
    return {
        "per_class": per_class,
        "fit_steps": default_steps(m) if steps is None else steps,
        "fit_learning_rate": RATE,
        **(TERMS | terms),
        "public_images": PUBLIC_IMAGES,
        "public_seed": PUBLIC_SEED,
        "valid_range": valid_range,
        "labels": LABELS,
        "init": "normal",
        "init_seed": init_seed,
    }


def default_steps(m: int) -> int:
    """A step costs about as much as it has images, and a small set needs more of them."""
    return int(np.clip(12000 / m, 80, 600))


def centred(W: Float[Array, "F C"]) -> Float[Array, "F C"]:
    """The same classifier, whose predictions sum to zero over the classes."""
    return W - jnp.mean(W, axis=1, keepdims=True)


def roughness(x: Float[Array, "m ..."]) -> Float[Array, ""]:
    """The mean squared difference of neighbouring pixels; the coordinates of a row have no neighbours."""
    if x.ndim != 4:
        return jnp.zeros(())
    return jnp.mean((x[:, 1:] - x[:, :-1]) ** 2) + jnp.mean((x[:, :, 1:] - x[:, :, :-1]) ** 2)


def poured(
    pouring: Pouring,
    x_s: Float[Array, "m ..."],
    *,
    steps: int,
    valid_range: bool = True,
    progress: Progress | None = None,
) -> tuple[Float[Array, "m ..."], Float[Array, "m C"]]:
    """The support after `steps` of Adam, at a rate that falls to zero as a cosine, and its labels' correction."""
    U = jnp.zeros((len(x_s), pouring.W_star.shape[1]))
    support = (jnp.clip(x_s, -1, 1) if valid_range else x_s, U)
    moments = _ADAM.init(support)
    for t in range(steps):
        rate = jnp.float32(RATE * (1 + np.cos(np.pi * t / steps)) / 2)
        support, moments = _step(pouring, support, moments, rate, valid_range)
        if progress is not None:
            jax.block_until_ready(support)
            progress(t + 1, steps)
    return support


_ADAM = optax.scale_by_adam()


@eqx.filter_jit
def _step(pouring: Pouring, support: Any, moments: Any, rate: Array, valid_range: bool) -> tuple[Any, Any]:
    directions, moments = _ADAM.update(jax.grad(pouring.loss)(support), moments)
    x_s, U = jax.tree.map(lambda v, d: v - rate * d, support, directions)
    return (jnp.clip(x_s, -1, 1) if valid_range else x_s, U), moments


def features_of_signal(signal: Signal, at_hand: FeatureMap | None = None) -> FeatureMap:
    """The finite features that the teacher was measured on, by the signal's recipe, unless they are at hand."""
    try:
        features = at_hand or from_config(signal.recipe["features"], signal.schema.shape)
    except (KeyError, TypeError):
        raise RequestError("the signal's recipe does not say its features. Try `limbeck verify`.") from None
    if not isinstance(features, FeatureMap):
        raise RequestError("the signal's recipe has no finite features. Try `limbeck verify`.")
    if features.dim != len(signal.W):
        raise RequestError(
            f"the signal has weights for {len(signal.W)} features, and its recipe's features are {features.dim}: it "
            "is not what it says. Try `limbeck verify`."
        )
    return features
