import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Array, Float
from scipy.linalg import lapack
from sklearn.kernel_ridge import KernelRidge

from limbeck.errors import RequestError
from limbeck.evaluate import centred_onehot, krr_fit, krr_full, krr_predict
from limbeck.evaluate.normal_equations import NormalEquations, packed_diagonal
from limbeck.features import FCNTK, FeatureMap, Scattering, features_of
from limbeck.features.ridge import solve_ridge


class Tanh(FeatureMap):
    """A small finite map, of any number of features."""

    weights: Float[Array, "D F"]

    @property
    def dim(self):
        return self.weights.shape[1]

    def __call__(self, x):
        return jnp.tanh(x.reshape(len(x), -1) @ self.weights)

    def config(self):
        return {"name": "tanh"}


def tanh_features(F, D=64):
    return Tanh(jnp.asarray(np.random.default_rng(5).normal(size=(D, F)).astype(np.float32) / 8))


FEATURES = {
    "tanh": tanh_features(40),
    "scattering": Scattering((8, 8, 1)),
    "fc-ntk": FCNTK(depth=2),
}


@pytest.fixture(params=FEATURES)
def features(request):
    return FEATURES[request.param]


@pytest.fixture
def sets(encoded):
    """Support and test images, with the support's targets."""
    x, c = encoded
    return x[:30], centred_onehot(c[:30], 10), x[100:170]


def exact_gram(features, x, z):
    if isinstance(features, FeatureMap):
        return features_of(features, x).astype(np.float64) @ features_of(features, z).astype(np.float64).T
    return np.asarray(features(jnp.asarray(x), jnp.asarray(z)), np.float64)


def test_is_the_formula(features, sets):
    x_s, y_s, x = sets
    ridge = 1e-3
    K = exact_gram(features, x_s, x_s)
    A = K + ridge * np.trace(K) / len(K) * np.eye(len(K))
    expected = exact_gram(features, x, x_s) @ np.linalg.inv(A) @ y_s
    f = krr_predict(features, x_s, krr_fit(features, x_s, y_s, ridge), x)
    np.testing.assert_allclose(f, expected, atol=2e-4)


def test_is_scikit_learns_with_the_absolute_ridge(features, sets):
    x_s, y_s, x = sets
    ridge = 1e-2
    K = exact_gram(features, x_s, x_s)
    rival = KernelRidge(alpha=ridge * np.trace(K) / len(K), kernel="precomputed").fit(K, y_s)
    f = krr_predict(features, x_s, krr_fit(features, x_s, y_s, ridge), x)
    np.testing.assert_allclose(f, rival.predict(exact_gram(features, x, x_s)), atol=1e-4)


@given(scale=st.floats(0.01, 100), ridge=st.sampled_from([1e-4, 1e-1]))
@settings(max_examples=20, deadline=None)
def test_does_not_depend_on_the_scale_of_the_kernel(scale, ridge):
    rng = np.random.default_rng(0)
    Φ, Y = rng.normal(size=(12, 8)), rng.normal(size=(12, 3))
    K = Φ @ Φ.T
    relative = ridge * np.trace(K) / len(K)
    fitted = K @ solve_ridge(K, Y, relative)
    scaled = scale * K @ solve_ridge(scale * K, Y, scale * relative)
    np.testing.assert_allclose(fitted, scaled, atol=1e-8)


@pytest.mark.parametrize("chunk", [1, 7, 70, 1000])
def test_chunked_is_whole(features, sets, chunk):
    x_s, y_s, x = sets
    alpha = krr_fit(features, x_s, y_s, 1e-3)
    calls = []
    f = krr_predict(features, x_s, alpha, x, chunk=chunk, progress=lambda *at: calls.append(at))
    np.testing.assert_allclose(f, krr_predict(features, x_s, alpha, x), atol=1e-4)
    assert calls[-1] == (len(x), len(x))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1e-6, 1.0])
def test_is_finite_for_coincident_points(features, sets, ridge):
    x_s, y_s, x = sets
    x_s = np.concatenate([x_s, x_s, np.zeros_like(x_s[:3])])
    y_s = np.concatenate([y_s, y_s, y_s[:3]])
    f = krr_predict(features, x_s, krr_fit(features, x_s, y_s, ridge), x)
    assert np.isfinite(f).all()
    assert np.abs(f).max() < 100


