"""The plan: what is sampled, clipped and noised, and the event that it amounts to, in one object.

A `Session` runs a plan and an accountant prices it, both from the same fields, so what is run is what is
accounted (GUARANTEE, property 4). A plan is inert public data: it knows no records and holds no randomness.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from dp_accounting import dp_event
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.stats import binom

from limbeck.errors import RequestError
from limbeck.privacy.accounting import (
    Accountant,
    Relation,
    accountant_of,
    accountant_version,
    curve_of,
    epsilon_of,
    epsilon_rdp,
    smallest_noise,
)
from limbeck.privacy.events import RareDpEvent, TruncatedSubsampledZCDpEvent
from limbeck.privacy.remembered import Remembered
from limbeck.privacy.stream import Stream

# Contributions are clipped to this fraction of C, so that rounding in float32 (norms of up to 10^7 terms,
# chunk sums of up to 10^3 contributions) cannot carry a sum's sensitivity above C.
ROUNDING = 1 - 1e-3


Noise = Literal["normal", "discrete"]


class _Inert(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Poisson(_Inert):
    """Each unit joins a batch independently with probability q; the batch is padded to a static `cap`.

    A batch above the cap keeps a uniformly random `cap` of its units: the event says so.
    """

    kind: Literal["poisson"] = "poisson"
    n: int = Field(gt=0)
    q: float = Field(gt=0, lt=1)
    cap: int = Field(gt=0)

    @classmethod
    def of(cls, n: int, batch: int, steps: int, delta: float) -> "Poisson":
        """Expected batch size `batch`, and the least cap with steps * P[Bin(n, q) >= cap] <= delta / 10^8.

        So rare a cut costs PLD nothing, and Renyi accounting, which pays e^epsilon times it, next to nothing.
        """
        q = batch / n
        return cls(n=n, q=q, cap=min(n, _exceeded_with(delta / (1e8 * steps), n, q) + 1))

    @property
    def expected(self) -> float:
        """Expected number of units a batch: public, and what sums are divided by."""
        return self.n * self.q

    def draw(self, stream: Stream) -> np.ndarray:
        """One batch: `cap` unit indices, padded with -1."""
        (chosen,) = np.nonzero(stream.bernoulli(self.q, self.n))
        if len(chosen) > self.cap:
            chosen = stream.subset(chosen, self.cap)
        return np.pad(chosen, (0, self.cap - len(chosen)), constant_values=-1)

    def event(self, sigma: float, noise: Noise) -> dp_event.DpEvent:
        if noise == "discrete":
            return TruncatedSubsampledZCDpEvent(self.n, self.q, self.cap, 1 / (2 * sigma**2))
        return dp_event.TruncatedSubsampledGaussianDpEvent(self.n, self.q, self.cap, sigma)


def _exceeded_with(probability: float, n: int, q: float) -> int:
    """The least k with P[Bin(n, q) > k] <= probability, by bisection: `binom.isf` gives n below 1e-16."""
    below, k = -1, n
    while k - below > 1:
        middle = (below + k) // 2
        if binom.sf(middle, n, q) <= probability:
            k = middle
        else:
            below = middle
    return k


class FullBatch(_Inert):
    """Every unit, every time."""

    kind: Literal["full"] = "full"
    n: int = Field(gt=0)

    @property
    def q(self) -> float:
        return 1.0

    @property
    def cap(self) -> int:
        return self.n

    @property
    def expected(self) -> float:
        return float(self.n)

    def draw(self, stream: Stream) -> np.ndarray:
        return np.arange(self.n)

    def event(self, sigma: float, noise: Noise) -> dp_event.DpEvent:
        return dp_event.ZCDpEvent(1 / (2 * sigma**2)) if noise == "discrete" else dp_event.GaussianDpEvent(sigma)


class Measurement(_Inert):
    """`steps` answers of one kind: sums over a batch of contributions clipped to `clip`, plus N(0, sigma^2 C^2 I).

    `noise` is "normal", or "discrete": then contributions are rounded to a grid, sums are exact integers and the
    noise is a discrete Gaussian of that variance (`measure/grid.py`).

    **Formal guarantee.** A unit changes a sum by at most `clip` when it is zeroed out (twice that when it is
    replaced, which the relation's accounting knows), so each answer is a Gaussian mechanism with noise
    multiplier `sigma` on what the sampling lets through; the `steps` answers compose adaptively.
    """

    name: str
    sampling: Poisson | FullBatch = Field(discriminator="kind")
    steps: int = Field(gt=0)
    clip: float = Field(gt=0)
    sigma: float = Field(gt=0)
    noise: Noise = "normal"

    @property
    def event(self) -> dp_event.DpEvent:
        return dp_event.SelfComposedDpEvent(self.sampling.event(self.sigma, self.noise), self.steps)

    @property
    def rough_event(self) -> dp_event.DpEvent:
        """The event without its truncation: a guess ten times faster to price."""
        match self.sampling, self.noise:
            case Poisson(), "normal":
                event = dp_event.PoissonSampledDpEvent(self.sampling.q, dp_event.GaussianDpEvent(self.sigma))
                return dp_event.SelfComposedDpEvent(event, self.steps)
        return self.event


class Selection(Measurement):
    """A measurement of counts of values that nobody has listed: of these, what passes a threshold is named.

    **Formal guarantee.** Of values that one unit alone holds, any passes with probability at most `failure`. The other
    values are held in both of two neighbours, and their noisy counts are a Gaussian mechanism; the unit's own have
    noise of their own, so naming them is (0, failure)-DP. What is named is a function of both mechanisms' answers, and
    the event is their composition.
    """

    failure: float = Field(gt=0, lt=1)

    @property
    def event(self) -> dp_event.DpEvent:
        return dp_event.ComposedDpEvent((super().event, RareDpEvent(self.failure)))


class Plan(_Inert):
    """Every measurement that a run will make of the private data.

    - `unit`: whose presence is hidden, "record" or "person"; `n` in the measurements counts units.
    - `relation`: "zero-out" (a unit against a null unit that keeps its place) or "replace-one".
    """

    measurements: tuple[Measurement | Selection, ...] = Field(min_length=1)
    delta: float = Field(gt=0, lt=1)
    relation: Relation = "zero-out"
    unit: Literal["record", "person"] = "record"

    @model_validator(mode="after")
    def _together(self) -> "Plan":
        if len({m.name for m in self.measurements}) < len(self.measurements):
            raise ValueError("each measurement has a name of its own")
        if len({m.sampling.n for m in self.measurements}) > 1:
            raise ValueError("all measurements are of the same n units")
        if self.relation == "replace-one" and any(
            m.noise == "discrete" and m.sampling.kind == "poisson" for m in self.measurements
        ):
            raise ValueError("discrete noise on Poisson samples is accounted for zero-out only")
        if self.relation == "replace-one" and any(isinstance(m, Selection) for m in self.measurements):
            raise ValueError("selected values are accounted for zero-out only")
        return self

    @property
    def event(self) -> dp_event.DpEvent:
        return dp_event.ComposedDpEvent(tuple(m.event for m in self.measurements))

    @property
    def accountant(self) -> Accountant:
        return accountant_of(self.event)

    @property
    def n(self) -> int:
        return self.measurements[0].sampling.n

    @property
    def epsilon(self) -> float:
        return epsilon_of(self.event, self.delta, self.relation)

    @property
    def curve(self) -> list[tuple[float, float]]:
        return curve_of(self.event, self.relation)

    def measurement(self, name: str) -> Measurement:
        for m in self.measurements:
            if m.name == name:
                return m
        raise RuntimeError(f"the plan holds no measurement {name!r}")

    def scaled(self, factor: float) -> "Plan":
        """The same plan with every sigma multiplied."""
        louder = tuple(m.model_copy(update={"sigma": m.sigma * factor}) for m in self.measurements)
        return self.model_copy(update={"measurements": louder})

    def calibrated(self, epsilon: float) -> "Plan":
        """The plan with the least noise that delivers (epsilon, delta); the sigmas' proportions are kept.

        `result.epsilon <= epsilon` always, and within 1% of it. Renyi accounting makes the first guess and plain
        Poisson sampling the second, each quicker than the next; the truncated event has the last word, also over
        a factor that was found before and kept on disk.
        """
        check_privacy(epsilon, self.delta)

        def renyi(s: float) -> float:
            return epsilon_rdp(self.scaled(s).event, self.delta, self.relation)

        def untruncated(s: float) -> float:
            return epsilon_of(self.scaled(s)._rough_event, self.delta, self.relation)

        known = Remembered(f"{accountant_version()} {epsilon!r} {self.model_dump_json()}")
        # A price far off what was asked can take all memory to work out; Renyi's is quick and says so.
        if known.value is not None and known.value > 0 and 0.9 * epsilon <= renyi(known.value) <= 3 * epsilon:
            plan = self.scaled(known.value)
            if 0.99 * epsilon <= plan.epsilon <= epsilon:
                return plan
        near = smallest_noise(epsilon, renyi, near=1.0, step=0.7, within=1e-2)
        factor = smallest_noise(epsilon, untruncated, near=near)
        while (plan := self.scaled(factor)).epsilon > epsilon:
            factor *= 1 + 5e-4
            if factor > 1e6:
                raise RequestError("no noise gives this guarantee: batches would be cut at their cap too often.")
        known.keep(factor)
        return plan

    def shared(self, epsilon: float, shares: Sequence[float]) -> "Plan":
        """Calibrated, with its share of the budget for each measurement: of 1 / sigma^2, by which Gaussians compose.

        Each is calibrated alone first: how much noise an answer needs differs with its sampling and its steps.
        """
        alone = [self.model_copy(update={"measurements": (m,)}).calibrated(epsilon) for m in self.measurements]
        apart = tuple(
            plan.measurements[0].model_copy(update={"sigma": plan.measurements[0].sigma / math.sqrt(share)})
            for plan, share in zip(alone, shares, strict=True)
        )
        return self.model_copy(update={"measurements": apart}).calibrated(epsilon)

    @property
    def _rough_event(self) -> dp_event.DpEvent:
        return dp_event.ComposedDpEvent(tuple(m.rough_event for m in self.measurements))


def check_privacy(epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that is no guarantee at all."""
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise RequestError(f"epsilon is {epsilon}; it must be a positive number. Usual choices are 0.5 to 10.")
    if not 0 < delta < 1:
        raise RequestError(f"delta is {delta}; it must lie between 0 and 1. Choose it well below 1 / records.")
