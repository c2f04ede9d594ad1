"""The closed form of the fully-connected NTK, against neural-tangents and against autodiff."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import FCNTK

# From neural-tangents 0.6.5 in float64: row 3 of fc_x is zero, 4 repeats row 0, 5 is -2 times row 1.
ORACLE = np.load(Path(__file__).with_name("fc_ntk.npz"))


@pytest.fixture
def float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.usefixtures("float64")
def test_equals_neural_tangents(depth):
    k = FCNTK(depth)
    x, z = jnp.asarray(ORACLE["fc_x"]), jnp.asarray(ORACLE["fc_z"])
    assert x.dtype == jnp.float64
    np.testing.assert_allclose(k(x, z), ORACLE[f"fc{depth}_ntk_xz"], atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(k(x, x), ORACLE[f"fc{depth}_ntk_xx"], atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(k.nngp(x, z), ORACLE[f"fc{depth}_nngp_xz"], atol=1e-6, rtol=1e-6)


@pytest.mark.usefixtures("float64")
def test_equals_neural_tangents_without_bias():
    x, z = jnp.asarray(ORACLE["fc_x"]), jnp.asarray(ORACLE["fc_z"])
    np.testing.assert_allclose(FCNTK(1, 1.0, 0.0)(x, z), ORACLE["fc1_plain_ntk_xz"], atol=1e-6)


def points(dtype):
    """Generic, coincident, nearly coincident, antiparallel, collinear, orthogonal and zero."""
    r = np.random.default_rng(0)
    x = r.standard_normal((4, 6))
    x = np.concatenate([x, x[:1], x[:1] + 1e-6, -x[:1], 3 * x[1:2], np.eye(6)[:2], np.zeros((2, 6)), 1e-20 * x[:1]])
    return jnp.asarray(x, dtype)


@pytest.mark.parametrize("b_std", [0.1, 0.0])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivative_is_autodiff_and_finite_everywhere(depth, b_std, dtype):
    with jax.enable_x64(dtype == "float64"):
        kernel = FCNTK(depth, b_std=b_std)
        x = points(dtype)
        k, k_s, k_q = jax.jit(kernel.derivative)(x, x)
        c = jnp.asarray(np.random.default_rng(1).standard_normal(k.shape), dtype)
        structured = (c * k_s).T @ x + 2 * jnp.sum(c * k_q, axis=0)[:, None] * x
        autodiff = jax.jit(jax.grad(lambda z: jnp.vdot(c, kernel(x, z))))(x)
        for a in (k, k_s, k_q, structured, autodiff):
            assert a.dtype == dtype
            assert bool(jnp.isfinite(a).all())
        np.testing.assert_allclose(k, kernel(x, x), rtol=1e-5, atol=1e-7)
        # Between near points k_s and k_q are large and nearly cancel, and the angle is known to √ε only.
        rounding = 20 * float(jnp.finfo(dtype).eps) * float(jnp.abs(c * k_s).max())
        np.testing.assert_allclose(structured, autodiff, atol=max(1e-5, rounding))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.usefixtures("float64")
def test_derivative_is_the_slope(depth):
    kernel = FCNTK(depth)
    r = np.random.default_rng(1)
    x, z, v = (jnp.asarray(r.standard_normal((5, 7))) for _ in range(3))
    _, k_s, k_q = jax.jit(kernel.derivative)(x, z)
    slope = k_s * (x @ v.T) + 2 * k_q * jnp.sum(z * v, axis=1)
    h = 1e-6
    np.testing.assert_allclose(slope, (kernel(x, z + h * v) - kernel(x, z - h * v)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.usefixtures("float64")
def test_diagonal_is_the_diagonal(depth):
    kernel = FCNTK(depth)
    x = points("float64")
    k, dk = kernel.diagonal(x)
    np.testing.assert_allclose(k, jnp.diag(kernel(x, x)), rtol=1e-12)
    g = jax.vmap(jax.grad(lambda x: kernel.diagonal(x[None])[0][0]))(x)
    np.testing.assert_allclose(2 * dk[:, None] * x, g, rtol=1e-12)
    # k(x, x) by way of the whole matrix has both arguments move: the cusp does not show.
    through = jax.jit(jax.vmap(jax.grad(lambda x: kernel(x[None], x[None])[0, 0])))(x)
    np.testing.assert_allclose(through, g, rtol=1e-6, atol=1e-12)


def test_symmetric_and_positive():
    kernel = FCNTK(2)
    x = jnp.asarray(np.random.default_rng(2).standard_normal((40, 3, 4)), jnp.float32)
    K = np.asarray(kernel(x, x), np.float64)
    np.testing.assert_allclose(K, K.T, rtol=1e-6)
    assert np.linalg.eigvalsh(K).min() > -1e-5 * K.trace()


def test_examples_are_flattened():
    kernel = FCNTK(1)
    x = jnp.asarray(np.random.default_rng(3).standard_normal((4, 2, 3)), jnp.float32)
    np.testing.assert_array_equal(kernel(x, x), kernel(x.reshape(4, 6), x.reshape(4, 6)))


def test_requests_that_cannot_be_met():
    with pytest.raises(RequestError, match="depth"):
        FCNTK(0)
    with pytest.raises(RequestError, match="w_std"):
        FCNTK(1, w_std=0.0)
