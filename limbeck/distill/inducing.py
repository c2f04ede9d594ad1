"""What KIP and DP-KIP share: a random support and gradient descent on the answers of a session."""

import secrets
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, named
from limbeck.measure import Session, SupportGradient

Progress = Callable[[int, int], None]
Optimiser = Literal["adam", "sgd"]
MEASUREMENT = "support gradient"


def random_support(schema: ImageSchema, per_class: int, seed: int) -> tuple[Array, Array]:
    """X_s ~ N(0, I) in encoded units and balanced centred labels: no data in either (GUARANTEE, property 10)."""
    classes = len(schema.classes)
    c = jnp.repeat(jnp.arange(classes), per_class)
    x = jax.random.normal(jax.random.key(seed), (len(c), *schema.shape), jnp.float32)
    return x, jax.nn.one_hot(c, classes) - 1 / classes


def public_seed() -> int:
    """A seed for what is public anyway, the initial images; stored in the recipe, unlike the noise's key."""
    return secrets.randbits(31)


def descend(
    session: Session,
    features: FeatureMap | Kernel,
    x_s: Float[Array, "m H W ch"],
    y_s: Float[Array, "m C"],
    *,
    ridge: float,
    optimiser: Optimiser,
    learning_rate: float,
    steps: int,
    learn_labels: bool = False,
    measurement: str = MEASUREMENT,
    progress: Progress | None = None,
) -> tuple[Float[Array, "m H W ch"], Float[Array, "m C"]]:
    """`steps` gradient steps on the support, each on one answer to `measurement`: post-processing throughout."""
    transform = {"adam": optax.adam, "sgd": optax.sgd}[optimiser](learning_rate)
    variables: Any = (x_s, y_s) if learn_labels else (x_s,)
    state = (variables, transform.init(variables))

    @jax.jit
    def update(state, gradient):
        variables, moments = state
        updates, moments = transform.update(gradient, moments)
        return optax.apply_updates(variables, updates), moments

    start, state = session.restored(measurement, state)
    for step in range(start, steps):
        x_s, y_s = state[0] if learn_labels else (state[0][0], y_s)
        answer = session.ask(measurement, lambda: SupportGradient.at(features, x_s, y_s, ridge))  # noqa: B023
        gradient = answer if isinstance(answer, tuple) else (answer,)
        state = update(state, gradient[: len(state[0])])
        session.checkpoint(step + 1, state)
        if progress is not None:
            progress(step + 1, steps)
    x_s, y_s = state[0] if learn_labels else (state[0][0], y_s)
    if not bool(jnp.all(jnp.isfinite(x_s))):
        raise RequestError(
            f"the support diverged: its images are no longer finite. The learning rate is {learning_rate:g}; "
            "try a smaller one, or a larger ridge."
        )
    return x_s, y_s


def features_for(features: str | FeatureMap | Kernel, schema: ImageSchema) -> FeatureMap | Kernel:
    """The features by name, or as given."""
    return named(features, schema.shape) if isinstance(features, str) else features


def check_sizes(per_class: int, batch: int, n: int) -> None:
    if per_class < 1:
        raise RequestError(f"{per_class} images a class were asked for; at least 1 is needed.")
    if batch < 1:
        raise RequestError(f"the batch size is {batch}; it must be at least 1.")
    if n < 2:
        raise RequestError(f"the data holds {n} units; at least 2 are needed.")
