import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from limbeck.errors import RequestError
from limbeck.evaluate import (
    centred_onehot,
    convnet_accuracies,
    convnet_predict,
    random_subset,
    train_convnet,
)
from limbeck.evaluate.convnet import label_probabilities
from limbeck.networks import ConvNet
from limbeck.networks.layers import average_pool, conv3x3, convolution, instance_norm


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "flat", "blocks"),
    [((8, 8, 1), 1, 3), ((28, 28, 1), 9, 3), ((32, 32, 3), 16, 3), ((5, 4, 2), 1, 2), ((2, 9, 1), 4, 1)],
)
def test_shapes(shape, flat, blocks):
    net = ConvNet(shape, 10, width=4, rng=np.random.default_rng(0))
    assert len(net.blocks) == blocks
    assert net.readout.shape == (flat * 4, 10)
    assert net(jnp.asarray(normal(4, *shape))).shape == (4, 10)


def test_has_the_size_of_the_literatures():
    """Three blocks of 128 on 28x28x1, with the biases that the norms make idle left out."""
    net = ConvNet((28, 28, 1), 10, rng=np.random.default_rng(0))
    size = sum(a.size for a in jax.tree.leaves(net))
    assert size == 9 * 128 + 2 * 9 * 128 * 128 + 3 * 2 * 128 + 1152 * 10 + 10


def test_refuses_images_of_one_pixel():
    with pytest.raises(RequestError, match="2 x 2"):
        ConvNet((1, 7, 1), 10, rng=np.random.default_rng(0))


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_convolution_is_xlas(channels):
    x, kernel = normal(2, 7, 6, channels), normal(3, 3, channels, 4)
    expected = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    np.testing.assert_allclose(conv3x3(jnp.asarray(x), jnp.asarray(kernel)), expected, atol=1e-5)
    np.testing.assert_allclose(convolution(jnp.asarray(x), jnp.asarray(kernel)), expected, atol=1e-5)


def test_instance_norm_is_the_formula():
    x = 3 * normal(2, 5, 4, 3) + 7
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(instance_norm(jnp.asarray(x)), expected, atol=1e-5)
    assert not np.asarray(instance_norm(jnp.full((1, 4, 4, 2), 3.0))).any()


def test_pooling_is_the_mean_of_four():
    x = normal(2, 5, 7, 3)
    pooled = average_pool(jnp.asarray(x))
    assert pooled.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(pooled[1, 1, 2], x[1, 2:4, 4:6].mean((0, 1)), rtol=1e-5)


def test_labels():
    y = np.array([[0.5, -0.5], [-0.9, -0.8], [0.1, -0.1]])
    np.testing.assert_allclose(label_probabilities(y, "hard"), [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_allclose(label_probabilities(y, "soft"), [[1, 0], [0.5, 0.5], [0.6, 0.4]], atol=1e-6)


@pytest.fixture(scope="module")
def split(encoded):
    x, c = encoded
    chosen = random_subset(c[:1000], 10, seed=1)
    return x[chosen], centred_onehot(c[chosen], 10), x[1000:1500], c[1000:1500]


def test_learns_digits_and_reports_progress(split):
    calls = []
    found = convnet_accuracies(*split, seeds=2, steps=120, progress=lambda *at: calls.append(at))
    assert len(found) == 2
    assert min(found) > 0.7
    done, totals = zip(*calls, strict=True)
    assert list(done) == sorted(done)
    assert set(totals) == {done[-1]}


def test_null_records_do_not_count(split):
    x_s, y_s, x, c = split
    net = train_convnet(x_s, y_s, seed=0, steps=20)
    predicted = convnet_predict(net, x[:100])
    c_null = np.where(predicted == c[:100], c[:100], -1)
    assert convnet_accuracies(x_s, y_s, x[:100], c_null, seeds=1, steps=20) == [1.0]


def test_same_seed_same_network_and_another_seed_another(split):
    x_s, y_s, x, _ = split
    x = jnp.asarray(x[:20])
    one, two, other = (np.asarray(train_convnet(x_s, y_s, seed=seed, steps=20)(x)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


def test_chunked_prediction_is_whole(split):
    x_s, y_s, x, _ = split
    net = train_convnet(x_s, y_s, seed=0, steps=20)
    whole = np.asarray(net(jnp.asarray(x[:50]))).argmax(1)
    for chunk in (1, 7, 64):
        np.testing.assert_array_equal(convnet_predict(net, x[:50], chunk=chunk), whole)


@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_does_not_diverge_on_images_far_out_of_range(split, labels):
    """Distilled images may go far beyond [-1, 1], be constant, or be noise."""
    x_s, y_s, x, _ = split
    x_s = x_s.copy()
    x_s[:40] *= 1e3
    x_s[40:50] += 50
    x_s[50:60] = 0
    net = train_convnet(x_s, 5 * y_s, seed=0, steps=80, labels=labels)
    assert np.isfinite(np.asarray(net(jnp.asarray(x[:50])))).all()
    accuracy = (convnet_predict(net, x) == split[3]).mean()
    assert accuracy > 0.4


def test_fewer_images_than_a_batch(split):
    x_s, y_s, x, _ = split
    net = train_convnet(x_s[::10], y_s[::10], seed=0, steps=10)
    assert convnet_predict(net, x[:3]).shape == (3,)
