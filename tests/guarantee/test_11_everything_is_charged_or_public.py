"""Property 11. What leaves is an answer that the plan paid for, or public. Private arrays stay in their wrapper."""

import copy
import io
import json
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest

from limbeck.data.private import Private, PrivateError
from limbeck.distill import DM, KIP
from limbeck.measure import Records, Session
from limbeck.privacy.plan import FullBatch
from limbeck.release import verify
from tests.guarantee.problem import SCHEMA, data, features, null_records, plan, query, records, tiny


def test_no_more_answers_are_given_than_the_plan_holds():
    session = Session(null_records(), plan(FullBatch(n=4), steps=2))
    session.ask("g", query)
    session.ask("g", query)
    with pytest.raises(RuntimeError, match="all have been given"):
        session.ask("g", query)


def test_what_is_not_in_the_plan_is_not_answered():
    with pytest.raises(RuntimeError, match="no measurement"):
        Session(null_records(), plan(FullBatch(n=4))).ask("mean of the data", query)


def test_a_plan_is_for_a_declared_number_of_units():
    with pytest.raises(AssertionError):
        Session(null_records(), plan(FullBatch(n=400)))


@pytest.mark.parametrize(
    "leak",
    [
        str,
        pickle.dumps,
        copy.deepcopy,
        np.asarray,
        json.dumps,
        list,
        lambda held: f"{held}",
        lambda held: np.save(io.BytesIO(), held),
    ],
)
def test_private_arrays_refuse_to_be_shown_copied_or_saved(leak):
    with pytest.raises((PrivateError, TypeError)):
        leak(Private(data(3)[0]))


def test_records_show_their_count_alone():
    made = records(*data(6))
    assert repr(made) == str(made) == "Records(6 units of record, private)"
    with pytest.raises(TypeError):
        pickle.dumps(made)


def held_open(folder: Path) -> list[os.stat_result]:
    """What this process holds open below a folder, by the word of Linux's /proc."""
    found = []
    for handle in Path("/proc/self/fd").glob("*"):
        try:
            if os.readlink(handle).startswith(str(folder)):
                found.append(handle.stat())
        except OSError:  # the handle of this listing
            continue
    return found


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids=oct)
def test_features_on_disk_have_no_name_and_are_their_owners_alone(tmp_path, monkeypatch, umask):
    """So nothing can find them while a run lasts, and nothing remains of them however it ends."""
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path))
    made = Records(SCHEMA, *data(), cache="disk")
    before = os.umask(umask)
    try:
        made.prepare(features("fc-ntk"))
    finally:
        os.umask(before)
    assert list(tmp_path.rglob("*")) == []
    if Path("/proc/self/fd").exists():
        (file,) = held_open(tmp_path)
        assert (stat.S_IMODE(file.st_mode), file.st_nlink, file.st_size) == (0o600, 0, 4 * 4 * 16)
        made.forget()
        assert not held_open(tmp_path)


def test_a_run_says_nothing_but_how_far_it_is(capsys, caplog):
    told = []
    X, y = data()
    model = tiny()
    model.fit(Records(SCHEMA, X, y), progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]
    assert capsys.readouterr() == ("", "")
    assert not caplog.records


def test_every_answer_of_a_run_is_in_its_plan(monkeypatch):
    """As many are asked for as were planned, of whatever data: nothing stops early, nothing is looked at twice."""
    asked = []
    real = Session.ask

    def ask(self, name, query):
        asked.append(name)
        return real(self, name, query)

    monkeypatch.setattr(Session, "ask", ask)
    for X in (data()[0], np.zeros((4, 4, 4))):
        asked.clear()
        model = tiny()
        model.fit_resample(X, data()[1])
        assert {name: asked.count(name) for name in asked} == {m.name: m.steps for m in model.plan_.measurements}


@pytest.mark.parametrize("method", [KIP, DM])
def test_a_method_without_noise_says_that_it_promises_nothing(method, tmp_path):
    length = {"epochs": 1} if method is KIP else {"steps": 1}
    model = method(SCHEMA, per_class=1, features="fc-ntk", batch=4, **length)
    model.fit_resample(*data())
    folder = model.release_.save(tmp_path / "release")
    assert str(model.guarantee_) == "no privacy guarantee"
    assert "no privacy guarantee" in (folder / "README.md").read_text().lower()
    assert json.loads((folder / "certificate.json").read_text())["epsilon"] is None
    assert not [p for p in verify(folder) if p.field == "status"]
