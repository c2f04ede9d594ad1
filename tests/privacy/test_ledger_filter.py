"""The filter never lets runs that were chosen in sight of one another exceed their grant."""

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from limbeck.errors import RequestError
from limbeck.privacy.accounting import epsilon_of
from limbeck.privacy.ledger import Grant
from limbeck.privacy.ledger.filter import (
    admits,
    epsilon_spent,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    largest_fit,
    order_for,
    renyi_budget,
    squared_mu,
    standing,
)
from limbeck.privacy.renyi import ORDERS, renyi_epsilon, renyi_of
from tests.privacy.plans import full, sampled

KINDS = st.sampled_from(["rdp", "gdp"])
RELATIONS = st.sampled_from(["zero-out", "replace-one"])
SIGMAS = st.lists(st.floats(0.3, 100), min_size=1, max_size=12)
GRANTS = st.builds(
    Grant, st.just("x"), epsilon=st.floats(0.05, 12), delta=st.sampled_from([1e-3, 1e-5, 1e-9]), relation=RELATIONS,
    filter=KINDS,
)  # fmt: skip


def admitted(grant, sigmas):
    """The runs that go through, asked for one after another as a ledger does, and the order they were counted at."""
    events, order = [], None
    for sigma in sigmas:
        event = full(sigma, delta=grant.delta).event
        if admits(grant, events, event, order):
            events.append(event)
            order = standing(grant, events, order).order
    return events, order


@settings(max_examples=60, deadline=None)
@given(GRANTS, SIGMAS)
def test_what_is_admitted_stays_within_the_grant(grant, sigmas):
    """Full-batch Gaussians compose exactly, whatever the order of choosing: the truth is known, and is within."""
    events, _ = admitted(grant, sigmas)
    assume(events)
    mu = math.sqrt(sum(squared_mu(e, grant.relation) for e in events))
    # One run may have been admitted by PLD, whose rounding is on the safe side.
    assert gaussian_delta(mu, grant.epsilon) <= grant.delta * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(GRANTS, SIGMAS)
def test_spending_never_decreases_and_exhaustion_is_final(grant, sigmas):
    events, order = admitted(grant, sigmas)
    spent = [standing(grant, events[:i], order).spent for i in range(len(events) + 1)]
    assert spent == sorted(spent)
    epsilons = [epsilon_spent(grant, events[:i], order) for i in range(len(events) + 1)]
    assert epsilons == sorted(epsilons)
    if events and not standing(grant, events, order).within:
        assert len(events) == 1  # a first run that only its own accountant admits is the last
        assert not admits(grant, events, full(1e6, delta=grant.delta).event, order)


@settings(max_examples=40, deadline=None)
@given(GRANTS, SIGMAS, st.randoms(use_true_random=False))
def test_after_the_first_run_the_order_of_runs_does_not_matter(grant, sigmas, random):
    events, order = admitted(grant, sigmas)
    assume(events)
    shuffled = [events[0], *random.sample(events[1:], len(events) - 1)]
    assert standing(grant, shuffled, order).spent == pytest.approx(standing(grant, events, order).spent)
    assert standing(grant, shuffled, None).order == order


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 300), st.floats(1e-12, 0.5))
def test_gaussian_dp_by_its_closed_form(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu * (1 + 1e-6), epsilon) > delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1, 3.7306), (10, 0.4999)])
def test_one_analytic_gaussian_release(epsilon, sigma):
    assert 1 / gaussian_mu(epsilon, 1e-5) == pytest.approx(sigma, rel=1e-4)


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_gdp_uses_the_whole_grant(relation):
    """T full-batch steps at sqrt(T) times the noise of one are one: to a hair, and not beyond."""
    grant = Grant("x", 2.0, 1e-6, relation=relation, filter="gdp")
    shift = 2 if relation == "replace-one" else 1
    sigma = shift * math.sqrt(8) / gaussian_mu(2.0, 1e-6)
    four = full(sigma * (1 + 1e-9), steps=4).event
    assert admits(grant, [four], four, None)
    assert not admits(grant, [four], full(sigma * 0.9999, steps=4).event, None)
    assert not admits(grant, [four, four], full(1e4).event, None)


