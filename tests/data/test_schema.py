"""The schema: what may be declared, and that JSON keeps it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.data import ImageSchema
from limbeck.errors import RequestError

GOOD = {"shape": (4, 3, 2), "classes": ("cat", "dog"), "low": -1.0, "high": 3.0}


def test_a_pair_is_one_channel_and_a_range_is_a_list_of_classes():
    schema = ImageSchema(shape=np.array([28, 28]), classes=range(10), low=np.uint8(0), high=np.float32(255))
    assert schema.shape == (28, 28, 1)
    assert schema.classes == tuple(range(10))
    assert (schema.low, schema.high, schema.kind, schema.unit, schema.rows_per_unit) == (
        0.0,
        255.0,
        "image",
        "record",
        1,
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shape", (4,)),
        ("shape", (4, 0, 1)),
        ("shape", (4, 3, 2, 1)),
        ("shape", (4.5, 3, 2)),
        ("shape", "43"),
        ("classes", ("cat",)),
        ("classes", ("cat", "cat")),
        ("classes", (1, "1")),
        ("classes", (0, 1.5)),
        ("classes", (True, False)),
        ("classes", (0, 2**63)),
        ("classes", {"cat", "dog"}),
        ("classes", "ab"),
        ("low", float("nan")),
        ("low", "0"),
        ("high", float("inf")),
        ("high", True),
        ("kind", "table"),
        ("unit", "household"),
        ("rows_per_unit", 0),
        ("colour", "red"),
    ],
)
def test_a_wrong_field_is_named(field, value):
    with pytest.raises(RequestError, match=rf"schema is wrong: {field}"):
        ImageSchema(**{**GOOD, field: value})


def test_fields_that_do_not_go_together():
    for fields in ({"low": 3.0}, {"low": 4.0}, {"low": -1.7e308, "high": 1.7e308}, {"rows_per_unit": 2}):
        with pytest.raises(RequestError, match="schema is wrong"):
            ImageSchema(**{**GOOD, **fields})
    assert ImageSchema(**GOOD, unit="person", rows_per_unit=2).rows_per_unit == 2


def test_a_missing_field_is_named():
    with pytest.raises(RequestError, match=r"shape.*classes.*low.*high"):
        ImageSchema()


def test_a_schema_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        ImageSchema(**GOOD).low = 0.0


schemas = st.builds(
    lambda shape, classes, low, span, rows: ImageSchema(
        shape=shape,
        classes=classes,
        low=low,
        high=low + span,
        unit="person" if rows > 1 else "record",
        rows_per_unit=rows,
    ),
    shape=st.tuples(*[st.integers(1, 64)] * 3),
    classes=st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(), min_size=2, max_size=6, unique_by=str),
    low=st.floats(-1e6, 1e6),
    span=st.floats(0.5, 1e6),
    rows=st.integers(1, 5),
)


@given(schemas)
def test_json_keeps_the_schema(tmp_path_factory, schema):
    path = tmp_path_factory.mktemp("schema") / "s.json"
    schema.to_json(path)
    again = ImageSchema.from_json(path)
    assert again == schema
    assert again.digest() == schema.digest()
    assert ImageSchema.model_validate_json(path.read_text()) == schema


def test_the_digest_is_of_the_content():
    schema = ImageSchema(**GOOD)
    assert schema.digest() == ImageSchema(**dict(reversed(GOOD.items()))).digest()
    assert len(schema.digest()) == 64
    others = [{"low": -2.0}, {"classes": ("dog", "cat")}, {"shape": (3, 4, 2)}, {"unit": "person"}]
    assert len({ImageSchema(**{**GOOD, **other}).digest() for other in [{}, *others]}) == 5
    assert ImageSchema(**{**GOOD, "low": -0.0}).digest() == ImageSchema(**{**GOOD, "low": 0}).digest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be a JSON object"),
        (json.dumps({**GOOD, "low": "zero"}), "low: "),
        (json.dumps({**GOOD, "extra": 1}), "extra: "),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin1"), "is not JSON"),
    ],
)
def test_a_bad_file_is_explained(tmp_path, text, message):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(RequestError, match=message) as error:
        ImageSchema.from_json(path)
    assert "s.json" in str(error.value)


def test_a_missing_file_and_a_missing_folder(tmp_path):
    with pytest.raises(RequestError, match=r"none\.json cannot be read"):
        ImageSchema.from_json(tmp_path / "none.json")
    with pytest.raises(RequestError, match="cannot be written"):
        ImageSchema(**GOOD).to_json(tmp_path / "no" / "s.json")


def test_labels_of_each_type():
    words = ImageSchema(**GOOD)
    assert words.labels([1, 0, 1]).tolist() == ["dog", "cat", "dog"]
    numbers = ImageSchema(**{**GOOD, "classes": (7, 3)})
    assert numbers.labels(np.array([1, 0])).tolist() == [3, 7]
    mixed = ImageSchema(**{**GOOD, "classes": (7, "none")})
    assert mixed.labels([0, 1]).tolist() == [7, "none"]
    assert words.labels([]).shape == (0,)
    for wrong in ([2], [-1], [0.5]):
        with pytest.raises(RequestError, match="class indices"):
            words.labels(wrong)
