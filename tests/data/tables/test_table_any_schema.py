"""Any schema that can be declared: what is decoded from what was encoded is what was given, and so by way of files."""

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limbeck.data import TableSchema, read_table
from limbeck.data.tables.typed import released_form
from limbeck.release.tables import read_plain_table, with_target, write_plain

# Text that a person may call something by: any letters, and the signs that CSV files are made of.
words = st.text(st.characters(categories=("L", "N", "P", "Zs"), include_characters=',;|"\t'), min_size=1, max_size=6)
words = words.filter(lambda word: word == word.strip())
values = st.one_of(
    st.lists(words, min_size=2, max_size=5, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=5, unique=True),
)
missing = st.sampled_from(["null", "indicator", "sentinel"])


@st.composite
def numerical(draw):
    integer, scale = draw(st.booleans()), draw(st.sampled_from(["linear", "log"]))
    low = draw(st.integers(-(10**6), 10**6) if integer else st.floats(-1e6, 1e6))
    high = low + draw(st.integers(1, 10**6) if integer else st.floats(1e-3, 1e6))
    fill = {"fill": low} if (kind := draw(missing)) == "sentinel" else {}
    cells = st.integers(low, high) if integer else st.floats(low, high)
    return {
        "kind": "numerical",
        "low": low,
        "high": high,
        "integer": integer,
        "scale": scale,
        "missing": kind,
    } | fill, cells


@st.composite
def listed(draw, kind, field):
    members = draw(values)
    given_missing = draw(missing)
    fill = {"fill": members[0]} if given_missing == "sentinel" else {}
    return {"kind": kind, field: members, "missing": given_missing} | fill, st.sampled_from(members)


@st.composite
def boolean(draw):
    true, false = draw(st.sampled_from([("yes", "no"), (1, 0), (None, None)]))
    said = {} if true is None else {"true": true, "false": false}
    kind = draw(missing)
    fill = {"fill": True} if kind == "sentinel" else {}
    cells = st.booleans() if true is None else st.sampled_from([true, false])
    return {"kind": "boolean", "missing": kind} | said | fill, cells


@st.composite
def tables(draw):
    """The columns of a schema, and cells of them: a missing cell where the column has a place for one."""
    kinds = st.one_of(numerical(), listed("categorical", "categories"), listed("ordinal", "levels"), boolean())
    drawn = draw(st.lists(kinds, min_size=1, max_size=5))
    names = draw(st.lists(words, min_size=len(drawn) + 1, max_size=len(drawn) + 1, unique=True))
    classes = draw(values)
    columns = [{"name": name} | fields for name, (fields, _) in zip(names, drawn, strict=False)]
    cells = [st.none() | c if fields["missing"] == "indicator" else c for fields, c in drawn]
    at = draw(st.integers(0, len(columns)))
    columns.insert(at, {"name": names[-1], "kind": "target", "classes": classes})
    cells.insert(at, st.sampled_from(classes))
    rows = draw(st.lists(st.tuples(*cells), min_size=1, max_size=6))
    cells_of = {c["name"]: [row[i] for row in rows] for i, c in enumerate(columns)}
    return columns, cells_of


def assert_same(schema, released, frame):
    """The rows that were given, up to the rounding of a float32 over the declared range."""
    assert list(released.columns) == list(frame.columns)
    for column in schema.columns:
        for was, now in zip(frame[column.name], released[column.name], strict=True):
            if was is None:
                assert pd.isna(now), column
            elif column.kind != "numerical":
                assert str(now) == str(was), column
            else:
                span = column.high - column.low
                assert column.low <= now <= column.high
                assert not column.integer or float(now).is_integer()
                # A log scale stretches the rounding by what lies below: at most log(1 + span) times 1 + value.
                slack = 4e-7 * (span if column.scale == "linear" else (1 + now - column.low) * np.log1p(span))
                assert abs(now - was) <= max(slack, 1e-9 * abs(was)) + (1 if column.integer and slack > 0.1 else 0)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_what_is_decoded_is_what_was_given(table):
    schema, frame = TableSchema(columns=table[0]), pd.DataFrame(table[1], dtype=object)
    x, c = schema.encode(frame)
    assert (c >= 0).all()
    assert_same(schema, schema.frame(x, c), frame)


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(tables())
def test_released_files_hold_the_same_rows_and_types(tmp_path, table):
    """data.csv and data.parquet are one table, in the input's columns, and are encoded to what they came from."""
    schema, frame = TableSchema(columns=table[0]), pd.DataFrame(table[1], dtype=object)
    x, c = schema.encode(frame)
    released = with_target(schema, schema.decode(x), schema.labels(c))
    write_plain(tmp_path, released)
    form = released_form(schema)
    for name in ("data.csv", "data.parquet"):
        read = read_table(tmp_path / name, form)
        x_read, c_read = (np.concatenate(parts) for parts in zip(*read.x.reveal().encoded(4), strict=True))
        assert np.allclose(x_read, x, atol=1e-5), name
        assert c_read.tolist() == c.tolist(), name
    typed = read_plain_table(tmp_path, schema)
    for column in schema.features:
        if column.kind == "numerical":
            assert typed[column.name].dtype.kind in ("iuf" if column.indicated or not column.integer else "i")
