"""Decant: learn a linear teacher privately, then pour it into a small set. Measure once, fit for ever."""

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.data import ImageSchema, Schema
from limbeck.distill.inducing import PerClass, Progress, class_sizes, features_for, sampling_of
from limbeck.distill.measuring import Answers, Measuring
from limbeck.distill.pouring import fit_signal, pouring_recipe
from limbeck.distill.table_fit import fit_table, table_recipe
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Projected, Whitened
from limbeck.measure import FeatureGradient, Loss, Query, Records, Session, WeightGradient
from limbeck.measure.session import CHUNK
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import Measurement, Noise, Plan, check_privacy
from limbeck.release import Release, Signal

TEACHER = "weight gradient"
FASTEST = 64.0  # learning rate
FEWEST, MOST = 40, 200  # steps


@dataclass
class Decant(Measuring):
    r"""Distil a private teacher: the data is asked about F x C weights, and never about pixels.

    (a) **Measure.** The teacher is a linear model on fixed features phi(x), of unit norm, whitened by the covariance
    of made-up public images. From W = 0, heavy-ball gradient descent on noisy gradients G_t of its loss:

        V <- momentum V + G_t,    W <- W - learning_rate V

    One record's gradient is phi r^T, so it is clipped in closed form, and a step is one matrix product
    (`WeightGradient`). The weights W* and their certificate are a `Signal`.

    (b) **Fit** (`fit_signal`). The support X_s is labelled by the teacher itself, and moved until kernel ridge
    regression on it predicts as W* does. No records are needed, and nothing more is spent.

    **Steps and rate, by formula.** With |phi| = 1 the noise that gathers in a logit phi^T w has standard deviation

        s = learning_rate sqrt(steps) sigma C / ((1 - momentum) batch),

    and since sigma grows as sqrt(steps), s depends on learning_rate x steps alone. How far the teacher learns is the
    same product. So s is what is chosen, once for all data: `logit_noise`, where logits are a few units apart. The
    rate follows from it, and where it would exceed `FASTEST` more steps are taken: few where noise is large, many where
    it is small. All of it is a function of (epsilon, delta, n).

    **Guarantee.** (epsilon, delta) differential privacy for one unit (a record, or all rows of a person, as the
    schema declares), against zeroing it out, by PLD accounting of the Gaussian mechanism that is run: `steps` sums of
    contributions clipped to `clip_norm`, over full or Poisson batches. It holds for the signal, and by
    post-processing for everything that is fitted to it, all sizes together. Features, their whitening and the initial
    images carry no data.

    **Parameters**

    - `schema`: what the data may hold, declared: shape, classes, range, unit.
    - `epsilon`, `delta`, `relation`: the guarantee. Keep delta well below 1 / n.
    - `per_class`: support images a class, in `fit`; a signal serves every size.
    - `features`: "scattering", which is whitened, or a finite map as it is. Its features have unit norm.
    - `project`: dimensions to project the features to, at random and publicly; None keeps them all.
    - `steps`, `learning_rate` (by the formula when None), `logit_noise` (s), `momentum`, `loss` ("softmax" or
      "quadratic"), `clip_norm`: of the teacher.
    - `batch`: expected units a step, or "full".
    - `ridge` (lam), `valid_range` (images within the declared range), `smoothness`: of the fit.
    - `noise`: "normal", or "discrete": integers throughout, proof against floating-point attacks.
    - `init_seed`: the seed of the initial images: public, stored, drawn afresh when None.
    - `seed`: makes the noise repeatable, for tests. What it makes is marked "not private: seeded".
    - `chunk`: units computed at a time, at most; sets the memory.

    **Attributes**: `plan_`, `guarantee_`, `signal_`, `release_`.

    **Example**

        schema = ImageSchema(shape=(28, 28, 1), classes=range(10), low=0, high=255)
        model = Decant(schema, epsilon=1, per_class=10)
        X_s, y_s = model.fit_resample(X, y)
        model.release_.save("release")
        model.signal_.save("signal")
        fit_signal(load_signal("signal"), per_class=50).save("larger")

    The defaults were chosen without the data that you give: on public datasets.

    Departs from DP-KIP in what is clipped and noised: the gradient in the weights of a linear model, in closed form,
    instead of the gradient in every pixel of the support. The support's classes need not be balanced: an image's label
    is what the teacher sees in it.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    per_class: PerClass = 10
    features: str | FeatureMap = "scattering"
    project: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    logit_noise: float = 0.9
    momentum: float = 0.9
    loss: Loss = "softmax"
    clip_norm: float = 1.0
    batch: int | Literal["full"] = "full"
    ridge: float = 1e-3
    valid_range: bool = True
    smoothness: float = 0.0
    relation: Relation = "zero-out"
    noise: Noise = "normal"
    init_seed: int | None = None
    seed: int | None = None
    chunk: int = 512

    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""
        return self._calibrated(self.measurement(n))

    def measurement(self, n: int) -> Measurement:
        """The gradients that will be asked of n units, with sigma 1: a plan is calibrated as a whole."""
        if self.steps is not None and self.steps < 1:
            raise RequestError(f"{self.steps} steps were asked for; at least 1 is needed.")
        class_sizes(self.schema, self.per_class)
        steps = self.steps or self.steps_for(n)
        sampling = sampling_of(n, self.batch, steps, self.delta, noise=self.noise, relation=self.relation)
        return Measurement(name=TEACHER, sampling=sampling, steps=steps, clip=self.clip_norm, sigma=1, noise=self.noise)

    def steps_for(self, n: int) -> int:
        """As many as it takes to gather `logit_noise` at the largest rate, full batches assumed."""
        whole = sampling_of(n, "full", 1, self.delta)
        once = Measurement(name=TEACHER, sampling=whole, steps=1, clip=self.clip_norm, sigma=1, noise=self.noise)
        (once,) = self._calibrated(once).measurements
        product = self.logit_noise * (1 - self.momentum) * n / (once.sigma * self.clip_norm)
        return int(np.clip(np.ceil(product / FASTEST), FEWEST, MOST))

    def rate(self, plan: Plan) -> float:
        """The learning rate that gathers `logit_noise` in the plan's steps, unless one is given."""
        if self.learning_rate is not None:
            return self.learning_rate
        m = plan.measurement(TEACHER)
        noise_a_rate = np.sqrt(m.steps) * m.sigma * m.clip / ((1 - self.momentum) * m.sampling.expected)
        return float(min(self.logit_noise / noise_a_rate, FASTEST))

    def _calibrated(self, measurement: Measurement) -> Plan:
        check_privacy(self.epsilon, self.delta)
        plan = Plan(measurements=(measurement,), delta=self.delta, relation=self.relation, unit=self.schema.unit)
        return plan.calibrated(self.epsilon)

    def base_features(self) -> FeatureMap:
        """The features before they are whitened and projected: made at once."""
        features = features_for(self.features, self.schema)
        if not isinstance(features, FeatureMap):
            raise RequestError(
                f"decant needs features that are a finite map, as scattering; {self.features} is known by its kernel "
                "alone. Choose --features scattering, or --method dpkip."
            )
        return features

    def resolved_features(self) -> FeatureMap:
        features = self.base_features()
        if isinstance(self.features, str) and isinstance(self.schema, ImageSchema):
            features = Whitened.of(features)
        return features if self.project is None else Projected.of(features, self.project)

    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""
        return {
            "method": "Decant",
            "features": self.resolved_features().config(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "clip_norm": self.clip_norm,
            "noise": self.noise,
            "batch": self.batch,
            "steps": plan.measurement(TEACHER).steps,
            "learning_rate": self.rate(plan),
            "momentum": self.momentum,
            "loss": self.loss,
        }

    def recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of both stages, so that a result can be repeated; public."""
        if not isinstance(self.schema, ImageSchema):
            small = table_recipe(
                self.schema, None, per_class=self.per_class, init_seed=self.init_seed, ridge=self.ridge
            )
            return self.signal_recipe(plan) | small
        assert isinstance(self.per_class, int)  # of images, as `measurement` checks
        return self.signal_recipe(plan) | pouring_recipe(self.schema, self.per_class, **self._fit_settings)

    def fitted(self, signal: Signal, progress: Progress | None) -> Release:
        features = self.resolved_features()
        if isinstance(self.schema, ImageSchema):
            assert isinstance(self.per_class, int)
            return fit_signal(signal, self.per_class, features=features, progress=progress, **self._fit_settings)
        return fit_table(
            signal, per_class=self.per_class, features=features, progress=progress, init_seed=self.init_seed,
            ridge=self.ridge,
        )  # fmt: skip

    def answers(self, session: Session, records: Records, plan: Plan, progress: Progress | None) -> Answers:
        """The private teacher."""
        features = self.resolved_features()
        records.prepare(features)
        return self.learned(session, features.dim, plan, progress), None

    def query(self, W: Float[Array, "F C"], through: FeatureMap | None = None) -> Query:
        """What a step asks at the weights W."""
        gradient = WeightGradient(W, self.loss)
        return gradient if through is None else FeatureGradient(through, gradient)

    def learned(
        self, session: Session, F: int, plan: Plan, progress: Progress | None, through: FeatureMap | None = None
    ) -> Float[Array, "F C"]:
        """Heavy-ball gradient descent, each step on one noisy answer: post-processing throughout.

        With `through`, the session's records are kept as they are, and these features are computed at every step.
        """
        steps, rate = plan.measurement(TEACHER).steps, self.rate(plan)
        zero = jnp.zeros((F, len(self.schema.classes)), jnp.float32)
        start, (W, V) = session.restored(TEACHER, (zero, zero))
        for step in range(start, steps):
            G = session.ask(TEACHER, lambda: self.query(W, through))  # noqa: B023
            V = self.momentum * V + G
            W = W - rate * V
            session.checkpoint(step + 1, (W, V))
            if progress is not None:
                progress(step + 1, steps)
        if not bool(jnp.all(jnp.isfinite(W))):
            raise RequestError(
                f"the teacher diverged: its weights are no longer finite. The learning rate is {rate:g}; try a "
                "smaller one."
            )
        return W

    @property
    def _fit_settings(self) -> dict[str, Any]:
        names = ("ridge", "valid_range", "smoothness", "init_seed")
        return {name: getattr(self, name) for name in names}

    @property
    def forms_gradients(self) -> bool:
        """Gradients of rank one are never formed; those of a person with several rows, or on a grid, are."""
        return self.noise == "discrete" or self.schema.rows_per_unit > 1

    @property
    def units_at_a_time(self) -> int:
        return min(self.chunk, CHUNK) if self.forms_gradients else self.chunk
