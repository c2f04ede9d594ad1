"""Class sums: what a record adds, at most and whatever it holds; and that they are what a slow sum gives."""

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import Embeddings, Pixels
from limbeck.features.embedding import CONSTANT
from limbeck.measure import ClassSums, Records
from limbeck.privacy.plan import ROUNDING
from tests.guarantee.problem import NULL, QUIET, SCHEMA, Poisoned, data, person_schema, total

SHAPE = (4, 4, 1)
EMBEDDING = Embeddings(SHAPE, 2, width=3, depth=2)[1]
QUERY = ClassSums(EMBEDDING, SHAPE)


def records(X, y, units=None, schema=SCHEMA, kind=Records) -> Records:
    made = kind(schema, X, y, units)
    made.prepare(Pixels(SHAPE))
    return made


def summed(of: Records, **changes) -> np.ndarray:
    return total(of, QUERY, clip=1.0, sigma=QUIET, **changes)


def embedded(X) -> np.ndarray:
    return np.asarray(EMBEDDING(jnp.asarray(2 * X[..., None] - 1, jnp.float32)))


def test_sums_are_those_of_a_loop_and_count_their_classes():
    X, y = data(7)
    expected = np.zeros((EMBEDDING.dim, 2))
    for ψ, label in zip(embedded(X), y, strict=True):
        expected[:, "ab".index(label)] += ψ
    found = summed(records(X, y))
    assert np.allclose(found, ROUNDING * expected, atol=1e-5)
    assert np.allclose(found[-1] / (ROUNDING * CONSTANT), [4, 3], atol=1e-4)


def test_a_record_adds_a_vector_of_norm_one_to_its_own_class():
    X, y = data()
    added = summed(records(X, y)) - summed(records(X, [*y[:-1], NULL]))
    assert np.linalg.norm(added) == pytest.approx(ROUNDING, abs=1e-5)
    assert np.allclose(added[:, 0], 0, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38, -3e38, 1e-45, 0.0, 1.0])
def test_whatever_a_record_holds_it_adds_at_most_one(value):
    X, y = data()
    made = Poisoned(SCHEMA, X, y)
    made.value = value
    made.prepare(Pixels(SHAPE))
    added = summed(made) - summed(records(X, [NULL, *y[1:]]))
    assert np.isfinite(added).all()
    assert np.linalg.norm(added) <= 1


def test_a_persons_rows_are_one_contribution():
    X, y = data()
    schema = person_schema(4)
    alone = summed(records(X, y, units=["p"] * 4, schema=schema))
    assert np.linalg.norm(alone) == pytest.approx(ROUNDING, abs=1e-5)


def test_chunks_change_nothing_but_rounding():
    X, y = data(9)
    assert np.allclose(summed(records(X, y), chunk=2), summed(records(X, y), chunk=64), atol=1e-5)
