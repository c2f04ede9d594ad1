"""Draws from a stream: shapes, coins and subsets. Its law and its secrecy: tests/guarantee."""

import numpy as np
import pytest
from scipy.stats import binomtest

from limbeck.privacy.stream import Stream


def test_shape_is_kept_and_draws_differ():
    stream = Stream()
    a, b = stream.normal((3, 4)), stream.normal((3, 4))
    assert a.shape == (3, 4)
    assert a.dtype == np.float64
    assert len(np.unique(np.concatenate([a, b]))) == 24


@pytest.mark.parametrize("q", [0.01, 0.3, 0.999])
def test_bernoulli_has_its_rate(q):
    heads = int(Stream(seed=2).bernoulli(q, 200_000).sum())
    assert binomtest(heads, 200_000, q).pvalue > 1e-4


def test_bernoulli_of_one_is_certain():
    assert Stream().bernoulli(1.0, 10).all()


def test_subset_is_uniform_and_in_order():
    stream, items = Stream(seed=5), np.array([3, 5, 8, 9])
    counts = dict.fromkeys(items.tolist(), 0)
    for _ in range(4000):
        chosen = stream.subset(items, 2)
        assert len(set(chosen)) == 2
        assert (np.diff(chosen) > 0).all()
        for item in chosen.tolist():
            counts[item] += 1
    assert all(binomtest(k, 4000, 0.5).pvalue > 1e-5 for k in counts.values())
