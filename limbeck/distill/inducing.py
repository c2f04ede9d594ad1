"""What KIP and DP-KIP share: a random support, and gradient descent on the answers of a session."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from limbeck.data import Schema, TableSchema
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, TableFeatures, named
from limbeck.measure import Loss, Query, Session, SupportGradient, WeightGradient
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import FullBatch, Noise, Poisson

Progress = Callable[[int, int], None]
Optimiser = Literal["adam", "sgd"]
Batch = int | float | Literal["full"]
PerClass = int | Mapping[Any, int]
MEASUREMENT = "support gradient"


def random_support(schema: Schema, per_class: PerClass, seed: int) -> tuple[Array, Array]:
    """X_s in encoded units and centred labels: no data in either (GUARANTEE, property 10).

    Images are N(0, I); of a table, the numbers behind its rows (`relaxed.Relaxed`) are uniform, so that each of a
    column's categories, and all of a number's range, are as likely.
    """
    sizes = class_sizes(schema, per_class)
    c = jnp.repeat(jnp.arange(len(sizes)), jnp.asarray(sizes), total_repeat_length=sum(sizes))
    key, shape = jax.random.key(seed), (len(c), *schema.shape)
    table = isinstance(schema, TableSchema)
    x = jax.random.uniform(key, shape, jnp.float32, -1, 1) if table else jax.random.normal(key, shape, jnp.float32)
    return x, jax.nn.one_hot(c, len(sizes)) - 1 / len(sizes)


def public_seed() -> int:
    """A seed for what is public anyway, the initial images; stored in the recipe, unlike the noise's key."""
    return secrets.randbits(31)


@runtime_checkable
class Look(Protocol):
    """What a step asks of the records, and how the answer becomes gradients in X_s and Y_s."""

    @property
    def decays(self) -> bool:
        """Whether the rate goes down to zero along the run."""
        ...

    def query(self, x_s: Array, y_s: Array) -> Query: ...

    def gradients(self, x_s: Array, y_s: Array, answer: Any) -> tuple[Any, ...]: ...

    def held(self, x_s: Array) -> Array:
        """X_s after a step, where it may go."""
        ...


class Free:
    """A look that lets X_s go anywhere."""

    def held(self, x_s: Array) -> Array:
        return x_s


@dataclass(frozen=True)
class AtSupport(Free):
    """Gradients in the support's pixels, clipped there: the papers' way. Without noise, in the labels too."""

    features: FeatureMap | Kernel
    ridge: float
    decays: bool = False

    def query(self, x_s: Array, y_s: Array) -> SupportGradient:
        return SupportGradient.at(self.features, x_s, y_s, self.ridge)

    def gradients(self, x_s: Array, y_s: Array, answer: Any) -> tuple[Any, ...]:
        return answer if isinstance(answer, tuple) else (answer,)


@dataclass(frozen=True)
class AtWeights(Free):
    """Gradients in W(X_s, Y_s), clipped there, and pulled back to pixels and labels.

    **Why this is private.** The answer G is a noisy sum of clipped gradients dL_t/dW: all that is seen of the records.
    W is a function of the support alone, which is private output already, so (dW/dX_s)^T G and (dW/dY_s)^T G are
    functions of private outputs: post-processing. Labels are learned for nothing, and no record is differentiated.
    """

    features: FeatureMap
    ridge: float
    loss: Loss
    decays: bool = True

    def query(self, x_s: Array, y_s: Array) -> WeightGradient:
        return WeightGradient(_weights(self.features, x_s, y_s, self.ridge), self.loss)

    def gradients(self, x_s: Array, y_s: Array, answer: Any) -> tuple[Array, ...]:
        return pulled_back(self.features, x_s, y_s, self.ridge, jnp.asarray(answer))


def weights_of(
    features: FeatureMap, x_s: Float[Array, "m ..."], y_s: Float[Array, "m C"], ridge: float
) -> Float[Array, "F C"]:
    """The weights of kernel ridge regression on the support."""
    return ridge_weights(features(x_s), y_s, ridge)


def ridge_weights(Phi_s: Float[Array, "m F"], Y_s: Float[Array, "m C"], ridge: float) -> Float[Array, "F C"]:
    """W = Phi_s^T (K + lam tr(K)/m I)^-1 Y_s: kernel ridge regression predicts phi(x)^T W."""
    K = Phi_s @ Phi_s.T
    m = len(K)
    A = K + ridge * jnp.trace(K) / m * jnp.eye(m)
    return Phi_s.T @ cho_solve(cho_factor(A), Y_s)


_weights = eqx.filter_jit(weights_of)


@eqx.filter_jit
def pulled_back(
    features: FeatureMap, x_s: Float[Array, "m ..."], y_s: Float[Array, "m C"], ridge: float, G: Float[Array, "F C"]
) -> tuple[Float[Array, "m ..."], Float[Array, "m C"]]:
    """(dW/dX_s)^T G and (dW/dY_s)^T G: one backward pass, and a function of the support and of G alone."""
    _, pull = jax.vjp(lambda x, y: weights_of(features, x, y, ridge), x_s, y_s)
    return pull(G)


