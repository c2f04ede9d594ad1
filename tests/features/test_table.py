"""What a linear model sees of a row of a table."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.errors import RequestError
from limbeck.features import Cells, Marginals, TableFeatures, from_config, named
from limbeck.features.table import hats, knots


def rows(n, d, seed=0):
    return jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, (n, d)), jnp.float32)


@pytest.mark.parametrize("numbers", [(), (0,), (0, 2, 3)])
def test_every_row_has_unit_norm_and_its_own_features(numbers):
    φ = TableFeatures.of(4, 3, numbers, width=16)
    x = rows(6, 4)
    assert φ(x).shape == (6, φ.dim)
    assert np.allclose(jnp.linalg.norm(φ(x), axis=1), 1, atol=1e-5)
    assert np.allclose(φ(x)[2], φ(x[2:3])[0], atol=1e-6)
    assert np.isfinite(jax.grad(lambda x: φ(x).sum())(x)).all()


def test_the_configuration_goes_through_json():
    φ = TableFeatures.of(5, 2, (1,), width=8, seed=3)
    again = from_config(json.loads(json.dumps(φ.config())), (5,))
    assert again.config() == φ.config()
    assert np.array_equal(again(rows(3, 5)), φ(rows(3, 5)))
    ψ = Marginals(5, (Cells(0, 1, 4), Cells(1, 4), Cells(4, 5)))
    assert from_config(json.loads(json.dumps(ψ.config())), (5,)) == ψ
    with pytest.raises(RequestError):
        named("table", (5,))


@settings(deadline=None)
@given(st.floats(-1, 1, width=32), st.integers(3, 16))
def test_hats_sum_to_one_and_follow_any_line(t, number):
    h = np.asarray(hats(jnp.full((1, 1), t), number))[0]
    assert h.min() >= 0
    assert np.isclose(h.sum(), 1, atol=1e-5)
    assert np.isclose(h @ np.linspace(-1, 1, number), t, atol=1e-5)


def test_many_numbers_have_few_knots():
    assert [knots(n) for n in (0, 1, 128, 600, 1000)] == [16, 16, 16, 3, 0]
    assert TableFeatures.of(2000, 2000, range(2000)).dim < 4000


def test_marginals_count_each_column_once():
    x = jnp.asarray([[-1.0, 0, 1, 0, 0], [0.99, 0, 0, 1, 0], [0.0, 1, 0, 1, 1]])
    ψ = Marginals(5, (Cells(0, 1, 4, indicator=1), Cells(2, 5)))
    counts = np.asarray(ψ(x)) * np.sqrt(2)
    assert np.allclose(counts[:, :5], np.eye(5)[[0, 3, 4]])
    assert np.allclose(counts[:2, 5:], np.eye(3)[[0, 1]])
    assert np.allclose(np.linalg.norm(ψ(x[:2]), axis=1), 1)
