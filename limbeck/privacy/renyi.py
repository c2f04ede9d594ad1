"""Renyi accounting of the events that a plan makes: the price list of the ledger, and of discrete noise.

dp-accounting prices the Gaussian events; what it lacks is here: replacing a unit, and sampled zCDP mechanisms.
Truncation and rare parts are left out of the curves and covered by delta instead (`delta_left`).
"""

import math

import numpy as np
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant
from jaxtyping import Float64
from scipy.special import gammaln, logsumexp

from limbeck.privacy.events import RareDpEvent, TruncatedSubsampledZCDpEvent, leaves, truncation_of

ORDERS = (*range(2, 65), *range(68, 129, 4), *range(144, 513, 16))
TRUNCATION_SHARE = 0.01  # of delta, at most, for batches that are cut at their cap


def renyi_of(event: dp_event.DpEvent, relation: str, orders: tuple[int, ...] = ORDERS) -> Float64[np.ndarray, " a"]:
    """D_alpha between neighbours, at most, for each (integer) order, with batches as if they were never cut."""
    total = np.zeros(len(orders))
    for leaf, count in leaves(event):
        total += count * _leaf(leaf, relation, orders)
    return total


def _leaf(event: dp_event.DpEvent, relation: str, orders: tuple[int, ...]) -> np.ndarray:
    α = np.array(orders, np.float64)
    # A sum changes by C when a unit is zeroed out and by 2C when it is replaced.
    shift = 2.0 if relation == "replace-one" else 1.0
    match event:
        case dp_event.GaussianDpEvent():
            return α * shift**2 / (2 * event.noise_multiplier**2)
        case RareDpEvent():
            return np.zeros(len(orders))
        case dp_event.ZCDpEvent():
            return α * shift**2 * event.rho
        case dp_event.TruncatedSubsampledGaussianDpEvent():
            q, sigma = event.sampling_probability, event.noise_multiplier
            if relation == "replace-one":
                return np.array([_replaced(q, sigma, a) for a in orders])
            accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_SPECIAL)
            accountant.compose(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(sigma)))
            return accountant.rdp
        case TruncatedSubsampledZCDpEvent() if relation == "zero-out":
            return np.array([_sampled(event.sampling_probability, event.rho, a) for a in orders])
    return np.full(len(orders), np.inf)


def _replaced(q: float, sigma: float, order: int) -> float:
    """D_alpha of (1-q) N(0) + q N(1) from (1-q) N(0) + q N(-1), by quadrature on the line.

    That pair dominates the sampled Gaussian mechanism under replacement (Zhu, Dong & Wang 2022), and it is
    symmetric, so one direction will do.
    """
    reach = 2 * order + 12 * sigma  # beyond the integrand's peak, which is at 2 order - 1 or nearer
    z = np.linspace(-reach, reach, 80_001)
    log_n = [-((z - centre) ** 2) / (2 * sigma**2) for centre in (0.0, 1.0, -1.0)]
    log_p = np.logaddexp(math.log1p(-q) + log_n[0], math.log(q) + log_n[1])
    log_q = np.logaddexp(math.log1p(-q) + log_n[0], math.log(q) + log_n[2])
    step = math.log((z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi)))
    return float((logsumexp(order * log_p + (1 - order) * log_q) + step) / (order - 1))


def _sampled(q: float, rho: float, order: int) -> float:
    """A rho-zCDP mechanism on a Poisson sample: Zhu & Wang 2019, theorem 5, for integer orders."""
    α, l = order, np.arange(3, order + 1)
    terms = [(α - 1) * math.log1p(-q) + math.log(α * q - q + 1)]
    terms.append(_log_binomial(α, 2) + 2 * math.log(q) + (α - 2) * math.log1p(-q) + 2 * rho)
    terms += list(math.log(3) + _log_binomial(α, l) + l * math.log(q) + (α - l) * math.log1p(-q) + (l - 1) * l * rho)
    sampled = float(logsumexp(terms)) / (α - 1)
    return min(sampled, α * rho)  # D_alpha is quasi-convex: sampling never adds to it


def _log_binomial(n: int, k):
    return gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1)


def renyi_epsilon(curve: np.ndarray, orders: tuple[int, ...], delta: float) -> float:
    """The least epsilon that the curve gives at delta."""
    return float(max(0.0, np.min(curve + conversion(orders, delta))))


def conversion(orders: tuple[int, ...], delta: float) -> Float64[np.ndarray, " a"]:
    """What epsilon at delta adds to D_alpha (Canonne, Kamath & Steinke 2020, proposition 12)."""
    α = np.array(orders, np.float64)
    return np.log1p(-1 / α) - np.log(delta * α) / (α - 1)


def delta_left(event: dp_event.DpEvent, epsilon: float, delta: float) -> bool:
    """Whether TRUNCATION_SHARE of delta covers the batches that are cut at their cap.

    Without cuts the outcome differs with probability at most tau, on either of two neighbours; so what is
    (epsilon, delta) without cuts is (epsilon, delta + (1 + e^epsilon) tau) with them.
    """
    return (1 + math.exp(min(epsilon, 700.0))) * truncation_of(event) <= TRUNCATION_SHARE * delta


def epsilon_with_cuts(event: dp_event.DpEvent, delta: float, relation: str) -> float:
    """The epsilon that the event delivers at delta by Renyi accounting, truncation included."""
    epsilon = renyi_epsilon(renyi_of(event, relation), ORDERS, (1 - TRUNCATION_SHARE) * delta)
    return epsilon if delta_left(event, epsilon, delta) else math.inf
