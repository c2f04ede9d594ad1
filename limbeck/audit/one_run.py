"""Privacy auditing with one training run (Steinke, Nasr & Jagielski 2023), for runs too large to repeat.

m canaries are put in by m fair coins, the mechanism is run once, and an adversary who sees the release guesses some of
the coins. Under (epsilon, delta)-DP the number of right guesses is no larger, in distribution, than that of independent
coins that come up right with probability e^epsilon / (1 + e^epsilon), but for a term in delta (their theorem 5.2).

**What it can show**: a claim that is too small, from one run of any size. **What it cannot**: much, where the claim
holds. The bound has a ceiling set by m alone; and the adversary here sees the released set only, so that it is usually
far below the claim. A bound of 0 says that this attack failed and nothing else.
"""

import math
import secrets
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.stats import binom

from limbeck.data import ImageSchema, of_images
from limbeck.data.encoding import centred_onehot
from limbeck.distill import DPKIP
from limbeck.distill.inducing import Progress
from limbeck.errors import RequestError
from limbeck.evaluate.krr import krr_fit, krr_predict
from limbeck.features import from_config
from limbeck.measure import Records
from limbeck.release import Release

CANARIES = 1000


# The bound


def p_value(epsilon: float, delta: float, *, canaries: int, guesses: int, right: int) -> float:
    """The most likely it is, under (epsilon, delta)-DP, that `right` or more of the guesses are right."""
    accuracy = 1 / (1 + math.exp(-epsilon))
    tail = binom.sf(right - 1, guesses, accuracy)
    # max over i of P[right > Bin >= right - i] / i, times 2 m delta: what delta may add.
    i = np.arange(1, right + 1)
    below = np.cumsum(binom.pmf(right - i, guesses, accuracy)) / i
    return float(min(1.0, tail + 2 * canaries * delta * below.max(initial=0.0)))


def epsilon_lower(delta: float, confidence: float, *, canaries: int, guesses: int, right: int) -> float:
    """The least epsilon that one run's guesses do not refute: a lower bound, with this confidence."""

    def excess(epsilon: float) -> float:
        return p_value(epsilon, delta, canaries=canaries, guesses=guesses, right=right) - (1 - confidence)

    high = 1.0
    if excess(0.0) >= 0:
        return 0.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-6))


def ceiling(delta: float, confidence: float, *, canaries: int, guesses: int) -> float:
    """The bound if every guess were right: one run cannot show more."""
    return epsilon_lower(delta, confidence, canaries=canaries, guesses=guesses, right=guesses)


def right_guesses(scores: Float[np.ndarray, " m"], included: Bool[np.ndarray, " m"], guesses: int) -> int:
    """Guess "in" for the highest scores and "out" for the lowest, half of the guesses each; abstain between."""
    order, k = np.argsort(scores, kind="stable"), guesses // 2
    return int(included[order[len(order) - (guesses - k) :]].sum() + (~included[order[:k]]).sum())


# Planting


class Planted(NamedTuple):
    """A dataset with canaries behind its records. Where a coin said no, a null record keeps the canary's place."""

    x: Float[np.ndarray, "n H W ch"]
    labels: np.ndarray
    canaries: Float[np.ndarray, "m H W ch"]  # encoded
    classes: Int[np.ndarray, " m"]
    included: Bool[np.ndarray, " m"]


def plant(schema: ImageSchema, X: Any, y: Any, canaries: int = CANARIES, seed: int | None = None) -> Planted:
    """Append `canaries` images of random noise under random labels, each put in by a fair coin.

    Nothing about them is like the data, so what a release knows of one it knows from that one. `seed` repeats the
    images, the labels and the coins; fresh by default.
    """
    if schema.unit != "record":
        raise RequestError("canaries are planted in data whose unit is one record; this schema's is a person.")
    if canaries < 10:
        raise RequestError(f"{canaries} canaries were asked for; at least 10 are needed, and 1000 say something.")
    x, c = schema.encode(X, y)
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    noise = rng.choice([-1.0, 1.0], size=(canaries, *schema.shape)).astype(np.float32)
    classes = rng.integers(len(schema.classes), size=canaries)
    included = rng.random(canaries) < 0.5
    raw = schema.decode(np.concatenate([x, noise]))
    raw[np.concatenate([c < 0, ~included])] = np.nan  # the null record
    return Planted(raw, schema.labels(np.concatenate([np.maximum(c, 0), classes])), noise, classes, included)


def release_scores(release: Release, planted: Planted) -> Float[np.ndarray, " m"]:
    """Minus the loss of each canary under kernel ridge regression on the released set: high if it was learned."""
    features = from_config(release.recipe["features"], release.schema.shape)
    x_s, y_s = np.asarray(release.encoded), np.asarray(release.soft)
    alpha = krr_fit(features, x_s, y_s, release.recipe["ridge"])
    f = krr_predict(features, x_s, alpha, planted.canaries)
    return -0.5 * np.square(f - centred_onehot(planted.classes, f.shape[1])).sum(axis=1)


# The audit


@dataclass(frozen=True)
class OneRunAudit:
    """The result of `audit_one_run`: a lower bound on epsilon, and the most it could have been."""

    claim: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    right: int
    epsilon: float
    ceiling: float

    @property
    def flagged(self) -> bool:
        return self.epsilon > self.claim

    @property
    def verdict(self) -> str:
        if self.flagged:
            return "FLAGGED: the mechanism gives away more than it claims"
        return "consistent with the claim"

    def facts(self) -> dict[str, Any]:
        return {"verdict": self.verdict, **asdict(self)}


def audit_one_run(
    model: DPKIP,
    X: Any,
    y: Any,
    *,
    canaries: int = CANARIES,
    guesses: int | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> OneRunAudit:
    """Run the method once on (X, y) with planted canaries and guess from the release which were in.

    **The release made here is for the audit alone**: it was made with planted records, it is not kept, and what it
    spent of the data's budget is spent like any other run's. Audit on public data of the same size where there is some.

    - `guesses`: how many coins are guessed, fixed beforehand: a fifth of them by default, the surest.
    """
    planted = plant(of_images(model.schema, "this audit"), X, y, canaries)
    guesses = max(2, canaries // 5) if guesses is None else guesses
    if not 1 <= guesses <= canaries:
        raise RequestError(f"{guesses} guesses were asked for; 1 to {canaries}, the number of canaries, can be made.")
    if not 0.5 < confidence < 1:
        raise RequestError(f"the confidence is {confidence}; it must lie between 0.5 and 1, as 0.95 does.")
    model.fit(Records(model.schema, planted.x, planted.labels), progress=progress)
    plan = model.plan_
    right = right_guesses(release_scores(model.release_, planted), planted.included, guesses)
    sizes = {"canaries": canaries, "guesses": guesses}
    return OneRunAudit(
        claim=plan.epsilon,
        delta=plan.delta,
        confidence=confidence,
        right=right,
        epsilon=epsilon_lower(plan.delta, confidence, right=right, **sizes),
        ceiling=ceiling(plan.delta, confidence, **sizes),
        **sizes,
    )
