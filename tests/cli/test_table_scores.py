"""Scores of tables as they are printed and stored."""

import json

import pandas as pd
import pytest
from rich.console import Console

from limbeck.cli.table_scores import classifier_table, fidelity_table, table_score_facts, table_score_table
from limbeck.evaluate.columns import Column
from limbeck.evaluate.fidelity import fidelity
from limbeck.evaluate.tables import ClassifierScores, TableScores


def scores(protocol="fixed", available=20, **classifiers):
    found = {name: ClassifierScores(metrics={"roc": roc, "prc": roc}) for name, roc in classifiers.items()}
    return TableScores(
        records=20, available=available, test_records=50, classes=2, protocol=protocol, classifiers=found
    )


@pytest.fixture
def rows():
    return {
        "release": scores(tree=(0.8, 0.9), bayes=(0.6, 0.7)),
        "random real subset": scores(available=500, tree=(0.5, 0.5), bayes=(0.55, 0.55)),
        "majority class": scores(**{"majority class": (0.5,)}),
    }


def printed(table):
    console = Console(width=160)
    with console.capture() as got:
        console.print(table)
    return got.get()


def test_a_row_a_set(rows):
    text = printed(table_score_table(rows, {"release": "(1, 1e-05)-DP"}))
    assert "mean ROC" in text
    assert "mean PRC" in text
    release, subset, majority = (next(line for line in text.splitlines() if name in line) for name in rows)
    assert "0.750 ± 0.071" in release
    assert "(1, 1e-05)-DP" in release
    assert "20 of 500" in subset
    assert "real records" in subset
    assert "0.500" in majority
    assert "±" not in majority
    assert "optimistic" not in text


def test_the_papers_protocol_is_called_optimistic(rows):
    rows["release"] = scores("paper", tree=(0.8,))
    assert "optimistic" in printed(table_score_table(rows, {}))


def test_a_row_a_classifier(rows):
    rows["release"].classifiers["bayes"] = rows["release"].classifiers["bayes"].model_copy(update={"constant": 1})
    text = printed(classifier_table(rows))
    tree, bayes = (next(line for line in text.splitlines() if name in line) for name in ("tree", "bayes"))
    assert "0.850 ± 0.071" in tree
    assert "0.650 ± 0.071 *" in bayes
    assert "predicts one class" in text
    assert "majority" not in text


def test_facts_are_json(rows):
    column, target = Column("x", "numerical"), Column("y", "categorical", categories=("a", "b"))
    frame = pd.DataFrame({"x": [0.1, 0.9], "y": ["a", "b"]})
    found = {"release": fidelity(frame, frame, [column], target)}
    facts = json.loads(json.dumps(table_score_facts(rows, found)))
    assert facts["rows"]["release"]["mean"]["roc"] == pytest.approx(0.75)
    assert facts["rows"]["release"]["optimistic"] is False
    assert facts["fidelity"]["release"]["overall"] == pytest.approx(1)
    assert "fidelity" not in table_score_facts(rows)
    assert "1.000" in printed(fidelity_table(found))
