"""Processes that race for the last of a budget, that begin a ledger together, and that are killed."""

import json
import subprocess
import sys

import pytest

from limbeck.privacy.ledger import Ledger
from tests.privacy.plans import full
from tests.privacy.processes import DATASETS


@pytest.fixture
def run(url, tmp_path):
    def run(what):
        command = [sys.executable, "-m", "tests.privacy.processes", what, url, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_of_processes_that_race_for_the_last_of_a_budget_one_wins(url, run):
    ledger = Ledger.open(url)
    for last in range(DATASETS):
        ledger.grant(f"d{last}", epsilon=0.6, delta=1e-5)
        ledger.reserve(f"d{last}", full(10.0), run=f"first-{last}")  # one more fits, and not two
    won = [int(last) for process in run("race") for last in process]
    assert sorted(won) == list(range(DATASETS))
    for account in ledger.status():
        assert len(account.intents) == 2
        assert account.standing.within


def test_processes_that_begin_a_ledger_together_share_it(url, run):
    keys = run("begin")
    ledger = Ledger.open(url, create=False)
    assert keys == [[ledger.fingerprint_key().hex()]] * 4
    (account,) = ledger.status()
    assert len(account.intents) == 20


def test_a_killed_process_leaves_the_ledger_right(url, run):
    """Ten times: what a process was told is charged is charged, at most one run more is, and nothing is damaged."""
    Ledger.open(url).grant("census", epsilon=1e4, delta=1e-5)
    found = run("killed")
    price = found[-1]["spent"] / found[-1]["all"]
    for each in found:
        assert each["charged"][: len(each["told"])] == each["told"]
        assert len(each["charged"]) <= len(each["told"]) + 1
        assert each["spent"] == pytest.approx(price * each["all"])
    assert sum(len(each["told"]) for each in found) > 10
    Ledger.open(url).reserve("census", full(10.0), run="after")
