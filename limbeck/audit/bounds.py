"""From scores to a lower bound on epsilon: pure statistics, no mechanism in sight.

A mechanism that is (epsilon, delta)-DP keeps every test between two neighbouring datasets on or below the line
TPR <= e^epsilon FPR + delta, and its mirror image. A test that is surely above the line refutes the claim.

Two bounds, which fail in different ways:

- **threshold** (Jagielski, Ullman & Oprea 2020): counts right and wrong guesses at one threshold and trusts
  Clopper-Pearson. No assumption at all; needs many runs, and cannot pass a ceiling set by their number.
- **mean shift** (Gaussian DP; Dong, Roth & Su 2022): how far apart the two arms' means are, in standard deviations.
  Tight with few runs, and it extrapolates: it assumes that both arms are normal with one variance.

Neither says that a mechanism is private. Both can only say that it is not.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import betaincinv, log_ndtr, ndtr
from scipy.stats import chi2, norm

Scores = Float[np.ndarray, " runs"]
Count = np.ndarray | np.integer | int


# Gaussian DP


def gaussian_delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) of telling N(mu, 1) from N(0, 1) (Balle & Wang 2018, theorem 8; sigma = 1 / mu)."""
    if mu <= 0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-GDP at delta: `gaussian_delta` solved for epsilon, 0 where delta alone covers it."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if not mu < 1e6:
        return math.inf
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-9))


# The threshold test


def rate_above(k: Count, n: int, confidence: float) -> np.ndarray:
    """Clopper-Pearson: the true rate behind k of n is below this, with this confidence (one-sided)."""
    k = np.asarray(k)
    return np.where(k >= n, 1.0, betaincinv(np.minimum(k, n - 1) + 1.0, np.maximum(n - k, 1), confidence))


def rate_below(k: Count, n: int, confidence: float) -> np.ndarray:
    """The same from the other side: the true rate is above this."""
    return np.asarray(1 - rate_above(n - np.asarray(k), n, confidence))


def _from_rates(hits: Count, alarms: Count, n: int, delta: float, confidence: float) -> np.ndarray:
    """epsilon >= log((TPR - delta) / FPR), with each rate bounded at half of the error."""
    each = (1 + confidence) / 2
    gain = np.maximum(rate_below(hits, n, each) - delta, 1e-300) / rate_above(alarms, n, each)
    return np.asarray(np.maximum(np.log(gain), 0.0))


def threshold_bound(present: Scores, absent: Scores, delta: float, confidence: float) -> float:
    """A lower bound on epsilon from an event "the score is at least t", or below it, likelier in one of the arms.

    The threshold and the event are chosen on the first half of the runs and judged on the second, so the choice
    costs no validity. The arms may depend on each other run by run: the error is split between the two rates.
    """
    half = len(present) // 2
    t = np.unique(np.concatenate([_order_statistics(s[:half]) for s in (present, absent)]))

    def bounds(t: np.ndarray, p: np.ndarray, a: np.ndarray, confidence: float) -> np.ndarray:
        n = len(p)
        high, low = (n - np.searchsorted(np.sort(s), t) for s in (p, a))  # scores of at least t
        events = ((high, low), (n - low, n - high), (low, high), (n - high, n - low))
        return np.stack([_from_rates(k, j, n, delta, confidence) for k, j in events])

    # Chosen at a stricter confidence than it is judged at: the luckiest threshold of the first half disappoints.
    strict = 1 - (1 - confidence) / 100
    chosen = bounds(t, present[:half], absent[:half], strict)
    side, best = np.unravel_index(np.argmax(chosen), chosen.shape)
    return float(bounds(t[[best]], present[half:], absent[half:], confidence)[side, 0])


def _order_statistics(scores: np.ndarray) -> np.ndarray:
    """Some of the scores, dense at both ends, where the best thresholds are."""
    ranks = np.unique(np.geomspace(1, len(scores), 100).astype(int)) - 1
    return np.sort(scores)[np.concatenate([ranks, len(scores) - 1 - ranks])]


def threshold_ceiling(runs: int, delta: float, confidence: float) -> float:
    """What `threshold_bound` gives when the arms are perfectly separated: it can never give more."""
    n = runs - runs // 2
    return float(_from_rates(n, 0, n, delta, confidence))


# The mean shift


class Shift(NamedTuple):
    """mu = (mean present - mean absent) / sd absent: its estimate and a lower bound on its true value."""

    estimate: float
    lower: float


def mean_shift(present: Scores, absent: Scores, confidence: float, *, paired: bool) -> Shift:
    """The shift between the arms in standard deviations of the absent one, with a one-sided lower bound.

    - `paired`: run i of both arms drew the same randomness, so the shift is known almost exactly and what is left to
      estimate is the noise's deviation. The error is split between a paired interval for the shift and a chi-squared
      one for the deviation. Otherwise the arms are independent and the delta method gives one interval.
    """
    runs = len(absent)
    sd = float(np.std(absent, ddof=1))
    shift = float(np.mean(present) - np.mean(absent))
    if not (math.isfinite(shift) and math.isfinite(sd)) or sd == 0:
        at = math.inf if shift > 0 else 0.0
        return Shift(at, at)
    if paired:
        each = (1 + confidence) / 2
        low = shift - float(norm.ppf(each)) * float(np.std(present - absent, ddof=1)) / math.sqrt(runs)
        widest = sd * math.sqrt((runs - 1) / float(chi2.ppf(1 - each, runs - 1)))
        return Shift(shift / sd, low / (widest if low > 0 else sd))
    estimate = shift / sd
    error = math.sqrt((1 + float(np.var(present, ddof=1)) / sd**2) / runs + estimate**2 / (2 * (runs - 1)))
    return Shift(estimate, estimate - float(norm.ppf(confidence)) * error)


def expected_lower(mu: float, runs: int, confidence: float, *, paired: bool) -> float:
    """What `mean_shift` gives, typically, where the true shift is mu: how near the truth it can come."""
    if paired:
        return mu * math.sqrt(chi2.ppf((1 - confidence) / 2, runs - 1) / (runs - 1))
    return mu - norm.ppf(confidence) * _error(mu, runs)


def shift_power(mu: float, truth: float, runs: int, confidence: float, *, paired: bool) -> float:
    """Probability that `mean_shift` puts its lower bound above mu when the true shift is `truth`, both normal."""
    if paired:
        least = chi2.ppf((1 - confidence) / 2, runs - 1)
        return float(chi2.cdf(least * (truth / mu) ** 2, runs - 1))
    return float(ndtr((truth - mu) / _error(truth, runs) - norm.ppf(confidence)))


def _error(mu: float, runs: int) -> float:
    """The standard error of an unpaired estimate of mu, by the delta method."""
    return math.sqrt(2 / runs + mu**2 / (2 * (runs - 1)))


def runs_needed(mu: float, truth: float, power: float, confidence: float, *, paired: bool) -> int:
    """The fewest runs an arm, of a doubling sequence, with this power."""
    runs = 50
    while shift_power(mu, truth, runs, confidence, paired=paired) < power:
        runs *= 2
    return runs
