"""A small table of every kind of column, for the tests, and a strategy for what its cells may hold."""

import pandas as pd
from hypothesis import strategies as st

from limbeck.data import TableSchema

COLUMNS = [
    {"name": "age", "kind": "numerical", "low": 17, "high": 90, "integer": True},
    {"name": "amount", "kind": "numerical", "low": 0, "high": 1e5, "scale": "log", "missing": "indicator"},
    {
        "name": "place",
        "kind": "categorical",
        "categories": ["Ham", "Ely"],
        "other": "Elsewhere",
        "missing": "indicator",
    },
    {"name": "grade", "kind": "ordinal", "levels": ["low", "middle", "high"], "missing": "sentinel", "fill": "low"},
    {"name": "member", "kind": "boolean", "true": "yes", "false": "no"},
    {"name": "number", "kind": "categorical", "categories": [1, 2, 3]},
    {"name": "note", "kind": "dropped"},
    {"name": "ill", "kind": "target", "classes": ["no", "yes"], "groups": {"yes": [1, 2]}},
]
SCHEMA = TableSchema(columns=COLUMNS)
NAMES = [column["name"] for column in COLUMNS]

GOOD = {
    "age": ["17", "44", "90"],
    "amount": ["0", "12.5", "99999", "", "?"],
    "place": ["Ham", " Ely ", "York", ""],
    "grade": ["low", "middle", "high", ""],
    "member": ["yes", "no"],
    "number": ["1", "2.0", " 3"],
    "note": ["hello"],
    "ill": ["no", "yes", "1", "2.0"],
}
ODD = ["nan", "inf", "-inf", "1e999", "1_000", "NULL", "Ünïcode", "\ufffd", "0x10", "True", "-1", "1e308", "''"]


def frame(rows):
    """A frame of text from lists of cells, in the order of the columns."""
    return pd.DataFrame(dict(zip(NAMES, zip(*rows, strict=True), strict=True)), dtype=object)


good_rows = st.tuples(*(st.sampled_from(GOOD[name]) for name in NAMES)).map(list)
text = st.text(st.characters(codec="utf-8", exclude_characters='\n\r",;\t| '), max_size=6)
odd_cells = st.one_of(st.sampled_from(ODD), text)
odd_rows = st.tuples(*(st.one_of(st.sampled_from(GOOD[name]), odd_cells) for name in NAMES)).map(list)
