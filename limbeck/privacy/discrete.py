"""The discrete Gaussian: integers with P[k] in proportion to exp(-k^2 / 2 sigma^2), drawn from random bits.

The sampler is that of Canonne, Kamath & Steinke 2020 (algorithms 1 to 3), many draws side by side. Every coin is
a comparison of 64 random bits with a threshold, and small probabilities are products of large ones, so that each
probability is right to about one part in 2^50 however deep in the tails: no floating-point number is ever added
to a sum, and the result has no holes.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64, Int64

from limbeck.privacy.stream import Stream


def discrete_gaussian(stream: Stream, sigma: int, shape: tuple[int, ...]) -> Int64[np.ndarray, "..."]:
    """Independent discrete Gaussians of parameter `sigma`, a whole number (their variance is at most sigma^2)."""
    t = sigma + 1

    def candidates(n: int) -> tuple[np.ndarray, np.ndarray]:
        k = _discrete_laplace(stream, t, n)
        return k, _bernoulli_exp(stream, (np.abs(k) - sigma**2 / t) ** 2 / (2.0 * sigma**2))

    return _accepted(candidates, int(np.prod(shape))).reshape(shape)


def _discrete_laplace(stream: Stream, t: int, n: int) -> Int64[np.ndarray, " n"]:
    """P[k] in proportion to exp(-|k| / t)."""

    def candidates(n: int) -> tuple[np.ndarray, np.ndarray]:
        words = stream.bits(n)
        u = (words % np.uint64(t)).astype(np.int64)
        within = (words <= np.uint64(2**64 // t * t - 1)) & _bernoulli_exp(stream, u / t)
        magnitude = u + t * _geometric_exp(stream, n)
        negative = stream.bits(n) & np.uint64(1) == 1
        return np.where(negative, -magnitude, magnitude), within & ~(negative & (magnitude == 0))

    return _accepted(candidates, n)


def _geometric_exp(stream: Stream, n: int) -> Int64[np.ndarray, " n"]:
    """How many coins of probability 1/e come up heads before the first tails."""
    count = np.zeros(n, np.int64)
    going = np.arange(n)
    while len(going):
        going = going[_bernoulli_exp_unit(stream, np.ones(len(going)))]
        count[going] += 1
    return count


def _bernoulli_exp(stream: Stream, x: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Coins of probability exp(-x), x >= 0: one of exp(-1) for each whole part, one for what is left."""
    whole = np.floor(x)
    heads = _bernoulli_exp_unit(stream, x - whole)
    going = np.flatnonzero(heads & (whole > 0))
    left = whole[going]
    while len(going):
        still = _bernoulli_exp_unit(stream, np.ones(len(going)))
        heads[going[~still]] = False
        left = left - 1
        going, left = going[still & (left > 0)], left[still & (left > 0)]
    return heads


def _bernoulli_exp_unit(stream: Stream, x: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Coins of probability exp(-x), 0 <= x <= 1, by coins of x/1, x/2, x/3, ... until the first tails."""
    k = np.ones(len(x), np.int64)
    going = np.arange(len(x))
    while len(going):
        going = going[_bernoulli(stream, x[going] / k[going])]
        k[going] += 1
    return k % 2 == 1


def _bernoulli(stream: Stream, p: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    threshold = np.where(p >= 1, 0, np.ldexp(p, 64)).astype(np.uint64)
    return (stream.bits(len(p)) < threshold) | (p >= 1)


def _accepted(candidates: Callable[[int], tuple[np.ndarray, np.ndarray]], n: int) -> Int64[np.ndarray, " n"]:
    """The first n candidates that are accepted."""
    found: list[np.ndarray] = []
    while (missing := n - sum(map(len, found))) > 0:
        values, accepted = candidates(missing + missing // 2 + 16)
        found.append(values[accepted])
    return np.concatenate([np.zeros(0, np.int64), *found])[:n]
