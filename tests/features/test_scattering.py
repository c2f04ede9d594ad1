"""The scattering transform is kymatio's, and so are its derivatives."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import Scattering, features_of

# (shape, J, L): MNIST's as it is used; the smallest that J=2 takes; digits; sizes that do not fill blocks of
# 2^J (their padding has an odd pixel); colour; and other depths. Few angles compile faster.
SIZES = [
    ((28, 28, 1), 2, 8),
    ((4, 5, 1), 2, 2),
    ((8, 8, 1), 2, 3),
    ((30, 26, 2), 2, 2),
    ((32, 32, 3), 2, 2),
    ((9, 8, 1), 1, 4),
    ((16, 24, 1), 3, 2),
]


def kymatio(shape, J, L):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kymatio.scattering2d.frontend.jax_frontend import ScatteringJax2D

        S = ScatteringJax2D(J, shape[:2], L)
    return jax.jit(lambda x: S(jnp.moveaxis(x, -1, 1)).reshape(len(x), -1))


def images(shape, n=3, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random((n, *shape)), jnp.float32)


def normal(shape, seed=1):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


def plain(shape, **options):
    return Scattering(shape, groups=None, unit_norm=False, **options)


def small(**options):
    """Two angles will do where the angles do not matter."""
    return Scattering((8, 8, 1), L=2, groups=None, unit_norm=False, **options)


@pytest.mark.parametrize(("shape", "J", "L"), SIZES)
def test_equals_kymatio_with_its_derivative(shape, J, L):
    x = images(shape)
    φ = plain(shape, J=J, L=L)
    S, pull = jax.vjp(φ, x)
    S_k, pull_k = jax.vjp(kymatio(shape, J, L), x)
    assert S.shape == (3, φ.dim)
    np.testing.assert_allclose(S, S_k, atol=1e-5)
    c = normal(S.shape)
    g, g_k = pull(c)[0], pull_k(c)[0]
    np.testing.assert_allclose(g, g_k, atol=2e-5 * float(jnp.abs(g_k).max()))


def test_many_cotangents_at_one_image():
    φ = plain((12, 12, 2), L=2)
    x = images((12, 12, 2), 1)[0]
    c = normal((70, φ.dim))
    _, pull = jax.vjp(lambda x: φ(x[None])[0], x)
    many = jax.vmap(lambda c: pull(c)[0])(c)
    one_by_one = jax.vjp(φ, jnp.broadcast_to(x, (70, *x.shape)))[1](c)[0]
    np.testing.assert_allclose(many, one_by_one, atol=1e-5 * float(jnp.abs(many).max()))


def test_batches_of_batches():
    """However the examples are batched, forward and backward are those of each example."""
    φ = small()
    x, c = images(φ.shape, 6), normal((4, 6, φ.dim))
    S, pull = jax.vjp(φ, x)
    np.testing.assert_allclose(jax.vmap(φ)(x.reshape(2, 3, *φ.shape)).reshape(S.shape), S, atol=1e-6)
    expected = jnp.stack([jax.jit(pull)(ci)[0] for ci in c])
    np.testing.assert_allclose(jax.vmap(lambda c: pull(c)[0])(c), expected, atol=1e-5)

    def at(x, c):
        _, pull = jax.vjp(lambda x: φ(x[None])[0], x)
        return jax.vmap(lambda c: pull(c)[0])(c)

    np.testing.assert_allclose(jax.vmap(at, in_axes=(0, 1), out_axes=1)(x, c), expected, atol=1e-5)
    same = jax.vmap(lambda x: jax.vjp(lambda x: φ(x[None])[0], x)[1](c[0, 0])[0])(x)
    np.testing.assert_allclose(same, pull(jnp.broadcast_to(c[0, 0], S.shape))[0], atol=1e-5)


def test_blocks_are_the_whole():
    φ = small()
    x, c = images(φ.shape, 75), normal((75, φ.dim))
    S, pull = jax.vjp(φ, x)
    (g,) = pull(c)
    for i in (0, 37, 74):
        S_i, pull_i = jax.vjp(φ, x[i : i + 1])
        np.testing.assert_allclose(S[i], S_i[0], atol=1e-6)
        np.testing.assert_allclose(g[i], pull_i(c[i : i + 1])[0][0], atol=1e-5)


@pytest.mark.parametrize("options", [{"groups": 3}, {"groups": None}, {"groups": None, "unit_norm": False}])
def test_finite_where_the_modulus_or_a_norm_vanishes(options):
    shape = (8, 8, 1)
    φ = Scattering(shape, L=2, **options)
    generic = images(shape, 1)
    x = jnp.concatenate([jnp.zeros((1, *shape)), jnp.ones((1, *shape)), generic, generic, generic * 1e-30])
    S, g = jax.jit(lambda x: (φ(x), jax.grad(lambda x: jnp.sum(φ(x)))(x)))(x)
    assert bool(jnp.isfinite(S).all())
    assert bool(jnp.isfinite(g).all())
    np.testing.assert_array_equal(S[2], S[3])
    np.testing.assert_array_equal(g[2], g[3])


def test_zero_image_has_zero_features_and_the_low_pass_gradient():
    """At 0 every modulus has derivative 0, so that the low pass alone is left."""
    φ = small()
    S, pull = jax.vjp(φ, jnp.zeros((1, *φ.shape)))
    assert not S.any()
    c = jnp.ones_like(S).at[:, :4].set(0)
    assert not pull(c)[0].any()
    assert pull(jnp.ones_like(S) - c)[0].any()


def test_group_norm_and_unit_norm():
    shape = (8, 12, 2)
    x = images(shape)
    S = np.asarray(plain(shape, L=2)(x), np.float64).reshape(3, 6, -1)
    S = (S - S.mean(axis=2, keepdims=True)) / np.sqrt(S.var(axis=2, keepdims=True) + 1e-5)
    S = S.reshape(3, -1)
    np.testing.assert_allclose(Scattering(shape, L=2, groups=6, unit_norm=False)(x), S, atol=2e-4)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    np.testing.assert_allclose(Scattering(shape, L=2, groups=6)(x), S, atol=2e-5)


def test_gradient_through_the_norms():
    φ = Scattering((8, 8, 1), L=2, groups=3)
    with jax.enable_x64(True):
        x, v = (np.asarray(images(φ.shape, 1, seed), np.float64) for seed in (0, 1))
        c = np.asarray(normal(φ.dim), np.float64)
        value = jax.jit(lambda x: jnp.vdot(φ(x)[0], c))
        h = 1e-6
        slope = np.vdot(jax.grad(value)(x), v)
        np.testing.assert_allclose(slope, (value(x + h * v) - value(x - h * v)) / (2 * h), rtol=1e-6)


def test_chunked_is_the_whole():
    shape = (8, 8, 1)
    φ = Scattering(shape, L=2, groups=9)
    x = np.asarray(images(shape, 23))
    seen = []
    S = features_of(φ, x, chunk=10, progress=lambda done, total: seen.append((done, total)))
    assert S.dtype == np.float32
    np.testing.assert_allclose(S, φ(jnp.asarray(x)), atol=1e-5)
    assert seen == [(10, 23), (20, 23), (23, 23)]
    # An example's features are the same, to the bit, whoever else is in its chunk.
    np.testing.assert_array_equal(features_of(φ, x[:13], chunk=10)[:10], S[:10])
    assert features_of(φ, x[:0]).shape == (0, φ.dim)
    integers = np.arange(64, dtype=np.uint8).reshape(1, *shape)
    np.testing.assert_array_equal(features_of(φ, integers), features_of(φ, integers.astype(np.float32)))


def test_a_poisoned_image_keeps_to_itself():
    shape = (8, 8, 1)
    φ = Scattering(shape, L=2, groups=9)
    x = np.asarray(images(shape, 5))
    bad = x.copy()
    bad[2] = np.nan
    kept = [0, 1, 3, 4]
    np.testing.assert_array_equal(features_of(φ, bad)[kept], features_of(φ, x)[kept])
    assert np.isnan(features_of(φ, bad)[2]).any()


def test_it_is_a_constant_of_jit():
    """Nothing in it is trained, and two that are equal share one compilation."""
    assert jax.tree.leaves(eqx.filter(Scattering((8, 8, 1)), eqx.is_array)) == []
    assert Scattering((8, 8, 1)) == Scattering((8, 8, 1))
    assert Scattering((8, 8, 1)) != Scattering((8, 8, 1), groups=9)


def test_requests_that_cannot_be_met():
    with pytest.raises(RequestError, match="at least 4 x 4"):
        Scattering((3, 8, 1))
    with pytest.raises(RequestError, match="divide the 81 channels"):
        Scattering((8, 8, 1), groups=10)
    with pytest.raises(RequestError, match="J=0"):
        Scattering((8, 8, 1), J=0)
    with pytest.raises(RequestError, match=r"\(8, 8, 1\)"):
        Scattering((8, 8, 1))(jnp.zeros((2, 8, 9, 1)))
