"""A plan as data: its event, its JSON, and what is remembered of its calibration."""

import math

import pytest

from limbeck.errors import RequestError
from limbeck.privacy.events import event_tree
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson


def poisson_plan(n, batch, steps, delta=1e-5):
    measurement = Measurement(name="g", sampling=Poisson.of(n, batch, steps, delta), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta)


def full_plan(n, steps, delta=1e-5):
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=steps, clip=1.0, sigma=1.0)
    return Plan(measurements=(measurement,), delta=delta)


@pytest.mark.parametrize("wrong", ["0.001", "1000", "nonsense", "null"])
def test_a_wrong_number_in_the_cache_changes_nothing(wrong, cache):
    right = full_plan(123, 3).calibrated(2.0)
    for file in (cache / "numbers").iterdir():
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
