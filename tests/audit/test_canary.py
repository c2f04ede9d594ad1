"""The canary audit on the real mechanism, which passes, and on broken ones, which do not (GUARANTEE, 13 and 14).

Each bound is taken at a confidence of 1 - 2e-5, so that a correct mechanism fails a test less than once in 10,000.
"""

import functools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.audit import canary
from limbeck.audit.runs import Problem, claimed_shift, default_model, full_batch, simulated
from limbeck.audit.verdict import BROKEN, INDEPENDENT, judge, power
from limbeck.data import ImageSchema
from limbeck.distill import DPKIP
from limbeck.distill.inducing import MEASUREMENT
from limbeck.errors import RequestError
from limbeck.measure import Session, session
from limbeck.measure.clipping import clipped_sum, plain_sum
from limbeck.privacy.plan import ROUNDING, FullBatch, Measurement, Plan, Poisson
from limbeck.privacy.stream import Stream

CONFIDENCE = 1 - 2e-5
SIGMA = {0.5: 7.04, 1.0: 3.7307, 4.0: 1.0813}  # of one Gaussian release, at delta 1e-5, rounded up
STEPS = 2


def plan(epsilon=1.0, steps=STEPS, sampling=None, relation="zero-out", noise="normal") -> Plan:
    sigma = SIGMA[epsilon] * math.sqrt(steps)
    measurement = Measurement(
        name=MEASUREMENT, sampling=sampling or FullBatch(n=4), steps=steps, clip=1e-2, sigma=sigma, noise=noise
    )
    return Plan(measurements=(measurement,), delta=1e-5, relation=relation)


@functools.cache
def problem(planned: Plan) -> Problem:
    return Problem.of(default_model(), planned, 0)


def audited(planned: Plan, runs=100, *, factor=1.0, paired=True, planted=True):
    arms = problem(planned).arms(
        planned.scaled(factor), planned, runs, canary=planted, paired=paired, progress=lambda: None
    )
    return judge(*arms[:2], planned, CONFIDENCE, paired=paired), *arms


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_real_mechanism_keeps_its_claim_and_uses_it_up(epsilon):
    planned = plan(epsilon)
    found, present, absent, reach = audited(planned)
    assert planned.epsilon == pytest.approx(epsilon, rel=5e-3)
    assert not found.flagged
    assert found.epsilon < epsilon
    assert reach == pytest.approx(1.0, abs=1e-3)
    # What the others add in the second step depends on what the first one showed: runs differ by a hundredth.
    ratios = (present.shift - absent.shift) / claimed_shift(planned)
    assert np.mean(ratios) == pytest.approx(ROUNDING, abs=5 * np.std(ratios) / math.sqrt(100))
    assert np.mean(ratios) <= 1.0 + 5e-3
    assert np.std(ratios) < 0.02
    assert np.std(absent.shift) == pytest.approx(1.0, abs=5 / math.sqrt(2 * 100))


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_in_one_step_a_canary_shifts_the_answer_by_what_is_claimed_less_the_slack_of_rounding(epsilon):
    planned = plan(epsilon, steps=1)
    _, present, absent, _ = audited(planned, 50)
    ratios = (present.shift - absent.shift) / claimed_shift(planned)
    assert np.all(ratios <= 1.0)
    np.testing.assert_allclose(ratios, ROUNDING, atol=1e-5)


def test_half_the_noise_is_flagged():
    assert audited(plan(), factor=0.5)[0].flagged


def test_without_a_canary_nothing_is_flagged():
    found, *_ = audited(plan(), planted=False, paired=False)
    assert not found.flagged
    assert abs(found.shift) < 5 * math.sqrt(2 / 100)


def test_independent_arms_bound_the_claim_too():
    found, *_ = audited(plan(4.0), paired=False)
    assert not found.flagged
    assert found.shift == pytest.approx(claimed_shift(plan(4.0)), abs=5 * math.sqrt(2.5 / 100))


@pytest.mark.parametrize(
    ("planned", "runs"),
    [
        (plan(sampling=Poisson(n=8, q=0.5, cap=8)), 200),
        (plan(relation="replace-one"), 100),
        (plan(noise="discrete", steps=1), 50),
    ],
    ids=["poisson", "replace-one", "discrete"],
)
def test_other_plans_keep_their_claims_and_use_them_up(planned, runs):
    found, present, absent, _ = audited(planned, runs)
    assert not found.flagged
    assert (found.epsilon is not None) == full_batch(planned)
    shifts = present.shift - absent.shift
    spread = np.std(shifts) / math.sqrt(runs)  # of the batches that the canary was in
    assert np.mean(shifts) == pytest.approx(claimed_shift(planned), rel=0.01, abs=5 * spread)


