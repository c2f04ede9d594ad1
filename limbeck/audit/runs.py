"""The canary audit: plant a worst-case record, run the real mechanism many times, and try to tell that it was there.

**What the adversary knows.** Everything but the noise and, in Poisson plans, the batches: the canary, every other
record, all settings, and each answer as it leaves the session (not only the released images). The weaker adversaries of
the real world can only do worse, so a bound found here is a bound on the mechanism and not on any one attack.

**The canary** is an image at the ends of the declared range under the label that fits it least. Its gradient is above
C, so its clipped contribution has norm C, the most that a record can add. With it present or absent (zeroed out, or
replaced by its opposite where the plan says replace-one) the answers differ by a known vector plus noise. Projecting on
that vector loses nothing: what remains is a choice between two distributions on the line.

**The rest of the data** is public noise that makes faults visible. Full batch: faint copies of the canary under the
other label, which pull the opposite way, so that clipping a batch instead of its records is seen; the adversary knows
them and subtracts them. Poisson: null records, since the sampling of others would only hide the canary.

**What is real.** Every answer comes from `Session.ask` with the real `SupportGradient`: sampler, clipping, sum, noise
and scale are the shipped code. Only the support's update, which is post-processing, is plainer than in `DPKIP`.
"""

import functools
import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.data import ImageSchema
from limbeck.data.encoding import centred_onehot
from limbeck.distill import DPKIP
from limbeck.distill.inducing import random_support
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, features_of
from limbeck.measure import Records, Session, SupportGradient
from limbeck.measure.clipping import clipped_sum, plain_sum
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.privacy.stream import Stream

Progress = Callable[[int, int], None]

TINY = ImageSchema(shape=(8, 8, 1), classes=(0, 1), low=-1, high=1)
NOT_FINITE = 1e9  # the score of an answer that is not finite: it can only be the canary's doing


class Scores(NamedTuple):
    """What the adversary makes of each run.

    - `shift`: the answers along the canary's direction, weighed by 1 / sigma, in units of the claimed noise.
    - `likelihood`: log-likelihood ratio of present to absent under the claimed plan, the best score there is
      (Neyman & Pearson); for a full batch it orders runs as `shift` does.
    """

    shift: Float[np.ndarray, " runs"]
    likelihood: Float[np.ndarray, " runs"]


class Knowledge(NamedTuple):
    """What the adversary works out from public state before an answer: all of it without the private noise."""

    direction: Array
    reach: Array  # the canary's clipped norm as a share of C
    others: Array  # what the other records add along the direction


@dataclass(frozen=True)
class Problem:
    """A tiny dataset with a canary in it, and the public state that a run starts from."""

    model: DPKIP
    features: FeatureMap | Kernel
    present: Records
    absent: Records
    canary: tuple[Array, Array]  # inputs and target of record 0, as a batch
    others: tuple[Array, Array]
    x_s: Float[Array, "m H W ch"]
    y_s: Float[Array, "m C"]
    query: SupportGradient  # the first, the same in every run

    @classmethod
    def of(cls, model: DPKIP, plan: Plan, init_seed: int) -> "Problem":
        schema, n = model.schema, plan.n
        features = model.resolved_features()
        x_s, y_s = random_support(schema, model.per_class, init_seed)
        query = SupportGradient.at(features, x_s, y_s, model.ridge)
        corners = np.random.default_rng(init_seed).choice([-1.0, 1.0], size=schema.shape).astype(np.float32)
        inputs, norms = _by_label(query, features, corners, len(schema.classes))
        label, opposite = int(np.argmax(norms)), int(np.argmin(norms))

        def records(first: int | None) -> Records:
            faint = np.nan if not full_batch(plan) else 1 / (2 * max(n - 1, 1))
            x = np.stack([corners, *[faint * corners] * (n - 1)])
            x[0] = np.nan if first is None else x[0]
            y = schema.labels(np.array([first or 0] + [opposite] * (n - 1)))
            made = Records(schema, schema.decode(x), y, np.arange(n) if schema.unit == "person" else None)
            made.prepare(features)
            return made

        present = records(label)
        absent = records(None if plan.relation == "zero-out" else opposite)
        target = centred_onehot(np.array([[label]]), len(schema.classes))
        others = present.batch(np.arange(1, n))
        return cls(
            model=model,
            features=features,
            present=present,
            absent=absent,
            canary=(inputs, jnp.asarray(target)),
            others=(jnp.asarray(others[0]), jnp.asarray(others[1])),
            x_s=x_s,
            y_s=y_s,
            query=query,
        )

    def check(self, plan: Plan) -> None:
        """Refuse a canary that is no worst case to begin with."""
        reach = min(
            float(_knowledge(self.query, self.canary, self.others, clip=m.clip).reach) for m in plan.measurements
        )
        if reach < 0.9:
            raise RequestError(
                f"the canary's contribution is {reach:.2g} of the clipping norm: no worst case, so the audit would see "
                "little. Use a smaller --clip-norm."
            )

    def run(self, records: Records, plan: Plan, claimed: Plan, stream: Stream) -> tuple[float, float, float]:
        """One whole run of the plan, each step at the support that the last answer led to; its scores and reach."""
        session = Session(records, plan, stream=stream, chunk=self.model.chunk)
        x_s, weighed, norm, llr, reach = self.x_s, 0.0, 0.0, 0.0, 0.0
        for step, m in enumerate(_steps(claimed)):
            query = SupportGradient.at(self.features, x_s, self.y_s, self.model.ridge) if step else self.query
            know = jax.device_get(_knowledge(query, self.canary, self.others, clip=m.clip))
            answer = session.ask(m.name, lambda: query)  # noqa: B023
            along = float(np.vdot(know.direction, answer)) * m.sampling.expected - float(know.others)
            z, x, q = along / (m.sigma * m.clip), float(know.reach) / m.sigma, m.sampling.q
            z = z if math.isfinite(z) else NOT_FINITE
            weighed, norm = weighed + q * x * z, norm + (q * x) ** 2
            llr += _log_ratio(z, x, q) - (0 if claimed.relation == "zero-out" else _log_ratio(z, -x, q))
            reach += (float(know.reach) - reach) / (step + 1)
            x_s = jnp.asarray(np.asarray(x_s) - self.model.learning_rate * _unit_rms(answer))
        return weighed / math.sqrt(norm), llr, reach

    def arms(
        self, plan: Plan, claimed: Plan, runs: int, *, canary: bool, paired: bool, progress: Callable[[], None]
    ) -> tuple[Scores, Scores, float]:
        """`runs` runs with and without the canary, and the canary's mean reach. Without `canary`: none in either arm.

        Paired runs share a key, fresh for each pair, so that both arms see the same noise and batches.
        """
        first = self.present if canary else self.absent
        made = np.empty((2, runs, 3))
        for i in range(runs):
            key = secrets.randbits(255) if paired else None
            for arm, records in enumerate((first, self.absent)):
                made[arm, i] = self.run(records, plan, claimed, Stream(key))
            progress()
        return Scores(*made[0, :, :2].T), Scores(*made[1, :, :2].T), float(made[..., 2].mean())