def test_gdp_takes_full_batches_with_normal_noise_only():
    grant = Grant("x", 2.0, 1e-6, filter="gdp")
    discrete = dp_event.ZCDpEvent(1e-4)
    for event in (sampled(50.0).event, discrete):
        with pytest.raises(RequestError, match="--batch full"):
            admits(grant, [], event, None)


@pytest.mark.parametrize("plan", [sampled(4.0), full(20.0, steps=5)], ids=["sampled", "full"])
def test_rdp_agrees_with_the_accountant_at_its_order(plan):
    """What is admitted converts to at most epsilon in dp-accounting, and one run more converts to more."""
    grant = Grant("x", 2.0, 1e-5)
    order = order_for(grant, plan.event)
    events = []
    while admits(grant, events, plan.event, order):
        events.append(plan.event)
    assert len(events) > 1

    def priced(runs):
        accountant = RdpAccountant([order], NeighboringRelation.REPLACE_SPECIAL)
        (m,) = plan.measurements
        noise = dp_event.GaussianDpEvent(m.sigma)
        step = noise if m.sampling.kind == "full" else dp_event.PoissonSampledDpEvent(m.sampling.q, noise)
        accountant.compose(dp_event.SelfComposedDpEvent(step, m.steps * runs))
        return accountant.get_epsilon(0.99 * grant.delta)

    assert priced(len(events)) <= grant.epsilon < priced(len(events) + 1)
    assert priced(len(events)) == pytest.approx(epsilon_spent(grant, events, order), rel=1e-6)


def test_the_order_is_the_first_runs_best_and_stays():
    """Repeating the first plan, no other order would let more through; later plans do not move it."""
    grant = Grant("x", 3.0, 1e-5)
    first = sampled(2.0).event
    order = order_for(grant, first)
    runs = renyi_budget(grant, ORDERS) / renyi_of(first, "zero-out")
    assert runs.max() == runs[ORDERS.index(order)]
    assert standing(grant, [first, full(3.0).event], order).order == order
    assert order_for(grant, full(30.0).event) != order


def test_a_first_run_by_its_own_accountant():
    """PLD needs less noise than RDP: such a run is admitted when it is the first, and then it is all there is."""
    grant = Grant("x", 1.0, 1e-5)
    plan = sampled(1.0, steps=50).calibrated(1.0)
    by_renyi = renyi_epsilon(renyi_of(plan.event, "zero-out"), ORDERS, 0.99e-5)
    assert epsilon_of(plan.event, 1e-5, "zero-out") <= 1 < by_renyi
    assert admits(grant, [], plan.event, None)
    after = standing(grant, [plan.event], None)
    assert not after.within
    assert not admits(grant, [plan.event], full(1e5).event, after.order)
    assert not admits(grant, [full(1e5).event], plan.event, None)  # as a second run it is refused


def test_cut_batches_are_paid_for():
    """Batches that are often cut at their cap have no Renyi price: only PLD, which knows them, may admit such a run."""
    plan = sampled(30.0)
    (m,) = plan.measurements
    tight = m.model_copy(update={"sampling": m.sampling.model_copy(update={"cap": 55})})
    often = plan.model_copy(update={"measurements": (tight,)})
    grant = Grant("x", 3.0, 1e-5)
    now = standing(grant, [often.event], None)
    assert now.spent < now.budget
    assert now.cut > now.cut_budget
    assert not admits(grant, [plan.event], often.event, None)


@pytest.mark.parametrize("filter", ["rdp", "gdp"])
def test_the_largest_fit_fits(filter):
    grant = Grant("x", 2.0, 1e-5, filter=filter)
    plan = full(1.0, steps=4).calibrated(1.5)
    events = [plan.event]
    assert not admits(grant, events, plan.event, None)
    fit = largest_fit(grant, events, plan, None)
    assert 0 < fit < 1.5
    assert admits(grant, events, plan.calibrated(fit * 0.995).event, None)
    assert not admits(grant, events, plan.calibrated(fit * 1.02).event, None)
    assert largest_fit(grant, [*events, *events], plan, None) is None


def test_a_small_grant_still_takes_one_run():
    """Below the reach of the orders nothing is left for a second run, and the first goes by its own accountant."""
    grant = Grant("x", 0.01, 1e-9)
    assert np.all(renyi_budget(grant, ORDERS) < 0)
    assert admits(grant, [], full(1e4, delta=1e-9).event, None)
    assert not admits(grant, [full(1e4).event], full(1e4).event, None)