def test_half_the_noise_of_a_poisson_plan_is_flagged():
    assert audited(plan(sampling=Poisson(n=8, q=0.5, cap=8)), 200, factor=0.5)[0].flagged


# Broken mechanisms, each a patch of the real code path


def no_clip(monkeypatch):
    @eqx.filter_jit
    def sums(query, inputs, y, clip):
        return query.decoded(plain_sum(query.contributions(jnp.asarray(inputs), jnp.asarray(y))))

    monkeypatch.setattr(session, "_clipped_chunk", sums)


def batch_level_clip(monkeypatch):
    @eqx.filter_jit
    def sums(query, inputs, y, clip):
        total = query.decoded(plain_sum(query.contributions(jnp.asarray(inputs), jnp.asarray(y))))
        return clipped_sum(total[None], clip)

    monkeypatch.setattr(session, "_clipped_chunk", sums)


def noise_of(factor):
    def patch(monkeypatch):
        normal = Stream.normal
        monkeypatch.setattr(Stream, "normal", lambda self, shape: factor * normal(self, shape))

    return patch


def noise_that_repeats(monkeypatch):
    monkeypatch.setattr(Stream, "normal", lambda self, shape: np.random.default_rng(0).standard_normal(shape))


def twice_the_sum(monkeypatch):
    noisy = Session._noisy_mean
    monkeypatch.setattr(
        Session, "_noisy_mean", lambda self, m, q: 2 * noisy(self, m.model_copy(update={"sigma": m.sigma / 2}), q)
    )


@pytest.mark.parametrize(
    ("broken", "runs"),
    [
        pytest.param(no_clip, 50, id="no clip"),
        pytest.param(batch_level_clip, 100, id="batch-level clip"),
        pytest.param(noise_of(0.5), 100, id="sigma/2"),
        pytest.param(noise_of(1 / 4), 50, id="noise / B"),
        pytest.param(noise_of(0.0), 50, id="no noise"),
        pytest.param(noise_that_repeats, 50, id="one noise for all runs"),
        pytest.param(twice_the_sum, 100, id="twice the sum"),
    ],
)
def test_broken_mechanisms_are_flagged(broken, runs, monkeypatch):
    planned = plan()
    problem(planned)
    broken(monkeypatch)
    assert audited(planned, runs)[0].flagged


# The whole audit


def test_the_audit_runs_its_controls_and_says_what_it_could_have_seen():
    seen = []
    found = canary(plan(), runs=100, confidence=CONFIDENCE, progress=lambda done, total: seen.append((done, total)))
    assert found.verdict == "consistent with the claim"
    assert found.controls[BROKEN].flagged
    assert not found.controls[INDEPENDENT].flagged
    assert found.power.shift == 1.0
    assert found.found.threshold <= found.threshold_ceiling
    assert found.expected == pytest.approx(found.found.epsilon, abs=0.3)
    assert seen[-1][0] == seen[-1][1]
    facts = found.facts()
    assert facts["verdict"] == found.verdict
    assert "scores" not in facts


def test_a_method_of_ones_own_is_audited_as_it_is():
    schema = ImageSchema(shape=(8, 8, 1), classes=("a", "b"), low=0, high=1, unit="person", rows_per_unit=2)
    model = DPKIP(schema, epsilon=4, features="fc-ntk", per_class=1, batch="full", epochs=1)
    found = canary(model, runs=60, confidence=CONFIDENCE, sigma_factor=0.25)
    assert found.flagged
    assert found.verdict.startswith("FLAGGED")


def test_power_by_simulation_is_that_of_the_closed_form():
    found = power(plan(), 200, 0.95, paired=False)
    assert found.shift == pytest.approx(0.84, abs=5 * math.sqrt(0.84 * 0.16 / found.trials))


def test_the_model_of_a_poisson_plan_has_its_moments():
    planned = plan(4.0, sampling=Poisson(n=8, q=0.25, cap=8))
    present, absent = simulated(planned, 20_000, np.random.default_rng(0))
    assert np.mean(present.shift) - np.mean(absent.shift) == pytest.approx(claimed_shift(planned), abs=0.06)
    assert np.mean(np.exp(absent.likelihood)) == pytest.approx(1.0, abs=0.1)  # a likelihood ratio has mean one


def test_a_canary_that_is_no_worst_case_is_refused():
    with pytest.raises(RequestError, match="clip-norm"):
        canary(default_model(epsilon=4, epochs=1, clip_norm=1e3), runs=60)


@pytest.mark.parametrize("wrong", [{"runs": 5}, {"confidence": 1.0}, {"sigma_factor": 0.0}])
def test_requests_that_make_no_sense(wrong):
    with pytest.raises(RequestError):
        canary(plan(), **wrong)
