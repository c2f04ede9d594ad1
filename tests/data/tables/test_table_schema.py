"""What a person can declare about a table, and how everything wrong with it is said at once."""

import json

import numpy as np
import pytest

from limbeck.data import ImageSchema, TableSchema, load_schema
from limbeck.errors import RequestError
from tests.data.tables.schemas import COLUMNS, SCHEMA


def test_a_schema_is_the_same_after_json(tmp_path):
    SCHEMA.to_json(tmp_path / "s.json")
    again = load_schema(tmp_path / "s.json")
    assert again == SCHEMA
    assert again.digest() == SCHEMA.digest()
    assert TableSchema.from_json(tmp_path / "s.json") == SCHEMA


def test_the_kind_says_which_schema_it_is(tmp_path):
    image = {"shape": [2, 2], "classes": [0, 1], "low": 0, "high": 1}
    for fields in (image, image | {"kind": "image"}):
        (tmp_path / "s.json").write_text(json.dumps(fields))
        assert isinstance(load_schema(tmp_path / "s.json"), ImageSchema)
    (tmp_path / "s.json").write_text(json.dumps({"columns": COLUMNS}))
    assert isinstance(load_schema(tmp_path / "s.json"), TableSchema)
    (tmp_path / "s.json").write_text(json.dumps({"kind": "film"}))
    with pytest.raises(RequestError, match="image or table"):
        load_schema(tmp_path / "s.json")


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_what_is_no_schema_is_refused(tmp_path, text):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(RequestError):
        load_schema(tmp_path / "s.json")


def test_every_problem_is_listed_at_once():
    columns = [
        {"name": "a", "kind": "numerical", "low": 3, "high": 1},
        {"name": "a", "kind": "date"},
        {"name": "b", "kind": "categorical", "categories": ["x", "x"]},
        {"name": "c"},
        {"name": "d", "kind": "numerical", "low": "1", "high": 2, "colour": "red"},
        {"name": "e", "kind": "ordinal", "levels": ["one"]},
        {"name": "f", "kind": "boolean", "missing": "sentinel"},
        {"name": "g", "kind": "unit", "rows": 0},
        7,
    ]
    with pytest.raises(RequestError) as refused:
        TableSchema(columns=columns, encoding="klingon", delimiter=",,", surprise=1)
    for said in (
        "column 'a': low must be less than high", "column 'a': dates are not encoded", "'a': named more than once",
        "column 'b': categories: each value must be named once", "column 'c': kind is missing",
        "column 'd': low: a number", "column 'd': colour", "column 'e': levels", "column 'f': missing is sentinel",
        "column 'g': rows", "columns.8", "kind target", "encoding", "delimiter", "surprise",
    ):  # fmt: skip
        assert said in str(refused.value), said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low": float("nan"), "high": 1}, "finite"),
        ({"low": 0, "high": float("inf")}, "finite"),
        ({"low": 0.5, "high": 2, "integer": True}, "whole"),
        ({"low": 0, "high": 2**60, "integer": True}, "2\\^53"),
        ({"low": 0, "high": 1, "fill": 0.5}, "fill belongs"),
        ({"low": 0, "high": 1, "missing": "sentinel", "fill": 2}, "from low to high"),
        ({"low": True, "high": 2}, "number"),
    ],
)
def test_bounds_that_are_none_are_refused(change, said):
    with pytest.raises(RequestError, match=said):
        TableSchema(columns=[{"name": "a", "kind": "numerical"} | change, COLUMNS[-1]])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"classes": ["one"]}, "classes"),
        ({"classes": ["a", "b"], "groups": {"c": [1]}}, "declared classes"),
        ({"classes": ["a", "b"], "groups": {"a": [1], "b": [1]}}, "one class"),
        ({"classes": [1, "1"]}, "named once"),
        ({"classes": [1.5, 2]}, "whole numbers"),
    ],
)
def test_classes_that_are_none_are_refused(change, said):
    with pytest.raises(RequestError, match=said):
        TableSchema(columns=[COLUMNS[0], {"name": "y", "kind": "target"} | change])


def test_what_is_declared_is_found_by_its_part():
    schema = TableSchema(
        columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 3}, {"name": "part", "kind": "split"}]
    )
    assert (schema.unit, schema.rows_per_unit) == ("person", 3)
    assert (SCHEMA.unit, SCHEMA.rows_per_unit) == ("record", 1)
    assert schema.released_names == ("age", "amount", "place", "grade", "member", "number", "ill")
    assert schema.shape == SCHEMA.shape == (1 + 2 + 4 + 1 + 1 + 3,)
    assert schema.labels(np.array([1, 0])).tolist() == ["yes", "no"]


def test_a_schema_takes_ten_thousand_categories():
    many = {"name": "code", "kind": "categorical", "categories": [f"c{i}" for i in range(10_000)]}
    schema = TableSchema(columns=[many, COLUMNS[-1]])
    x, c = schema.encode({"code": ["c9999", "c0"], "ill": ["no", "yes"]})
    assert x.argmax(1).tolist() == [9999, 0]
    assert c.tolist() == [0, 1]
