"""Bounded contributions, isolation, honest noise and a budget that ends: the session's side of the promise."""

import pickle

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jaxtyping import Array
from scipy.stats import kstest

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.features import named
from limbeck.measure import Records, Session, SupportGradient
from limbeck.measure.clipping import Outer, clipped_sum
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from limbeck.privacy.stream import Stream

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


@given(arrays(np.float32, (1, 6), elements=POISON.map(np.float32)), st.sampled_from([1e-6, 0.1, 1.0, 100.0]))
@settings(max_examples=200, deadline=None)
def test_a_contribution_is_finite_and_at_most_C(g, clip):
    clipped = np.asarray(clipped_sum(jnp.asarray(g), clip), np.float64)
    assert np.isfinite(clipped).all()
    assert np.linalg.norm(clipped) <= clip
    if not np.isfinite(g).all():
        assert not clipped.any()


@given(arrays(np.float32, (3, 8), elements=POISON.map(np.float32)), st.sampled_from([1e-6, 0.1, 100.0]))
@settings(max_examples=200, deadline=None)
def test_an_outer_contribution_is_bounded_in_the_same_way(v, clip):
    for t in range(3):
        one = jnp.asarray(v[t : t + 1])
        clipped = np.asarray(clipped_sum(Outer(one[:, :5], one[:, 5:]), clip), np.float64)
        assert np.isfinite(clipped).all()
        assert np.linalg.norm(clipped) <= clip


def test_an_outer_contribution_equals_its_product():
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((7, 3), (7, 5)))
    whole = clipped_sum({"outer": Outer(a, b), "rest": a}, 0.7)
    explicit = clipped_sum({"outer": a[:, :, None] * b[:, None, :], "rest": a}, 0.7)
    assert all(np.allclose(whole[k], explicit[k], atol=1e-6) for k in whole)


@given(arrays(np.float32, (5, 3, 2), elements=st.floats(-1e3, 1e3, width=32)), st.floats(0.01, 100))
@settings(max_examples=50, deadline=None)
def test_a_unit_is_clipped_whatever_else_is_in_the_batch(g, clip):
    together = np.asarray(clipped_sum(jnp.asarray(g), clip))
    alone = sum(np.asarray(clipped_sum(jnp.asarray(g[i : i + 1]), clip)) for i in range(5))
    assert np.allclose(together, alone, atol=1e-4 * clip)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e38])
def test_one_poisoned_unit_leaves_the_others_as_they_are(poison):
    g = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    bad = g.copy()
    bad[2, 3] = poison
    without = np.delete(g, 2, axis=0)
    difference = np.asarray(clipped_sum(jnp.asarray(bad), 1.0)) - np.asarray(clipped_sum(jnp.asarray(without), 1.0))
    assert np.linalg.norm(difference) <= 1.0


def test_small_contributions_are_kept_as_they_are():
    g = jnp.asarray([[0.3, 0.4]])
    assert np.allclose(clipped_sum(g, 1.0), g[0], rtol=2e-3)
    assert np.linalg.norm(clipped_sum(10 * g, 1.0)) == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("chunk", [1, 3, 20, 64])
def test_the_chunk_changes_nothing_but_rounding(chunk):
    data = records()
    whole = Session(data, plan(), chunk=20).ask("g", Inputs)
    assert np.allclose(Session(data, plan(), chunk=chunk).ask("g", Inputs), whole, atol=1e-6)


def test_the_answer_is_the_clipped_sum_over_the_expected_batch():
    data = records()
    answer = Session(data, plan(clip=1.0)).ask("g", Inputs)
    x, _ = data.batch(np.arange(20))
    norms = np.linalg.norm(x[:, 0], axis=1, keepdims=True)
    expected = (x[:, 0] * np.minimum(1, 1 / norms)).sum(0) / 20
    assert np.allclose(answer, expected, rtol=5e-3, atol=1e-4)


def test_an_empty_batch_still_carries_noise():
    sampling = Poisson(n=20, q=1e-12, cap=5)
    answer = Session(records(), plan(sampling=sampling, sigma=1.0)).ask("g", Inputs)
    assert np.isfinite(answer).all()
    assert answer.any()


def test_noise_has_the_promised_scale_and_law():
    data = records()
    session = Session(data, plan(steps=2000, clip=0.5, sigma=3.0))
    answers = np.concatenate([session.ask("g", lambda: Inputs(0.0)) for _ in range(1000)])
    z = answers * 20 / (3.0 * 0.5)
    assert kstest(z, "norm").pvalue > 1e-4


def test_noise_is_fresh_each_time():
    session = Session(records(), plan(sigma=1.0))
    assert not np.array_equal(session.ask("g", Inputs), session.ask("g", Inputs))


def test_no_more_answers_than_the_plan_holds():
    session = Session(records(), plan(steps=2))
    session.ask("g", Inputs)
    session.ask("g", Inputs)
    with pytest.raises(RuntimeError, match="all have been given"):
        session.ask("g", Inputs)


def test_with_contributions_zeroed_every_dataset_gives_the_same_bits():
    def run(rng):
        session = Session(records(rng=rng), plan(sigma=1.0), stream=Stream(seed=4))
        return [session.ask("g", lambda: Inputs(0.0)) for _ in range(3)]

    assert all(np.array_equal(a, b) for a, b in zip(run(1), run(2), strict=True))


def test_null_records_keep_their_place_and_add_nothing():
    X = np.random.default_rng(0).uniform(size=(4, 4, 4))
    X[1, 0, 0] = np.nan
    data = Records(SCHEMA, X, ["a", "b", "no such class", "a"])
    data.prepare(named("fc-ntk", SCHEMA.shape))
    assert data.n == 4
    inputs, y = data.batch(np.array([0, 1, 2, 3, -1]))
    assert np.isnan(y[[1, 2, 4]]).all()
    assert not np.isnan(y[[0, 3]]).any()
    assert not inputs[[1, 2, 4]].any()
    assert inputs[[0, 3]].any()


def person_schema(k):
    return ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1, unit="person", rows_per_unit=k)


def test_a_person_is_one_unit_and_clipped_as_one():
    people = ["p", "q"] * 10
    data = records(schema=person_schema(10), units=people)
    assert data.n == 2
    answer = Session(data, plan(n=2, clip=1e-3)).ask("g", lambda: Inputs(1e3))
    assert np.linalg.norm(answer) * 2 <= 2e-3


def test_which_rows_of_a_person_are_kept_depends_on_that_person_alone():
    data = records(schema=person_schema(3), units=["p", "q"] * 10)
    kept, _ = data.batch(np.array([0, 1]))
    single = records()
    rows, _ = single.batch(np.arange(20))
    assert np.array_equal(kept[0], rows[[0, 2, 4], 0])
    assert np.array_equal(kept[1], rows[[1, 3, 5], 0])


def test_persons_need_units():
    with pytest.raises(RequestError, match="unit label"):
        records(schema=person_schema(2))


def test_private_records_are_not_shown_or_pickled():
    data = records()
    assert repr(data) == "Records(20 units of record, private)"
    with pytest.raises(TypeError):
        pickle.dumps(data)


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
