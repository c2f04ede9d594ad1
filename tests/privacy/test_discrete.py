"""The discrete Gaussian has its exact law."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from limbeck.privacy.discrete import _bernoulli_exp, _discrete_laplace, discrete_gaussian
from limbeck.privacy.stream import Stream


def grouped(draws, k, p):
    """Counts and expected counts of the integers k, with everything beyond them in the outermost two."""
    counts = np.bincount(np.clip(draws, k[0], k[-1]) - k[0], minlength=len(k))
    expected = p * len(draws)
    keep = expected > 20
    first, last = np.flatnonzero(keep)[[0, -1]]
    fold = lambda v: np.r_[v[: first + 1].sum(), v[first + 1 : last], v[last:].sum()]  # noqa: E731
    return fold(counts), fold(expected)


@pytest.mark.parametrize("sigma", [1, 3, 20])
def test_the_pmf(sigma):
    k = np.arange(-12 * sigma, 12 * sigma + 1)
    p = np.exp(-(k**2) / (2 * sigma**2))
    counts, expected = grouped(discrete_gaussian(Stream(seed=sigma), sigma, (200_000,)), k, p / p.sum())
    assert chisquare(counts, expected).pvalue > 1e-4


def test_a_wide_one_is_nearly_normal():
    sigma = 2**20
    z = discrete_gaussian(Stream(seed=5), sigma, (100, 1000))
    assert z.shape == (100, 1000)
    assert z.dtype == np.int64
    assert kstest(z.ravel() / sigma, norm.cdf).pvalue > 1e-4


def test_coins_of_small_probability():
    x = np.repeat([0.0, 0.3, 1.0, 4.5], 100_000)
    heads = _bernoulli_exp(Stream(seed=1), x).reshape(4, -1).mean(axis=1)
    p = np.exp([0.0, -0.3, -1.0, -4.5])
    assert (np.abs(heads - p) <= 5 * np.sqrt(p * (1 - p) / 100_000)).all()


def test_the_laplace_proposal():
    k = np.arange(-60, 61)
    p = np.exp(-np.abs(k) / 4)
    counts, expected = grouped(_discrete_laplace(Stream(seed=2), 4, 200_000), k, p / p.sum())
    assert chisquare(counts, expected).pvalue > 1e-4


def test_none_are_drawn_when_none_are_asked_for():
    assert discrete_gaussian(Stream(), 3, (0,)).shape == (0,)
