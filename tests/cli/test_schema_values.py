"""`limbeck schema init --spend` and `--unsafe-from-data`: what they write, what they refuse, and what releases say."""

import json
import stat

import numpy as np
import pandas as pd
import pytest

from limbeck.data import TableSchema
from limbeck.distill import TableDecant
from limbeck.errors import RequestError
from limbeck.release import examine, load
from limbeck.release.certificate import digest_of
from limbeck.release.contents import file_digest

DRAFT = [
    {"name": "age", "kind": "numerical", "low": None, "high": None, "integer": True},
    {"name": "town", "kind": "categorical", "categories": [], "other": "elsewhere"},
    {"name": "weight", "kind": "numerical", "low": 0, "high": 300},
    {"name": "ill", "kind": "target"},
]


def people(n=1500):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(45, 12, n).round().astype(int), "town": rng.choice(["Ham", "Ely"], n)})
    frame["weight"], frame["ill"] = rng.normal(70, 9, n).round(1), rng.choice(["no", "yes"], n)
    frame.loc[0, ["town", "age"]] = ["Hamsecret", 1234567]
    return frame


@pytest.fixture
def place(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "draft.json").write_text(json.dumps({"kind": "table", "columns": DRAFT}))
    return tmp_path


def arguments(place, *more):
    return ("schema", "init", place / "people.csv", "--schema", place / "draft.json", "--out", place / "s.json", *more)


def test_blanks_are_bought_charged_and_marked(limbeck, place):
    limbeck("ledger", "grant", "people", "--epsilon", "2", "--delta", "1e-5")
    done = limbeck(*arguments(place, "--spend", "1"))
    assert done.code == 0, done.text
    written = (place / "s.json").read_text()
    assert "Hamsecret" not in written + done.text
    assert "1234567" not in written + done.text
    schema = TableSchema.from_json(place / "s.json")
    age, town, weight, ill = schema.columns
    assert 8 <= age.low <= 28
    assert 64 <= age.high <= 128
    assert (town.categories, town.other, ill.classes) == (("Ely", "Ham"), "elsewhere", ("no", "yes"))
    assert (weight.low, weight.high) == (0, 300)
    (source,) = schema.provenance
    assert source.columns == {"age": ("low", "high"), "town": ("categories",), "ill": ("classes",)}
    assert (source.origin, source.delta) == ("dp", 1e-5)
    assert 0.99 <= source.epsilon <= 1
    assert source.ledger["status"] == "recorded"
    (row,) = [row for row in json.loads(limbeck("ledger", "export").out)["rows"] if row["row"] == "intent"]
    assert row["run"] == source.ledger["run"]
    assert limbeck("schema", "check", place / "s.json", place / "people.csv").code == 0
    again = limbeck(*arguments(place, "--spend", "1.9", "--force"))
    assert again.code == 2, again.text
    assert "more than remains" in again.text


def columns(**changed):
    return {"columns": [column | changed.get(column["name"], {}) for column in DRAFT]}


@pytest.mark.parametrize(
    ("draft", "options", "said"),
    [
        (columns(), ("--spend", "0"), "epsilon is 0"),
        (columns(), ("--spend", "-1"), "epsilon is -1"),
        (columns(), ("--spend", "nan"), "epsilon is nan"),
        (columns(), ("--spend", "1", "--delta", "0"), "delta is 0"),
        (columns(), ("--spend", "1", "--unsafe-from-data"), "give one"),
        (columns(), ("--spend", "3"), "above the grant"),
        (columns(), ("--spend", "1", "--delta", "1e-4"), "above that of the grant"),
        (columns(), (), "--schema and --target belong to"),
        (columns(), ("--unsafe-from-data", "--dataset", "people"), "belong to --spend"),
        (columns(age={"kind": ""}), ("--spend", "1"), "column 'age': kind is missing"),
        (columns(ill={"kind": "dropped"}), ("--spend", "1"), "one has kind target"),
        (columns(town={"kind": "ordinal", "categories": None}), ("--spend", "1"), "town"),
        (columns(ill={"groups": {"yes": ["flu"]}}), ("--spend", "1"), "ill"),
        (columns(age={"low": "x"}), ("--spend", "1"), "a number is expected"),
        (columns(age={"name": "years"}), ("--spend", "1"), "'years' is missing"),
        (columns(), ("--spend", "1", "--target", "none"), "--target is 'none'"),
        ({}, ("--spend", "1"), "columns"),
    ],
)
def test_what_cannot_be_bought_spends_and_writes_nothing(limbeck, place, draft, options, said):
    limbeck("ledger", "grant", "people", "--epsilon", "2", "--delta", "1e-5")
    (place / "draft.json").write_text(json.dumps({"kind": "table", **draft}))
    done = limbeck(*arguments(place, *options))
    assert (done.code, said in done.text) == (2, True), done.text
    assert sorted(path.name for path in place.iterdir()) == ["draft.json", "people.csv"]
    assert "intent" not in limbeck("ledger", "export").out


