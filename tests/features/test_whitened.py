"""Whitening comes from made-up images alone, and evens out the directions of a feature map."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import Projected, Scattering, Whitened, dead_leaves, features_of, from_config, whitened

SHAPE = (8, 8, 1)
BASE = Scattering(SHAPE, L=4, groups=None)


def test_features_have_norm_one_and_are_finite_for_every_image():
    x = np.stack([np.zeros(SHAPE), np.ones(SHAPE), -np.ones(SHAPE), *dead_leaves(3, SHAPE, 5)]).astype(np.float32)
    ψ = Whitened.of(BASE, 0)
    np.testing.assert_allclose(np.linalg.norm(ψ(jnp.asarray(x)), axis=1), 1, rtol=1e-5)
    assert np.isfinite(jax.grad(lambda x: ψ(x)[:, 0].sum())(jnp.asarray(x))).all()


def test_the_strongest_directions_are_weaker():
    x = dead_leaves(500, SHAPE, seed=9)  # not those that it was made from

    def spread(φ):
        λ = np.linalg.eigvalsh(np.cov(features_of(φ, x).T))
        return λ[-1] / λ.mean()

    assert spread(Whitened.of(BASE, 0)) < spread(BASE) / 2.5


def test_it_is_a_function_of_its_public_seed():
    a, b, c = Whitened.of(BASE, 1), from_config(Whitened.of(BASE, 1).config(), SHAPE), Whitened.of(BASE, 2)
    x = jnp.asarray(dead_leaves(2, SHAPE, 3))
    np.testing.assert_array_equal(a(x), b(x))
    assert not np.array_equal(a(x), c(x))


def test_features_whitened_otherwise_are_refused_and_not_taken_for_these():
    config = Whitened.of(BASE, 1).config()
    with pytest.raises(RequestError, match="whitened in a way"):
        from_config(config | {"rank": 7}, SHAPE)


@pytest.mark.parametrize("shape", [(8, 8, 1), (9, 7, 3)])
def test_dead_leaves_fill_the_range_and_no_more(shape):
    x = dead_leaves(50, shape, 0)
    assert x.shape == (50, *shape)
    assert np.abs(x).max() <= 1
    assert x.std() > 0.3


def test_a_random_projection_keeps_inner_products_and_is_built_again_from_its_recipe():
    φ = Whitened.of(Scattering((8, 8, 3), L=8, groups=None), 0)
    ψ = Projected.of(φ, 600, 3)
    x = jnp.asarray(dead_leaves(20, (8, 8, 3), 4))
    error = np.asarray(ψ(x) @ ψ(x).T - φ(x) @ φ(x).T)
    assert ψ(x).shape == (20, 600)
    assert 0.3 / np.sqrt(600) < error[~np.eye(20, dtype=bool)].std() < 3 / np.sqrt(600)
    np.testing.assert_allclose(np.linalg.norm(ψ(x), axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(from_config(ψ.config(), (8, 8, 3))(x), ψ(x))
    with pytest.raises(RequestError, match="is possible here"):
        Projected.of(φ, φ.dim)


def test_few_features_and_many_are_whitened_alike(monkeypatch):
    """By the covariance or by the Gram matrix of the images, whichever is smaller: the same map."""
    monkeypatch.setattr(whitened, "IMAGES", 90)  # fewer than BASE's 100 features
    x, φ = jnp.asarray(dead_leaves(5, SHAPE, 3)), features_of(BASE, dead_leaves(90, SHAPE, 11)).astype(np.float64)
    by_gram = Whitened.of(BASE, 11)
    λ, U = np.linalg.eigh(np.cov(φ.T, bias=True))
    κ = λ.mean()
    M = U * np.sqrt(κ / (np.maximum(λ, 0) + κ)) @ U.T
    z = (np.asarray(BASE(x), np.float64) - φ.mean(0)) @ M
    np.testing.assert_allclose(by_gram(x), z / np.linalg.norm(z, axis=1, keepdims=True), atol=2e-3)
