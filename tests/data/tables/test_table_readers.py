"""Tables from files as people have them; what a cell holds stops none of them."""

import gc
import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limbeck.data import TableSchema, read_table
from limbeck.data.tables import delimited, rows
from limbeck.errors import RequestError
from tests.data.tables.schemas import COLUMNS, GOOD, NAMES, SCHEMA, frame, good_rows, odd_rows


def encoded(table, size=7):
    x, c = zip(*table.x.reveal().encoded(size), strict=True)
    return np.concatenate(x), np.concatenate(c)


def write_csv(path, lines, delimiter=",", encoding="utf-8", end="\n"):
    text = end.join(delimiter.join(line) for line in [NAMES, *lines]) + end
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


ROWS = [[GOOD[name][(i * k) % len(GOOD[name])] for k, name in enumerate(NAMES, 1)] for i in range(20)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_of_any_delimiter_and_encoding(tmp_path, delimiter, encoding, name):
    lines = [[cell.strip() for cell in row] for row in ROWS]
    path = write_csv(tmp_path / name, lines, delimiter, encoding)
    schema = SCHEMA if encoding.startswith("utf-8") else TableSchema(columns=COLUMNS, encoding=encoding)
    x, c = encoded(read_table(path, schema))
    expected = SCHEMA.encode(frame(lines))
    assert np.array_equal(x, expected[0])
    assert np.array_equal(c, expected[1])


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("size", [1, 4, 20, 50])
def test_blocks_do_not_show(tmp_path, monkeypatch, block, size):
    monkeypatch.setattr(delimited, "BLOCK", block)
    path = write_csv(tmp_path / "t.csv", ROWS)
    pieces = list(read_table(path, SCHEMA).x.reveal().encoded(size))
    assert [len(c) for _, c in pieces] == [size] * (20 // size) + [20 % size] * (20 % size > 0)
    assert np.array_equal(np.concatenate([x for x, _ in pieces]), SCHEMA.encode(frame(ROWS))[0])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(odd_rows, min_size=1, max_size=8), st.binary(max_size=30), st.integers(0, 8))
def test_a_line_changes_no_other_line(tmp_path, lines, broken, at):
    """Any bytes in the place of a line: the count and all other rows stay."""
    broken = broken.replace(b"\n", b"")
    content = [",".join(line).encode() for line in (NAMES, *lines)]
    (tmp_path / "t.csv").write_bytes(b"\n".join(content) + b"\n")
    x, c = encoded(read_table(tmp_path / "t.csv", SCHEMA))
    at = 1 + at % len(lines)
    content[at] = broken
    (tmp_path / "t.csv").write_bytes(b"\n".join(content) + b"\n")
    x_broken, c_broken = encoded(read_table(tmp_path / "t.csv", SCHEMA))
    others = np.arange(len(lines)) != at - 1
    assert np.array_equal(x[others], x_broken[others])
    assert np.array_equal(c[others], c_broken[others])


@pytest.mark.parametrize("line", ["", ",", "a", '"', '"a' + "," * 7, "," * 100, 'x"y"z,"', "\x00", "ÿþ"])
def test_a_ragged_line_is_a_null_record(tmp_path, line):
    path = write_csv(tmp_path / "t.csv", [ROWS[0], [line], ROWS[1]])
    table = read_table(path, SCHEMA)
    assert len(table) == 3
    assert (encoded(table)[1] >= 0).tolist() == [True, False, True]


def test_quotes_and_line_ends_are_understood(tmp_path):
    schema = TableSchema(
        columns=[
            {"name": "a,b", "kind": "categorical", "categories": ["x, y", 'say "hi"']},
            {"name": "y", "kind": "target", "classes": [0, 1]},
        ]
    )
    (tmp_path / "t.csv").write_bytes(b'"a,b",y\r\n"x, y",0\r\n"say ""hi""",1\r\n"open,1\r\n"x, y",1')
    table = read_table(tmp_path / "t.csv", schema)
    x, c = encoded(table)
    assert c.tolist() == [0, 1, -1, 1]
    assert x.argmax(1).tolist() == [0, 1, 0, 0]


def test_names_may_be_of_any_language(tmp_path):
    columns = [
        {"name": "Größe", "kind": "numerical", "low": 0, "high": 10},
        {"name": "病", "kind": "target", "classes": ["はい", "いいえ"]},
    ]
    (tmp_path / "t.csv").write_text("病;Größe\nはい;2,5\nいいえ;10\n", encoding="utf-8")
    x, c = encoded(read_table(tmp_path / "t.csv", TableSchema(columns=columns, decimal=",")))
    assert x[:, 0].tolist() == [-0.5, 1]
    assert c.tolist() == [0, 1]


def typed_frame():
    table = frame(ROWS)
    table["age"] = table["age"].astype(int)
    table["amount"] = pd.to_numeric(table["amount"], errors="coerce")
    table["place"] = table["place"].astype("category")
    table["number"] = pd.to_numeric(table["number"]).astype("Int64")
    return table


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.arrows"])
@pytest.mark.parametrize("block", [3, 1000])
def test_columnar_files(tmp_path, monkeypatch, name, block):
    from limbeck.data.tables import columnar

    monkeypatch.setattr(columnar, "BLOCK", block)
    table = pa.Table.from_pandas(typed_frame(), preserve_index=False)
    if name == "t.parquet":
        pq.write_table(table, tmp_path / name, row_group_size=6)
    elif name == "t.feather":
        typed_frame().to_feather(tmp_path / name)
    else:
        new = pa.ipc.new_stream if name == "t.arrows" else pa.ipc.new_file
        with new(tmp_path / name, table.schema) as sink:
            sink.write_table(table)
    x, c = encoded(read_table(tmp_path / name, SCHEMA))
    expected = SCHEMA.encode(frame(ROWS))
    assert np.array_equal(x, expected[0])
    assert np.array_equal(c, expected[1])


def test_a_date_column_of_a_parquet_file_is_refused_with_a_hint_unless_it_is_dropped(tmp_path):
    table = typed_frame()
    table["age"] = pd.Timestamp("2020-01-01")
    table["note"] = pd.Timestamp("2020-01-01")
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(RequestError, match=r"'age' holds dates.*dropped") as refused:
        read_table(tmp_path / "t.parquet", SCHEMA)
    assert "note" not in str(refused.value)


def test_a_split_column_chooses_the_rows(tmp_path):
    schema = TableSchema(columns=[*COLUMNS, {"name": "part", "kind": "split"}])
    table = frame(ROWS).assign(part=["train", "test", "train", "neither"] * 5)
    table.to_csv(tmp_path / "t.csv", index=False)
    train, test = (read_table(tmp_path / "t.csv", schema, split=split) for split in ("train", "test"))
    assert (len(train), len(test)) == (10, 5)
    x, _ = SCHEMA.encode(frame(ROWS))
    assert np.array_equal(encoded(train)[0], x[::2])
    assert np.array_equal(encoded(test)[0], x[1::4])
    table[table.part == "train"].to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(RequestError, match="no rows of the test split"):
        read_table(tmp_path / "t.csv", schema, split="test")


def test_units_are_told_apart_as_text(tmp_path):
    schema = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 2}])
    frame(ROWS[:6]).assign(who=["b", "a", " b", "", "a", "1"]).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv", schema).units.reveal().tolist() == [0, 1, 0, 2, 1, 3]


