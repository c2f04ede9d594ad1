"""Files as programs really write them: odd types, encodings and line ends. No record changes another or is quoted."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from limbeck.data import TableSchema, read_table
from limbeck.data.tables import delimited
from limbeck.data.tables.check import bad_rows
from limbeck.errors import RequestError

COLUMNS = [
    {"name": "age", "kind": "numerical", "low": 0, "high": 100, "missing": "indicator"},
    {"name": "town", "kind": "categorical", "categories": ["Ham", "Ely"], "missing": "indicator"},
    {"name": "ill", "kind": "target", "classes": ["no", "yes"]},
]
SCHEMA = TableSchema(columns=COLUMNS)
AGE, TOWN, ILL = pa.array([25, 75]), pa.array(["Ham", "Ely"]), pa.array(["no", "yes"])
X, Y = [[-0.5, 0, 1, 0, 0], [0.5, 0, 0, 1, 0]], [0, 1]


def encoded(path, schema=SCHEMA):
    x, c = zip(*read_table(path, schema).x.reveal().encoded(7), strict=True)
    return np.concatenate(x).tolist(), np.concatenate(c).tolist()


def refused(path, schema=SCHEMA):
    with pytest.raises(RequestError) as error:
        read_table(path, schema)
    return str(error.value)


# CSV


@pytest.mark.parametrize(
    "content",
    [b"age,town,ill\r44,Hamsecret,yes\r51,Elysecret,no\r", b"age,town,ill 44,Hamsecret,yes\n51,Elysecret,no\n"],
)
def test_a_first_line_that_runs_on_into_records_is_not_quoted(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    said = refused(tmp_path / "t.csv")
    assert "secret" not in said
    assert "44" not in said


@pytest.mark.parametrize(
    "encoding", ["iso2022_jp", "iso2022_kr", "utf-7", "hz", "gb18030", "shift_jis", "big5", "cp037"]
)
@pytest.mark.parametrize("line", [b"\x1b$B!!,Ham,yes", b"\x0e25,Ham,no", b"+AAo", b"~{", b"\x81", b"\xfe\xff\x00"])
def test_a_line_changes_no_other_in_encodings_that_keep_a_state(tmp_path, encoding, line):
    def written(*lines):
        ends = "\n".encode(encoding)
        (tmp_path / "t.csv").write_bytes(b"".join(one + ends for one in lines))
        return encoded(tmp_path / "t.csv", TableSchema(columns=COLUMNS, encoding=encoding))

    header, first, last = (text.encode(encoding) for text in ("age,town,ill", "25,Ham,no", "75,Ely,yes"))
    assert written(header, first, last) == (X, Y)
    x, c = written(header, first, line, last)
    assert ([x[0], x[2]], [c[0], c[2]]) == (X, Y)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_without_the_mark_of_its_encoding_is_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("age,town,ill\n25,Ham,no\n")
    assert encoding in refused(tmp_path / "t.csv", TableSchema(columns=COLUMNS, encoding=encoding))
    for own in ("idna", "undefined", "unicode_escape"):
        with pytest.raises(RequestError, match="encoding"):
            TableSchema(columns=COLUMNS, encoding=own)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("room", [1, 2**26])
def test_a_line_that_is_too_long_is_a_null_record(tmp_path, monkeypatch, encoding, room):
    monkeypatch.setattr(delimited, "LONGEST", 40)
    monkeypatch.setattr(delimited, "ROOM", room)
    for length in (38, 39, 40, 41, 79, 80, 81, 1000):
        lines = ["age,town,ill", "25,Ham,no", "1" * (length - 9) + ",Ham,yes", "75,Ely,yes"]
        (tmp_path / "t.csv").write_bytes(("\n".join(lines) + "\n").encode(encoding))
        x, c = encoded(tmp_path / "t.csv", TableSchema(columns=COLUMNS, encoding=encoding))
        assert ([x[0], x[2]], [c[0], c[2]]) == (X, Y), length
        assert c[1] == (1 if length <= 40 else -1), length


def test_names_may_have_blanks_around_them(tmp_path):
    (tmp_path / "t.csv").write_text(" age, town ,ill\n25,Ham,no\n75,Ely,yes\n")
    assert encoded(tmp_path / "t.csv") == (X, Y)
    declared = [COLUMNS[0] | {"name": " age"}, *COLUMNS[1:]]
    assert encoded(tmp_path / "t.csv", TableSchema(columns=declared)) == (X, Y)


# Parquet and Arrow


@pytest.mark.parametrize(
    "columns",
    [
        {"age": AGE.cast(pa.float16()), "town": TOWN.cast(pa.large_string())},
        {"age": AGE.cast(pa.decimal128(22, 2)), "town": TOWN.cast(pa.string_view())},
        {"age": AGE.dictionary_encode(), "town": TOWN.dictionary_encode(), "ill": ILL.dictionary_encode()},
        {"age": pa.array(["25", " 75.0"], pa.string_view()), "ill": ILL.cast(pa.string_view())},
        {"age": AGE.cast(pa.uint8()), "ill": ILL.cast(pa.large_string())},
    ],
    ids=lambda columns: "-".join(str(column.type) for column in columns.values()),
)
def test_any_type_that_can_hold_the_cells_gives_the_same_rows(tmp_path, columns):
    table = pa.table({"age": AGE, "town": TOWN, "ill": ILL} | columns)
    pa.feather.write_feather(table, tmp_path / "t.feather")
    assert encoded(tmp_path / "t.feather") == (X, Y)
    if columns["age"].type != pa.float16():
        pq.write_table(table, tmp_path / "t.parquet")
        assert encoded(tmp_path / "t.parquet") == (X, Y)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_column_of_nothing_is_missing(tmp_path, name):
    table = pd.DataFrame({"age": [None, None], "town": [None, None], "ill": ["no", "yes"]})
    table.to_parquet(tmp_path / name) if name == "t.parquet" else table.to_feather(tmp_path / name)
    assert encoded(tmp_path / name) == ([[0, 1, 0, 0, 1]] * 2, Y)


CATEGORIES = pa.dictionary(pa.int32(), pa.string())  # Arrow's own reader refuses a Parquet file with such a dictionary


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.parquet", pa.string()),
        ("t.parquet", pa.large_string()),
        ("t.feather", pa.string()),
        ("t.feather", CATEGORIES),
    ],
    ids=str,
)
def test_text_that_is_no_utf8_is_missing_in_its_own_cell(tmp_path, name, kind):
    offsets, content = pa.py_buffer(np.array([0, 2, 5], np.int32)), pa.py_buffer(b"\xff\xfeEly")
    odd = pa.Array.from_buffers(pa.string(), 2, [None, offsets, content])
    odd = pa.DictionaryArray.from_arrays([0, 1], odd) if pa.types.is_dictionary(kind) else odd.cast(kind)
    schema = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 2}])
    table = pa.table({"age": AGE, "town": odd, "ill": ILL, "who": odd})
    pq.write_table(table, tmp_path / name) if name == "t.parquet" else pa.feather.write_feather(table, tmp_path / name)
    assert encoded(tmp_path / name, schema) == ([[-0.5, 0, 0, 0, 1], X[1]], Y)
    read = read_table(tmp_path / name, schema)
    assert read.units.reveal().tolist() == [0, 1]
    assert [(i, reason.split(":")[0]) for i, reason in bad_rows(read, schema)] == [(0, "town")]


def test_all_that_is_wrong_with_a_typed_file_is_said_at_once(tmp_path):
    days = pa.array(pd.to_datetime(["2020-01-01", "2021-01-01"]))
    table = pa.table(
        {"age": days.dictionary_encode(), "twon": TOWN, "ill": pa.array([[1], [2]]), "id": pa.array([b"a" * 16] * 2)}
    )
    columns = [*COLUMNS, {"name": "id", "kind": "categorical", "categories": ["a"]}]
    pa.feather.write_feather(table.slice(0, 0), tmp_path / "t.feather")
    said = refused(tmp_path / "t.feather", TableSchema(columns=columns))
    for part in (
        "'town' is missing", "'twon' is not declared", "'age' holds dates", "'ill' is of type list",
        "'id' is of type binary", "no rows",
    ):  # fmt: skip
        assert part in said


# DataFrames


def test_pandas_own_types_are_read_as_plain_ones():
    schema = TableSchema(columns=[*COLUMNS[:2], {"name": "ill", "kind": "target", "classes": ["False", "True"]}])
    plain = {"age": [25, 75], "town": ["Ham", "Ely"], "ill": [False, True]}
    for columns in (
        {"age": pd.array([25, 75], "Int8"), "ill": pd.array([False, True], "boolean")},
        {"age": pd.array([25, 75], "Float32"), "town": pd.array(["Ham", "Ely"], "string")},
        {"age": pd.Categorical([25, 75]), "town": pd.Categorical(["Ham", "Ely"]), "ill": pd.Categorical([False, True])},
        {
            "age": pd.array([25, 75], pd.ArrowDtype(pa.int64())),
            "ill": pd.array([False, True], pd.ArrowDtype(pa.bool_())),
        },
        {"age": pd.arrays.SparseArray([25.0, 75.0])},
        {"age": pd.array(["25", "75"], pd.ArrowDtype(pa.string()))},
    ):
        x, c = schema.encode(pd.DataFrame(plain | columns))
        assert (x.tolist(), c.tolist()) == (X, Y)


def test_missing_values_of_pandas_own_types_are_missing():
    frame = pd.DataFrame(
        {"age": pd.array([25, None], "Int64"), "town": pd.Categorical(["Ham", None]), "ill": ["no", "yes"]}
    )
    assert SCHEMA.encode(frame)[0].tolist() == [X[0], [0, 1, 0, 0, 1]]


def test_large_numbers_tell_persons_apart():
    from limbeck.measure import Records

    schema = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 2}])
    frame = pd.DataFrame({"age": [1, 2, 3], "town": "Ham", "ill": "no", "who": [2**60, 2**60 + 1, 2**60]})
    for dtype in ("int64", "Int64", "uint64", "str", "object"):
        assert Records(schema, frame.astype({"who": dtype})).n == 2


DAYS = pd.to_datetime(["2020-01-01", "2021-01-01"])
ARROW_DAYS = pd.array(DAYS.date, dtype=pd.ArrowDtype(pa.date32()))


@pytest.mark.parametrize(
    "days",
    [DAYS, DAYS.tz_localize("UTC"), pd.Categorical(DAYS), DAYS.to_period("M"), DAYS - DAYS[0], ARROW_DAYS],
    ids=["datetime", "zoned", "categories", "periods", "durations", "arrow"],
)
def test_dates_in_a_frame_are_refused_by_their_type_with_all_else_that_is_wrong(days):
    frame = pd.DataFrame({"age": days, "town": days, "ill": ["no", "yes"]})
    with pytest.raises(RequestError) as error:
        SCHEMA.encode(frame.drop(columns="ill"), [1, 2, 3])
    for part in ("'age' holds dates", "'town' holds dates", "declare the column dropped", "3 values for 2 rows"):
        assert part in str(error.value)
    with pytest.raises(RequestError, match="'ill' holds dates"):
        SCHEMA.encode(pd.DataFrame({"age": [1, 2], "town": "Ham"}), pd.Series(days))
    dropped = TableSchema(columns=[{"name": "age", "kind": "dropped"}, *COLUMNS[1:]])
    assert dropped.encode(frame.assign(town="Ham"))[1].tolist() == Y
