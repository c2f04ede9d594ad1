"""DP-KIP and KIP on tables from the command line, and sizes by class."""

import json

import pandas as pd
import pytest

from tests.cli.test_tables import place, short_fits  # noqa: F401

QUICK = ("--epochs", "2", "--delta", "1e-3", "--no-ledger", "--json")


@pytest.fixture
def data(place):  # noqa: F811
    return place / "people.csv", "--schema", place / "schema.json"


def rows_of(folder):
    return pd.read_csv(folder / "data.csv")["ill"].value_counts().to_dict()


@pytest.mark.parametrize(
    ("asked", "features"),
    [
        (("--method", "dpkip"), "fc-ntk"),
        (("--clip", "inputs", "--features", "table"), "table"),
        (("--method", "dpkip", "--clip", "features"), "table"),
        (("--method", "kip"), "fc-ntk"),
    ],
)
def test_every_way_makes_a_release_that_is_verified(limbeck, place, data, asked, features):  # noqa: F811
    kip = "kip" in asked
    quick = ("--epochs", "2", "--json", "--batch", "100") if kip else QUICK
    made = limbeck("distill", *data, *asked, *quick, "--per-class", "4", "--out", place / "r")
    assert made.code == 0, made.text
    assert ("no privacy guarantee" in json.loads(made.out)["guarantee"]) == kip
    assert rows_of(place / "r") == {"no": 4, "yes": 4}
    assert json.loads((place / "r" / "recipe.json").read_text())["features"]["name"] == features
    verified = limbeck("verify", place / "r")
    assert verified.code == 0, verified.text
    assert ("no privacy guarantee" in verified.text) == kip


def test_a_preset_gives_what_is_not_said_otherwise(limbeck, place, data):  # noqa: F811
    planned = limbeck("plan", *data, "--n", "300", "--preset", "adult/10/eps1", "--epsilon", "2", "--json")
    assert planned.code == 0, planned.text
    recipe = json.loads(planned.out)["recipe"]
    assert recipe["method"] == "DPKIP"
    assert (recipe["per_class"], recipe["batch"], recipe["epsilon"]) == (10, 0.8, 2)
    assert recipe["clip_norm"] == pytest.approx(0.2)
    made = limbeck(
        "distill", *data, "--method", "dpkip", "--preset", "adult/10/eps1", "--per-class", "2", "--no-ledger", "--out",
        place / "r",
    )  # fmt: skip
    assert made.code == 0, made.text
    assert rows_of(place / "r") == {"no": 2, "yes": 2}
    assert limbeck("verify", place / "r").code == 0


@pytest.mark.parametrize("method", [("--method", "dpkip", "--epochs", "2"), ("--steps", "5")])
def test_a_number_for_each_class(limbeck, place, data, method):  # noqa: F811
    asked = (*method, "--delta", "1e-3", "--no-ledger", "--per-class", "no=6,yes=3", "--out", place / "r")
    made = limbeck("distill", *data, *asked)
    assert made.code == 0, made.text
    assert rows_of(place / "r") == {"no": 6, "yes": 3}
    assert limbeck("verify", place / "r").code == 0


def test_a_signal_serves_sizes_by_class(limbeck, place, data):  # noqa: F811
    assert limbeck("measure", *data, "--steps", "5", "--delta", "1e-3", "--out", place / "s").code == 0
    assert limbeck("fit", place / "s", "--per-class", "yes=1,no=7", "--out", place / "r").code == 0
    assert rows_of(place / "r") == {"no": 7, "yes": 1}


def test_classes_by_count(limbeck, place, data):  # noqa: F811
    made = limbeck(
        "distill", *data, "--method", "dpkip", "--class-shares", "counted", *QUICK, "--epsilon", "50", "--per-class",
        "10", "--out", place / "r",
    )  # fmt: skip
    assert made.code == 0, made.text
    found = rows_of(place / "r")
    assert sum(found.values()) == 20
    assert 10 <= found["no"] <= 14  # three in five
    assert limbeck("verify", place / "r").code == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--per-class", "no=3"), "declares no, yes"),
        (("--per-class", "no=3,yes=x"), "no=30,yes=10"),
        (("--per-class", "no=3,no=4"), "named once"),
        (("--per-class", "ten"), "whole number"),
        (("--per-class", "0"), "rows a class"),
        (("--per-class", "no=0,yes=1"), "0 rows of no"),
        (("--rows", "100"), "--rows belongs to decant"),
        (("--class-shares", "exact"), "uniform or counted"),
        (("--class-shares", "counted", "--per-class", "no=1,yes=2"), "choose one"),
        (("--clip", "weights"), "inputs"),
        (("--clip", "features", "--features", "fc-ntk"), "finite feature map"),
        (("--features", "scattering"), "table or fc-ntk"),
        (("--preset", "mars/1/eps1"), "adult/10/eps1"),
        (("--batch", "1.5"), "a share below 1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(limbeck, place, data, wrong, said):  # noqa: F811
    refused = limbeck("distill", *data, "--method", "dpkip", "--no-ledger", *wrong, "--out", place / "r")
    assert refused.code == 2
    assert said in refused.text.replace("\n", " ")
    assert not (place / "r").exists()


def test_sizes_by_class_are_for_tables(limbeck, place):  # noqa: F811
    refused = limbeck("distill", "digits", "--per-class", "0=1,1=2", "--no-ledger", "--out", place / "r")
    assert refused.code == 2
    assert "for tables" in refused.text


def test_the_embedded_table(limbeck, place):  # noqa: F811
    made = limbeck("distill", "breast_cancer", "--clip", "features", *QUICK, "--per-class", "2", "--out", place / "r")
    assert made.code == 0, made.text
    assert len(pd.read_csv(place / "r" / "data.csv")) == 4
