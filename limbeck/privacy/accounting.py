"""What a plan costs: events in, epsilon out. By privacy loss distributions where there are any, else by Renyi."""

import functools
import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Literal

from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq

from limbeck.errors import RequestError
from limbeck.privacy.events import TruncatedSubsampledZCDpEvent, common_of, leaves, rare_of
from limbeck.privacy.renyi import ORDERS, epsilon_with_cuts, renyi_epsilon, renyi_of

Relation = Literal["zero-out", "replace-one"]

RELATIONS = {
    "zero-out": NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}
Accountant = Literal["PLD", "RDP"]
FINEST, COARSEST = 1e-4, 1e-3  # PLD's discretisation of the privacy loss; rounding is pessimistic
ROUNDING = 1e-5  # of epsilon, that it may add
CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def accountant_version() -> str:
    return f"dp-accounting {version('dp-accounting')}"


def grid_of(event: dp_event.DpEvent) -> float:
    """How finely privacy loss is cut. Each answer's rounding adds about the grid's square to epsilon (measured), and
    the work is as the grid's inverse: few answers are priced on a coarser one.
    """
    answers = sum(count for _, count in leaves(event))
    return min(max(math.sqrt(ROUNDING / max(1, answers)), FINEST), COARSEST)


@functools.lru_cache(maxsize=16)
def _composed(event: dp_event.DpEvent, relation: Relation) -> PLDAccountant:
    accountant = PLDAccountant(RELATIONS[relation], grid_of(event))
    accountant.compose(event)
    return accountant


def accountant_of(event: dp_event.DpEvent) -> Accountant:
    """Who prices the event: discrete noise in many dimensions has a Renyi curve and no privacy loss distribution."""
    zero_concentrated = (dp_event.ZCDpEvent, TruncatedSubsampledZCDpEvent)
    return "RDP" if any(isinstance(leaf, zero_concentrated) for leaf, _ in leaves(event)) else "PLD"


def epsilon_of(event: dp_event.DpEvent, delta: float, relation: Relation) -> float:
    """The epsilon that the event delivers at delta; what it shows rarely is (0, tau)-DP, and takes tau of delta."""
    if accountant_of(event) == "RDP":
        return epsilon_with_cuts(event, delta, relation)
    if rare := rare_of(event):
        return epsilon_of(common_of(event), delta - rare, relation) if rare < delta else math.inf
    return float(_composed(event, relation).get_epsilon(delta))


def epsilon_rdp(event: dp_event.DpEvent, delta: float, relation: Relation) -> float:
    """A cross-check by Renyi accounting: quicker, looser, and blind to batches that are cut at their cap."""
    return renyi_epsilon(renyi_of(event, relation), ORDERS, delta)


def curve_of(event: dp_event.DpEvent, relation: Relation) -> list[tuple[float, float]]:
    """(delta, epsilon) pairs: the guarantee is the whole curve, not a point on it."""
    return [(d, epsilon_of(event, d, relation)) for d in CURVE_DELTAS]


def smallest_noise(
    epsilon: float, epsilon_at: Callable[[float], float], *, near: float, step: float = 0.1, within: float = 2e-4
) -> float:
    """The least s, to `within` relative, with epsilon_at(s) <= epsilon, for a decreasing `epsilon_at`.

    A bracket is opened around the guess `near` by factors exp(step) and closed by Brent's method on the logarithm,
    where the curve is nearly straight: a price of a small epsilon costs a fraction of a second and that of a
    large one many, so few are asked for. The answer is always on the safe side.
    """

    def excess(log_s: float) -> float:
        return math.log(max(epsilon_at(math.exp(log_s)), 1e-12) / epsilon)

    low = high = math.log(near)
    if (at_near := excess(low)) > 0:
        while (high := high + step) < 25 and excess(high) > 0:
            low = high
        if high >= 25 and excess(high) > 0:
            raise RequestError(
                f"epsilon {epsilon:g} is less than the accountant can tell from none for so many answers, whatever the "
                "noise: choose a larger one, or fewer steps."
            )
    elif at_near < 0:
        while (low := low - step) > -15 and excess(low) < 0:
            high = low
    s = math.exp(brentq(excess, low, high, xtol=within) if low < high else low)
    while epsilon_at(s) > epsilon:
        s *= 1 + within
    return s
