import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.evaluate import (
    centred_onehot,
    network_accuracies,
    network_predict,
    random_subset,
    train_network,
)
from limbeck.evaluate.training import label_probabilities
from limbeck.networks import NETWORKS


def test_labels():
    y = np.array([[0.5, -0.5], [-0.9, -0.8], [0.1, -0.1]])
    np.testing.assert_allclose(label_probabilities(y, "hard"), [[1, 0], [0, 1], [1, 0]])
    expected = np.exp(4 * y) / np.exp(4 * y).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(label_probabilities(y, "soft"), expected, atol=1e-6)


@pytest.fixture(scope="module")
def split(encoded):
    x, c = encoded
    chosen = random_subset(c[:1000], 10, seed=1)
    return x[chosen], centred_onehot(c[chosen], 10), x[1000:1500], c[1000:1500]


LEAST = dict.fromkeys(NETWORKS, 0.7) | {"lenet": 0.3}  # five layers without a norm are slow to begin; chance is 0.1


@pytest.mark.parametrize("name", NETWORKS)
def test_learns_digits_and_reports_progress(split, name):
    calls = []
    found = network_accuracies(name, *split, seeds=2, steps=120, progress=lambda *at: calls.append(at))
    assert len(found) == 2
    assert min(found) > LEAST[name]
    done, totals = zip(*calls, strict=True)
    assert list(done) == sorted(done)
    assert set(totals) == {done[-1]}


def test_learns_from_augmented_digits_too(split):
    plain, augmented = (network_accuracies("mlp", *split, seeds=1, steps=120, augment=a) for a in (False, True))
    assert augmented != plain
    assert min(augmented) > 0.6


def test_soft_labels_teach_what_hard_ones_do_not(split):
    """Labels that are even between two classes: their argmax is always the first of them."""
    x_s, _, x, _ = split
    y_s = centred_onehot(np.zeros(len(x_s), int), 10) / 2 + centred_onehot(np.ones(len(x_s), int), 10) / 2
    hard, soft = (np.asarray(train_network("mlp", x_s, y_s, seed=0, steps=60, labels=k)(jnp.asarray(x[:50])))
                  for k in ("hard", "soft"))  # fmt: skip
    assert (hard[:, 0] - hard[:, 1]).min() > 1
    assert np.abs(soft[:, 0] - soft[:, 1]).max() < 1


def test_a_network_that_is_not_known_is_explained(split):
    with pytest.raises(RequestError, match=r"'vgg' is not known; convnet, mlp"):
        train_network("vgg", *split[:2], seed=0, steps=1)


def test_null_records_do_not_count(split):
    x_s, y_s, x, c = split
    net = train_network("convnet", x_s, y_s, seed=0, steps=20)
    predicted = network_predict(net, x[:100])
    c_null = np.where(predicted == c[:100], c[:100], -1)
    assert network_accuracies("convnet", x_s, y_s, x[:100], c_null, seeds=1, steps=20) == (1.0,)


def test_same_seed_same_network_and_another_seed_another(split):
    x_s, y_s, x, _ = split
    x = jnp.asarray(x[:20])
    one, two, other = (np.asarray(train_network("convnet", x_s, y_s, seed=seed, steps=20)(x)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


def test_chunked_prediction_is_whole(split):
    x_s, y_s, x, _ = split
    net = train_network("convnet", x_s, y_s, seed=0, steps=20)
    whole = np.asarray(net(jnp.asarray(x[:50]))).argmax(1)
    for chunk in (1, 7, 64):
        np.testing.assert_array_equal(network_predict(net, x[:50], chunk=chunk), whole)


@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_does_not_diverge_on_images_far_out_of_range(split, labels):
    """Distilled images may go far beyond [-1, 1], be constant, or be noise."""
    x_s, y_s, x, _ = split
    x_s = x_s.copy()
    x_s[:40] *= 1e3
    x_s[40:50] += 50
    x_s[50:60] = 0
    net = train_network("convnet", x_s, 5 * y_s, seed=0, steps=80, labels=labels)
    assert np.isfinite(np.asarray(net(jnp.asarray(x[:50])))).all()
    accuracy = (network_predict(net, x) == split[3]).mean()
    assert accuracy > 0.4


def test_fewer_images_than_a_batch(split):
    x_s, y_s, x, _ = split
    net = train_network("convnet", x_s[::10], y_s[::10], seed=0, steps=10)
    assert network_predict(net, x[:3]).shape == (3,)
