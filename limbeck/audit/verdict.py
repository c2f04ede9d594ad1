"""What the canary audit found, what it could have found, and whether its own controls behaved."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from limbeck.audit.bounds import (
    expected_lower,
    gaussian_epsilon,
    mean_shift,
    runs_needed,
    threshold_bound,
    threshold_ceiling,
)
from limbeck.audit.runs import Problem, Scores, claimed_shift, default_model, full_batch, simulated
from limbeck.distill import DPKIP
from limbeck.errors import RequestError
from limbeck.privacy.plan import Plan

Progress = Callable[[int, int], None]

BROKEN, INDEPENDENT = "half the noise", "no canary"
SIMULATED = 20_000_000  # scores drawn, at most, to work out a test's power


@dataclass(frozen=True)
class Finding:
    """One pair of arms, judged against a plan's claim.

    - `threshold`: lower bound on epsilon at the plan's delta, by counting (`threshold_bound`).
    - `shift`, `shift_lower`: mu, and the bound on it from below (`mean_shift`).
    - `epsilon`: what `shift_lower` comes to at delta if the arms are normal; None for Poisson plans, where they are not
      and the mean is not the best test: there `shift_lower` is held against the plan's own shift.
    """

    runs: int
    threshold: float
    shift: float
    shift_lower: float
    epsilon: float | None
    flagged: bool


@dataclass(frozen=True)
class Power:
    """How often each test flags a mechanism that adds half of the claimed noise, by simulation."""

    threshold: float
    shift: float
    trials: int


@dataclass(frozen=True)
class CanaryAudit:
    """The result of `canary`.

    - `claim`, `delta`, `claimed_shift`: what the plan promises. `confidence`: of each bound by itself, so that a
      correct mechanism is flagged with probability at most 2 (1 - confidence).
    - `found`: the real mechanism. `controls`: a broken one, which must be flagged, and one without any canary, which
      must not be.
    - `threshold_ceiling`: what counting could have shown at most with so many runs. The mean shift has no such ceiling,
      since it extrapolates; `expected` is the epsilon that it shows, typically, where the claim is used up in full.
    - `reach`: the canary's contribution as a share of C: 1 is the worst case.
    """

    plan: Plan
    claim: float
    delta: float
    claimed_shift: float
    confidence: float
    paired: bool
    found: Finding
    controls: dict[str, Finding]
    threshold_ceiling: float
    expected: float | None
    power: Power
    reach: float
    seconds: float
    scores: tuple[Scores, Scores] = field(repr=False)

    @property
    def flagged(self) -> bool:
        return self.found.flagged

    @property
    def controls_behaved(self) -> bool:
        return self.controls[BROKEN].flagged and not self.controls[INDEPENDENT].flagged

    @property
    def verdict(self) -> str:
        if self.flagged:
            return "FLAGGED: the mechanism gives away more than it claims"
        if not self.controls_behaved:
            return "inconclusive: a control misbehaved, so this test cannot be relied on"
        return "consistent with the claim"

    def facts(self) -> dict[str, Any]:
        """All but the scores, as plain data."""
        plain = {k: getattr(self, k) for k in self.__dataclass_fields__ if k not in ("scores", "plan")}
        plain |= {"found": asdict(self.found), "power": asdict(self.power)}
        plain |= {"controls": {name: asdict(c) for name, c in self.controls.items()}}
        return _plain({"verdict": self.verdict, **plain, "plan": self.plan.model_dump(mode="json")})


def canary(
    method: DPKIP | Plan,
    *,
    n: int = 4,
    runs: int = 5000,
    confidence: float = 0.95,
    paired: bool = True,
    sigma_factor: float = 1.0,
    init_seed: int = 0,
    progress: Progress | None = None,
) -> CanaryAudit:
    """Audit a method's privacy claim with a worst-case canary (see `limbeck.audit.runs` for who the adversary is).

    **What it can show**: that the mechanism, as it is run, gives away more than the plan claims, with confidence.
    **What it cannot show**: that it is private. Faults that no answer shows along the canary's direction (shuffled
    batches, noise that repeats, data in the initial images) pass unseen here and have tests of their own.

    **Parameters**

    - `method`: a `DPKIP`, whose plan for `n` units is audited; or a plan, run by DP-KIP on images of 8 x 8.
    - `runs`: whole runs of the plan, in each of the two arms.
    - `confidence`: of each lower bound, one-sided.
    - `paired`: both arms of a run draw from one fresh key. It sharpens the mean shift about tenfold, since the same
      noise cancels in the difference; False draws every run from a secret stream of its own.
    - `sigma_factor`: the share of the claimed noise that is really added: 1, but for demonstrations.
    - `init_seed`: of the public data and the initial images.
    """
    _check(runs, confidence, sigma_factor)
    model, plan = (default_model(), method) if isinstance(method, Plan) else (method, method.plan(n))
    problem = Problem.of(model, plan, init_seed)
    problem.check(plan)
    begun, mu = time.monotonic(), claimed_shift(plan)
    needed = runs_needed(mu, 2 * mu, 0.9999, confidence, paired=paired and full_batch(plan))
    few = min(runs, max(200, needed))
    done = 0

    def one() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    def arms(factor: float, runs: int, *, planted: bool = True, paired: bool = paired) -> tuple[Scores, Scores, float]:
        return problem.arms(plan.scaled(factor), plan, runs, canary=planted, paired=paired, progress=one)

    total = runs + 2 * few
    broken = arms(0.5, few)[:2]
    independent = arms(1.0, few, planted=False, paired=False)[:2]  # paired, they would be the same runs twice
    controls = {
        BROKEN: judge(*broken, plan, confidence, paired=paired),
        INDEPENDENT: judge(*independent, plan, confidence, paired=False),
    }
    present, absent, reach = arms(sigma_factor, runs)
    lower = expected_lower(mu, runs, confidence, paired=paired)
    return CanaryAudit(
        plan=plan,
        claim=plan.epsilon,
        delta=plan.delta,
        claimed_shift=mu,
        confidence=confidence,
        paired=paired,
        found=judge(present, absent, plan, confidence, paired=paired),
        controls=controls,
        threshold_ceiling=threshold_ceiling(runs, plan.delta, confidence),
        expected=gaussian_epsilon(lower, plan.delta) if full_batch(plan) else None,
        power=power(plan, runs, confidence, paired=paired),
        reach=reach,
        seconds=time.monotonic() - begun,
        scores=(present, absent),
    )


def judge(present: Scores, absent: Scores, plan: Plan, confidence: float, *, paired: bool) -> Finding:
    """Both bounds on one pair of arms; flagged if either is above the plan's claim."""
    counted = threshold_bound(present.likelihood, absent.likelihood, plan.delta, confidence)
    shift = mean_shift(present.shift, absent.shift, confidence, paired=paired)
    epsilon = gaussian_epsilon(max(shift.lower, 0.0), plan.delta) if full_batch(plan) else None
    flagged = counted > plan.epsilon or shift.lower > claimed_shift(plan)
    return Finding(len(absent.shift), counted, shift.estimate, shift.lower, epsilon, flagged)


