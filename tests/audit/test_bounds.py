"""The statistics of an audit: closed forms, coverage on mechanisms whose epsilon is known, ceilings by formula."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from limbeck.audit.bounds import (
    expected_lower,
    gaussian_delta,
    gaussian_epsilon,
    mean_shift,
    rate_above,
    rate_below,
    runs_needed,
    shift_power,
    threshold_bound,
    threshold_ceiling,
)

DELTA = 1e-5


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (10.0, 0.4999)])
def test_the_gaussian_mechanism_has_the_known_price(epsilon, sigma):
    assert gaussian_epsilon(1 / sigma, DELTA) == pytest.approx(epsilon, rel=2e-4)


@given(st.floats(0.01, 8), st.floats(1e-9, 1e-2))
@settings(max_examples=60, deadline=None)
def test_epsilon_and_delta_of_gaussian_dp_are_inverse(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta * (1 + 1e-3)
    assert epsilon == 0 or gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-3)


def test_no_shift_costs_nothing_and_a_boundless_one_everything():
    assert gaussian_epsilon(0.0, DELTA) == gaussian_epsilon(-1.0, DELTA) == 0
    assert gaussian_epsilon(math.inf, DELTA) == math.inf


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 500), (3, 40), (250, 500), (499, 500), (500, 500)])
@pytest.mark.parametrize("confidence", [0.9, 0.9999])
def test_clopper_pearson_is_scipys(k, n, confidence):
    above = binomtest(k, n, alternative="less").proportion_ci(confidence, method="exact").high
    below = binomtest(k, n, alternative="greater").proportion_ci(confidence, method="exact").low
    assert rate_above(k, n, confidence) == pytest.approx(above, abs=1e-9)
    assert rate_below(k, n, confidence) == pytest.approx(below, abs=1e-9)


def test_the_ceiling_is_that_of_perfect_separation_and_its_formula():
    runs, confidence = 1000, 0.95
    wrong = ((1 - confidence) / 2) ** (1 / (runs // 2))  # no error in 500
    assert threshold_ceiling(runs, DELTA, confidence) == pytest.approx(
        math.log((wrong - DELTA) / (1 - wrong)), rel=1e-9
    )
    absent = np.zeros(runs)
    for present in (absent + 1, absent - 1):
        assert threshold_bound(present, absent, DELTA, confidence) == pytest.approx(
            threshold_ceiling(runs, DELTA, confidence)
        )


def arms(rng, mu, runs, paired):
    absent = rng.standard_normal(runs)
    return mu + (absent if paired else rng.standard_normal(runs)), absent


@pytest.mark.parametrize("mu", [0.0, 0.27, 0.93, 3.0])
def test_the_threshold_bound_covers(mu):
    rng, epsilon = np.random.default_rng(1), gaussian_epsilon(mu, DELTA)
    wrong = sum(threshold_bound(*arms(rng, mu, 400, False), DELTA, 0.9) > epsilon for _ in range(100))
    assert wrong / 100 <= 0.1 + 4 * math.sqrt(0.09 / 100)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("mu", [0.0, 0.27, 0.93])
def test_the_shift_bound_covers_and_is_not_idle(mu, paired):
    rng, trials = np.random.default_rng(5), 1000
    lower = [mean_shift(*arms(rng, mu, 300, paired), 0.9, paired=paired).lower for _ in range(trials)]
    wrong = np.mean([low > mu + 1e-12 for low in lower])  # paired, the shift of two equal arms is zero and no less
    assert wrong <= 0.1 + 4 * math.sqrt(0.09 / trials)
    if mu:
        assert wrong >= (0.05 if paired else 0.1) - 4 * math.sqrt(0.09 / trials)
        assert np.median(lower) == pytest.approx(expected_lower(mu, 300, 0.9, paired=paired), abs=0.01)


@pytest.mark.parametrize(("runs", "power"), [(200, 0.84), (1000, 1.0), (5000, 1.0)])
def test_half_the_noise_at_claim_one_is_flagged_as_often_as_the_guarantee_says(runs, power):
    mu = 1 / 3.7306
    assert shift_power(mu, 2 * mu, runs, 0.95, paired=False) == pytest.approx(power, abs=0.02)
    rng, trials = np.random.default_rng(3), 400
    found = [mean_shift(*arms(rng, 2 * mu, runs, False), 0.95, paired=False).lower > mu for _ in range(trials)]
    assert np.mean(found) == pytest.approx(power, abs=0.06)
    alarms = [mean_shift(*arms(rng, mu, runs, False), 0.95, paired=False).lower > mu for _ in range(trials)]
    assert np.mean(alarms) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_pairing_reaches_the_claim_where_independent_arms_do_not():
    mu = 1 / 3.7306
    reach = {p: gaussian_epsilon(expected_lower(mu, 5000, 0.95, paired=p), DELTA) for p in (True, False)}
    assert 0.97 < reach[True] < 1
    assert 0.84 < reach[False] < 0.88


@given(st.floats(0.05, 3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_power_is_the_error_at_the_claim_and_grows(mu, paired):
    power = [shift_power(mu, k * mu, 500, 0.95, paired=paired) for k in (1.0, 1.2, 2.0)]
    assert power[0] <= 0.05 + 1e-9
    assert power == sorted(power)
    assert shift_power(mu, 2 * mu, runs_needed(mu, 2 * mu, 0.99, 0.95, paired=paired), 0.95, paired=paired) >= 0.99


def test_scores_that_are_constant_or_not_finite_are_the_worst_case():
    still = np.zeros(100)
    assert mean_shift(still + 1, still, 0.95, paired=True).lower == math.inf
    assert mean_shift(still, still, 0.95, paired=True).lower == 0
    noise = norm.ppf((np.arange(100) + 0.5) / 100)
    assert mean_shift(np.append(noise[1:], np.inf), noise, 0.95, paired=False).lower == math.inf
