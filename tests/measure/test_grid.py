"""On the grid a sum is exact, and a contribution is within C in whole numbers."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest, norm

from limbeck.distill import DPKIP
from limbeck.measure import Session, grid
from limbeck.measure.clipping import Outer, clipped_sum, explicit
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from tests.measure.test_session import POISON, SCHEMA, Inputs, records


@given(arrays(np.float32, (3, 7), elements=POISON.map(np.float32)), st.sampled_from([1e-6, 0.1, 1.0, 100.0]))
@settings(max_examples=200, deadline=None)
def test_after_rounding_the_norm_is_at_most_C(g, clip):
    k = np.asarray(grid.rounded(jnp.asarray(g), clip))
    assert (np.square(k.astype(object)).sum(axis=1) <= grid.C_STEPS**2).all()
    assert (grid.exact_sum(k) == k.sum(axis=0)).all()  # so nothing is dropped by the last check


def test_the_last_check_drops_what_is_too_long():
    k = np.array([[grid.C_STEPS, 1], [3, 4], [2**31 - 1, 2**31 - 1]], np.int32)
    assert grid.exact_sum(k).tolist() == [3, 4]


def test_a_sum_on_the_grid_is_the_clipped_sum():
    g = jnp.asarray(np.random.default_rng(0).normal(size=(50, 4, 9)), jnp.float32)
    on_grid = grid.in_units(grid.exact_sum(np.asarray(grid.rounded(g, 2.0))), 2.0)
    np.testing.assert_allclose(on_grid, clipped_sum(g, 2.0), atol=1e-3)


def test_outer_products_written_out():
    a, b = jnp.arange(6.0).reshape(2, 3), jnp.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(explicit(Outer(a, b))[1], np.outer(a[1], b[1]))


@pytest.mark.parametrize("sampling", [FullBatch(n=20), Poisson(n=20, q=0.5, cap=20)])
def test_a_session_adds_discrete_noise_to_exact_sums(sampling):
    def answers(sigma, steps):
        measurement = Measurement(name="g", sampling=sampling, steps=steps, clip=1.0, sigma=sigma, noise="discrete")
        session = Session(records(), Plan(measurements=(measurement,), delta=1e-5), chunk=7)
        return np.stack([session.ask("g", lambda: Inputs()) for _ in range(steps)]) * sampling.expected

    noise = answers(50.0, 40) / 50.0
    assert kstest(noise.ravel() - noise.mean(axis=0).ravel().mean(), norm.cdf).pvalue > 1e-6
    if sampling.kind == "full":
        quiet = answers(1e-6, 2) * grid.C_STEPS
        np.testing.assert_allclose(quiet, np.round(quiet), atol=0.6)
        np.testing.assert_allclose(quiet[0], quiet[1], atol=20)  # sigma is rounded up to a whole grid step


def test_dpkip_with_discrete_noise():
    rng = np.random.default_rng(0)
    model = DPKIP(SCHEMA, epsilon=2, per_class=1, features="fc-ntk", batch=20, epochs=1, noise="discrete")
    x, _ = model.fit_resample(rng.uniform(size=(100, 4, 4)), ["a", "b"] * 50)
    assert np.isfinite(x).all()
    assert model.plan_.accountant == "RDP"
    assert 0.99 * 2 <= model.plan_.epsilon <= 2
