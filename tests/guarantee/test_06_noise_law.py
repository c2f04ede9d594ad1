"""Property 6. The noise has the promised law: its variance, its shape, and tails beyond 8 sigma."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from limbeck.measure import grid
from limbeck.privacy.plan import FullBatch, Poisson
from limbeck.privacy.stream import Stream
from tests.guarantee.problem import FAMILIES, NOISES, N, noise


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_session_adds_normal_noise_of_sigma_C(family, kind):
    z = noise(family, kind, answers=40, sigma=3.0)
    assert kstest(z.ravel(), norm.cdf).pvalue > 1e-6
    assert abs(z.std() - 1) < 0.1


@pytest.mark.parametrize("sampling", [FullBatch(n=N), Poisson(n=40, q=0.5, cap=N)])
def test_the_scale_does_not_depend_on_the_batch(sampling):
    assert abs(noise("fc-ntk", "normal", answers=40, sigma=0.7, sampling=sampling).std() - 1) < 0.1


def test_a_million_normal_draws():
    z = Stream(seed=1).normal((1_000_000,))
    assert z.dtype == np.float64
    assert kstest(z, norm.cdf).pvalue > 1e-4
    moments = [(z**k).mean() for k in range(1, 7)]
    assert np.allclose(moments, [0, 1, 0, 3, 0, 15], atol=[0.005, 0.007, 0.02, 0.05, 0.16, 0.55])
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 0.005


def test_tails_reach_beyond_eight_sigma():
    class Extreme(Stream):
        def bits(self, n):  # the least and the greatest k, with both signs
            return np.array([0, 1, (2**53 - 1) << 11, ((2**53 - 1) << 11) + 1], np.uint64)[:n]

    z = Extreme(seed=0).normal((4,))
    assert np.isfinite(z).all()
    assert z[0] < -8 < 8 < z[1]
    assert np.abs(z[2:]).max() < 1e-12


@pytest.mark.parametrize("sigma", [1, 3])
def test_discrete_noise_has_the_exact_pmf(sigma):
    k = np.arange(-4 * sigma, 4 * sigma + 1)
    p = np.exp(-(np.arange(-40 * sigma, 40 * sigma + 1) ** 2) / (2 * sigma**2))
    p = np.exp(-(k**2) / (2 * sigma**2)) / p.sum()
    draws = grid.noisy(np.zeros(300_000, np.int64), sigma / grid.C_STEPS, Stream(seed=sigma))
    counts = np.array([(draws == value).sum() for value in k])
    beyond = len(draws) - counts.sum(), 1 - p.sum()
    assert chisquare(np.r_[counts, beyond[0]], len(draws) * np.r_[p, beyond[1]]).pvalue > 1e-4


def test_discrete_noise_is_never_less_than_promised():
    """A sigma between two grid steps is rounded up."""
    sigma = 2.2 / grid.C_STEPS
    draws = grid.noisy(np.zeros(100_000, np.int64), sigma, Stream(seed=4))
    assert draws.std() == pytest.approx(3, rel=0.02)
