"""Cells to numbers and back: what a row becomes depends on that row and on the schema alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data import TableSchema
from limbeck.errors import RequestError
from tests.data.tables.schemas import GOOD, NAMES, SCHEMA, frame, good_rows, odd_rows


@settings(deadline=None)
@given(st.lists(good_rows, min_size=1, max_size=20))
def test_what_is_decoded_is_encoded_to_the_same_numbers(rows):
    x, c = SCHEMA.encode(frame(rows))
    assert (c >= 0).all()
    again, c_again = SCHEMA.encode(SCHEMA.frame(x, c))
    assert np.allclose(again, x, atol=1e-6)
    assert c_again.tolist() == c.tolist()


@settings(deadline=None)
@given(st.lists(odd_rows, min_size=1, max_size=8), st.lists(odd_rows, max_size=8))
def test_a_row_is_encoded_the_same_whatever_the_others_hold(rows, others):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, c = SCHEMA.encode(frame(rows))
        together, c_together = SCHEMA.encode(frame([*rows, *others]))
    assert np.array_equal(x, together[: len(rows)])
    assert c.tolist() == c_together[: len(rows)].tolist()
    assert np.isfinite(x).all()
    assert np.abs(x).max() <= 1
    assert not x[c < 0].any()


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e6, 1e30]))
def test_whatever_is_decoded_fits_the_schema(seed, size):
    x = np.random.default_rng(seed).normal(0, size, (30, *SCHEMA.shape))
    table = SCHEMA.frame(x, np.zeros(30, int))
    assert list(table.columns) == list(SCHEMA.released_names)
    assert table["age"].dtype == np.int64
    assert table["age"].between(17, 90).all()
    assert table["amount"].dropna().between(0, 1e5).all()
    assert set(table["place"].dropna()) <= {"Ham", "Ely", "Elsewhere"}
    assert set(table["grade"]) <= {"low", "middle", "high"}
    assert set(table["member"]) <= {"yes", "no"}
    assert set(table["number"]) <= {1, 2, 3}
    _, c = SCHEMA.encode(table)
    assert (c == 0).all()


def test_each_kind_is_encoded_as_declared():
    rows = [
        ["17", "0", "Ham", "low", "no", "1", "", "no"],
        ["200", "1e9", "York", "", "yes", "3.0", "", "2"],
        ["53.5", "", "?", "high", "yes", "2", "", "yes"],
    ]
    x, c = SCHEMA.encode(frame(rows))
    #   age  amount   place      grade member number
    assert x.tolist() == [
        [-1, -1, 0, 1, 0, 0, 0, -1, -1, 1, 0, 0],
        [1, 1, 0, 0, 0, 1, 0, -1, 1, 0, 0, 1],
        [0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0],
    ]
    assert c.tolist() == [0, 1, 1]
    table = SCHEMA.frame(x, c)
    assert table["amount"].isna().tolist() == [False, False, True]
    assert table["place"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["age", "member", "number", "ill"])
def test_a_cell_that_must_be_there_makes_a_null_record(name):
    row = [GOOD[n][0] for n in NAMES]
    row[NAMES.index(name)] = "what"
    x, c = SCHEMA.encode(frame([row]))
    assert c.tolist() == [-1]
    assert not x.any()


def test_typed_columns_are_read_as_text_is():
    text = frame([["44", "12.5", "Ely", "high", "yes", "2", "", "1"], ["17", "", "", "low", "no", "3", "", "no"]])
    typed = pd.DataFrame(
        {
            "age": np.array([44, 17], np.int8),
            "amount": [12.5, np.nan],
            "place": pd.Categorical(["Ely", None]),
            "grade": pd.Series(["high", "low"], dtype="str"),
            "member": ["yes", "no"],
            "number": pd.array([2, 3], dtype="Int64"),
            "note": [None, None],
            "ill": pd.Series([1, "no"], dtype=object),
        }
    )
    assert np.array_equal(SCHEMA.encode(text)[0], SCHEMA.encode(typed)[0])
    features = typed.drop(columns=["ill", "note"])
    assert np.array_equal(SCHEMA.encode(features, [1, "no"])[1], [1, 0])


def test_cells_of_any_type_make_no_noise():
    class Rude:
        def __str__(self):
            raise OSError

    cells = [Rude(), b"44", {"a": 1}, [44], np.float32(44), np.array(44), 44 + 0j, "\ud800", pd.NaT, 10**400, True]
    row = {name: GOOD[name][0] for name in NAMES}
    table = pd.DataFrame([row] * len(cells), dtype=object)
    for name in NAMES:
        odd = table.copy()
        for i, cell in enumerate(cells):
            odd.at[i, name] = cell
        SCHEMA.encode(odd)
    table["age"] = pd.Series(cells, dtype=object)
    _, c = SCHEMA.encode(table)
    assert (c >= 0).tolist() == [i in (1, 4, 5) for i in range(len(cells))]


@pytest.mark.parametrize(("true", "false"), [(None, None), (1, 0), ("yes", "no")])
def test_booleans_come_back_as_they_are_written(true, false):
    said = {} if true is None else {"true": true, "false": false}
    schema = TableSchema(
        columns=[{"name": "b", "kind": "boolean", **said}, {"name": "y", "kind": "target", "classes": [0, 1]}]
    )
    given = {"b": [True if true is None else true, False if false is None else false], "y": [0, 1]}
    x, c = schema.encode(given)
    assert schema.frame(x, c).to_dict("list") == given


def test_a_frame_that_does_not_fit_is_refused_as_a_whole():
    table = frame([[GOOD[name][0] for name in NAMES]])
    with pytest.raises(RequestError, match="'age' is missing; 'ill' is missing"):
        SCHEMA.encode(table.drop(columns=["age", "ill"]))
    with pytest.raises(RequestError, match="'age' is there 2 times"):
        SCHEMA.encode(pd.concat([table, table[["age"]]], axis=1))
    with pytest.raises(RequestError, match="'age' holds dates"):
        SCHEMA.encode(table.assign(age=pd.Timestamp("2020-01-01")))
    with pytest.raises(RequestError, match="2 values for 1 rows"):
        SCHEMA.encode(table, [1, 2])
    with pytest.raises(RequestError, match="DataFrame"):
        SCHEMA.encode(7)
