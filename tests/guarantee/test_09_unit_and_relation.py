"""Property 9. Whose presence is hidden, and against what, is explicit in the plan, the statement and the release."""

import json

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.measure import Records
from limbeck.privacy.plan import FullBatch, Plan
from tests.guarantee.problem import (
    NULL,
    SCHEMA,
    C,
    Inputs,
    data,
    null_records,
    person_schema,
    plan,
    query,
    records,
    tiny,
    total,
)


def test_one_record_against_a_null_one_by_default():
    assert (Plan.model_fields["unit"].default, Plan.model_fields["relation"].default) == ("record", "zero-out")
    assert (SCHEMA.unit, SCHEMA.rows_per_unit) == ("record", 1)


@pytest.mark.parametrize(("unit", "relation"), [("record", "replace-one"), ("person", "zero-out")])
def test_unit_and_relation_are_stated_wherever_epsilon_is(unit, relation, tmp_path):
    model = tiny(relation=relation)
    model.schema = SCHEMA if unit == "record" else person_schema(2)
    model.fit_resample(*data(8 if unit == "person" else 4), units=list("aabbccdd") if unit == "person" else None)
    folder = model.release_.save(tmp_path / "release")
    certificate = json.loads((folder / "certificate.json").read_text())
    assert (certificate["unit"], certificate["relation"]) == (unit, relation)
    assert certificate["units"] == 4
    for text in (str(model.guarantee_), certificate["statement"], (folder / "README.md").read_text()):
        assert f"per {unit}, {relation}" in text


@pytest.mark.parametrize("relation", ["add-remove", "", None])
def test_no_other_relation_can_be_planned(relation):
    with pytest.raises(ValueError, match="relation"):
        plan(FullBatch(n=5), relation=relation)


def test_a_null_record_keeps_its_place_in_n():
    X, y = data(4)
    assert records(X, [y[0], NULL, None, y[3]]).n == 4
    assert null_records(4).n == 4


def test_replacing_a_record_moves_the_sum_by_at_most_2C_and_is_priced_so():
    X, y = data()
    one, other = (total(records([image, *X[1:]], y), query()) for image in (np.zeros((4, 4)), np.ones((4, 4))))
    assert np.linalg.norm(one - other) <= 2 * C * (1 + 1e-6)
    sigma = {
        relation: plan(FullBatch(n=100), steps=5, sigma=1.0, relation=relation).calibrated(1.0).measurements[0].sigma
        for relation in ("zero-out", "replace-one")
    }
    assert sigma["replace-one"] == pytest.approx(2 * sigma["zero-out"], rel=2e-3)


def test_a_person_is_clipped_as_one_unit():
    X, y = data(8)
    one_person = records(np.ones_like(X), y, units=["p"] * 8, schema=person_schema(8))
    assert one_person.n == 1
    assert np.linalg.norm(total(one_person, Inputs())) == pytest.approx(C, rel=2e-3)


def test_rows_beyond_the_declared_number_are_left_out_by_that_persons_rows_alone():
    X, y = data(20)
    kept, _ = records(X, y, units=["p", "q"] * 10, schema=person_schema(3)).batch(np.array([0, 1]))
    alone, _ = records(X, y).batch(np.arange(20))
    assert np.array_equal(kept[0], alone[[0, 2, 4], 0])
    assert np.array_equal(kept[1], alone[[1, 3, 5], 0])


def test_persons_need_to_be_named():
    with pytest.raises(RequestError, match="unit label"):
        Records(person_schema(2), *data(4))
