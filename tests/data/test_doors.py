"""Where private records are opened: every place, with its reason; the test fails on any other."""

import ast
from pathlib import Path

import pytest

import limbeck
from limbeck.cli import app

ROOT = Path(limbeck.__file__).parent

REVEALS = {
    "measure/records.py: Records.__init__": "raw records are checked as a whole by the declared schema, closed again",
    "measure/records.py: Records.encoded_blocks": "some rows at a time, encoded: for `prepare` and for the fingerprint",
    "measure/records.py: Records.batch": "some units, for a session that clips and noises what it computes",
    "measure/records.py: Records.of_class": "which units have a class, for sessions without a guarantee",
    "measure/records.py: _group": "which rows are whose",
    "measure/records.py: Records.cells": "columns as they are in the file, for what buys a schema under noise",
    "data/tables/from_data.py: values_of": "values for a schema, asked for as unsafe: it says so, and all made with it",
    "data/check.py: bad_records": "the custodian's list, outside the guarantee: numbers of records and reasons",
    "data/tables/check.py: bad_rows": "the same of a table: numbers of rows, names of columns and reasons",
    "data/unlabelled.py: _collect": "images to classify, from a file with labels that are ignored",
    "cli/predict.py: predict": "whoever gives images is given their predictions",
    "cli/evaluate.py: _encoded": "scores on real records, kept private unless the custodian declares them public",
    "cli/table_evaluate.py: _frame": "the same of a table; released rows, which are public, come this way too",
    "cli/demo.py: demo": "scikit-learn's digits are public",
    "cli/audit.py: one_run": "records that the custodian declares public, without which it refuses",
}
# What `Records` lets out, and to whom.
BATCHES = {
    "measure/session.py": "answers of a plan: clipped, summed, noised",
    "audit/runs.py": "the audit's own records, made of public noise, whose contributions it must know",
}
BLOCKS = {
    "measure/records.py": "features, computed once and closed again",
    "measure/fingerprint.py": "a keyed digest, for the custodian's ledger alone",
}

CELLS = {"measure/schema_counts.py": "noisy counts, of which bounds and values above a threshold are made"}

# What a session gives without a guarantee, and to whom.
CLASSES = {"measure/session.py": "which units to draw, where nothing is promised"}
SUMS = {"distill/dm.py": "DM, which says that it promises nothing"}
REAL = {"distill/dm.py": "where DM starts if it is asked to, which card, certificate and terminal tell"}


def modules():
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def mentions(tree, name, within=()):
    """The dotted names of the functions in which an attribute is used."""
    for node in ast.iter_child_nodes(tree):
        inside = within
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inside = (*within, node.name)
        if isinstance(node, ast.Attribute) and node.attr == name:
            yield ".".join(within)
        yield from mentions(node, name, inside)


def test_records_are_revealed_in_the_listed_places_alone():
    found = {f"{path}: {place}" for path, tree in modules().items() for place in mentions(tree, "reveal")}
    assert found == set(REVEALS)


@pytest.mark.parametrize(
    ("method", "listed"),
    [
        ("batch", BATCHES),
        ("encoded_blocks", BLOCKS),
        ("cells", CELLS),
        ("of_class", CLASSES),
        ("class_sums", SUMS),
        ("real", REAL),
    ],
)
def test_records_are_given_to_the_listed_modules_alone(method, listed):
    found = {
        path
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    }
    assert found == set(listed)


def test_there_is_no_way_around_the_door():
    """Neither by the name of the slot, nor by a name that is made up at run time."""
    for path, tree in modules().items():
        text = ast.unparse(tree)
        assert "_Private__" not in text, path
        assert "'reveal'" not in text, path


def test_a_new_place_would_be_seen():
    for line in ("x.reveal()", "f = x.reveal", "lambda x: x.reveal()", "[x.reveal() for x in y]"):
        tree = ast.parse(f"class A:\n    def f(self):\n        {line}")
        assert list(mentions(tree, "reveal")) == ["A.f"]


@pytest.mark.parametrize("module", ["beartype", "cgitb", "faulthandler", "pdb", "rich.traceback", "typeguard"])
def test_no_traceback_shows_the_values_of_variables(module):
    """Run-time type checks quote the arrays that fail them, and rich tracebacks the variables of every frame."""
    assert not app.pretty_exceptions_enable
    for path, tree in modules().items():
        imported = [
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        ]
        assert module not in imported, path
