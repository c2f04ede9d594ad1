"""Property 2. A record's clipped contribution is the same whatever else is in the batch, and whatever the chunk."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from limbeck.measure.clipping import clipped_sum
from tests.guarantee.problem import (
    FAMILIES,
    NOISES,
    NULL,
    C,
    data,
    person_schema,
    poisoned,
    query,
    quickly,
    records,
    total,
)

compiled = eqx.filter_jit(clipped_sum)


def contribution(X, y, family="fc-ntk", **measured):
    """What the last record adds to the sum, all else equal."""
    whole = total(records(X, y, family), query(family), **measured)
    return whole - total(records(X, [*y[:-1], NULL], family), query(family), **measured)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_contribution_does_not_depend_on_the_other_records(family, noise):
    X, y = data()
    alone = contribution(X, [*[NULL] * 3, y[-1]], family, noise=noise)
    assert np.linalg.norm(alone) > 0.01 * C
    others = {
        "random": data(3, 7)[0],
        "black": np.zeros((3, 4, 4)),
        "white": np.ones((3, 4, 4)),
        "NaN": X[:3] * np.nan,
    }
    for kind, rest in others.items():
        beside = contribution(np.concatenate([rest, X[-1:]]), y, family, noise=noise)
        assert np.allclose(beside, alone, atol=1e-5 * C), kind


@pytest.mark.parametrize("family", FAMILIES)
def test_a_poisoned_record_leaves_the_others_as_they_are(family):
    X, y = data()
    clean = contribution(X, y, family)
    for value in (np.nan, np.inf, 1e38, 1e18):
        whole = total(poisoned(value, X, y, family), query(family))
        beside = whole - total(poisoned(value, X, [*y[:-1], NULL], family), query(family))
        assert np.allclose(beside, clean, atol=1e-5 * C), value


@pytest.mark.parametrize(
    ("family", "noise", "chunks"),
    [("fc-ntk", "normal", (1, 3)), ("fc-ntk", "discrete", (1, 3)), ("scattering", "normal", (3,))],
)
def test_the_chunk_changes_nothing_but_rounding(family, noise, chunks):
    X, y = data()
    whole = total(records(X, y, family), query(family), noise=noise, chunk=64)
    for chunk in chunks:
        assert np.allclose(total(records(X, y, family), query(family), noise=noise, chunk=chunk), whole, atol=1e-5 * C)


def test_a_persons_contribution_does_not_depend_on_other_persons():
    X, y = data(8)

    def of_p(X):
        made = [
            records(X, labels, units=list("ppqqrrss"), schema=person_schema(2)) for labels in (y, [NULL] * 2 + y[2:])
        ]
        return total(made[0], query()) - total(made[1], query())

    other = np.concatenate([X[:2], data(6, 9)[0]])
    assert np.allclose(of_p(X), of_p(other), atol=1e-5 * C)


@given(arrays(np.float32, (5, 3, 2), elements=st.floats(-1e3, 1e3, width=32)), st.sampled_from([0.01, 100.0]))
@settings(parent=quickly, max_examples=50)
def test_a_clipped_sum_is_the_sum_of_what_each_unit_gives_alone(g, clip):
    together = np.asarray(compiled(jnp.asarray(g), clip))
    alone = sum(np.asarray(compiled(jnp.asarray(g[i : i + 1]), clip)) for i in range(5))
    assert np.allclose(together, alone, atol=1e-4 * clip)
