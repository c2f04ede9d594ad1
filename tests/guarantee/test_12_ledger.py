"""Property 12. A dataset's grant is charged before a run, never given back, and never exceeded.

On both databases, with processes that race and that are killed: tests/privacy/test_ledger*.py.
"""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from limbeck.errors import RequestError
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.plan import FullBatch
from tests.guarantee.problem import plan

PLAN = plan(FullBatch(n=100), sigma=8.0)  # about half of epsilon 1


@pytest.fixture
def file(tmp_path):
    Ledger.open(tmp_path / "ledger.sqlite").grant("census", epsilon=1, delta=1e-5)
    return tmp_path / "ledger.sqlite"


def account(file):
    (found,) = Ledger.open(file).status("census")
    return found


def test_a_run_that_would_exceed_the_grant_is_refused_and_leaves_no_row(file):
    Ledger.open(file).reserve("census", PLAN, run="a")
    spent = account(file).spent
    with pytest.raises(RequestError, match="remains"):
        Ledger.open(file).reserve("census", PLAN.scaled(0.5), run="b")
    assert account(file).spent == spent <= 1


def test_a_run_is_charged_in_full_whether_or_not_it_ends(file):
    ledger = Ledger.open(file)
    ledger.reserve("census", PLAN, run="a")
    before = account(file).spent
    assert before > 0
    assert account(file).unfinished == ("a",)
    ledger.complete("a")
    assert account(file).spent == before


@pytest.mark.parametrize(
    "change", ["UPDATE limbeck_intents SET epsilon = 0", "DELETE FROM limbeck_intents", "DELETE FROM limbeck_grants"]
)
def test_rows_are_only_ever_added(file, change):
    Ledger.open(file).reserve("census", PLAN, run="a")
    with sqlite3.connect(file) as connection, pytest.raises(sqlite3.DatabaseError, match="append-only"):
        connection.execute(change)
    connection.close()


def test_of_those_who_race_for_the_rest_one_wins(file):
    def reserve(run):
        try:
            return Ledger.open(file).reserve("census", PLAN.scaled(0.6), run=f"run {run}") is not None
        except RequestError:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(reserve, range(4))) == 1
