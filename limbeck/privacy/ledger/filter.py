"""The privacy filter: may this run still be made, given those that were made before it?

**Why this is a filter.** Later runs are chosen after seeing what earlier ones gave, so neither their number nor
their noise is fixed in advance, and composition theorems for plans fixed in advance do not apply. Two rules do:

- `rdp`: at one order alpha, fixed before anything was seen, go on while sum_i D_alpha(run i) <= B. Then everything
  that was ever released is (alpha, B)-RDP, however the runs were chosen (Feldman & Zrnic 2021, theorem 3.1). With
  B = epsilon - conversion(alpha, 0.99 delta) that is (epsilon, 0.99 delta)-DP. The order must not depend on what was
  released: it is a function of the grant and of the *first* run's plan, which was chosen before there was anything to
  see. The rest of delta pays for Poisson batches that are cut at their cap, which D_alpha leaves out: a run with and
  one without cuts can be coupled so that they differ with probability at most tau_i, whatever came before, so all runs
  together differ with probability at most sum_i tau_i, on either of two neighbours; the filter demands
  (1 + e^epsilon) sum_i tau_i <= 0.01 delta.
- `gdp`: Gaussian mechanisms on full batches only. Go on while sum_i mu_i^2 <= mu^2, where mu-Gaussian-DP is exactly
  (epsilon, delta) (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023): exact, and no order to choose.

**The first run** may also be admitted by its own accountant (PLD), which needs less noise than RDP. Two cases, told
apart by the first plan alone: either it is within B, and all runs obey the rule above; or it is above B, and then the
rule admits nothing after it, so the first run is all there is, a plan fixed in advance, for which PLD is valid.

The rules take (epsilon, delta) as fixed in advance too. A grant that is made or raised after results were seen holds as
stated if no outcome would have led to a larger one: `Account.late` says when that is assumed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dp_accounting import dp_event
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from limbeck.errors import RequestError
from limbeck.privacy.accounting import epsilon_of
from limbeck.privacy.events import leaves, truncation_of
from limbeck.privacy.ledger.grant import Grant
from limbeck.privacy.plan import Plan
from limbeck.privacy.renyi import ORDERS, TRUNCATION_SHARE, conversion, renyi_of

Events = Sequence[dp_event.DpEvent]


@dataclass(frozen=True)
class Standing:
    """Where a list of runs stands against a grant, in the filter's currency: D_alpha (rdp) or mu^2 (gdp)."""

    spent: float
    budget: float
    cut: float  # the probability that a batch is cut at its cap, in all runs, times 1 + e^epsilon
    cut_budget: float
    order: int | None

    @property
    def within(self) -> bool:
        return self.spent <= self.budget and self.cut <= self.cut_budget

    @property
    def fraction(self) -> float:
        """How much of the budget is gone; above 1 where a first run was admitted by its own accountant."""
        return self.spent / self.budget if self.budget > 0 else float(self.spent > 0)


def standing(grant: Grant, events: Events, order: int | None) -> Standing:
    """What the runs have spent; `order` is the one that the rdp filter was fixed to, None before the first run."""
    if grant.filter == "gdp":
        return Standing(
            sum(squared_mu(e, grant.relation) for e in events), gaussian_mu(grant.epsilon, grant.delta) ** 2, 0, 0, None
        )
    if order is None and not events:
        return Standing(0, float(renyi_budget(grant, ORDERS).max()), 0, TRUNCATION_SHARE * grant.delta, None)
    if order is None:
        order = order_for(grant, events[0])
    return Standing(
        sum(float(renyi_of(e, grant.relation, (order,))[0]) for e in events),
        float(renyi_budget(grant, (order,))[0]),
        (1 + math.exp(min(grant.epsilon, 700.0))) * sum(truncation_of(e) for e in events),
        TRUNCATION_SHARE * grant.delta,
        order,
    )


def admits(grant: Grant, events: Events, event: dp_event.DpEvent, order: int | None) -> bool:
    """Whether the run may be made after the others."""
    if standing(grant, (*events, event), order).within:
        return True
    first = grant.filter == "rdp" and not events
    return first and epsilon_of(event, grant.delta, grant.relation) <= grant.epsilon


def epsilon_spent(grant: Grant, events: Events, order: int | None) -> float:
    """The epsilon, at the grant's delta, that the filter vouches for so far."""
    if not events:
        return 0.0
    now = standing(grant, events, order)
    if grant.filter == "gdp":
        return gaussian_epsilon(math.sqrt(now.spent), grant.delta)
    assert now.order is not None
    return max(0.0, now.spent + float(conversion((now.order,), (1 - TRUNCATION_SHARE) * grant.delta)[0]))


def largest_fit(grant: Grant, events: Events, plan: Plan, order: int | None) -> float | None:
    """The largest epsilon for which this plan, with more noise, would be admitted; None if no noise is enough."""
    if grant.filter == "rdp" and not events:
        return grant.epsilon  # the first run is admitted by its own accountant

    def fits(log_factor: float) -> bool:
        return admits(grant, events, plan.scaled(math.exp(log_factor)).event, order)

    low, high = 0.0, math.log(1e3)
    if not fits(high):
        return None
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return plan.scaled(math.exp(high)).epsilon


# Renyi


def renyi_budget(grant: Grant, orders: tuple[int, ...]) -> np.ndarray:
    """B(alpha): the D_alpha that may be spent in all."""
    return grant.epsilon - conversion(orders, (1 - TRUNCATION_SHARE) * grant.delta)


def order_for(grant: Grant, first: dp_event.DpEvent) -> int:
    """The order at which the first plan, repeated, would use the grant best."""
    return ORDERS[int(np.argmax(renyi_budget(grant, ORDERS) / renyi_of(first, grant.relation)))]


# Gaussian differential privacy (Dong, Roth & Su 2022)


def squared_mu(event: dp_event.DpEvent, relation: str) -> float:
    """mu^2 of Gaussian mechanisms on full batches: the sum of (sensitivity / noise)^2."""
    shift = 2.0 if relation == "replace-one" else 1.0
    total = 0.0
    for leaf, count in leaves(event):
        if not isinstance(leaf, dp_event.GaussianDpEvent):
            raise RequestError(
                "the grant's gdp filter takes full batches with normal noise only, and this run samples its batches, "
                "draws discrete noise or selects values. Run it with --batch full and normal noise, or grant a dataset "
                "with the rdp filter."
            )
        total += count * (shift / leaf.noise_multiplier) ** 2
    return total


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of mu-Gaussian-DP at epsilon: corollary 1."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose guarantee is (epsilon, delta), rounded down."""
    mu = brentq(lambda m: gaussian_delta(m, epsilon) - delta, 1e-9, 10 + 10 * epsilon, xtol=1e-12)
    return mu * (1 - 1e-9)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-Gaussian-DP at delta."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, 10 + 10 * mu + mu**2, xtol=1e-12))
