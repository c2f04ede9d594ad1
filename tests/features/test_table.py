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


def one_column(x, column):
    """The cells of one column as they are defined, a row at a time."""
    if not column.bins:
        return x[:, column.start : column.stop]
    cells = np.zeros((len(x), column.number))
    for i, row in enumerate(x):
        place = min(max(int(np.floor((row[column.start] + 1) / 2 * column.bins)), 0), column.bins - 1)
        missing = column.indicator is not None and row[column.indicator] > 0.5
        cells[i, column.bins if missing else place] = 1
    return cells


@pytest.mark.parametrize(
    "columns",
    [
        (Cells(0, 1, 4),),
        (Cells(0, 1, 5, indicator=1), Cells(2, 5), Cells(5, 6, 2), Cells(6, 7), Cells(7, 8, 1, indicator=8)),
    ],
)
def test_marginals_are_those_of_each_column_by_itself(columns):
    x = np.random.default_rng(0).choice([-1.0, -0.5, 0.0, 0.3, 1.0, 7.0], (40, 9)).astype(np.float32)
    expected = np.concatenate([one_column(x, column) for column in columns], axis=1) / np.sqrt(len(columns))
    assert np.allclose(Marginals(9, columns)(jnp.asarray(x)), expected, atol=1e-6)


def test_a_program_for_two_thousand_columns_is_no_longer_than_for_two():
    def operations(k):
        ψ = Marginals(2 * k, tuple(Cells(2 * i, 2 * i + 1, 3, 2 * i + 1) for i in range(k)))
        return len(jax.make_jaxpr(ψ.__call__)(rows(4, 2 * k)).eqns)

    assert operations(2000) == operations(2)