def test_duplicating_the_support_changes_nothing_without_ridge(sets):
    x_s, y_s, x = sets
    φ = FEATURES["scattering"]
    once = krr_predict(φ, x_s, krr_fit(φ, x_s, y_s, 0.0), x)
    twice_x, twice_y = np.concatenate([x_s, x_s]), np.concatenate([y_s, y_s])
    twice = krr_predict(φ, twice_x, krr_fit(φ, twice_x, twice_y, 0.0), x)
    np.testing.assert_allclose(once, twice, atol=1e-3)


def test_a_kernel_of_zeros_gives_zero():
    assert not solve_ridge(np.zeros((4, 4)), np.ones((4, 2)), 0.0).any()


@pytest.mark.parametrize("ridge", [-1e-6, float("nan"), float("inf")])
def test_refuses_a_bad_ridge(sets, ridge):
    x_s, y_s, _ = sets
    with pytest.raises(RequestError, match="ridge"):
        krr_fit(FEATURES["fc-ntk"], x_s, y_s, ridge)


def test_refuses_a_support_that_is_not_finite(sets):
    x_s, y_s, _ = sets
    x_s = x_s.copy()
    x_s[0, 0, 0, 0] = np.nan
    with pytest.raises(RequestError, match="finite"):
        krr_fit(FEATURES["fc-ntk"], x_s, y_s, 1e-3)


def test_refuses_labels_of_another_number(sets):
    x_s, y_s, _ = sets
    with pytest.raises((RequestError, TypeError)):  # the types say so first where they are checked
        krr_fit(FEATURES["fc-ntk"], x_s, y_s[:-1], 1e-3)


@pytest.mark.parametrize("F", [24, 25])
def test_full_regression_is_the_primal_formula(encoded, F):
    x, c = encoded[0][:300], encoded[1][:300].copy()
    c[::17] = -1
    φ, ridge = tanh_features(F), 1e-2
    full = krr_full(φ, x, c, 10, ridge, chunk=64)
    Φ = np.asarray(φ(jnp.asarray(x[c >= 0])), np.float64)
    G = Φ.T @ Φ
    W = np.linalg.solve(G + ridge * np.trace(G) / F * np.eye(F), Φ.T @ centred_onehot(c[c >= 0], 10))
    np.testing.assert_allclose(full.regression.coefficients, W, rtol=1e-4, atol=1e-6)
    assert full.records == full.available == (c >= 0).sum()


def test_full_regression_learns(encoded):
    x, c = encoded
    full = krr_full(FEATURES["scattering"], x[:1200], c[:1200], 10, 1e-4)
    assert (full.regression.predict(x[1200:]).argmax(1) == c[1200:]).mean() > 0.96


def test_full_regression_with_an_infinite_kernel_says_what_it_used(encoded):
    x, c = encoded[0][:200], encoded[1][:200].copy()
    c[:20] = -1
    full = krr_full(FEATURES["fc-ntk"], x, c, 10, 1e-4, limit=50, seed=3)
    assert (full.records, full.available) == (50, 180)
    again = krr_full(FEATURES["fc-ntk"], x, c, 10, 1e-4, limit=50, seed=3)
    np.testing.assert_array_equal(full.regression.points, again.regression.points)
    whole = krr_full(FEATURES["fc-ntk"], x, c, 10, 1e-4)
    assert (whole.records, whole.available) == (180, 180)


def test_full_regression_needs_a_record(encoded):
    x, _ = encoded
    with pytest.raises(RequestError, match="no record"):
        krr_full(FEATURES["tanh"], x[:5], np.full(5, -1), 10, 1e-4)


@given(st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_packed_diagonal_is_lapacks(F):
    packed = lapack.dtrttf(np.diag(np.arange(1.0, F + 1)), uplo="L")[0]
    np.testing.assert_array_equal(packed[packed_diagonal(F)], np.arange(1, F + 1))


@given(F=st.integers(1, 9), n=st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_normal_equations_are_finite_where_they_are_singular(F, n):
    rng = np.random.default_rng(F * 100 + n)
    equations = NormalEquations(F, 2)
    equations.add(rng.normal(size=(n, F)).astype(np.float32), rng.normal(size=(n, 2)))
    assert np.isfinite(equations.solve(0.0)).all()


def test_features_are_arguments_of_what_is_compiled():
    """Two maps of one shape give two results: neither is a constant of the other's compilation."""
    x = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    y = centred_onehot(np.arange(5), 5)
    one = tanh_features(8)
    two = eqx.tree_at(lambda φ: φ.weights, one, -2 * one.weights)
    assert not np.allclose(krr_fit(one, x, y, 0.1), krr_fit(two, x, y, 0.1))
