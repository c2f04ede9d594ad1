"""Structured per-target gradients are exact: equal to autodiff, through the whole solve, of each target's loss."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import FeatureMap, Kernel, gram, named
from limbeck.measure.clipping import _is_outer, _squared, plain_sum
from limbeck.measure.gradients import SupportGradient

FAMILIES = [("fc-ntk", (6, 5, 1)), ("fc-ntk", (4, 4, 3)), ("scattering", (8, 8, 1)), ("scattering", (8, 8, 3))]


def loss(features, x_s, y_s, ridge, x, y):
    """Equation 3 of DP-KIP for one target, with the ridge of KIP; written without any structure."""
    K, m = gram(features, x_s, x_s), len(x_s)
    if isinstance(features, Kernel):  # the diagonal has a derivative of its own, off the cusp
        K = K * (1 - jnp.eye(m)) + jnp.diag(features.diagonal(x_s)[0])
    A = K + ridge * jnp.trace(K) / m * jnp.eye(m)
    f = gram(features, x[None], x_s)[0] @ jnp.linalg.solve(A, y_s)
    return 0.5 * jnp.sum((f - y) ** 2)


def problem(name, shape, m=6, classes=3, targets=5):
    rng = np.random.default_rng(0)
    few_angles = {"L": 2, "groups": 3} if name == "scattering" else {}  # they compile faster
    features = named(name, shape, **few_angles)
    x_s = jnp.asarray(rng.normal(size=(m, *shape)), jnp.float32)
    x_t = jnp.asarray(rng.uniform(-1, 1, size=(targets, *shape)), jnp.float32)
    one_hot = np.eye(classes, dtype=np.float32) - 1 / classes
    y_s, y_t = jnp.asarray(one_hot[np.arange(m) % classes]), jnp.asarray(one_hot[np.arange(targets) % classes])
    return features, x_s, y_s, x_t, y_t, inputs_of(features, x_t)


@eqx.filter_jit
def inputs_of(features, x_t):
    """What a session hands to a query: features, or flat images for a kernel."""
    return features(x_t) if isinstance(features, FeatureMap) else x_t.reshape(len(x_t), -1)


@eqx.filter_jit
def contributions(query, inputs, y):
    return query.contributions(inputs, y)


@eqx.filter_jit
def reference(features, x_s, y_s, ridge, x_t, y_t):
    return jax.vmap(lambda x, y: jax.grad(lambda s: loss(features, s, y_s, ridge, x, y))(x_s))(x_t, y_t)


def unit(query, contributions, t):
    """One unit's gradient in pixels."""
    return query.decoded(plain_sum(jax.tree.map(lambda v: v[t : t + 1], contributions)))


def norm_of(contributions, t):
    one = jax.tree.map(lambda v: v[t : t + 1], contributions)
    return float(jnp.sqrt(sum(_squared(v, 1.0) for v in jax.tree.leaves(one, is_leaf=_is_outer)))[0])


def relative(a, b):
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


@pytest.mark.parametrize(("name", "shape", "ridge"), [(*FAMILIES[i], r) for i, r in enumerate([1e-3, 1.0, 1e-3, 1.0])])
def test_equal_to_vmap_of_grad(name, shape, ridge):
    features, x_s, y_s, x_t, y_t, inputs = problem(name, shape)
    expected = reference(features, x_s, y_s, ridge, x_t, y_t)
    query = SupportGradient.at(features, x_s, y_s, ridge)
    found = contributions(query, inputs[:, None], y_t[:, None])
    for t in range(len(x_t)):
        assert relative(unit(query, found, t), expected[t]) < 1e-5


@pytest.mark.parametrize(("name", "shape"), FAMILIES[1:3])
@pytest.mark.parametrize("m", [6, 60])
def test_decoding_keeps_norms(name, shape, m):
    """What is clipped is what is summed: in other coordinates, but of the same length; also for m above D."""
    features, x_s, y_s, _, y_t, inputs = problem(name, shape, m=m)
    query = SupportGradient.at(features, x_s.at[0].set(x_s[1]), y_s, 1e-2)
    found = contributions(query, inputs[:, None], y_t[:, None])
    for t in range(len(y_t)):
        assert float(jnp.linalg.norm(unit(query, found, t))) == pytest.approx(norm_of(found, t), rel=1e-4)


@pytest.mark.parametrize(("name", "shape"), FAMILIES[1:3])
def test_a_unit_of_several_rows_is_their_sum(name, shape):
    features, x_s, y_s, _, y_t, inputs = problem(name, shape, targets=6)
    query = SupportGradient.at(features, x_s, y_s, 1e-2)
    single = contributions(query, inputs[:, None], y_t[:, None])
    grouped = contributions(query, inputs.reshape(2, 3, -1), y_t.reshape(2, 3, -1))
    for person in range(2):
        summed = sum(unit(query, single, 3 * person + row) for row in range(3))
        assert relative(unit(query, grouped, person), summed) < 1e-5


@pytest.mark.parametrize(("name", "shape"), FAMILIES[1:3])
def test_padding_and_null_rows_add_exact_zeros(name, shape):
    features, x_s, y_s, _, y_t, inputs = problem(name, shape)
    query = SupportGradient.at(features, x_s, y_s, 1e-2)
    blank = contributions(query, jnp.zeros_like(inputs)[:, None], jnp.full_like(y_t, jnp.nan)[:, None])
    assert not np.asarray(query.decoded(plain_sum(blank))).any()
    padded_inputs = jnp.stack([inputs, jnp.zeros_like(inputs)], axis=1)
    padded_y = jnp.stack([y_t, jnp.full_like(y_t, jnp.nan)], axis=1)
    plain = contributions(query, inputs[:, None], y_t[:, None])
    padded = contributions(query, padded_inputs, padded_y)
    assert all(relative(unit(query, padded, t), unit(query, plain, t)) < 1e-5 for t in range(5))


@pytest.mark.parametrize(("name", "shape"), FAMILIES[1:3])
def test_mean_is_the_gradient_of_the_mean_loss(name, shape):
    features, x_s, y_s, x_t, y_t, inputs = problem(name, shape)

    def mean_loss(x_s, y_s):
        return jnp.mean(jax.vmap(lambda x, y: loss(features, x_s, y_s, 1e-2, x, y))(x_t, y_t))

    expected = jax.jit(jax.grad(mean_loss, argnums=(0, 1)))(x_s, y_s)
    query = SupportGradient.at(features, x_s, y_s, 1e-2)
    found = eqx.filter_jit(lambda q, *batch: q.mean(*batch))(query, inputs[:, None], y_t[:, None])
    assert relative(found[0], expected[0]) < 1e-5
    assert relative(found[1], expected[1]) < 1e-5


def test_gradients_are_finite_at_coincident_and_zero_points():
    for name, shape in FAMILIES[1:3]:
        features, x_s, y_s, _, y_t, _ = problem(name, shape)
        x_s = x_s.at[1].set(x_s[0]).at[2].set(0.0)
        x_t = x_s[:5]
        query = SupportGradient.at(features, x_s, y_s, 1e-6)
        found = contributions(query, inputs_of(features, x_t)[:, None], y_t[:, None])
        assert all(bool(jnp.isfinite(v).all()) for v in jax.tree.leaves(found))
