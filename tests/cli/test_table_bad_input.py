"""What is wrong with a table as a whole: exit code 2, everything at once, no value shown, nothing written or spent."""

import json

import numpy as np
import pandas as pd
import pytest

from limbeck.privacy.ledger import Ledger
from tests.cli.test_tables import QUICK, SCHEMA, people

AGE, TOWN, ILL = SCHEMA["columns"]
SECRETS = ("Hamsecret", "Elysecret", "4711", "yessecret")
LINES = ["age,town,ill", "4711,Hamsecret,yessecret", "4711,Elysecret,no"]


def text(*lines, encoding="utf-8"):
    return ("\n".join(lines) + "\n").encode(encoding)


def typed(folder, **columns):
    frame = pd.DataFrame({"age": [4711, 4711], "town": ["Hamsecret", "Ely"], "ill": ["no", "yes"]} | columns)
    frame.to_parquet(folder / "typed.parquet")
    return (folder / "typed.parquet").read_bytes()


DAYS = pd.to_datetime(["2020-01-01", "2021-01-01"])
FILES = {
    "no header": (text(*LINES[1:]), SCHEMA, ["0 of the 3 declared columns", "'age', 'town', 'ill'"]),
    "a name twice": (text("age,age,ill", *LINES[1:]), SCHEMA, ["'town' is missing", "'age' is there 2 times"]),
    "another name": (text("age,twon,ill,x", *LINES[1:]), SCHEMA, ["'town' is missing", "number 2, 4 is not"]),
    "a column more": (text("age,town,ill,iq", *LINES[1:]), SCHEMA, ["'iq' is not declared", "dropped"]),
    "old line ends": (b"\r".join(text(line).strip() for line in LINES), SCHEMA, ["carriage returns"]),
    "utf-16 that is not declared": (text(*LINES, encoding="utf-16"), SCHEMA, ["no text in utf-8", "utf-16"]),
    "utf-16 that is declared and is not": (text(*LINES), SCHEMA | {"encoding": "utf-16"}, ["no text in utf-16"]),
    "latin-1 that is not declared": (
        text("age,town,ill,gr\u00f6\u00dfe", *LINES[1:], encoding="latin-1"), SCHEMA, ["latin-1", "encoding"],
    ),
    "another delimiter": (text(*LINES), SCHEMA | {"delimiter": ";"}, ["0 of the 3", "delimiter"]),
    "no rows": (text(LINES[0]), SCHEMA, ["no rows"]),
    "nothing at all": (b"", SCHEMA, ["is empty"]),
    "no rows and another header": (text("age,town"), SCHEMA, ["'ill' is missing", "no rows"]),
    "another file": (text("id;sum", "4711;Hamsecret"), SCHEMA, ["another file"]),
    "a zipped file that is cut off": (b"\x1f\x8b\x08\x00" + b"\0" * 20, SCHEMA, ["cannot be read"]),
    "a date declared": (
        text(*LINES), {"columns": [AGE | {"kind": "date"}, TOWN, ILL]}, ["'age': dates are not encoded", "dropped"],
    ),
    "low above high": (
        text(*LINES), {"columns": [AGE | {"low": 9, "high": 1}, TOWN, ILL]}, ["'age': low must be less than high"],
    ),
    "low is high": (text(*LINES), {"columns": [AGE | {"low": 1, "high": 1}, TOWN, ILL]}, ["low must be less"]),
    "one class": (text(*LINES), {"columns": [AGE, TOWN, ILL | {"classes": ["no"]}]}, ["'ill': classes", "at least 2"]),
    "many things": (
        text(*LINES),
        {"columns": [AGE | {"low": 9, "high": 1}, TOWN | {"categories": ["a", "a"]}, ILL | {"kind": "tarte"}, TOWN]},
        ["low must be less", "each value must be named once", "kind is not known", "more than once", "kind target"],
    ),
}  # fmt: skip


@pytest.fixture
def refused(limbeck, tmp_path):
    """Every command that would touch the data: what it says is given back, once it has been seen to do nothing."""
    Ledger.open().grant("people", epsilon=5, delta=1e-3, unit="record", relation="zero-out", filter="rdp")

    def run(name, content, schema, *, plans):
        (tmp_path / name).write_bytes(content)
        (tmp_path / "schema.json").write_text(json.dumps(schema))
        before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
        data = (tmp_path / name, "--schema", tmp_path / "schema.json")
        ledger = Ledger.open().history(None)
        commands = [("distill", "--out", tmp_path / "r"), ("measure", "--out", tmp_path / "s"), ("check",)]
        commands += [("distill", "--out", tmp_path / "r", "--n", 2, "--json")] + [("plan", "--n", 2)] * plans
        said = []
        for command, *more in commands:
            done = limbeck(command, *data, *(QUICK if command != "check" else ()), *more)
            assert done.code == 2, (command, done.text)
            assert not any(secret in done.text for secret in SECRETS), done.text
            said.append(" ".join(done.text.split()))
        assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
        assert Ledger.open().history(None) == ledger
        return said

    return run


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_does_not_fit_is_refused_before_anything_is_done(refused, kind):
    content, schema, parts = FILES[kind]
    about_schema = schema.keys() == {"columns"}
    for said in refused("people.csv", content, schema, plans=about_schema):
        for part in parts:
            assert part in said, (part, said)


def test_a_typed_file_that_does_not_fit_is_refused_with_all_its_faults(refused, tmp_path):
    content = typed(tmp_path, age=DAYS, town=[["Hamsecret"], ["Ely"]])
    for said in refused("people.parquet", content, SCHEMA, plans=False):
        for part in ("'age' holds dates", "declare the column dropped", "'town' is of type list"):
            assert part in said


def test_the_schema_of_something_else_is_refused(refused, limbeck, tmp_path):
    """A table's schema for images, and the other way round."""
    images = {"shape": [8, 8, 1], "classes": [0, 1], "low": 0, "high": 255}
    for said in refused("people.csv", text(*LINES), images, plans=False):
        assert "people.csv" in said
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 8, 8)), y=[0, 1, 0, 1])
    for said in refused("people.npz", (tmp_path / "x.npz").read_bytes(), SCHEMA, plans=False):
        assert "no table of a known kind" in said


def test_a_file_that_is_not_there_is_refused(limbeck, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    for command in ("distill", "measure"):
        done = limbeck(command, tmp_path / "none.csv", "--schema", tmp_path / "schema.json", "--out", tmp_path / "r")
        assert done.code == 2
        assert "does not exist" in done.text
    assert [path.name for path in tmp_path.iterdir()] == ["schema.json"]


def test_the_number_of_rows_is_told_before_anything_is_spent(limbeck, tmp_path):
    """Where --n is not the file's number, the plan would be another."""
    people(30).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    data = (tmp_path / "people.csv", "--schema", tmp_path / "schema.json")
    done = limbeck("distill", *data, *QUICK, "--n", 31, "--out", tmp_path / "r")
    assert done.code == 2
    assert "holds 30 records" in done.text.replace("\n", " ")
    assert Ledger.open().history(None) == []
    assert not (tmp_path / "r").exists()
