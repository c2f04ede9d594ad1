"""The noise has the promised law, and the stream is fresh and secret."""

import copy
import pickle

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from limbeck.privacy.stream import Stream


def test_normal_draws_follow_the_normal_law():
    z = Stream(seed=1).normal((1_000_000,))
    assert kstest(z, "norm").pvalue > 1e-4
    assert abs(z.mean()) < 5e-3
    assert abs(z.var() - 1) < 1e-2
    assert abs((z**4).mean() - 3) < 0.1


def test_tails_reach_beyond_eight_sigma():
    class Extreme(Stream):
        def bits(self, n):  # the least and the greatest k, with both signs
            return np.array([0, 1, ((2**53 - 1) << 11), ((2**53 - 1) << 11) + 1], np.uint64)[:n]

    z = Extreme(seed=0).normal((4,))
    assert np.isfinite(z).all()
    assert z[0] < -8 < 8 < z[1]
    assert np.abs(z[2:]).max() < 1e-12


def test_shape_is_kept_and_draws_differ():
    stream = Stream()
    a, b = stream.normal((3, 4)), stream.normal((3, 4))
    assert a.shape == (3, 4)
    assert a.dtype == np.float64
    assert len(np.unique(np.concatenate([a, b]))) == 24


def test_two_secret_streams_differ_and_a_seed_repeats():
    assert not np.array_equal(Stream().bits(4), Stream().bits(4))
    assert np.array_equal(Stream(seed=7).bits(4), Stream(seed=7).bits(4))
    assert Stream(seed=7).seeded
    assert not Stream().seeded


@pytest.mark.parametrize("leak", [pickle.dumps, copy.deepcopy])
def test_a_stream_is_never_copied_out(leak):
    with pytest.raises(TypeError):
        leak(Stream())


def test_repr_shows_no_key():
    assert repr(Stream(seed=3)) == "Stream(seeded)"


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
