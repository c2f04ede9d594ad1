"""`limbeck evaluate` and `limbeck demo --table`: what a released table is worth, and what must not be shown or left."""

import json
import stat

import numpy as np
import pandas as pd
import pytest

from limbeck.cli.table_evaluate import Settings
from limbeck.data import TableSchema
from limbeck.data.tables.table import read_table, rows_of
from limbeck.data.tables.typed import released_form, typed_frame
from limbeck.evaluate import CLASSIFIERS
from limbeck.evaluate.columns import encoded_rows
from limbeck.evaluate.declared import declared_columns
from limbeck.privacy.guarantee import Guarantee
from limbeck.release import Release
from tests.cli.test_tables import SCHEMA, people

FEW = ("logistic regression", "Gaussian naive Bayes", "decision tree")
SECRET = "Llanfair"  # a town that nobody declared


@pytest.fixture
def few(monkeypatch):
    """Three of the twelve: `test_all_twelve` has them all."""
    options = Settings.options
    monkeypatch.setattr(Settings, "options", lambda self, schema: options(self, schema) | {"classifiers": FEW})


def a_release(schema, frame, path):
    x, c = schema.encode(frame)
    soft = np.eye(len(schema.classes))[c] - 1 / len(schema.classes)
    return Release.of(schema, x, soft, Guarantee("none"), {"method": "rows of one's own"}).save(path)


@pytest.fixture
def place(tmp_path):
    people(200, seed=1).to_csv(tmp_path / "train.csv", index=False)
    people(100, seed=2).to_csv(tmp_path / "test.csv", index=False)
    a_release(TableSchema(**SCHEMA), people(80), tmp_path / "r")
    return tmp_path


def test_all_twelve(limbeck, place):
    done = limbeck("evaluate", place / "r", "--test", place / "test.csv", "--seeds", "1", "--json")
    assert done.code == 0, done.text
    facts = json.loads(done.out)
    release = facts["rows"]["release"]
    assert list(release["classifiers"]) == list(CLASSIFIERS)
    assert (release["records"], release["test_records"], release["optimistic"]) == (80, 100, False)
    assert release["mean"]["roc"] > 0.8
    assert facts["rows"]["majority class"]["mean"]["roc"] == 0.5
    assert 0.8 < facts["fidelity"]["release"]["overall"] <= 1


def test_rows_to_compare_with_and_plots(limbeck, place, few):
    real = ("--test", place / "test.csv", "--reference", place / "train.csv", "--seeds", "2")
    done = limbeck("evaluate", place / "r", *real, "--plots", place / "p")
    assert done.code == 0, done.text
    for said in ("release", "random real subset", "all real rows", "majority class", "80 of 200", "marginals"):
        assert said in done.out
    assert "private:" in done.err
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place / "p").iterdir()}
    assert kept == {f"{name}.private.png": 0o600 for name in ("marginals", "correlations", "classes")}
    assert stat.S_IMODE((place / "p").stat().st_mode) == 0o700
    public = limbeck("evaluate", place / "r", *real, "--plots", place / "q", "--public")
    assert sorted(path.name for path in (place / "q").iterdir()) == ["classes.png", "correlations.png", "marginals.png"]
    assert "private" not in public.text
    left = {path.name for path in place.iterdir()}
    assert left == {"train.csv", "test.csv", "r", "r.work", "p", "q"}
    assert sorted(path.name for path in (place / "r.work").iterdir()) == ["scores.json", "scores.private.json"]


def test_a_random_subset_of_all_rows_is_no_row_of_its_own(limbeck, place, few):
    people(20, seed=1).to_csv(place / "train.csv", index=False)
    real = ("--test", place / "test.csv", "--reference", place / "train.csv", "--seeds", "1", "--json")
    facts = json.loads(limbeck("evaluate", place / "r", *real).out)
    assert list(facts["rows"]) == ["release", "all real rows", "majority class"]
    assert list(facts["fidelity"]) == ["release", "all real rows"]


def test_the_papers_protocol_says_that_it_is_optimistic(limbeck, place, few):
    done = limbeck("evaluate", place / "r", "--test", place / "test.csv", "--protocol", "paper", "--seeds", "1")
    assert done.code == 0, done.text
    assert "optimistic" in done.out


def test_the_class_that_is_looked_for(limbeck, place, few):
    found = {}
    for label in ("no", "yes"):
        options = ("--test", place / "test.csv", "--positive", label, "--seeds", "1", "--json")
        found[label] = json.loads(limbeck("evaluate", place / "r", *options).out)["rows"]
    assert found["yes"]["majority class"]["mean"]["prc"] + found["no"]["majority class"]["mean"]["prc"] == 1
    assert found["yes"]["release"]["mean"]["roc"] == pytest.approx(found["no"]["release"]["mean"]["roc"])


