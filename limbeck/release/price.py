"""What a stated plan costs, asked of the accountants only where the answer can be had in seconds.

A certificate may come from anyone, and privacy loss distributions of a tiny sigma or of 10^12 samples take all memory
or all day. Sizes are bounded first; then Renyi accounting, which is quick, says whether the rest is worth asking.
"""

from dataclasses import dataclass

import numpy as np
from dp_accounting import dp_event

from limbeck.privacy.accounting import curve_of, epsilon_of, epsilon_rdp
from limbeck.privacy.events import leaves
from limbeck.privacy.plan import Measurement, Plan

MEASUREMENTS = 64
STEPS = 10**7
UNITS = 10**12
SIGMA = (1e-3, 1e9)
WIDTH = 200.0  # of the privacy losses of one step of each measurement: a minute's work
RENYI = 500.0  # an epsilon above it promises nothing, and its privacy loss is as wide


@dataclass(frozen=True)
class Price:
    """Epsilon by the plan's own accountant, the same by Renyi accounting as a cross-check, and the whole curve."""

    epsilon: float
    rdp: float
    curve: list[tuple[float, float]]


@dataclass(frozen=True)
class Beyond:
    """The field that puts a plan beyond what is recomputed, and why; the cross-check if there is one."""

    field: str
    message: str
    rdp: float | None = None


def price_of(plan: Plan) -> Price | Beyond:
    """Recompute what the plan delivers; its sizes are not `beyond`."""
    try:
        return _asked(plan)
    except (ArithmeticError, ValueError, MemoryError) as error:
        return Beyond("epsilon", f"cannot be recomputed for these measurements ({type(error).__name__})")


def _asked(plan: Plan) -> Price | Beyond:
    with np.errstate(all="ignore"):
        rdp = epsilon_rdp(plan.event, plan.delta, plan.relation)
        if plan.accountant == "PLD" and not rdp <= RENYI:
            message = f"cannot be right: Renyi accounting gives {rdp:.4g}, and above {RENYI:g} nothing is promised"
            return Beyond("epsilon", message, rdp)
        epsilon = epsilon_of(plan.event, plan.delta, plan.relation)
        return Price(epsilon, rdp, curve_of(plan.event, plan.relation))


def is_cut(event: dp_event.DpEvent) -> bool:
    """Whether the event knows of batches that are cut at their cap, which Renyi accounting leaves out."""
    return any(hasattr(leaf, "truncated_batch_size") for leaf, _ in leaves(event))


def beyond(plan: Plan) -> Beyond | None:
    """Sizes that no run has, and that an accountant would choke on; asked before anything else is."""
    if len(plan.measurements) > MEASUREMENTS:
        return Beyond("measurements", f"are more than the {MEASUREMENTS} that are recomputed")
    for i, m in enumerate(plan.measurements):
        for name, value, least, most in (
            ("steps", m.steps, 1, STEPS),
            ("sampling.n", m.sampling.n, 1, UNITS),
            ("sampling.cap", m.sampling.cap, 1, UNITS),
            ("sigma", m.sigma, *SIGMA),
        ):
            if not least <= value <= most:
                message = f"is outside {least:g} to {most:g}, beyond which nothing is recomputed"
                return Beyond(f"measurements.{i}.{name}", message)
    if sum(m.steps for m in plan.measurements) > STEPS:
        return Beyond("measurements", f"have more than {STEPS:g} steps together, beyond which nothing is recomputed")
    if sum(map(_width, plan.measurements)) > WIDTH:
        return Beyond("measurements", "have too small a sigma for Poisson batches: nothing of use is promised")
    return None


def _width(m: Measurement) -> float:
    """How far the privacy loss of one step reaches, up to e^-50: what the time of PLD is proportional to.

    The loss of a Gaussian is 1/(2 s^2) + z/s at z deviations, and batches that are cut are priced at s = sigma/2. Only
    Poisson batches are integrated numerically; full batches are bounded by RENYI.
    """
    return 2 / m.sigma**2 + 20 / m.sigma if m.sampling.kind == "poisson" and m.noise == "normal" else 0.0
