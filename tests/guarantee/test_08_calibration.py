"""Property 8. Calibration is sound: what was asked for is delivered, and no more than 1% is left on the table."""

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from limbeck.privacy.accounting import epsilon_of, epsilon_rdp
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from tests.guarantee.problem import plan

# Settings of the papers, with noise multipliers from another search: n, batch, steps, epsilon, by RDP, by PLD.
ORACLE = [
    (60000, 500, 1200, 1.0, 1.4097, 1.3204),
    (50000, 100, 25000, 1.0, 1.4617, 1.3708),
]
# The same at epsilon 10, where a search takes half a minute: n, batch, steps, by RDP, by PLD.
ORACLE_TEN = [
    (60000, 500, 1200, 0.5595, 0.5337),
    (50000, 100, 25000, 0.5531, 0.5355),
    (48842, 488, 1001, 0.5735, 0.5468),
]


def sampled(n, batch, steps, sigma=1.0, **more):
    return plan(Poisson.of(n, batch, steps, 1e-5), steps=steps, sigma=sigma, **more)


def sigma_of(made: Plan) -> float:
    return made.measurements[0].sigma


def gaussian_sigma(epsilon, delta=1e-5):
    """The least sigma of one Gaussian mechanism in closed form (Balle & Wang 2018)."""

    def excess(s):
        return norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s) - delta

    return brentq(excess, 1e-3, 1e3, xtol=1e-12)


@pytest.mark.parametrize(("n", "batch", "steps", "epsilon", "rdp", "pld"), ORACLE)
def test_calibration_meets_the_oracle(n, batch, steps, epsilon, rdp, pld):
    made = sampled(n, batch, steps).calibrated(epsilon)
    assert 0.99 * epsilon <= made.epsilon <= epsilon
    assert sigma_of(made) == pytest.approx(pld, rel=2e-3)
    assert sigma_of(made) < rdp


def test_the_oracles_noise_has_its_price():
    assert 0.99 <= sampled(48842, 488, 1001, 1.4143 * 1.002).epsilon <= 1
    n, batch, steps, _, pld = ORACLE_TEN[1]
    assert 9.9 <= sampled(n, batch, steps, pld * 1.002).epsilon <= 10


@pytest.mark.parametrize(("n", "batch", "steps", "rdp", "pld"), ORACLE_TEN)
def test_renyi_accounting_asks_for_no_less_than_the_oracle(n, batch, steps, rdp, pld):
    """Whole orders only, where the oracle has fractions too: looser, never tighter."""
    prices = [epsilon_rdp(sampled(n, batch, steps, sigma).event, 1e-5, "zero-out") for sigma in (rdp, pld)]
    assert 9.99 <= prices[0] < prices[1]


@pytest.mark.parametrize("noise", ["normal", "discrete"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_full_batch_is_the_closed_form_gaussian(epsilon, noise):
    made = plan(FullBatch(n=1000), steps=100, sigma=1.0, noise=noise).calibrated(epsilon)
    expected = math.sqrt(100) * gaussian_sigma(epsilon)
    assert 0.99 * epsilon <= made.epsilon <= epsilon
    most = {"normal": 1.005, "discrete": 1.2}[noise]  # Renyi accounting is looser
    assert expected * (1 - 1e-6) <= sigma_of(made) <= expected * most


def test_known_constants_of_one_release():
    assert sigma_of(plan(FullBatch(n=10), sigma=1.0).calibrated(1.0)) == pytest.approx(3.7306, rel=1e-3)
    assert gaussian_sigma(10.0) == pytest.approx(0.4999, rel=1e-3)


def test_steps_and_measurements_compose():
    """Gaussian mechanisms compose to one with mu^2 = sum of steps / sigma^2, and proportions are kept."""
    parts = tuple(
        Measurement(name=str(i), sampling=FullBatch(n=50), steps=s, clip=1.0, sigma=w)
        for i, (s, w) in enumerate([(3, 1.0), (7, 2.0)])
    )
    a, b = (m.sigma for m in Plan(measurements=parts, delta=1e-5).calibrated(1.0).measurements)
    assert b == pytest.approx(2 * a)
    assert math.sqrt(3 / a**2 + 7 / b**2) == pytest.approx(1 / gaussian_sigma(1.0), rel=5e-3)


@pytest.mark.parametrize(("n", "batch", "steps", "sigma"), [(500, 50, 10, 2.0), (1000, 200, 20, 3.0)])
def test_renyi_accounting_is_above_pld(n, batch, steps, sigma):
    event = sampled(n, batch, steps, sigma).event
    assert epsilon_rdp(event, 1e-5, "zero-out") > epsilon_of(event, 1e-5, "zero-out")


def test_more_of_anything_costs_more():
    def price(batch, steps, sigma):
        return epsilon_rdp(sampled(5000, batch, steps, sigma).event, 1e-5, "zero-out")

    base = price(100, 200, 2.0)
    assert price(100, 400, 2.0) > base
    assert price(200, 200, 2.0) > base
    assert price(100, 200, 4.0) < base


def test_frequent_truncation_is_paid_for():
    """A cap that cuts batches often makes one unit's presence felt through which others are kept."""
    rare = plan(Poisson(n=500, q=0.04, cap=100), steps=20, sigma=2.0).epsilon
    often = plan(Poisson(n=500, q=0.04, cap=20), steps=20, sigma=2.0).epsilon
    assert often > 1.2 * rare