def test_nothing_blank_and_no_place_to_write_are_refused_before_anything_is_spent(limbeck, place):
    (place / "s.json").write_text("{}")
    assert "exists" in limbeck(*arguments(place, "--spend", "1")).text
    nowhere = limbeck(*arguments(place, "--spend", "1")[:-4], "--spend", "1", "--out", place / "no" / "s.json")
    assert (nowhere.code, "cannot be written" in nowhere.text) == (2, True), nowhere.text
    full = columns(age={"low": 0, "high": 9}, town={"categories": ["a"]}, ill={"classes": ["no", "yes"]})
    (place / "draft.json").write_text(json.dumps(full))
    nothing = limbeck(*arguments(place, "--spend", "1", "--force"))
    assert (nothing.code, "nothing to buy" in nothing.text) == (2, True), nothing.text
    assert (place / "s.json").read_text() == "{}"
    assert limbeck(*arguments(place)[:3], "--spend", "1").code == 2  # a header alone states no kinds
    assert "intent" not in limbeck("ledger", "export").out


def test_what_does_not_stand_out_is_left_blank_and_named(limbeck, place):
    people(40).to_csv(place / "people.csv", index=False)
    done = limbeck(*arguments(place, "--spend", "0.1", "--no-ledger", "--delta", "1e-3"))
    assert done.code == 1, done.text
    assert "not everything was found" in done.text
    written = json.loads((place / "s.json").read_text())
    assert "classes" not in written["columns"][3]
    assert written["provenance"][0]["columns"] == {}
    assert limbeck("schema", "check", place / "s.json").code == 1


SETTINGS = {"epsilon": 1, "delta": 1e-5, "steps": 2, "rows": 20}


@pytest.fixture
def released(limbeck, place, monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 2)
    assert limbeck(*arguments(place, "--spend", "0.5", "--no-ledger")).code == 0
    model = TableDecant(TableSchema.from_json(place / "s.json"), **SETTINGS)
    model.fit_resample(people())
    assert model.guarantee_ == model.release_.guarantee
    return model.release_.save(place / "release")


def resealed(folder, schema, **fields):
    """A forgery that is consistent but for what it is about."""
    raw = json.loads((folder / "certificate.json").read_text()) | fields
    (folder / "schema.json").write_text(json.dumps(schema.model_dump(mode="json")))
    raw["files"]["schema.json"] = file_digest(folder / "schema.json")
    raw["public_inputs"]["schema"] = schema.digest()
    raw["seal"] = {name: digest_of(raw[name]) for name in raw["seal"]}
    (folder / "certificate.json").write_text(json.dumps(raw))
    return {problem.field for problem in examine(folder).problems}


