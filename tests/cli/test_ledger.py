"""The ledger on the command line: grants, refusals before anything is measured, and runs that are killed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from limbeck.privacy.ledger import Ledger
from limbeck.release import load
from tests.cli.conftest import QUICK


@pytest.fixture
def distill(limbeck, small):
    def run(*more, data="small.npz", out="out"):
        arguments = ("distill", small / data, "--schema", small / "schema.json", *QUICK, "--out", small / out)
        return limbeck(*arguments, *more)

    return run


def intents(dataset=None):
    return [row for row in Ledger.open().history(dataset) if row["row"] == "intent"]


def grant(limbeck, *more, dataset="small", epsilon=2, delta=1e-3):
    done = limbeck("ledger", "grant", dataset, "--epsilon", epsilon, "--delta", delta, *more)
    assert done.code == 0, done.text
    return done


def test_a_run_without_a_grant_is_recorded_and_says_so(distill, limbeck, small):
    done = distill()
    assert done.code == 0, done.text
    assert "no grant for dataset 'small': spending is recorded but not limited" in done.err
    (row,) = intents()
    assert load(small / "out").ledger == {"status": "recorded", "dataset": "small", "run": row["run"], "grant": None}
    shown = limbeck("ledger", "show")
    assert "recorded but not limited" in shown.out
    assert "unfinished" not in shown.out


def test_a_grant_is_spent_and_then_refused(distill, limbeck, small):
    grant(limbeck)
    assert distill("--epsilon", 1).code == 0
    assert load(small / "out").ledger["grant"] == {"epsilon": 2.0, "delta": 1e-3, "filter": "rdp"}
    before = set(small.iterdir())
    refused = distill("--epsilon", 2, out="second")
    assert refused.code == 2
    said = refused.err.replace("\n", " ")
    assert "asks for epsilon 2 at delta 0.001" in said
    assert "of epsilon 2 at delta 0.001 for 'small'" in said
    assert set(small.iterdir()) == before
    assert len(intents()) == 1
    fit = said.split("would fit with --epsilon ")[1].split(". ")[0]
    assert distill("--epsilon", fit, out="second").code == 0

    shown = limbeck("ledger", "show", "small")
    for word in ("granted", "spent", "remaining", "all runs, PLD", "plain sum", "assumes plans fixed in advance"):
        assert word in shown.out
    (facts,) = json.loads(limbeck("ledger", "show", "--json").out)
    assert facts["runs"] == 2
    assert facts["unfinished"] == []
    assert 0.9 < facts["filter"]["fraction"] <= 1
    assert facts["assuming_plans_fixed_in_advance"]["composed"][0] <= facts["spent_epsilon"] <= 2
    rows = json.loads(limbeck("ledger", "history", "--json").out)
    assert [row["row"] for row in rows] == ["grant", "intent", "completion", "intent", "completion"]
    table = limbeck("ledger", "history").out
    assert "second" in table
    assert limbeck("ledger", "export", "--out", small / "export.json").code == 0
    exported = json.loads((small / "export.json").read_text())
    assert exported["rows"] == rows
    assert json.loads(limbeck("ledger", "export").out) == exported


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--epsilon", "3"), "epsilon 3 is above the grant"),
        (("--delta", "0.01"), "delta 0.01 is above that of the grant"),
        (("--relation", "replace-one"), "is granted per record, zero-out"),
        (("--epsilon", "2", "--delta", "1e-6", "--n", "120"), None),
    ],
)
def test_what_cannot_fit_is_refused_before_the_data_is_read(distill, limbeck, small, more, said):
    grant(limbeck)
    (small / "small.npz").write_bytes(b"nothing that could be read")
    done = distill(*more)
    assert done.code == 2
    assert (said or "small.npz") in done.err.replace("\n", " ")  # the last fits, and comes as far as reading
    assert not intents()
    assert not (small / "out.work").exists()


def test_with_a_public_count_the_whole_check_comes_before_the_data(distill, limbeck, small):
    grant(limbeck)
    assert distill("--epsilon", 1.5).code == 0
    (small / "small.npz").write_bytes(b"nothing that could be read")
    done = distill("--epsilon", 1.5, "--n", 120, out="second")
    assert done.code == 2
    assert "more than remains" in done.err.replace("\n", " ")
    known = limbeck(
        "distill", "digits", "--features", "fc-ntk", "--per-class", 1, "--batch", "full", "--delta", "1e-3",
        "--dataset", "small", "--epsilon", 2, "--out", small / "digits",
    )  # fmt: skip
    assert known.code == 2
    assert "more than remains" in known.err.replace("\n", " ")


def test_a_wrong_count_is_refused_and_not_charged(distill, small):
    done = distill("--n", 121)
    assert done.code == 2
    assert "120 records, and the plan is for 121" in done.err.replace("\n", " ")
    assert not intents()
    assert not (small / "out.work").exists()


def test_a_guessed_name_is_not_a_fresh_budget(distill, limbeck, small):
    grant(limbeck, dataset="census")
    done = distill()
    assert done.code == 2
    assert "'census'" in done.err
    assert "--dataset" in done.err
    assert distill("--dataset", "census").code == 0
    assert [row["dataset"] for row in intents()] == ["census"]


def test_the_same_records_under_another_name_are_recognised(distill, small):
    assert distill().code == 0
    assert "same records" not in distill(out="second").err
    with np.load(small / "small.npz") as z:
        order = np.random.default_rng(0).permutation(120)
        np.savez_compressed(small / "again.npz", x=z["x"][order].astype(np.float64), y=z["y"][order])
    done = distill(data="again.npz", out="again")
    assert done.code == 0
    assert "the same records are in the ledger as 'small'" in done.err.replace("\n", " ")


def test_a_missing_key_is_refused_with_how_to_restore_it(distill, limbeck, small):
    assert distill().code == 0
    key = Ledger.open()._store.url.database.replace(".sqlite", ".key")
    os.unlink(key)
    done = distill(out="second")
    assert done.code == 2
    assert "backup" in done.err
    assert "limbeck ledger rekey" in done.err.replace("\n", " ")
    assert not (small / "second.work").exists()
    assert limbeck("ledger", "rekey").code == 0
    assert distill(out="second").code == 0


def test_no_ledger_is_in_the_certificate(distill, limbeck, small):
    grant(limbeck, dataset="census")
    done = distill("--no-ledger")
    assert done.code == 0, done.text
    assert load(small / "out").ledger == {"status": "not used: --no-ledger"}
    assert not intents()
    assert distill("--no-ledger", "--dataset", "census", out="second").code == 2


def test_a_ledger_of_ones_own_place(distill, limbeck, small, monkeypatch):
    assert distill("--ledger", small / "here.sqlite").code == 0
    assert len(Ledger.open(small / "here.sqlite").history()) == 2
    monkeypatch.setenv("LIMBECK_LEDGER", f"sqlite:///{small / 'here.sqlite'}")
    assert len(json.loads(limbeck("ledger", "history", "--json").out)) == 2
    monkeypatch.delenv("LIMBECK_LEDGER")
    done = limbeck("ledger", "show")
    assert done.code == 2
    assert "there is no ledger" in done.err


def test_a_broken_ledger_refuses_the_run(distill, small):
    (small / "broken.sqlite").write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    done = distill("--ledger", small / "broken.sqlite")
    assert done.code == 2
    assert "damaged" in done.err
    assert "Traceback" not in done.text
    assert not (small / "out").exists()


def test_a_lowered_grant_says_what_it_does(distill, limbeck):
    grant(limbeck)
    assert distill("--epsilon", 1.5).code == 0
    done = grant(limbeck, epsilon=1)
    assert "nothing more may run" in done.err.replace("\n", " ")
    done = grant(limbeck, epsilon=5)
    assert "made or changed after runs" in done.err.replace("\n", " ")


@pytest.mark.slow
def test_a_run_that_is_killed_is_charged_in_full(limbeck, small):
    """Ten times in mid-run, at different answers: each is charged once, shown as unfinished, and resumed for free."""
    grant(limbeck, epsilon=50)
    arguments = ["distill", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--epochs", "40"]
    outs = [small / f"out{i}" for i in range(10)]
    script = [sys.executable, "-m", "tests.cli.killed", *map(str, outs), "--", "limbeck", *map(str, arguments)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (account,) = Ledger.open().status("small")
    # After each kill: how many runs were charged, and how much the filter had counted.
    found = json.loads(done.stdout)
    assert [runs for runs, _ in found] == list(range(1, 11))
    assert [spent for _, spent in found] == pytest.approx([i * account.standing.spent / 10 for i in range(1, 11)])
    assert account.unfinished == tuple(map(run_of, outs))
    resumed = limbeck(*arguments, "--out", outs[7], "--resume")
    assert resumed.code == 0, resumed.text
    (account,) = Ledger.open().status("small")
    assert len(account.intents) == 10
    assert len(account.unfinished) == 9
    assert load(outs[7]).ledger["run"] not in account.unfinished


def run_of(out):
    (path,) = (out.with_name(f"{out.name}.work") / "run").glob("run*.json")
    return json.loads(path.read_text())["run"]


def test_a_run_that_died_before_it_was_charged_is_charged_when_resumed(distill, limbeck, small, monkeypatch):
    """Between the folder and the intent nothing has been measured; resuming may not slip by the ledger."""
    grant(limbeck)

    def dies(*_, **__):
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr("limbeck.cli.charge.Charge.reserve", dies)
        patched.setattr("limbeck.cli.run._discard", lambda work: None)
        assert distill().code == 9
    assert not intents()
    assert distill("--resume").code == 0
    assert len(intents()) == 1


def test_a_run_is_resumed_on_the_terms_it_was_started_on(distill, limbeck, small, monkeypatch):
    def dies(*_, **__):
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr("limbeck.measure.session.Session.ask", dies)
        assert distill("--no-ledger").code == 9
    changed = distill("--resume")
    assert changed.code == 2
    assert "ledger differ" in changed.err.replace("\n", " ")
    assert distill("--resume", "--no-ledger").code == 0
    assert not intents()
    assert load(small / "out").ledger == {"status": "not used: --no-ledger"}
