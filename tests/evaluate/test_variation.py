"""Variations of a set, and what its own regression says of them."""

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.evaluate import centred_onehot, krr_fit, krr_predict, random_subset, train_network, variations, varied
from limbeck.evaluate.training import network_predict
from limbeck.evaluate.variation import CHUNK, lessons, patchworks
from limbeck.features import FCNTK, Pixels

RIDGE = 1e-3


@pytest.fixture(scope="module")
def support(encoded):
    x, c = encoded
    chosen = random_subset(c[:1000], 10, seed=1)
    return x[chosen], centred_onehot(c[chosen], 10)


def test_the_same_seed_makes_the_same_and_another_others(support):
    one, two, other = (variations(*support, 50, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("shape", [(8, 8, 1), (5, 9, 3), (2, 2, 1), (1, 1, 1)])
def test_of_any_shape_finite_and_within_the_range(shape):
    rng = np.random.default_rng(0)
    x, y = 3 * rng.normal(size=(4, *shape)).astype(np.float32), centred_onehot(np.array([0, 0, 2, 1]), 4)
    made = variations(x, y, 11)
    assert made.shape == (11, *shape)
    assert made.dtype == np.float32
    assert np.isfinite(made).all()
    assert np.abs(made).max() <= 1


@pytest.mark.parametrize("n", [1, 2, CHUNK + 1, 5 * CHUNK + 3])
def test_as_many_as_asked_for_each_another(n):
    """However they divide into what is made at a time; of the leaves, one here and there is flat and clipped."""
    x, y = np.random.default_rng(0).uniform(-1, 1, (4, 6, 6, 1)).astype(np.float32), centred_onehot(np.arange(4), 4)
    made = variations(x, y, n)
    assert made.shape == (n, 6, 6, 1)
    assert np.isfinite(made).all()
    assert len(np.unique(made.reshape(n, -1), axis=0)) > 0.98 * n


def test_patches_lie_between_the_images_that_they_are_of():
    """All alike but for their level: in their own light no pixel is outside of what is there, and both are seen."""
    x = np.repeat(np.float32([-0.5, 0.5]), 5)[:, None, None, None] * np.ones((1, 6, 6, 1), np.float32)
    made = patchworks(x, centred_onehot(np.arange(10) % 2, 2), 100, np.random.default_rng(0))
    outside = np.abs(made).max(axis=(1, 2, 3)) > 0.5 + 1e-6
    assert 0 < outside.sum() <= 50
    assert made.min() < -0.3
    assert made.max() > 0.3


def test_patchworks_are_of_the_image_that_they_begin_with(support):
    """Many of an image's are, on average, nearer to it than to any other of a hundred, though patched twice and lit."""
    x, y = support
    made = patchworks(x, y, 1000, np.random.default_rng(0))
    distance = np.square(made.reshape(10, 100, 1, -1) - x.reshape(1, 1, 100, -1)).mean((0, 3))
    assert np.mean(distance.argmin(axis=1) == np.arange(100)) > 0.3


def test_a_quarter_each_is_as_it_was_moved_recoloured_and_made_up(support):
    """Of a black set, which is black in any patchwork, light or place, grey in other colours, and never leaves."""
    x, y = support
    of_black = variations(-np.ones_like(x), y, 400).reshape(4, 100, *x.shape[1:])
    black = np.abs(of_black + 1).max(axis=(2, 3, 4)) < 1e-5
    assert black[:2].all()
    flat = np.ptp(of_black, axis=(2, 3, 4)) < 1e-6
    assert flat[2].all()
    assert 0 < black[2].sum() < 100
    assert not flat[3].any()
    moved = variations(x, y, 400)[100:200]
    still = patchworks(x, y, 300, np.random.default_rng(0))[100:200]
    assert np.abs(moved - still).max(axis=(1, 2, 3)).min() > 0.1


@pytest.mark.parametrize("features", [Pixels((8, 8, 1)), FCNTK()])
def test_labels_are_the_regressions_own(support, features):
    """In another scale, the same for all: which class wins, and by what share, is what the regression says."""
    x, y = varied(*support, features, RIDGE, 30)
    expected = krr_predict(features, support[0], krr_fit(features, *support, RIDGE), x)
    expected -= expected.mean(axis=1, keepdims=True)
    scale = y[0, 0] / expected[0, 0]
    np.testing.assert_allclose(y, scale * expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(y.max(axis=1).mean(), 0.9, rtol=1e-5)


def test_networks_are_shown_what_was_asked_for(support):
    for kind in ("hard", "soft"):
        assert lessons(kind, *support, FCNTK(), RIDGE) == (*support, kind)
    x, y, labels = lessons("varied", *support, Pixels((8, 8, 1)), RIDGE)
    assert len(x) == len(y) > len(support[0])
    assert labels == "soft"


def test_a_network_learns_what_the_regression_knows(support, encoded):
    """Nearly so, from variations alone: it never sees an image of the set."""
    x, c = encoded[0][1000:], encoded[1][1000:]
    told = krr_predict(FCNTK(), support[0], krr_fit(FCNTK(), *support, RIDGE), x).argmax(axis=1)
    shown, said, labels = lessons("varied", *support, FCNTK(), RIDGE)
    net = train_network("convnet", shown, said, seed=0, steps=2000, batch=8, labels=labels)
    assert (network_predict(net, x) == c).mean() > (told == c).mean() - 0.1


def test_none_are_refused(support):
    with pytest.raises(RequestError, match="0 variations were asked for"):
        varied(*support, Pixels((8, 8, 1)), RIDGE, 0)