def test_a_release_says_what_its_schema_cost_and_the_sum(limbeck, released):
    guarantee = load(released).guarantee
    assert guarantee.schema == pytest.approx((0.5, 1e-5), rel=0.01)
    assert guarantee.epsilon == pytest.approx(1.5, rel=0.01)
    assert guarantee.delta == pytest.approx(2e-5)
    said = "epsilon 1.5 at delta 2e-05, per record, zero-out, of which epsilon 0.5 at delta 1e-05 for the schema"
    assert said in (released / "README.md").read_text().replace("Epsilon", "epsilon")
    assert "| column 'town': categories | dp: epsilon 0.5" in (released / "README.md").read_text()
    verified = limbeck("verify", released)
    assert verified.code == 0, verified.text
    assert said in verified.out
    stated = json.loads((released / "certificate.json").read_text())
    assert stated["origin"]["column 'age': low, high"].startswith("dp: epsilon 0.5")
    assert stated["with_schema"]["epsilon"] == stated["epsilon"] + stated["with_schema"]["schema"]["epsilon"]

    # A forgery that is consistent but for one thing is named by it.
    schema = load(released).schema
    (source,) = schema.provenance
    cheaper = schema.model_copy(update={"provenance": (source.model_copy(update={"epsilon": 0.1}),)})
    assert {"schema.json provenance.0.epsilon", "with_schema", "statement"} <= resealed(released, cheaper)
    plain = tuple({k: v for k, v in m.items() if k != "failure"} for m in source.measurements)
    unpaid = schema.model_copy(update={"provenance": (source.model_copy(update={"measurements": plain}),)})
    assert "schema.json provenance.0.measurements" in resealed(released, unpaid)
    declared = schema.model_copy(update={"provenance": ()})
    assert {"with_schema", "statement", "origin"} <= resealed(released, declared)
    assert "with_schema" in resealed(released, schema, with_schema=None)


def test_a_bought_schema_is_for_the_terms_it_was_bought_on(limbeck, place, released):
    data = (place / "people.csv", "--schema", place / "s.json", "--no-ledger", "--out", place / "r")
    refused = limbeck("distill", *data, "--relation", "replace-one")
    assert (refused.code, "do not add up" in refused.text) == (2, True), refused.text
    fields = json.loads((place / "s.json").read_text())
    fields["columns"][2] = {"name": "weight", "kind": "unit", "rows": 2}
    with pytest.raises(RequestError, match="bought for a record"):
        TableSchema(**fields)


def test_values_read_from_the_data_promise_nothing_anywhere(limbeck, place, monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 2)
    data = place / "people.csv"
    done = limbeck("schema", "init", data, "--unsafe-from-data", "--target", "ill", "--out", place / "u.json")
    assert done.code == 0, done.text
    assert "warning" in done.err
    assert "no privacy guarantee" not in done.out
    fields = json.loads((place / "u.json").read_text())
    kinds = {column["name"]: column["kind"] for column in fields["columns"]}
    assert kinds == {"age": "numerical", "town": "categorical", "weight": "numerical", "ill": "target"}
    assert fields["columns"][1]["categories"] == ["Ely", "Ham", "Hamsecret"]
    assert fields["columns"][0]["high"] == 1234567
    assert stat.S_IMODE((place / "u.json").stat().st_mode) == 0o600
    with pytest.raises(RequestError, match="unsafe=True"):
        TableSchema.from_json(place / "u.json")

    options = ("--steps", "2", "--rows", "20", "--out", place / "r")
    refused = limbeck("distill", data, "--schema", place / "u.json", *options)
    assert (refused.code, "--unsafe-schema" in refused.text) == (2, True), refused.text
    assert not (place / "r").exists()
    made = limbeck("distill", data, "--schema", place / "u.json", "--unsafe-schema", *options)
    assert made.code == 0, made.text
    said = "no privacy guarantee: the schema was read from the data"
    assert said in made.out
    assert said in made.err
    assert said in (place / "r" / "README.md").read_text().replace("No privacy", "no privacy")
    assert "no-privacy-guarantee" in (place / "r" / "README.md").read_text()
    verified = limbeck("verify", place / "r")
    assert (verified.code, said in verified.out) == (0, True), verified.text
    stated = json.loads((place / "r" / "certificate.json").read_text())
    assert (stated["status"], stated["epsilon"], stated["curve"]) == ("none", None, None)
    assert stated["origin"]["column 'town': kind, categories"] == "unsafe: read from the data"
    assert stat.S_IMODE((place / "r").stat().st_mode) == 0o700
    assert "intent" not in limbeck("ledger", "export").out
    schema = load(place / "r").schema
    forged = resealed(place / "r", schema, status="private", epsilon=1.0, statement="epsilon 1 at delta 1e-05")
    assert {"status", "statement"} <= forged
    bought = limbeck("schema", "init", data, "--schema", place / "u.json", "--spend", "1")
    assert bought.code == 2
