"""The scattering transform is kymatio's, and so are its derivatives."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import Scattering, features_of

# Kymatio's frontend has a metre of its own for these: the smallest that J=2 takes, digits, MNIST, odd
# sizes (one pixel more of padding at the end), and colour.
SHAPES = [(4, 5, 1), (8, 8, 1), (28, 28, 1), (30, 26, 2), (32, 32, 3)]


def kymatio(shape, J=2):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kymatio.scattering2d.frontend.jax_frontend import ScatteringJax2D

        S = ScatteringJax2D(J, shape[:2])
    return jax.jit(lambda x: S(jnp.moveaxis(x, -1, 1)).reshape(len(x), -1))


def images(shape, n=3, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random((n, *shape)), jnp.float32)


def plain(shape, **options):
    return Scattering(shape, groups=None, unit_norm=False, **options)


def small(**options):
    """Two angles will do where the angles do not matter."""
    return Scattering((8, 8, 1), L=2, groups=None, unit_norm=False, **options)


@pytest.mark.parametrize(("shape", "J"), [*((shape, 2) for shape in SHAPES), ((9, 8, 1), 1), ((16, 24, 1), 3)])
def test_equals_kymatio_with_its_derivative(shape, J):
    x = images(shape)
    φ = plain(shape, J=J)
    S, pull = jax.vjp(jax.jit(φ), x)
    S_k, pull_k = jax.vjp(kymatio(shape, J), x)
    assert S.shape == (3, φ.dim)
    np.testing.assert_allclose(S, S_k, atol=1e-5)
    c = jnp.asarray(np.random.default_rng(1).standard_normal(S.shape), jnp.float32)
    g, g_k = pull(c)[0], pull_k(c)[0]
    np.testing.assert_allclose(g, g_k, atol=2e-5 * float(jnp.abs(g_k).max()))


def test_many_cotangents_at_one_image():
    shape = (12, 12, 2)
    φ = plain(shape)
    x = images(shape, 1)[0]
    c = jnp.asarray(np.random.default_rng(1).standard_normal((70, φ.dim)), jnp.float32)
    _, pull = jax.vjp(lambda x: φ(x[None])[0], x)
    many = jax.jit(jax.vmap(lambda c: pull(c)[0]))(c)
    repeated = jnp.broadcast_to(x, (70, *shape))
    one_by_one = jax.vjp(φ, repeated)[1](c)[0]
    np.testing.assert_allclose(many, one_by_one, atol=1e-5 * float(jnp.abs(many).max()))


def test_batches_of_batches():
    """However the examples are batched, forward and backward are those of each example."""
    shape = (8, 8, 1)
    φ = plain(shape)
    x = images(shape, 6)
    c = jnp.asarray(np.random.default_rng(1).standard_normal((4, 6, φ.dim)), jnp.float32)
    S, pull = jax.vjp(φ, x)
    np.testing.assert_allclose(jax.vmap(φ)(x.reshape(2, 3, *shape)).reshape(S.shape), S, atol=1e-6)
    expected = jnp.stack([pull(ci)[0] for ci in c])
    np.testing.assert_allclose(jax.vmap(lambda c: pull(c)[0])(c), expected, atol=1e-5)

    def at(x, c):
        _, pull = jax.vjp(lambda x: φ(x[None])[0], x)
        return jax.vmap(lambda c: pull(c)[0])(c)

    np.testing.assert_allclose(jax.vmap(at, in_axes=(0, 1), out_axes=1)(x, c), expected, atol=1e-5)


def test_blocks_are_the_whole():
    shape = (8, 8, 1)
    φ = plain(shape)
    x = images(shape, 75)
    c = jnp.asarray(np.random.default_rng(1).standard_normal((75, φ.dim)), jnp.float32)
    S, pull = jax.vjp(φ, x)
    for i in (0, 37, 74):
        S_i, pull_i = jax.vjp(φ, x[i : i + 1])
        np.testing.assert_allclose(S[i], S_i[0], atol=1e-6)
        np.testing.assert_allclose(pull(c)[0][i], pull_i(c[i : i + 1])[0][0], atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"groups": None}, {"groups": None, "unit_norm": False}])
def test_finite_where_the_modulus_or_a_norm_vanishes(options):
    shape = (8, 8, 1)
    φ = Scattering(shape, **options)
    generic = images(shape, 1)
    x = jnp.concatenate([jnp.zeros((1, *shape)), jnp.ones((1, *shape)), generic, generic, generic * 1e-30])
    S, pull = jax.vjp(φ, x)
    (g,) = pull(jnp.ones_like(S))
    assert bool(jnp.isfinite(S).all())
    assert bool(jnp.isfinite(g).all())
    np.testing.assert_array_equal(S[2], S[3])
    np.testing.assert_array_equal(g[2], g[3])


def test_zero_image_has_zero_features_and_the_low_pass_gradient():
    """At 0 every modulus has derivative 0, so that the low pass alone is left."""
    shape = (8, 8, 1)
    φ = plain(shape)
    S, pull = jax.vjp(φ, jnp.zeros((1, *shape)))
    assert not S.any()
    c = jnp.ones_like(S).at[:, :4].set(0)
    assert not pull(c)[0].any()
    assert pull(jnp.ones_like(S) - c)[0].any()


def test_group_norm_and_unit_norm():
    shape = (8, 12, 2)
    x = images(shape)
    S = np.asarray(plain(shape)(x), np.float64).reshape(3, 27, -1)
    S = (S - S.mean(axis=2, keepdims=True)) / np.sqrt(S.var(axis=2, keepdims=True) + 1e-5)
    S = S.reshape(3, -1)
    np.testing.assert_allclose(Scattering(shape, unit_norm=False)(x), S, atol=2e-4)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    np.testing.assert_allclose(Scattering(shape)(x), S, atol=2e-5)


def test_gradient_through_the_norms():
    shape = (8, 8, 1)
    φ = Scattering(shape)
    x, v, c = images(shape, 1, 0), images(shape, 1, 1), jnp.asarray(images(shape, 1, 2).sum() * jnp.ones(φ.dim))
    c = c * jnp.asarray(np.random.default_rng(3).standard_normal(φ.dim), jnp.float32)
    with jax.enable_x64(True):
        x, v, c = (jnp.asarray(np.asarray(a), jnp.float64) for a in (x, v, c))
        slope = jnp.vdot(jax.grad(lambda x: jnp.vdot(φ(x)[0], c))(x), v)
        h = 1e-6
        difference = jnp.vdot(φ(x + h * v)[0] - φ(x - h * v)[0], c) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_chunked_is_the_whole():
    shape = (8, 8, 1)
    φ = Scattering(shape)
    x = np.asarray(images(shape, 23))
    seen = []
    S = features_of(φ, x, chunk=10, progress=lambda done, total: seen.append((done, total)))
    assert S.dtype == np.float32
    np.testing.assert_allclose(S, φ(jnp.asarray(x)), atol=1e-6)
    assert seen == [(10, 23), (20, 23), (23, 23)]
    # An example's features are the same, to the bit, whoever else is in its chunk.
    np.testing.assert_array_equal(features_of(φ, x[:13], chunk=10)[:10], S[:10])
    assert features_of(φ, x[:0]).shape == (0, φ.dim)
    integers = np.arange(64, dtype=np.uint8).reshape(1, *shape)
    np.testing.assert_array_equal(features_of(φ, integers), features_of(φ, integers.astype(np.float32)))


def test_a_poisoned_image_keeps_to_itself():
    shape = (8, 8, 1)
    φ = Scattering(shape)
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
