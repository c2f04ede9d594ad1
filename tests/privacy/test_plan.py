"""A plan as data: its event, its JSON, and what is remembered of its calibration."""

import math

import pytest
from dp_accounting.pld import PLDAccountant
from scipy.stats import binom

from limbeck.errors import RequestError
from limbeck.privacy.accounting import FINEST, RELATIONS, ROUNDING, grid_of
from limbeck.privacy.events import event_tree
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson


def poisson_plan(n, batch, steps, delta=1e-5):
    measurement = Measurement(name="g", sampling=Poisson.of(n, batch, steps, delta), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta)


def full_plan(n, steps, delta=1e-5):
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta)


@pytest.mark.parametrize("wrong", ["0.001", "1000", "nonsense", "null"])
def test_a_wrong_number_in_the_cache_changes_nothing(wrong, tmp_path, monkeypatch):
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path))
    right = full_plan(123, 3).calibrated(2.0)
    (file,) = (tmp_path / "numbers").iterdir()
    file.write_text(wrong)
    assert full_plan(123, 3).calibrated(2.0) == right


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


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-6, 1e-8, 1e-12])
@pytest.mark.parametrize(("n", "batch"), [(2_000, 50), (60_000, 500), (5_000_000, 65_536)])
def test_the_cap_is_near_the_batch_however_small_delta_is(n, batch, delta):
    sampling = Poisson.of(n, batch, 200, delta)
    rare = delta / (1e8 * 200)
    assert binom.sf(sampling.cap - 1, n, sampling.q) <= rare < binom.sf(sampling.cap - 2, n, sampling.q)
    assert sampling.cap < batch + 12 * batch**0.5 + 30


def test_an_epsilon_that_no_noise_reaches_is_refused():
    m = Measurement(name="m", sampling=FullBatch(n=500), steps=200, clip=1, sigma=1)
    with pytest.raises(RequestError, match="choose a larger one"):
        Plan(measurements=(m,), delta=1e-4).calibrated(1e-4)


@pytest.mark.parametrize(
    "plan",
    [full_plan(500, 1).scaled(20), full_plan(500, 40).scaled(20), poisson_plan(500, 50, 1), poisson_plan(500, 50, 30)],
)
def test_a_coarser_grid_for_few_answers_changes_no_price(plan):
    """It adds what rounding may, and takes nothing off."""
    assert grid_of(plan.event) > FINEST
    finest = PLDAccountant(RELATIONS[plan.relation], FINEST)
    finest.compose(plan.event)
    assert -1e-6 < plan.epsilon - finest.get_epsilon(plan.delta) < 2 * ROUNDING
