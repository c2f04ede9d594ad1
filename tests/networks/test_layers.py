import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from limbeck.networks.layers import Linear, average_pool, convolution, instance_norm, patch_convolution


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_convolution_is_xlas(k, channels):
    x, kernel = normal(2, 7, 6, channels), normal(k, k, channels, 4)
    expected = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    np.testing.assert_allclose(patch_convolution(jnp.asarray(x), jnp.asarray(kernel)), expected, atol=2e-5)
    np.testing.assert_allclose(convolution(jnp.asarray(x), jnp.asarray(kernel)), expected, atol=2e-5)


def test_a_kernel_may_be_larger_than_the_image():
    x, kernel = normal(2, 2, 3, 2), normal(5, 5, 2, 4)
    expected = convolution(jnp.asarray(x), jnp.asarray(kernel))
    np.testing.assert_allclose(patch_convolution(jnp.asarray(x), jnp.asarray(kernel)), expected, atol=2e-5)


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


def test_linear_starts_within_its_bound_and_without_bias():
    layer = Linear(25, 400, rng=np.random.default_rng(0))
    largest = np.abs(layer.weights).max()
    assert 0.19 < largest <= 0.2
    np.testing.assert_array_equal(layer(jnp.zeros((2, 25))), np.zeros((2, 400)))
