"""What a session answers when it is right. What it must never do: tests/guarantee."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jaxtyping import Array

from limbeck.data import ImageSchema
from limbeck.features import named
from limbeck.measure import Records, Session, SupportGradient
from limbeck.measure.clipping import Outer, clipped_sum
from limbeck.privacy.plan import FullBatch, Measurement, Plan

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1)


class Inputs(eqx.Module):
    """A query whose contribution is the unit's own input: the plainest mechanism there is."""

    scale: float = 1.0

    def decoded(self, total: Array) -> Array:
        return total

    def contributions(self, inputs: Array, y: Array) -> Array:
        return self.scale * jnp.where(jnp.isnan(y[..., :1]), 0.0, inputs).sum(axis=1)

    def mean(self, inputs: Array, y: Array):
        return inputs.mean((0, 1))


def records(n=20, rng=0, schema=SCHEMA, units=None):
    X = np.random.default_rng(rng).uniform(size=(n, 4, 4))
    made = Records(schema, X, ["a", "b"] * (n // 2), units)
    made.prepare(named("fc-ntk", SCHEMA.shape))
    return made


def plan(n=20, steps=3, clip=1.0, sigma=1e-9, sampling=None):
    measurement = Measurement(name="g", sampling=sampling or FullBatch(n=n), steps=steps, clip=clip, sigma=sigma)
    return Plan(measurements=(measurement,), delta=1e-5)


POISON = st.sampled_from([0.0, 1e-45, 1e-30, 1.0, -1.0, 1e18, 1e38, 3e38, np.nan, np.inf, -np.inf])


def test_an_outer_contribution_equals_its_product():
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((7, 3), (7, 5)))
    whole = clipped_sum({"outer": Outer(a, b), "rest": a}, 0.7)
    explicit = clipped_sum({"outer": a[:, :, None] * b[:, None, :], "rest": a}, 0.7)
    assert all(np.allclose(whole[k], explicit[k], atol=1e-6) for k in whole)


def test_small_contributions_are_kept_as_they_are():
    g = jnp.asarray([[0.3, 0.4]])
    assert np.allclose(clipped_sum(g, 1.0), g[0], rtol=2e-3)
    assert np.linalg.norm(clipped_sum(10 * g, 1.0)) == pytest.approx(1.0, rel=2e-3)


def test_the_answer_is_the_clipped_sum_over_the_expected_batch():
    data = records()
    answer = Session(data, plan(clip=1.0)).ask("g", Inputs)
    x, _ = data.batch(np.arange(20))
    norms = np.linalg.norm(x[:, 0], axis=1, keepdims=True)
    expected = (x[:, 0] * np.minimum(1, 1 / norms)).sum(0) / 20
    assert np.allclose(answer, expected, rtol=5e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["fc-ntk", "scattering"])
def test_the_real_query_goes_through_a_session(name):
    features = named(name, SCHEMA.shape)
    data = records()
    data.prepare(features)
    x_s = jnp.asarray(np.random.default_rng(1).normal(size=(4, 4, 4, 1)), jnp.float32)
    y_s = jnp.asarray([[0.5, -0.5], [-0.5, 0.5]] * 2)
    query = SupportGradient.at(features, x_s, y_s, 1e-2)
    answer = Session(data, plan(clip=1e9, sigma=1e-18), chunk=7).ask("g", lambda: query)
    inputs, y = data.batch(np.arange(20))
    expected, _ = eqx.filter_jit(lambda q, *batch: q.mean(*batch))(query, jnp.asarray(inputs), jnp.asarray(y))
    assert np.allclose(answer, expected, rtol=5e-3, atol=1e-6)
