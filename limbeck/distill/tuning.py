"""Choosing among settings on private data, charged: candidates and their scores are one plan."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.distill.dpkip import DPKIP
from limbeck.errors import RequestError
from limbeck.measure import CorrectPredictions, Records, Session, SupportGradient
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import FullBatch, Measurement, Plan, check_privacy
from limbeck.privacy.stream import Stream
from limbeck.release import Release

SCORES = 0.1  # of epsilon, about, is what the scores would cost alone
SHARED = ("schema", "delta", "relation", "noise", "seed", "chunk")


@dataclass(frozen=True)
class Tuned:
    """The release of the best candidate, which one it is, and every candidate's noisy accuracy."""

    release: Release
    best: int
    scores: tuple[float, ...]


def tune(candidates: Sequence[DPKIP], records: Records, *, epsilon: float) -> Tuned:
    """Run every candidate, score each on the private records, and release the best, all within epsilon.

    A candidate's score is the share of the records that kernel ridge regression on its support classifies right: a
    full-batch sum of sensitivity 1 with noise of its own. Gradients and scores of all K candidates are measurements of
    one plan, which is calibrated to (epsilon, delta) as a whole and answered by one session; the release carries that
    plan, so its certificate shows 2K measurements and its epsilon pays for them all.

    **Guarantee.** (epsilon, delta) differential privacy for everything returned, the losing candidates' scores
    included: the plan is fixed in advance, its measurements compose adaptively (PLD), and the choice is a function
    of their answers.

    **Parameters**

    - `candidates`: methods with settings to choose among; schema, delta, relation and kind of noise are common to all.
      Their own `epsilon` is not used.
    - `records`: the private records.
    - `epsilon`: the total.

    **When it pays.** K candidates share the budget, so each has about sqrt(K) times the noise it would have alone: try
    two or three that differ much, and prefer the defaults, or public data like yours, which cost nothing.

    Considered and not offered: private selection with a random number of trials (Papernot & Steinke 2022;
    `RepeatAndSelectDpEvent` in dp-accounting). Its price hardly grows with the number of trials, two to three times
    that of one, so it pays from about ten candidates on; but it may only release the best trial, may happen
    to try any one candidate never, and its Renyi accounting takes no truncated batches.
    """
    plan = tuning_plan(candidates, records.n, epsilon)
    stream = Stream(candidates[0].seed)
    session = Session(records, plan, stream=stream, chunk=candidates[0].chunk)
    results, scores = [], []
    for k, model in enumerate(candidates):
        x_s, y_s, recipe = model.distilled(session, records, name=_gradients(k))
        query = CorrectPredictions(SupportGradient.at(model.resolved_features(), x_s, y_s, model.ridge))
        (score,) = session.ask(_score(k), lambda: query)  # noqa: B023
        results.append((x_s, y_s, recipe | {"epsilon": epsilon}))
        scores.append(float(score))
    best = int(np.argmax(scores))
    x_s, y_s, recipe = results[best]
    recipe = recipe | {"tuned": {"best": best, "scores": scores, "candidates": [r for *_, r in results]}}
    guarantee = Guarantee.of(plan, seeded=stream.seeded)
    release = Release.of(candidates[best].schema, np.asarray(x_s), np.asarray(y_s), guarantee, recipe, plan)
    return Tuned(release, best, tuple(scores))


def tuning_plan(candidates: Sequence[DPKIP], n: int, epsilon: float) -> Plan:
    """Every candidate's gradients and score, with the noise that the total asks for. Reads no data."""
    if not candidates:
        raise RequestError("there are no candidates to choose among; give at least one.")
    first = candidates[0]
    for field in SHARED:
        if any(getattr(model, field) != getattr(first, field) for model in candidates):
            raise RequestError(f"the candidates differ in {field}, which all must share.")
    if any(model.labels == "counted" for model in candidates):
        raise RequestError("candidates share the budget evenly: give them labels 'uniform', or per_class by class.")
    check_privacy(epsilon, first.delta)
    gradients = tuple(model.measurement(n, _gradients(k)) for k, model in enumerate(candidates))
    scores = tuple(
        Measurement(name=_score(k), sampling=FullBatch(n=n), steps=1, clip=1.0, sigma=1.0, noise=first.noise)
        for k in range(len(candidates))
    )

    def priced(parts: tuple[Measurement, ...], epsilon: float) -> tuple[Measurement, ...]:
        plan = Plan(measurements=parts, delta=first.delta, relation=first.relation, unit=first.schema.unit)
        return plan.calibrated(epsilon).measurements

    parts = priced(gradients, epsilon) + priced(scores, SCORES * epsilon)
    whole = Plan(measurements=parts, delta=first.delta, relation=first.relation, unit=first.schema.unit)
    return whole.calibrated(epsilon)


def _gradients(k: int) -> str:
    return f"support gradient of candidate {k}"


def _score(k: int) -> str:
    return f"correct predictions of candidate {k}"
