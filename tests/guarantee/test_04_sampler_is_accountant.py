"""Property 4. One plan yields batches and event: Poisson with its q, n and cap, or the full batch, and nothing else."""

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, chisquare

from limbeck.measure import Session
from limbeck.privacy.events import TruncatedSubsampledZCDpEvent, leaves
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from limbeck.privacy.stream import Stream
from tests.guarantee.problem import Inputs, plan, quickly, records

N, T = 16, 1000
POISSON = Poisson(n=N, q=0.25, cap=12)


@pytest.fixture(scope="module")
def batches():
    """Who was in each of T batches, read off a session's own answers: unit u is the image of pixel u alone."""
    one_hot = records(np.eye(N).reshape(N, 4, 4), ["a", "b"] * (N // 2))
    session = Session(one_hot, plan(POISSON, steps=T, clip=1.0), stream=Stream(seed=11))
    return np.stack([session.ask("g", Inputs) for _ in range(T)]) * POISSON.expected > 0.5


def two_sided(statistic, degrees):
    """A statistic can be too small as well: shuffled epochs take each unit equally often."""
    return 2 * min(chi2.cdf(statistic, degrees), chi2.sf(statistic, degrees))


def test_every_unit_joins_with_probability_q_independently_of_the_step(batches):
    q = POISSON.q
    per_unit = (batches.sum(axis=0) - T * q) ** 2 / (T * q * (1 - q))
    assert two_sided(per_unit.sum(), N) > 1e-6
    again = (batches[1:] & batches[:-1]).sum(axis=0)  # in two batches running
    assert two_sided(((again - (T - 1) * q**2) ** 2 / ((T - 1) * q**2)).sum(), N) > 1e-9


def test_units_join_independently_of_each_other(batches):
    counts = np.bincount(batches.sum(axis=1), minlength=N + 1)
    expected = T * binom.pmf(np.arange(N + 1), N, POISSON.q)
    likely = expected > 5
    counts, expected = np.r_[counts[likely], counts[~likely].sum()], np.r_[expected[likely], expected[~likely].sum()]
    assert chisquare(counts, expected).pvalue > 1e-6
    pairs = np.cov(batches.T.astype(float))[np.triu_indices(N, 1)]
    assert np.abs(pairs).max() < 6 * POISSON.q * (1 - POISSON.q) / np.sqrt(T)


def test_an_overfull_batch_keeps_a_uniformly_random_cap():
    sampling, stream = Poisson(n=50, q=0.9, cap=5), Stream(seed=1)
    drawn = [sampling.draw(stream) for _ in range(3000)]
    assert {(len(b), (b >= 0).sum()) for b in drawn} == {(5, 5)}
    assert all((np.diff(b) > 0).all() for b in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=50)
    assert chisquare(counts).pvalue > 1e-6


def test_the_full_batch_is_everyone():
    assert np.array_equal(FullBatch(n=5).draw(Stream()), np.arange(5))


@given(st.integers(2, 10_000), st.floats(1e-4, 0.9), st.integers(1, 500), st.integers(1, 100), st.floats(0.3, 20))
@settings(parent=quickly)
def test_the_event_is_made_of_the_fields_that_are_run(n, q, cap, steps, sigma):
    event = {
        (kind, noise): leaves(plan(sampling, steps=steps, sigma=sigma, noise=noise).event)
        for kind, sampling in {"poisson": Poisson(n=n, q=q, cap=cap), "full": FullBatch(n=n)}.items()
        for noise in ("normal", "discrete")
    }
    rho = 1 / (2 * sigma**2)
    assert event["poisson", "normal"] == [(dp_event.TruncatedSubsampledGaussianDpEvent(n, q, cap, sigma), steps)]
    assert event["poisson", "discrete"] == [(TruncatedSubsampledZCDpEvent(n, q, cap, rho), steps)]
    assert event["full", "normal"] == [(dp_event.GaussianDpEvent(sigma), steps)]
    assert event["full", "discrete"] == [(dp_event.ZCDpEvent(rho), steps)]


def test_the_event_knows_of_the_cap():
    ((leaf, _),) = leaves(plan(POISSON).event)
    assert getattr(leaf, "truncated_batch_size", None) == POISSON.cap


@given(st.integers(100, 20_000), st.floats(0.005, 0.5), st.integers(1, 2000))
@settings(parent=quickly)
def test_the_cap_makes_truncation_free(n, q, steps):
    sampling = Poisson.of(n, max(1, int(q * n)), steps, 1e-5)
    assert steps * binom.sf(sampling.cap - 1, n, sampling.q) <= 1e-5 / 1000 or sampling.cap == n


def test_no_other_sampler_can_be_built_and_no_plan_changed():
    fields = {"name": "g", "steps": 1, "clip": 1, "sigma": 1}
    with pytest.raises(ValueError, match="kind"):
        Measurement.model_validate(fields | {"sampling": {"kind": "shuffled", "n": 5}})
    made: Plan = plan(POISSON)
    with pytest.raises(ValueError, match="frozen"):
        made.delta = 0.5
    with pytest.raises(ValueError, match="frozen"):
        made.measurements[0].sampling.q = 0.01
