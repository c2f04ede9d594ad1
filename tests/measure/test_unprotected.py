"""What a session without a guarantee gives by class; one with a plan gives none of it."""

import numpy as np
import pytest

from limbeck.features import FCNTK
from limbeck.measure import Records, Session, Unprotected
from limbeck.privacy.plan import FullBatch
from limbeck.privacy.stream import Stream
from tests.guarantee.problem import NULL, SCHEMA, Inputs, data, person_schema, plan

LABELS = ["a"] * 5 + ["b"] * 2 + [NULL] * 3


def session(X, y, batch: int, units=None, schema=SCHEMA, chunk: int = 2, seed: int = 1) -> Session:
    records = Records(schema, X, y, units)
    records.prepare(FCNTK())
    return Session(records, Unprotected(records.n, batch), stream=Stream(seed), chunk=chunk)


def flat(X) -> np.ndarray:
    return X.reshape(len(X), -1)


@pytest.mark.parametrize("chunk", [1, 2, 64])
def test_sums_of_each_class_are_those_of_a_loop(chunk):
    """In chunks or whole; a class's null records and the other class's add nothing."""
    X, _ = data(10)
    found = session(X, LABELS, 10, chunk=chunk).class_sums(Inputs)
    assert np.allclose(found, [flat(X)[:5].sum(axis=0), flat(X)[5:7].sum(axis=0)], atol=1e-5)


def test_a_batch_is_of_each_class_and_new_every_time():
    X = np.zeros((10, 4, 4))
    X[np.arange(10), np.arange(10) // 4, np.arange(10) % 4] = 1  # a pixel of its own: sums say who was drawn
    drawing = session(X, LABELS, 3)
    drawn = [drawing.class_sums(Inputs).round(4) for _ in range(20)]
    for of_a, of_b in drawn:
        assert of_a[:5].sum() == of_a.sum() == 3
        assert np.array_equal(np.flatnonzero(of_b), [5, 6])
    assert len({of_a.tobytes() for of_a, _ in drawn}) > 3


def test_a_class_without_records_adds_nothing():
    X, _ = data(10)
    found = session(X, ["a"] * 10, 4).class_sums(Inputs)
    assert found.shape == (2, 16)
    assert not found[1].any()


def test_real_records_are_of_the_class_and_as_they_were_given():
    X, _ = data(10)
    drawing = session(X, LABELS, 1)
    every = drawing.real(0, 9)
    assert np.allclose((every + 1) / 2, flat(X)[:5], atol=1e-6)
    some = drawing.real(0, 3)
    assert some.shape == (3, 16)
    assert all((np.abs(one - every).max(axis=1) < 1e-6).sum() == 1 for one in some)
    assert drawing.real(1, 3).shape == (2, 16)
    assert session(X, ["a"] * 10, 4).real(1, 3).shape == (0, 16)


def test_of_a_person_one_record_of_the_class_is_given():
    X, _ = data(6)
    drawing = session(X, ["b", "a", "a", NULL, "b", "b"], 9, units=list("ppqqrr"), schema=person_schema(2))
    assert np.allclose((drawing.real(0, 9) + 1) / 2, flat(X)[[1, 2]], atol=1e-6)
    assert np.allclose((drawing.real(1, 9) + 1) / 2, flat(X)[[0, 4]], atol=1e-6)


@pytest.mark.parametrize("ask", [lambda s: s.class_sums(Inputs), lambda s: s.real(0, 1)], ids=["sums", "records"])
def test_a_session_with_a_plan_refuses(ask):
    records = Records(SCHEMA, *data())
    records.prepare(FCNTK())
    with pytest.raises(RuntimeError, match="plan"):
        ask(Session(records, plan(FullBatch(n=4))))
