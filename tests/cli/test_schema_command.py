"""`limbeck schema`: a draft that copies no values, and every problem with its line."""

import json

import numpy as np
import pandas as pd
import pytest

FRAME = pd.DataFrame(
    {
        "age": [44, 51],
        "weight": [70.5, 81.25],
        "town": ["Hamsecret", "Ely"],
        "ill": [True, False],
        "day": pd.Timestamp(0),
    }
)


def test_a_draft_of_a_csv_has_names_and_nothing_else(limbeck, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False, sep=";")
    done = limbeck("schema", "init", tmp_path / "t.csv", "--out", tmp_path / "s.json")
    assert done.code == 0, done.text
    drafted = json.loads((tmp_path / "s.json").read_text())
    assert drafted == {"kind": "table", "columns": [{"name": name, "kind": ""} for name in FRAME.columns]}
    again = limbeck("schema", "init", tmp_path / "t.csv", "--out", tmp_path / "s.json")
    assert again.code == 2


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_draft_of_a_typed_file_has_its_types(limbeck, tmp_path, name):
    getattr(FRAME, {"t.parquet": "to_parquet", "t.feather": "to_feather"}[name])(tmp_path / name)
    done = limbeck("schema", "init", tmp_path / name)
    kinds = {column["name"]: column["kind"] for column in json.loads(done.out)["columns"]}
    expected = {"age": "numerical", "weight": "numerical", "town": "categorical", "ill": "boolean", "day": "dropped"}
    assert kinds == expected
    for value in ("44", "70", "secret"):
        assert value not in done.text


def test_every_problem_has_its_line(limbeck, tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    limbeck("schema", "init", tmp_path / "t.parquet", "--out", tmp_path / "s.json")
    found = limbeck("schema", "check", tmp_path / "s.json")
    assert found.code == 1
    for said in ("line 4: column 'age': low", "line 5: column 'weight': high", "line 6: column 'town': categories"):
        assert said in found.out
    assert "kind target" in found.out


def test_a_finished_schema_is_checked_against_its_file(limbeck, tmp_path):
    columns = [
        {"name": "age", "kind": "numerical", "low": 0, "high": 120, "integer": True},
        {"name": "weight", "kind": "numerical", "low": 0, "high": 300},
        {"name": "town", "kind": "dropped"},
        {"name": "ill", "kind": "target", "classes": ["True", "False"]},
        {"name": "day", "kind": "dropped"},
    ]
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert limbeck("schema", "check", tmp_path / "s.json", tmp_path / "t.csv").code == 0
    FRAME.drop(columns="age").to_csv(tmp_path / "t.csv", index=False)
    found = limbeck("schema", "check", tmp_path / "s.json", tmp_path / "t.csv", "--json")
    assert found.code == 1
    assert "'age' is missing" in json.loads(found.out)["problems"][0]


@pytest.mark.parametrize("text", ['{"columns": [', "[]", '{"kind": "image"}', "\u00ff"])
def test_what_is_no_schema_is_explained(limbeck, tmp_path, text):
    (tmp_path / "s.json").write_bytes(text.encode("latin-1"))
    assert limbeck("schema", "check", tmp_path / "s.json").code == 1
    assert limbeck("schema", "check", tmp_path / "none.json").code == 2


def test_a_known_schema_is_shown_and_used(limbeck, tmp_path):
    shown = limbeck("schema", "show", "adult")
    (tmp_path / "s.json").write_text(shown.out)
    assert limbeck("schema", "check", tmp_path / "s.json").code == 0
    assert limbeck("schema", "show", "child").code == 2
    assert "426 records of 30 columns" in limbeck("check", "breast_cancer").out
    assert limbeck("check", "adult", "--data-dir", tmp_path).code == 2
    from sklearn.datasets import load_breast_cancer

    load_breast_cancer(as_frame=True).frame.sample(20, random_state=np.random.RandomState(0)).to_csv(
        tmp_path / "b.csv", index=False
    )
    assert "20 records" in limbeck("check", tmp_path / "b.csv", "--schema", "breast_cancer").out


@pytest.mark.parametrize("line", ["39,State-gov,77516", "State-gov,,Ely", "Ely,Ham,Ely"])
def test_a_first_line_that_may_be_a_record_is_neither_drafted_nor_quoted(limbeck, tmp_path, line):
    (tmp_path / "people.csv").write_text(f"{line}\n50,Self,83311\n")
    done = limbeck("schema", "init", tmp_path / "people.csv", "--out", tmp_path / "schema.json")
    assert done.code == 2
    assert "may be a record" in done.text
    assert not any(cell in done.text for cell in ("State-gov", "77516", "Ely"))
    assert not (tmp_path / "schema.json").exists()


def test_a_wrong_schema_and_a_file_that_is_not_its_own_are_explained_at_once(limbeck, tmp_path):
    """By line and column, and never a value: of the schema's faults and of the header's."""
    columns = [
        {"name": "age", "kind": "numerical", "low": 9, "high": 1},
        {"name": "gr\u00f6\u00dfe", "kind": "date"},
        {"name": "town", "kind": "categorical", "categories": ["a", "a"]},
        {"name": "town", "kind": "towne"},
        {"name": "ill", "kind": "target", "classes": ["no"]},
    ]
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}, indent=1))
    (tmp_path / "t.csv").write_text("age,gr\u00f6\u00dfe,town\n4711,Hamsecret,Elysecret\n", encoding="utf-8")
    found = limbeck("schema", "check", tmp_path / "s.json", tmp_path / "t.csv")
    assert found.code == 1
    for part in (
        "line 4: column 'age': low must be less than high", "line 10: column 'gr\u00f6\u00dfe': dates are not encoded",
        "column 'town': categories: each value must be named once", "column 'town': kind is not known",
        "column 'town': named more than once", "column 'ill': classes", "'ill' is missing",
    ):  # fmt: skip
        assert part in found.out, part
    assert not any(secret in found.text for secret in ("4711", "secret"))
    for broken in ({"columns": [1]}, {"columns": 3}, {"columns": columns, "encoding": "x", "delimiter": 3}, {}):
        (tmp_path / "s.json").write_text(json.dumps({"kind": "table"} | broken))
        assert limbeck("schema", "check", tmp_path / "s.json", tmp_path / "t.csv").code == 1