def descend(
    session: Session,
    look: Look,
    x_s: Float[Array, "m ..."],
    y_s: Float[Array, "m C"],
    *,
    optimiser: Optimiser,
    learning_rate: float,
    steps: int,
    learn_labels: bool = False,
    measurement: str = MEASUREMENT,
    progress: Progress | None = None,
) -> tuple[Float[Array, "m ..."], Float[Array, "m C"]]:
    """`steps` gradient steps on the support, each on one answer to `measurement`: post-processing throughout."""
    rate = optax.cosine_decay_schedule(learning_rate, steps) if look.decays else learning_rate
    transform = {"adam": optax.adam, "sgd": optax.sgd}[optimiser](rate)
    variables: Any = (x_s, y_s) if learn_labels else (x_s,)
    state = (variables, transform.init(variables))

    @jax.jit
    def update(state, gradient):
        variables, moments = state
        updates, moments = transform.update(gradient, moments)
        x_s, *labels = optax.apply_updates(variables, updates)
        return (look.held(x_s), *labels), moments

    start, state = session.restored(measurement, state)
    for step in range(start, steps):
        x_s, y_s = state[0] if learn_labels else (state[0][0], y_s)
        answer = session.ask(measurement, lambda: look.query(x_s, y_s))  # noqa: B023
        state = update(state, look.gradients(x_s, y_s, answer)[: len(state[0])])
        session.checkpoint(step + 1, state)
        if progress is not None:
            progress(step + 1, steps)
    x_s, y_s = state[0] if learn_labels else (state[0][0], y_s)
    if not bool(jnp.all(jnp.isfinite(x_s))):
        raise RequestError(
            f"the support diverged: its records are no longer finite. The learning rate is {learning_rate:g}; "
            "try a smaller one, or a larger ridge."
        )
    return x_s, y_s


def features_for(features: str | FeatureMap | Kernel, schema: Schema) -> FeatureMap | Kernel:
    """The features by name, or as given."""
    if features == "table" and isinstance(schema, TableSchema):
        layout = schema.layout
        return TableFeatures.of(layout.width, len(layout.slots), layout.scalars.tolist())
    return named(features, schema.shape) if isinstance(features, str) else features


def sampling_of(
    n: int,
    batch: Batch,
    steps: int,
    delta: float,
    *,
    noise: Noise = "normal",
    relation: Relation = "zero-out",
) -> Poisson | FullBatch:
    """How `steps` batches are drawn from n units: all of them, or Poisson samples of `batch` expected units."""
    if n < 2:
        raise RequestError(f"the data holds {n} units; at least 2 are needed.")
    expected = batch_size(batch, n)
    if expected == n:
        return FullBatch(n=n)
    if noise == "discrete" and relation == "replace-one":
        raise RequestError(
            "discrete noise on Poisson batches is accounted for zero-out alone: choose that relation, batch "
            "'full', or normal noise."
        )
    return Poisson.of(n, expected, steps, delta)


def batch_size(batch: Batch, n: int) -> int:
    """Expected units a batch, at most all n; a number below 1 is a share of them."""
    share = batch != "full" and 0 < batch < 1
    expected = n if batch == "full" else max(1, round(batch * n)) if share else min(int(batch), n)
    if expected < 1:
        raise RequestError(f"the batch size is {expected}; it must be at least 1.")
    return expected


def check_per_class(per_class: PerClass, what: str = "images") -> None:
    """Refuse what is no number of images of every class: numbers that differ are for tables."""
    if isinstance(per_class, Mapping):
        raise RequestError(f"per_class gives each class its own number of {what}: for tables alone. Give one number.")
    if per_class < 1:
        raise RequestError(f"{per_class} {what} a class were asked for; at least 1 is needed.")


def class_sizes(schema: Schema, per_class: PerClass) -> tuple[int, ...]:
    """Synthetic records of each declared class: as many of every one, or by its name."""
    classes = [str(name) for name in schema.classes]
    if not isinstance(per_class, Mapping):
        check_per_class(per_class, "rows" if isinstance(schema, TableSchema) else "images")
        return (per_class,) * len(classes)
    check_table(schema, "a number for each class")
    given = {str(name): number for name, number in per_class.items()}
    if sorted(given) != sorted(classes):
        raise RequestError(
            f"per_class names {', '.join(given) or 'no class'}; the schema declares {', '.join(classes)}: give each of "
            "them a number, and no other."
        )
    for name, number in given.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise RequestError(f"per_class asks for {number!r} rows of {name}; a whole number from 1 on is expected.")
    return tuple(given[name] for name in classes)


def plain_sizes(per_class: PerClass) -> int | dict[str, int]:
    """As a recipe says it."""
    return per_class if isinstance(per_class, int) else {str(name): number for name, number in per_class.items()}


def check_table(schema: Schema, what: str) -> None:
    if not isinstance(schema, TableSchema):
        raise RequestError(f"{what} is for tables, and the schema declares images.")
