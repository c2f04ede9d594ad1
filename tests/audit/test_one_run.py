"""Privacy auditing with one run: the theorem's bound on mechanisms whose epsilon is known, and the planting."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from limbeck.audit import audit_one_run, plant
from limbeck.audit.one_run import ceiling, epsilon_lower, p_value, right_guesses
from limbeck.data import ImageSchema
from limbeck.distill import DPKIP
from limbeck.errors import RequestError

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("a", "b", "c"), low=0, high=255)


def data(n=30):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, size=(n, 4, 4)).astype(np.uint8), np.array(["a", "b", "c"] * (n // 3))


@given(st.integers(1, 200), st.data(), st.floats(0, 6))
@settings(max_examples=60, deadline=None)
def test_without_delta_the_p_value_is_a_binomial_tail(guesses, data, epsilon):
    right = data.draw(st.integers(0, guesses))
    accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))
    tail = binom.pmf(np.arange(right, guesses + 1), guesses, accuracy).sum()
    assert p_value(epsilon, 0.0, canaries=guesses, guesses=guesses, right=right) == pytest.approx(tail, abs=1e-9)


def test_what_delta_adds_is_the_papers_sum():
    """The loop of the paper's appendix D, written as it stands there."""
    m, r, v, epsilon, delta = 300, 120, 80, 0.4, 1e-4
    q = 1 / (1 + math.exp(-epsilon))
    alpha = total = 0.0
    for i in range(1, v + 1):
        total += binom.pmf(v - i, r, q)
        alpha = max(alpha, total / i)
    expected = binom.sf(v - 1, r, q) + alpha * delta * 2 * m
    assert p_value(epsilon, delta, canaries=m, guesses=r, right=v) == pytest.approx(expected, rel=1e-12)


def test_the_ceiling_of_a_thousand_canaries():
    """Without delta it is log(p / (1 - p)) with p^guesses = 1 - confidence; delta only lowers it."""
    for guesses in (100, 200, 1000):
        p = 0.05 ** (1 / guesses)
        highest = math.log(p / (1 - p))
        assert ceiling(0.0, 0.95, canaries=1000, guesses=guesses) == pytest.approx(highest, abs=1e-4)
        assert highest - 0.05 < ceiling(1e-5, 0.95, canaries=1000, guesses=guesses) < highest
    assert ceiling(1e-5, 0.95, canaries=1000, guesses=1000) < 5.8
    assert ceiling(1e-5, 0.95, canaries=1000, guesses=200) < 4.2


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_bound_covers_randomised_response(epsilon):
    """Each coin told truly with probability e^eps / (1 + e^eps): eps-DP exactly, and the hardest case."""
    rng, m, trials = np.random.default_rng(0), 300, 80
    accuracy = 1 / (1 + math.exp(-epsilon))
    bounds = []
    for _ in range(trials):
        included = rng.random(m) < 0.5
        told = np.where(rng.random(m) < accuracy, included, ~included)
        right = right_guesses(told + 0.1 * rng.random(m), included, m)
        bounds.append(epsilon_lower(1e-6, 0.9, canaries=m, guesses=m, right=right))
    assert np.mean(np.array(bounds) > epsilon) <= 0.1 + 4 * math.sqrt(0.09 / trials)
    if epsilon:
        assert np.median(bounds) > 0.7 * epsilon


def test_guesses_are_the_surest_scores():
    included = np.array([True] * 5 + [False] * 5)
    scores = np.arange(10.0)[::-1].copy()
    assert right_guesses(scores, included, 4) == 4
    assert right_guesses(scores, ~included, 4) == 0
    assert right_guesses(scores, included, 10) == 10


def test_a_coin_that_says_no_leaves_a_null_record_in_its_place():
    x, y = data()
    planted = plant(SCHEMA, x, y, 40, seed=1)
    encoded, c = SCHEMA.encode(planted.x, planted.labels)
    assert len(encoded) == 70
    assert np.array_equal(c[:30], SCHEMA.encode(x, y)[1])
    assert np.allclose(encoded[:30], SCHEMA.encode(x, y)[0], atol=1e-6)
    assert np.array_equal(c[30:] >= 0, planted.included)
    assert np.array_equal(c[30:][planted.included], planted.classes[planted.included])
    assert np.allclose(encoded[30:][planted.included], planted.canaries[planted.included], atol=1e-6)
    assert not np.array_equal(plant(SCHEMA, x, y, 40).included, plant(SCHEMA, x, y, 40).included)


def test_one_run_of_the_method_is_consistent_with_its_claim():
    x, y = data()
    settings = {"per_class": 4, "features": "fc-ntk", "batch": "full", "epochs": 5, "delta": 1e-5}
    found = audit_one_run(DPKIP(SCHEMA, epsilon=1, **settings), x, y, canaries=60, confidence=0.9999)
    assert found.claim <= 1
    assert not found.flagged
    assert found.epsilon <= found.ceiling
    assert found.facts()["verdict"] == "consistent with the claim"


def test_requests_that_cannot_be_met():
    x, y = data()
    with pytest.raises(RequestError, match="canaries"):
        plant(SCHEMA, x, y, 3)
    with pytest.raises(RequestError, match="guesses"):
        audit_one_run(DPKIP(SCHEMA), x, y, canaries=20, guesses=30)
    person = ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1, unit="person", rows_per_unit=2)
    with pytest.raises(RequestError, match="unit"):
        plant(person, x, y)