def claimed_shift(plan: Plan) -> float:
    """mu of the plan as it is claimed, sqrt(sum of (k q / sigma)^2) over its steps: k is 1, or 2 for replace-one.

    For full-batch plans this is the plan's mu-GDP. For Poisson plans it is what the shift of `Scores` must not pass,
    a property of the mechanism as described, and not of its epsilon.
    """
    k = 1 if plan.relation == "zero-out" else 2
    return math.sqrt(sum(m.steps * (k * m.sampling.q / m.sigma) ** 2 for m in plan.measurements))


def simulated(
    plan: Plan, runs: int, rng: np.random.Generator, *, factor: float = 1.0, paired: bool = False
) -> tuple[Scores, Scores]:
    """Scores as the plan's own model has them, with `factor` of its noise: what a test could see, not what is run."""
    replace = plan.relation == "replace-one"
    steps = [(1.0, 1 / claimed_shift(plan) * (1 + replace))] if full_batch(plan) else None
    arms = []
    again = rng.bit_generator.state
    for sign in (1, -1 if replace else 0):
        if paired:
            rng.bit_generator.state = again
        weighed, norm, llr = np.zeros(runs), 0.0, np.zeros(runs)
        for q, sigma in steps or ((m.sampling.q, m.sigma) for m in _steps(plan)):
            x = 1 / sigma
            z = factor * rng.standard_normal(runs) + sign * x * (rng.random(runs) < q)
            weighed, norm = weighed + q * x * z, norm + (q * x) ** 2
            llr += _log_ratio(z, x, q) - (_log_ratio(z, -x, q) if replace else 0)
        arms.append(Scores(weighed / math.sqrt(norm), llr))
    return arms[0], arms[1]


def default_model(features: str = "fc-ntk", **settings: Any) -> DPKIP:
    """DP-KIP on images of 8 x 8 and two classes: small enough for thousands of runs."""
    small: dict[str, Any] = {"per_class": 1, "ridge": 1e-2, "batch": "full"}
    return DPKIP(TINY, features=features, **(small | settings))


def _steps(plan: Plan) -> Iterator[Measurement]:
    for m in plan.measurements:
        yield from [m] * m.steps


def full_batch(plan: Plan) -> bool:
    """Whether every step takes every record, so that the whole run is one Gaussian mechanism."""
    return all(isinstance(m.sampling, FullBatch) for m in plan.measurements)


def _log_ratio(z, x: float, q: float):
    """log of (1 - q) + q N(z; x, 1) / N(z; 0, 1)."""
    return np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + x * z - x * x / 2)


def _unit_rms(answer: np.ndarray) -> np.ndarray:
    return answer / max(float(np.sqrt(np.mean(np.square(answer)))), 1e-30)


def _by_label(query: SupportGradient, features, image: np.ndarray, classes: int) -> tuple[Array, np.ndarray]:
    """The image as a batch of one, and its gradient's signed length under each label along that of the first.

    With two classes the extremes point opposite ways; the longest is the canary.
    """
    flat = image[None].reshape(1, -1) if isinstance(features, Kernel) else features_of(features, image[None])
    inputs = jnp.asarray(flat)[:, None]
    g = [
        np.asarray(_gradient(query, inputs, jnp.asarray(y)[None])).ravel()
        for y in centred_onehot(np.arange(classes)[:, None], classes)
    ]
    longest = max(g, key=np.linalg.norm)
    return inputs, np.array([v @ longest for v in g])


@jax.jit
def _gradient(query: SupportGradient, inputs: Array, y: Array) -> Array:
    return query.decoded(plain_sum(query.contributions(inputs, y)))


@functools.partial(jax.jit, static_argnames="clip")
def _knowledge(
    query: SupportGradient, canary: tuple[Array, Array], others: tuple[Array, Array], clip: float
) -> Knowledge:
    g = _gradient(query, *canary)
    length = jnp.linalg.norm(g)
    direction = g / jnp.maximum(length, 1e-30)
    rest = query.decoded(clipped_sum(query.contributions(*others), clip))
    return Knowledge(direction, jnp.minimum(length / clip, 1.0), jnp.vdot(direction, rest))
