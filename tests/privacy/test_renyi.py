"""Renyi accounting against dp-accounting, closed forms and privacy loss distributions."""

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from limbeck.errors import RequestError
from limbeck.privacy.accounting import accountant_of, epsilon_of, epsilon_rdp
from limbeck.privacy.events import TruncatedSubsampledZCDpEvent, event_of, event_tree, truncation_of
from limbeck.privacy.renyi import ORDERS, delta_left, epsilon_with_cuts, renyi_epsilon, renyi_of


def sampled(sigma=1.2, q=0.01, n=50_000, cap=800, steps=500):
    return dp_event.SelfComposedDpEvent(dp_event.TruncatedSubsampledGaussianDpEvent(n, q, cap, sigma), steps)


def discrete(sigma=1.2, q=0.01, n=50_000, cap=800, steps=500):
    return dp_event.SelfComposedDpEvent(TruncatedSubsampledZCDpEvent(n, q, cap, 1 / (2 * sigma**2)), steps)


def test_zeroing_out_is_dp_accountings_curve():
    accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.2)), 500)
    np.testing.assert_allclose(renyi_of(sampled(), "zero-out"), accountant.rdp, rtol=1e-9)
    assert renyi_epsilon(accountant.rdp, ORDERS, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-6)


def test_replacing_is_the_divergence_of_its_dominating_pair():
    q, sigma, order = 0.1, 1.5, 4

    def integrand(z):
        p = (1 - q) * norm.pdf(z, 0, sigma) + q * norm.pdf(z, 1, sigma)
        r = (1 - q) * norm.pdf(z, 0, sigma) + q * norm.pdf(z, -1, sigma)
        return p**order * r ** (1 - order)

    expected = math.log(quad(integrand, -20, 25, limit=200)[0]) / (order - 1)
    assert renyi_of(sampled(sigma, q, steps=1), "replace-one", (order,))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
@pytest.mark.parametrize("event", [sampled(), dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(40.0), 100)])
def test_renyi_is_above_pld_and_not_by_much(event, relation):
    pld, rdp = epsilon_of(event, 1e-5, relation), epsilon_rdp(event, 1e-5, relation)
    assert pld < rdp < 1.25 * pld


def test_discrete_noise_costs_what_normal_noise_costs_by_renyi_when_nothing_is_sampled():
    gaussian = renyi_of(dp_event.GaussianDpEvent(3.0), "replace-one")
    np.testing.assert_allclose(renyi_of(dp_event.ZCDpEvent(1 / 18), "replace-one"), gaussian)


@given(st.floats(0.3, 5), st.floats(1e-4, 0.9))
@settings(max_examples=60, deadline=None)
def test_the_general_bound_is_above_the_gaussians_own_and_below_no_sampling(sigma, q):
    orders = (2, 3, 8, 32)
    own = renyi_of(sampled(sigma, q, steps=1), "zero-out", orders)
    general = renyi_of(discrete(sigma, q, steps=1), "zero-out", orders)
    assert (general >= own * (1 - 1e-6) - 1e-12).all()
    assert (general <= np.array(orders) / (2 * sigma**2) * (1 + 1e-12)).all()


def test_cut_batches_are_paid_for_or_refused():
    rare, often = discrete(cap=800), discrete(cap=520)
    assert truncation_of(often) > 1e-2
    assert math.isfinite(epsilon_with_cuts(rare, 1e-5, "zero-out"))
    assert epsilon_with_cuts(often, 1e-5, "zero-out") == math.inf
    assert delta_left(rare, 10.0, 1e-5)
    assert not delta_left(rare, 600.0, 1e-5)


def test_who_prices_what():
    assert accountant_of(sampled()) == "PLD"
    assert accountant_of(dp_event.ComposedDpEvent((sampled(), discrete()))) == "RDP"
    assert epsilon_of(discrete(), 1e-5, "zero-out") > epsilon_of(sampled(), 1e-5, "zero-out")
    assert epsilon_of(discrete(), 1e-5, "replace-one") == math.inf  # no bound is known, so none is claimed


def test_events_come_back_from_json():
    for event in (dp_event.ComposedDpEvent((sampled(), discrete())), dp_event.GaussianDpEvent(2.0)):
        assert event_of(event_tree(event)) == event
    for broken in ({}, {"event": "Laplace"}, {"event": "Gaussian"}, {"event": "SelfComposed", "count": 3}):
        with pytest.raises(RequestError, match="not the event of a plan"):
            event_of(broken)
