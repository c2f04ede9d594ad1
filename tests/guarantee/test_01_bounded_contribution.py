"""Property 1. Whatever a record holds, its clipped contribution is finite and has norm at most C."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from limbeck.measure.clipping import Outer, clipped_sum
from tests.guarantee.problem import (
    FAMILIES,
    NOISES,
    NULL,
    POISONS,
    C,
    data,
    features,
    person_schema,
    poisoned,
    query,
    quickly,
    records,
    total,
)

NUMBERS = st.sampled_from(POISONS).map(np.float32) | st.floats(width=32)
compiled = eqx.filter_jit(clipped_sum)
WIDTH = {"fc-ntk": 16, "scattering": features("scattering").dim}


def is_bounded(contribution, clip=C):
    return np.isfinite(contribution).all() and np.linalg.norm(contribution) <= clip * (1 + 1e-6)


@pytest.mark.parametrize("support", ["random", "same", "zero"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_poisoned_record_moves_the_sum_by_at_most_C(family, noise, support):
    X, y = data()
    without = total(records(X, [NULL, *y[1:]], family), query(family, support), noise=noise)
    for value in POISONS:
        moved = total(poisoned(value, X, y, family), query(family, support), noise=noise) - without
        assert is_bounded(moved), value


@pytest.mark.parametrize("family", FAMILIES)
@given(numbers=st.data(), noise=st.sampled_from(NOISES))
@settings(parent=quickly)
def test_any_numbers_at_all_move_the_sum_by_at_most_C(family, numbers, noise):
    X, y = data()
    value = numbers.draw(arrays(np.float32, WIDTH[family], elements=NUMBERS))
    without = total(records(X, [NULL, *y[1:]], family), query(family), noise=noise)
    assert is_bounded(total(poisoned(value, X, y, family), query(family), noise=noise) - without)


@pytest.mark.parametrize("raw", [np.nan, np.inf, 1e38, -1e38, 5e-324, 0.0])
def test_a_raw_record_moves_the_sum_by_at_most_C(raw):
    X, y = data()
    without = total(records(X, [NULL, *y[1:]]), query())
    X[0] = raw
    assert is_bounded(total(records(X, y), query()) - without)


@pytest.mark.parametrize("noise", NOISES)
def test_all_rows_of_a_person_together_move_the_sum_by_at_most_C(noise):
    X, y = data(8)
    people, schema = list("ppqqrrss"), person_schema(2)
    without = total(records(X, [NULL] * 2 + y[2:], units=people, schema=schema), query(), noise=noise, clip=1e-3)
    with_p = total(records(X, y, units=people, schema=schema), query(), noise=noise, clip=1e-3)
    assert 0.9e-3 < np.linalg.norm(with_p - without) <= 1e-3 * (1 + 1e-6)


@given(arrays(np.float32, (1, 6), elements=NUMBERS), st.sampled_from([1e-6, 1.0, 100.0]))
@settings(parent=quickly, max_examples=100)
def test_clipping_bounds_every_array(g, clip):
    clipped = np.asarray(compiled(jnp.asarray(g), clip), np.float64)
    assert is_bounded(clipped, clip)
    assert np.isfinite(g).all() or not clipped.any()


@given(arrays(np.float32, (1, 8), elements=NUMBERS), st.sampled_from([1e-6, 1.0, 100.0]))
@settings(parent=quickly, max_examples=100)
def test_clipping_bounds_every_outer_product(v, clip):
    one = jnp.asarray(v)
    assert is_bounded(np.asarray(compiled(Outer(one[:, :5], one[:, 5:]), clip), np.float64), clip)