# What is wrong with a file as a whole


def refused(path, schema=SCHEMA, **options):
    with pytest.raises(RequestError) as error:
        read_table(path, schema, **options)
    return str(error.value)


def test_a_header_that_is_missing_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text("44,secret,Ely,low,yes,2,,no\n" * 3)
    said = refused(tmp_path / "t.csv")
    assert "0 of the 8 declared columns" in said
    assert "secret" not in said
    assert "44" not in said


def test_a_header_that_differs_is_explained_at_once(tmp_path):
    (tmp_path / "t.csv").write_text("age,amount,place,grade,member,member,extra,ill\n")
    said = refused(tmp_path / "t.csv")
    for part in ("'number' is missing", "'note' is missing", "'member' is there 2 times", "number 7 is not", "no rows"):
        assert part in said
    assert "extra" not in said  # a first line that lacks declared names may run on into a record
    (tmp_path / "t.csv").write_text(",".join([*NAMES, "extra"]) + "\n")
    assert "'extra' is not declared" in refused(tmp_path / "t.csv")


def test_the_order_of_the_columns_may_differ(tmp_path):
    frame(ROWS)[NAMES[::-1]].to_csv(tmp_path / "t.csv", index=False)
    assert np.array_equal(encoded(read_table(tmp_path / "t.csv", SCHEMA))[0], SCHEMA.encode(frame(ROWS))[0])


