"""Tables from the command line: the commands a newcomer would type, and requests that cannot be met."""

import json

import numpy as np
import pandas as pd
import pytest

SCHEMA = {
    "kind": "table",
    "columns": [
        {"name": "age", "kind": "numerical", "low": 0, "high": 100, "integer": True},
        {"name": "town", "kind": "categorical", "categories": ["Ham", "Ely"], "missing": "indicator"},
        {"name": "ill", "kind": "target", "classes": ["no", "yes"]},
    ],
}


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.4
    age = np.clip(rng.normal(40 + 25 * ill, 10), 0, 100).round().astype(int)
    return pd.DataFrame({"age": age, "town": rng.choice(["Ham", "Ely"], n), "ill": np.where(ill, "yes", "no")})


@pytest.fixture
def place(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 10)


QUICK = ("--steps", "5", "--delta", "1e-3")


def test_from_a_csv_to_a_release_and_back(limbeck, place):
    data = (place / "people.csv", "--schema", place / "schema.json")
    assert "300 records of 2 columns" in limbeck("check", *data).out
    planned = limbeck("plan", *data, "--n", "300", *QUICK)
    assert planned.code == 0, planned.text
    assert "class marginals" in planned.out
    made = limbeck("distill", *data, *QUICK, "--rows", "50", "--no-ledger", "--out", place / "r", "--json")
    assert made.code == 0, made.text
    assert json.loads(made.out)["records"] == 50
    verified = limbeck("verify", place / "r")
    assert verified.code == 0, verified.text
    released = pd.read_csv(place / "r" / "data.csv")
    assert list(released.columns) == ["age", "town", "ill"]
    assert released["age"].dtype == np.int64
    assert set(released["ill"]) == {"no", "yes"}
    assert pd.read_parquet(place / "r" / "data.parquet").shape == (50, 3)


def test_measure_once_and_fit_twice(limbeck, place):
    data = (place / "people.csv", "--schema", place / "schema.json")
    measured = limbeck("measure", *data, *QUICK, "--out", place / "s")
    assert measured.code == 0, measured.text
    assert limbeck("verify", place / "s").code == 0
    for out, size, rows in (("a", ("--rows", "40"), 40), ("b", ("--per-class", "3"), 6)):
        fitted = limbeck("fit", place / "s", *size, "--out", place / out)
        assert fitted.code == 0, fitted.text
        assert limbeck("verify", place / out).code == 0
        assert len(pd.read_csv(place / out / "data.csv")) == rows
    for wrong in (("--for", "krr"), ("--smoothness", "1"), ("--rows", "40", "--per-class", "3"), ("--rows", "3")):
        assert limbeck("fit", place / "s", *wrong, "--out", place / "c").code == 2
    assert not (place / "c").exists()


def test_parquet_is_a_table_too(limbeck, place):
    people().to_parquet(place / "people.parquet")
    data = (place / "people.parquet", "--schema", place / "schema.json")
    made = limbeck("distill", *data, *QUICK, "--per-class", "2", "--no-ledger", "--out", place / "r")
    assert made.code == 0, made.text


def test_what_cells_hold_changes_nothing_that_is_seen(limbeck, place):
    """A ragged row, an unknown class, a word for a number, bytes that are no text: the same words, the same code."""
    data = (place / "people.csv", "--schema", place / "schema.json")
    lines = (place / "people.csv").read_bytes().split(b"\n")
    seen = limbeck("check", *data)
    odd = [b"1,2,3,4", b"", b'"', b"old,Ham,yes", b"40,Ham,perhaps", b"\xff\xfe,\x00,yes", b"1e999,Ham,no"]
    lines[5 : 5 + len(odd)] = odd
    (place / "people.csv").write_bytes(b"\n".join(lines))
    spoilt = limbeck("check", *data)
    assert (spoilt.code, spoilt.text) == (seen.code, seen.text)
    made = limbeck("distill", *data, *QUICK, "--rows", "40", "--no-ledger", "--out", place / "r")
    assert made.code == 0, made.text
    strict = limbeck("check", *data, "--strict", "--json")
    assert strict.code == 1
    assert {one["record"] for one in json.loads(strict.out)["bad"]} == {4, 5, 6, 7, 8, 9, 10}
    assert "perhaps" not in strict.text


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("age,town", "'ill' is missing"),
        ("age,age,ill", "'age' is there 2 times"),
        ("age,town,ill,iq", "'iq' is not declared"),
        ("40,Ham,yes", "0 of the 3 declared columns"),
    ],
)
def test_a_header_that_is_not_the_schemas_writes_and_spends_nothing(limbeck, place, header, said):
    lines = (place / "people.csv").read_text().split("\n")
    (place / "people.csv").write_text("\n".join([header, *lines[1:]]))
    data = (place / "people.csv", "--schema", place / "schema.json")
    for command in (("check",), ("distill", "--out", place / "r"), ("measure", "--out", place / "s")):
        refused = limbeck(command[0], *data, *command[1:])
        assert refused.code == 2
        assert said in refused.text.replace("\n", " ")
        assert "Ham" not in refused.text
    assert sorted(p.name for p in place.iterdir()) == ["people.csv", "schema.json"]


def test_options_of_images_are_refused(limbeck, place):
    data = (place / "people.csv", "--schema", place / "schema.json", "--out", place / "r", "--no-ledger")
    for wrong in (
        ("--features", "scattering"), ("--method", "dm"), ("--method", "private-dm"), ("--for", "networks"),
        ("--smoothness", "1"), ("--free-range",), ("--labels", place / "x"), ("--resize",), ("--rows", "1"),
    ):  # fmt: skip
        refused = limbeck("distill", *data, *wrong)
        assert refused.code == 2, (wrong, refused.text)
    assert not (place / "r").exists()


def test_a_schema_with_many_faults_tells_them_all(limbeck, place):
    broken = {"columns": [{"name": "age", "kind": "numerical", "low": 9, "high": 1}, {"name": "day", "kind": "date"}]}
    (place / "schema.json").write_text(json.dumps(broken))
    refused = limbeck("check", place / "people.csv", "--schema", place / "schema.json")
    assert refused.code == 2
    said = refused.text.replace("\n", " ")
    for part in ("low must be less than high", "dates are not encoded", "kind target"):
        assert part in said
