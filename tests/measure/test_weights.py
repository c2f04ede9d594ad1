"""Gradients in the weights are those of autodiff, and rank one a record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.measure import WeightGradient
from limbeck.measure.clipping import Outer, clipped_sum, explicit

F, C = 7, 3


def problem(units=5, rows=1, seed=0):
    rng = np.random.default_rng(seed)
    phi = jnp.asarray(rng.normal(size=(units, rows, F)), jnp.float32)
    y = jnp.asarray(np.eye(C)[rng.integers(C, size=(units, rows))] - 1 / C, jnp.float32)
    return phi, y, jnp.asarray(rng.normal(size=(F, C)), jnp.float32)


def loss_of(loss, W, phi, y):
    f = phi @ W
    if loss == "quadratic":
        return 0.5 * jnp.sum((f - y) ** 2)
    return -jnp.sum(jax.nn.log_softmax(f) * (y + 1 / C))


def transposed(g):
    return np.swapaxes(np.asarray(explicit(g)), 1, 2)


@pytest.mark.parametrize("loss", ["quadratic", "softmax"])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_units_gradient_is_autodiffs(loss, rows):
    phi, y, W = problem(rows=rows)
    g = transposed(WeightGradient(W, loss).contributions(phi, y))
    expected = jax.vmap(jax.grad(lambda W, phi, y: loss_of(loss, W, phi, y)), (None, 0, 0))(W, phi, y)
    np.testing.assert_allclose(g, expected, atol=1e-5)


@pytest.mark.parametrize("loss", ["quadratic", "softmax"])
def test_the_norm_is_the_product_of_two(loss):
    phi, y, W = problem()
    g = WeightGradient(W, loss).contributions(phi, y)
    assert isinstance(g, Outer)
    norms = np.linalg.norm(np.asarray(explicit(g)), axis=(1, 2))
    np.testing.assert_allclose(norms, np.linalg.norm(g.a, axis=1) * np.linalg.norm(g.b, axis=1), rtol=1e-5)
    clipped = np.asarray(clipped_sum(jax.tree.map(lambda v: v[:1], g), 0.1))
    assert np.linalg.norm(clipped) <= 0.1


@pytest.mark.parametrize("rows", [1, 2])
def test_null_and_padded_rows_add_nothing(rows):
    phi, y, W = problem(rows=rows)
    g = transposed(WeightGradient(W, "softmax").contributions(phi, y.at[2].set(jnp.nan)))
    assert (g[2] == 0).all()
    assert np.isfinite(g).all()


def test_the_mean_is_over_rows_that_are_there():
    phi, y, W = problem()
    query = WeightGradient(W)
    whole = query.mean(phi[:4], y[:4])
    np.testing.assert_allclose(query.mean(phi, y.at[4].set(jnp.nan)), whole, atol=1e-5)