def test_wrong_files_are_refused(tmp_path):
    assert "does not exist" in refused(tmp_path / "none.csv")
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.zip"):
        (tmp_path / name).write_bytes(b"")
        refused(tmp_path / name)
    (tmp_path / "t.csv").write_text(",".join(NAMES) + "\n")
    assert "no rows" in refused(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    assert "cannot be read" in refused(tmp_path / "t.parquet")
    whole = gzip.compress((",".join(NAMES) + "\n").encode() + b"x\n" * 100_000)
    (tmp_path / "t.csv.gz").write_bytes(whole[:-20])
    assert "truncated" in refused(tmp_path / "t.csv.gz")
    frame(ROWS).iloc[:0].astype(str).to_parquet(tmp_path / "t.parquet")
    assert "no rows" in refused(tmp_path / "t.parquet")
    (tmp_path / "p.csv").write_bytes((tmp_path / "t.parquet").read_bytes())
    refused(tmp_path / "p.csv")
    assert "train or test" in refused(tmp_path / "t.parquet", split="both")


def test_a_wrong_encoding_is_seen_in_the_header_and_nowhere_else(tmp_path):
    columns = [{"name": "Größe", "kind": "numerical", "low": 0, "high": 10}, COLUMNS[-1]]
    (tmp_path / "t.csv").write_bytes("Größe,ill\n1,no\n".encode("latin-1"))
    assert "encoding" in refused(tmp_path / "t.csv", TableSchema(columns=columns))
    (tmp_path / "t.csv").write_bytes("Größe,ill\n1,no\n".encode("utf-16"))
    assert "utf-16" in refused(tmp_path / "t.csv", TableSchema(columns=columns))
    (tmp_path / "t.csv").write_bytes("Größe,ill\n1,no\n".encode() + b"2,\xff\n")
    assert encoded(read_table(tmp_path / "t.csv", TableSchema(columns=columns)))[1].tolist() == [0, -1]


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    path = write_csv(tmp_path / "t.csv", ROWS)
    table = read_table(path, SCHEMA)
    write_csv(path, ROWS[:5])
    with pytest.raises(RequestError, match="changed while it was read"):
        encoded(table)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(good_rows, min_size=1, max_size=10))
def test_a_table_written_and_read_is_the_table(tmp_path, lines):
    x, c = SCHEMA.encode(frame(lines))
    released = SCHEMA.frame(x, c)
    schema = TableSchema(columns=[column for column in COLUMNS if column["name"] != "note"])
    released.to_csv(tmp_path / "t.csv", index=False)
    released.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        x_read, c_read = encoded(read_table(tmp_path / name, schema))
        assert np.allclose(x_read, x, atol=1e-6)
        assert np.array_equal(c_read, c)


def test_rows_are_never_held_all_at_once(tmp_path, monkeypatch):
    """Ten times the rows take no more memory: what is alive at a time is a block."""
    monkeypatch.setattr(delimited, "BLOCK", 256)

    def peak(number: int) -> int:
        table = read_table(write_csv(tmp_path / "t.csv", ROWS * (number // 20)), SCHEMA)
        gc.collect()
        tracemalloc.start()
        try:
            assert sum(len(c) for _, c in table.x.reveal().encoded(128)) == number
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(600)  # what is loaded on first use is not counted
    few, many = (min(peak(number) for _ in range(2)) for number in (600, 6_000))
    assert many < 2 * few
    assert rows.BLOCK >= 1024
