"""What is run is what is accounted, and what is accounted is what was asked for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, norm
from scipy.stats import kstest as ks

from limbeck.errors import RequestError
from limbeck.privacy.accounting import epsilon_of, epsilon_rdp, event_tree
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from limbeck.privacy.stream import Stream

# Noise multipliers of the papers' settings, from another grid search over the same accountant:
# n, batch, epochs, epsilon, sigma by RDP, sigma by PLD.
ORACLE = [
    (60000, 500, 1200, 1.0, 1.4097, 1.3204),
    (50000, 100, 25000, 1.0, 1.4617, 1.3708),
    (48842, 488, 1001, 1.0, 1.5128, 1.4143),
    (60000, 500, 1200, 10.0, 0.5595, 0.5337),
]


def poisson_plan(n, batch, steps, delta=1e-5, relation="zero-out"):
    measurement = Measurement(name="g", sampling=Poisson.of(n, batch, steps, delta), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta, relation=relation)


def full_plan(n, steps, delta=1e-5, relation="zero-out"):
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta, relation=relation)


def analytic_gaussian_sigma(epsilon, delta):
    """Balle & Wang 2018: the least sigma of one Gaussian mechanism, by its closed form."""

    def excess(s):
        return norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s) - delta

    return brentq(excess, 1e-3, 1e3, xtol=1e-12)


@pytest.mark.parametrize(("n", "batch", "steps", "epsilon", "rdp", "pld"), ORACLE)
def test_calibration_meets_the_oracle(n, batch, steps, epsilon, rdp, pld):
    plan = poisson_plan(n, batch, steps).calibrated(epsilon)
    sigma = plan.measurements[0].sigma
    assert 0.99 * epsilon <= plan.epsilon <= epsilon
    assert sigma == pytest.approx(pld, rel=2e-3)
    assert sigma < rdp


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_full_batch_is_the_closed_form_gaussian(epsilon):
    plan = full_plan(1000, 100).calibrated(epsilon)
    expected = math.sqrt(100) * analytic_gaussian_sigma(epsilon, 1e-5)
    assert expected * (1 - 1e-6) <= plan.measurements[0].sigma <= expected * 1.005
    assert 0.99 * epsilon <= plan.epsilon <= epsilon


@pytest.mark.parametrize("wrong", ["0.001", "1000", "nonsense", "null"])
def test_a_wrong_number_in_the_cache_changes_nothing(wrong, cache):
    right = full_plan(123, 3).calibrated(2.0)
    for file in (cache / "numbers").iterdir():
        file.write_text(wrong)
    assert full_plan(123, 3).calibrated(2.0) == right


def test_known_constants_of_one_release():
    assert full_plan(10, 1).calibrated(1.0).measurements[0].sigma == pytest.approx(3.7306, rel=1e-3)
    assert full_plan(10, 1).calibrated(10.0).measurements[0].sigma == pytest.approx(0.4999, rel=1e-3)


def test_replacing_doubles_the_sensitivity():
    zero = full_plan(100, 5).calibrated(1.0).measurements[0].sigma
    replace = full_plan(100, 5, relation="replace-one").calibrated(1.0).measurements[0].sigma
    assert replace == pytest.approx(2 * zero, rel=2e-3)


def test_measurements_compose_and_keep_their_proportions():
    parts = tuple(
        Measurement(name=str(i), sampling=FullBatch(n=50), steps=s, clip=1.0, sigma=w)
        for i, (s, w) in enumerate([(3, 1.0), (7, 2.0)])
    )
    plan = Plan(measurements=parts, delta=1e-5).calibrated(1.0)
    a, b = (m.sigma for m in plan.measurements)
    assert b == pytest.approx(2 * a)
    mu = math.sqrt(3 / a**2 + 7 / b**2)
    assert mu == pytest.approx(1 / analytic_gaussian_sigma(1.0, 1e-5), rel=5e-3)


def test_more_of_anything_costs_more():
    base = poisson_plan(5000, 100, 200).epsilon
    assert poisson_plan(5000, 100, 400).epsilon > base
    assert poisson_plan(5000, 200, 200).epsilon > base
    assert poisson_plan(5000, 100, 200).scaled(2).epsilon < base


def test_rdp_is_above_pld_on_the_untruncated_event():
    plan = poisson_plan(5000, 100, 200).scaled(1.5)
    rough = plan._rough_event
    assert epsilon_rdp(rough, 1e-5, "zero-out") > epsilon_of(rough, 1e-5, "zero-out")


@given(st.integers(100, 20_000), st.floats(0.005, 0.5), st.integers(1, 2000))
@settings(max_examples=50, deadline=None)
def test_the_cap_makes_truncation_free(n, q, steps):
    sampling = Poisson.of(n, max(1, int(q * n)), steps, 1e-5)
    assert steps * binom.sf(sampling.cap - 1, n, sampling.q) <= 1e-8 or sampling.cap == n


def test_batches_are_poisson_padded_and_never_above_the_cap():
    sampling, stream = Poisson(n=400, q=0.05, cap=26), Stream(seed=3)
    batches = [sampling.draw(stream) for _ in range(4000)]
    assert {len(b) for b in batches} == {26}
    kept = [b[b >= 0] for b in batches]
    assert all((np.diff(b) > 0).all() for b in kept)
    sizes = np.array([len(b) for b in kept])
    expected = np.minimum(binom.rvs(400, 0.05, size=200_000, random_state=0), 26)
    assert sizes.mean() == pytest.approx(expected.mean(), abs=0.3)
    assert sizes.var() == pytest.approx(expected.var(), rel=0.15)
    # Every unit is as likely as every other, and successive batches are independent: not a shuffled epoch.
    counts = np.bincount(np.concatenate(kept), minlength=400)
    assert ks((counts - counts.mean()) / counts.std(), "norm").pvalue > 1e-4
    assert counts.var() == pytest.approx(4000 * (sizes.mean() / 400) * (1 - sizes.mean() / 400), rel=0.3)


def test_an_empty_batch_is_ordinary():
    sampling = Poisson(n=10, q=1e-9, cap=4)
    assert (sampling.draw(Stream()) == -1).all()


def test_an_overfull_batch_keeps_a_random_part():
    sampling, stream = Poisson(n=50, q=0.9, cap=5), Stream(seed=1)
    counts = np.bincount(np.concatenate([sampling.draw(stream) for _ in range(3000)]), minlength=50)
    assert counts.sum() == 15_000
    assert counts.std() < 4 * math.sqrt(300)
    assert (counts > 200).all()


def test_the_full_batch_is_everyone():
    assert np.array_equal(FullBatch(n=5).draw(Stream()), np.arange(5))


def test_event_tree_holds_what_is_run():
    plan = poisson_plan(5000, 100, 200).scaled(1.5)
    (m,) = plan.measurements
    (tree,) = event_tree(plan.event)["events"]
    assert tree["count"] == m.steps
    assert tree["of"] == {
        "event": "TruncatedSubsampledGaussian",
        "dataset_size": m.sampling.n,
        "sampling_probability": m.sampling.q,
        "truncated_batch_size": m.sampling.cap,
        "noise_multiplier": m.sigma,
    }


def test_a_plan_survives_json():
    plan = poisson_plan(5000, 100, 200)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(RequestError, match="epsilon"):
        full_plan(10, 1).calibrated(epsilon)


def test_a_plan_cannot_be_changed_or_built_with_another_sampler():
    plan = full_plan(10, 1)
    with pytest.raises(ValueError, match="frozen"):
        plan.delta = 0.5
    with pytest.raises(ValueError, match="kind"):
        Measurement.model_validate(
            {"name": "g", "sampling": {"kind": "shuffled", "n": 5}, "steps": 1, "clip": 1, "sigma": 1}
        )
