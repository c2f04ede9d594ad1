"""Fitting a small set to a signal: post-processing, without records and without budget."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from limbeck.data import ImageSchema
from limbeck.distill.inducing import Progress, public_seed, random_support, ridge_weights
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, from_config
from limbeck.release import Release, Signal

RATE = 0.05
LABELS = "the teacher's predictions, centred and scaled"


def fit_signal(
    signal: Signal,
    per_class: int = 10,
    *,
    ridge: float = 1e-3,
    steps: int | None = None,
    valid_range: bool = False,
    init_seed: int | None = None,
    features: FeatureMap | None = None,
    progress: Progress | None = None,
) -> Release:
    r"""Fit a support to a private teacher: images and labels on which kernel ridge regression is that teacher.

        minimise |W(X_s) - W*|^2 / |W*|^2 over X_s,    W(X_s) = Phi_s^T (K + lam tr(K)/m I)^-1 Y_s,    Y_s = Phi_s W*

    Labelled so, W(X_s) is the ridge-regularised projection of W* on the span of the support's features: for given
    images no labels come closer, but for the ridge. (They are centred and released in the scale of one-hot labels:
    which class wins is the same.) In whitened features the Frobenius norm is the error of the
    predictions phi(x)^T W over the public images that they were whitened with: the metric in which W is used.

    **Guarantee.** The signal's own: this is a function of the signal and of public inputs. The release carries the
    signal's plan and ledger, and names the signal in its certificate.

    **Parameters**

    - `signal`: as measured, or `load_signal(folder)`. `per_class`: images a class.
    - `ridge`: lam. `steps`: of Adam with a cosine schedule; more for small sets when None.
    - `valid_range`: hold the images within the declared range of values, by projection after every step.
    - `init_seed`: the seed of the initial images: public, stored, drawn afresh when None.
    - `features`: the recipe's, if they are at hand.
    """
    if per_class < 1:
        raise RequestError(f"{per_class} images a class were asked for; at least 1 is needed.")
    seed = public_seed() if init_seed is None else init_seed
    features = features or _features(signal)
    if features.dim != len(signal.W):
        raise RequestError(
            f"the signal has weights for {len(signal.W)} features, and its recipe's features are {features.dim}: it "
            "is not what it says. Try `limbeck verify`."
        )
    recipe = pouring_recipe(signal.schema, per_class, ridge=ridge, valid_range=valid_range, init_seed=seed, steps=steps)
    W_star = centred(jnp.asarray(signal.W, jnp.float32))
    x_s, _ = random_support(signal.schema, per_class, seed)
    x_s = poured(
        features, W_star, x_s, ridge=ridge, steps=recipe["fit_steps"], valid_range=valid_range, progress=progress
    )
    y_s = _labels(features, x_s, W_star)
    if not bool(jnp.all(jnp.isfinite(x_s))):
        raise RequestError("the support diverged: its images are no longer finite. Try a larger ridge.")
    return Release.of(
        signal.schema,
        np.asarray(x_s),
        np.asarray(y_s),
        signal.guarantee,
        signal.recipe | recipe,
        signal.plan,
        ledger=signal.ledger,
        derived_from=signal.digest,
    )


def pouring_recipe(
    schema: ImageSchema,
    per_class: int,
    *,
    ridge: float,
    valid_range: bool,
    init_seed: int | None,
    steps: int | None = None,
) -> dict[str, Any]:
    """Every hyper-parameter of the fit; public."""
    m = per_class * len(schema.classes)
    return {
        "per_class": per_class,
        "ridge": ridge,
        "fit_steps": default_steps(m) if steps is None else steps,
        "fit_learning_rate": RATE,
        "valid_range": valid_range,
        "labels": LABELS,
        "init": "normal",
        "init_seed": init_seed,
    }


def default_steps(m: int) -> int:
    """A step costs about as much as it has images, and a small set needs more of them."""
    return int(np.clip(20000 / m, 150, 1000))


def centred(W: Float[Array, "F C"]) -> Float[Array, "F C"]:
    """The same classifier, whose predictions sum to zero over the classes."""
    return W - jnp.mean(W, axis=1, keepdims=True)


def as_large_as_onehot(Y: Float[Array, "m C"]) -> Float[Array, "m C"]:
    """Predictions in the scale of centred one-hot labels, on average: regression on them predicts the same classes."""
    largest = jnp.mean(jnp.max(Y, axis=1))
    return Y * (1 - 1 / Y.shape[1]) / jnp.where(largest > 0, largest, 1)


def projected(
    features: FeatureMap, x_s: Float[Array, "m ..."], W_star: Float[Array, "F C"], ridge: float
) -> Float[Array, "F C"]:
    """The weights of kernel ridge regression on a support that the teacher labels."""
    Phi_s = features(x_s)
    return ridge_weights(Phi_s, Phi_s @ W_star, ridge)


def distance(
    x_s: Float[Array, "m ..."], features: FeatureMap, W_star: Float[Array, "F C"], ridge: float
) -> Float[Array, ""]:
    """How far the support's weights are from the teacher's, relative to them."""
    return jnp.sum((projected(features, x_s, W_star, ridge) - W_star) ** 2) / jnp.sum(W_star**2)


def poured(
    features: FeatureMap,
    W_star: Float[Array, "F C"],
    x_s: Float[Array, "m ..."],
    *,
    ridge: float,
    steps: int,
    valid_range: bool = False,
    progress: Progress | None = None,
) -> Float[Array, "m ..."]:
    """`steps` of Adam on the support."""
    x = jnp.clip(x_s, -1, 1) if valid_range else x_s
    moments = _adam(steps).init(x)
    for t in range(steps):
        x, moments = _step(x, moments, features, W_star, ridge, steps, valid_range)
        if progress is not None:
            jax.block_until_ready(x)
            progress(t + 1, steps)
    return x


def _adam(steps: int) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(RATE, max(steps, 1)))


@eqx.filter_jit
def _step(
    x: Array, moments: Any, features: FeatureMap, W_star: Array, ridge: float, steps: int, valid_range: bool
) -> tuple[Array, Any]:
    updates, moments = _adam(steps).update(jax.grad(distance)(x, features, W_star, ridge), moments)
    x = optax.apply_updates(x, updates)
    return jnp.clip(x, -1, 1) if valid_range else x, moments


@eqx.filter_jit
def _labels(features: FeatureMap, x_s: Array, W_star: Array) -> Array:
    return as_large_as_onehot(features(x_s) @ W_star)


def _features(signal: Signal) -> FeatureMap:
    try:
        features = from_config(signal.recipe["features"], signal.schema.shape)
    except (KeyError, TypeError):
        raise RequestError("the signal's recipe does not say its features. Try `limbeck verify`.") from None
    if not isinstance(features, FeatureMap):
        raise RequestError("the signal's recipe has no finite features. Try `limbeck verify`.")
    return features