def test_null_rows_are_left_out_and_no_value_is_shown(limbeck, place, few):
    with (place / "test.csv").open("a") as file:
        file.write(f"old,Ham,yes\n40,Ham,{SECRET}\n1,2,3,4\n41,{SECRET},yes\n")
    done = limbeck("evaluate", place / "r", "--test", place / "test.csv", "--seeds", "1", "--json")
    assert done.code == 0, done.text
    assert (
        json.loads(done.out)["rows"]["release"]["test_records"] == 101
    )  # an unknown town is missing, which is allowed
    assert SECRET not in done.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--networks", "mlp"), "--networks is for images"),
        (("--train-on", "hard", "--full"), "--train-on, --full are for images"),
        (("--labels", "labels.npy"), "--labels is for images"),
        (("--resize",), "--resize is for images"),
        (("--protocol", "best"), "fixed or paper is expected"),
        (("--positive", "perhaps"), "no or yes is expected"),
        (("--test", "cervical"), "has no test rows of its own"),
        (("--test", "breast_cancer"), "it is another table"),
        (("--test", "nowhere.csv"), "does not exist"),
        (("--plots", "r/plots"), "name another folder"),
        (("--plots", "test.csv"), "is a file"),
        (("--reference", "test.csv"), "one file"),
    ],
)
def test_a_wrong_request_is_explained_and_leaves_nothing(limbeck, place, monkeypatch, options, said):
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    done = limbeck("evaluate", "r", "--test", "test.csv", *options)
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", " ")
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("rows", ["age,town,ill\n40,Ham,yes\n", f"age,town,ill\n40,Ham,{SECRET}\n", "age,ill\n40,no\n"])
def test_test_rows_that_cannot_be_used(limbeck, place, rows):
    """Of one class; of none; of other columns."""
    (place / "test.csv").write_text(rows)
    done = limbeck("evaluate", place / "r", "--test", place / "test.csv", "--plots", place / "p")
    assert done.code == 2, done.text
    assert SECRET not in done.text
    assert not (place / "r.work").exists()
    assert not (place / "p").exists()


def test_options_of_tables_are_refused_for_images(limbeck, small, distilled):
    for wrong in (("--protocol", "paper"), ("--plots", small / "p"), ("--positive", "1")):
        done = limbeck("evaluate", distilled, "--test", small / "small.npz", *wrong)
        assert done.code == 2, done.text
        assert f"{wrong[0]} is for tables" in done.err.replace("\n", " ")
    assert not (small / "out.work").exists()


def test_every_kind_of_column_is_read_alike_from_a_file_and_from_a_release(tmp_path):
    """Numbers as categories, text that looks like numbers, truth values, gaps, groups that swap names, other signs."""
    schema = TableSchema(
        delimiter=";",
        decimal=",",
        encoding="latin-1",
        columns=[
            {"name": "größe", "kind": "numerical", "low": 0, "high": 2, "missing": "indicator"},
            {"name": "code", "kind": "categorical", "categories": [1, 2], "other": "rest", "missing": "indicator"},
            {"name": "grade", "kind": "ordinal", "levels": [1, 2, 3], "missing": "sentinel", "fill": 2},
            {"name": "flag", "kind": "boolean", "missing": "indicator"},
            {"name": "id", "kind": "dropped"},
            {"name": "who", "kind": "unit", "rows": 2},
            {"name": "y", "kind": "target", "classes": ["a", "b"], "groups": {"a": ["b", "7"], "b": ["a"]}},
        ],
    )  # fmt: skip
    (tmp_path / "t.csv").write_text(
        "größe;code;grade;flag;id;who;y\n0,5;1;3;yes;1;u;b\n9;x;;no;2;u;a\n;;1;;3;v;7\n1;2;1;1;4;w;c\n", "latin-1"
    )
    rows = read_table(tmp_path / "t.csv", schema).x.reveal()
    frame = typed_frame(schema, rows)
    assert frame.astype(object).where(frame.notna(), None).to_numpy().tolist() == [
        [0.5, "1", "3", "True", "a"],
        [2.0, "rest", "2", "False", "b"],
        [None, None, "1", None, "a"],
    ]
    x, c = next(rows.encoded(10))
    release = Release.of(schema, x[c >= 0], np.eye(2)[c[c >= 0]] - 0.5, Guarantee("none"), {"method": "none"})
    form = released_form(schema)
    again = typed_frame(form, read_table(release.save(tmp_path / "r") / "data.csv", form).x.reveal())
    pd.testing.assert_frame_equal(again, frame)
    columns, target = declared_columns(schema)
    encoded = encoded_rows(frame, columns, target)
    assert encoded.y.tolist() == [0, 1, 0]
    assert encoded.X.shape == (3, 2 + 4 + 3 + 3)
    pd.testing.assert_frame_equal(typed_frame(form, rows_of(form, release.frame)), frame)


def test_the_demo_of_a_table(limbeck, tmp_path, monkeypatch, few):
    monkeypatch.setattr("limbeck.cli.table_demo.SEEDS", 1)
    monkeypatch.setattr("limbeck.cli.table_demo.ROWS", 100)
    done = limbeck("demo", "--table", "--out", tmp_path / "demo")
    assert done.code == 0, done.text
    for said in ("epsilon 1 at delta 0.0001", "epsilon 10 at delta 0.0001", "all real rows", "majority class"):
        assert said in done.out
    expected = {"scores.json", *(f"{what}-eps{e}" for what in ("release", "plots") for e in (1, 10))}
    assert {path.name for path in (tmp_path / "demo").iterdir()} == expected
    assert limbeck("verify", tmp_path / "demo" / "release-eps1").code == 0
    assert limbeck("demo", "--table", "--out", tmp_path / "demo").code == 2


def test_three_classes_are_scored_by_f1(limbeck, tmp_path, few):
    fields = [*SCHEMA["columns"][:2], {"name": "ill", "kind": "target", "classes": ["no", "yes", "never"]}]
    a_release(TableSchema(columns=fields), people(80), tmp_path / "r")
    people(100, seed=2).to_csv(tmp_path / "test.csv", index=False)
    done = limbeck("evaluate", tmp_path / "r", "--test", tmp_path / "test.csv", "--seeds", "1")
    assert done.code == 0, done.text
    assert "mean F1, macro" in done.out
    assert "mean F1, weighted" in done.out
    refused = limbeck("evaluate", tmp_path / "r", "--test", tmp_path / "test.csv", "--positive", "yes")
    assert refused.code == 2
    assert "--positive is for two classes" in refused.err.replace("\n", " ")