def power(plan: Plan, runs: int, confidence: float, *, paired: bool, seed: int = 0) -> Power:
    """The share of simulated audits of a mechanism with half of the noise that each test flags."""
    steps = 1 if full_batch(plan) else sum(m.steps for m in plan.measurements)
    trials = int(np.clip(SIMULATED // (2 * steps * runs), 10, 100))
    rng = np.random.default_rng(seed)
    claim, mu, seen = plan.epsilon, claimed_shift(plan), np.zeros(2)
    for _ in range(trials):
        present, absent = simulated(plan, runs, rng, factor=0.5, paired=paired)
        seen += (
            threshold_bound(present.likelihood, absent.likelihood, plan.delta, confidence) > claim,
            mean_shift(present.shift, absent.shift, confidence, paired=paired).lower > mu,
        )
    counted, shifted = seen / trials
    return Power(float(counted), float(shifted), trials)


def _plain(value: Any) -> Any:
    """JSON has no infinity: a bound without limit is told in words."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _check(runs: int, confidence: float, sigma_factor: float) -> None:
    if runs < 50:
        raise RequestError(
            f"{runs} runs an arm were asked for; at least 50 are needed, and 1000 or more say something."
        )
    if not 0.5 < confidence < 1:
        raise RequestError(f"the confidence is {confidence}; it must lie between 0.5 and 1, as 0.95 does.")
    if not (math.isfinite(sigma_factor) and sigma_factor > 0):
        raise RequestError(f"the share of the noise is {sigma_factor}; a positive number is expected.")
