"""An interrupted run continues without spending again, and a copied one does not become two releases."""

import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.privacy import journal as journal_module
from limbeck.privacy.journal import Journal

REQUEST = {"epsilon": 1.0, "steps": 5}


def answer(i):
    return np.full((2, 3), i, np.float32)


def fill(journal, steps):
    for i in steps:
        journal.append("g", i, answer(i))


def test_answers_are_replayed_once_each(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(3))
    journal.close()
    again = Journal.resume(tmp_path / "run", REQUEST)
    assert all(np.array_equal(again.replay("g", i), answer(i)) for i in range(3))
    assert again.replay("g", 3) is None
    assert again.replay("g", 0) is None
    fill(again, [3])
    again.close()
    last = Journal.resume(tmp_path / "run", REQUEST)
    assert np.array_equal(last.replay("g", 3), answer(3))


def test_a_copy_is_refused_once_the_other_went_on(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(2))
    journal.close()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    winner = Journal.resume(tmp_path / "copy", REQUEST)
    fill(winner, [2])
    winner.close()
    with pytest.raises(RequestError, match="continued elsewhere"):
        Journal.resume(tmp_path / "run", REQUEST)
    Journal.resume(tmp_path / "copy", REQUEST).close()


def test_a_branch_of_equal_length_is_refused(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(2))
    journal.close()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    registry = journal_module.registry()
    before = (registry / f"{journal.run}.json").read_text()
    a = Journal.resume(tmp_path / "run", REQUEST)
    a.append("g", 2, answer(20))
    a.close()
    after = (registry / f"{journal.run}.json").read_text()
    (registry / f"{journal.run}.json").write_text(before)  # as if by hand
    b = Journal.resume(tmp_path / "copy", REQUEST)
    b.append("g", 2, answer(21))
    b.close()
    (registry / f"{journal.run}.json").write_text(after)
    with pytest.raises(RequestError, match="continued elsewhere"):
        Journal.resume(tmp_path / "copy", REQUEST)


def test_two_at_once_are_refused(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with pytest.raises(RequestError, match="another process"):
        Journal.resume(tmp_path / "copy", REQUEST)
    journal.close()


def test_a_finished_run_is_over_for_every_copy(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(2))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    journal.finish()
    assert not (tmp_path / "run").exists()
    with pytest.raises(RequestError, match="already become a release"):
        Journal.resume(tmp_path / "copy", REQUEST)


def test_another_machine_is_refused(tmp_path, monkeypatch):
    Journal.start(tmp_path / "run", REQUEST).close()
    monkeypatch.setenv("LIMBECK_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(RequestError, match="not started on this machine"):
        Journal.resume(tmp_path / "run", REQUEST)


def test_changed_options_are_named(tmp_path):
    Journal.start(tmp_path / "run", REQUEST).close()
    with pytest.raises(RequestError, match="epsilon"):
        Journal.resume(tmp_path / "run", REQUEST | {"epsilon": 2.0})


def test_starting_over_an_unfinished_run_is_refused(tmp_path):
    Journal.start(tmp_path / "run", REQUEST).close()
    with pytest.raises(RequestError, match="--resume"):
        Journal.start(tmp_path / "run", REQUEST)


def test_resuming_nothing_is_refused(tmp_path):
    with pytest.raises(RequestError, match="no unfinished run"):
        Journal.resume(tmp_path / "run", REQUEST)


def test_a_torn_record_was_never_used_and_is_dropped(tmp_path):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(2))
    journal.close()
    (file,) = (tmp_path / "run").glob("answers-*.bin")
    whole = file.read_bytes()
    file.write_bytes(whole + (1000).to_bytes(8, "little") + b"torn")
    again = Journal.resume(tmp_path / "run", REQUEST)
    fill(again, [2])
    again.close()
    last = Journal.resume(tmp_path / "run", REQUEST)
    assert np.array_equal(last.replay("g", 2), answer(2))
    last.close()


def test_a_crash_before_the_registry_leaves_the_answer_to_be_adopted(tmp_path, monkeypatch):
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(2))

    def crash(self):
        raise OSError("crash")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_record", crash)
        with pytest.raises(OSError, match="crash"):
            journal.append("g", 2, answer(2))
    journal.close()
    again = Journal.resume(tmp_path / "run", REQUEST)
    assert np.array_equal(again.replay("g", 2), answer(2))
    again.close()


def test_snapshots_replace_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "SNAPSHOT_BYTES", 100)
    journal = Journal.start(tmp_path / "run", REQUEST)
    fill(journal, range(4))
    assert journal.snapshot_due()
    journal.snapshot({"step": np.array(4), "x": np.arange(3)})
    assert not journal.snapshot_due()
    fill(journal, [4])
    journal.close()
    again = Journal.resume(tmp_path / "run", REQUEST)
    state = again.state()
    assert int(state["step"]) == 4
    assert np.array_equal(state["x"], np.arange(3))
    assert again.replay("g", 3) is None
    assert np.array_equal(again.replay("g", 4), answer(4))
    again.close()


def _work_until_killed(folder, home):
    os.environ["LIMBECK_HOME"] = home
    journal = Journal.start(folder, REQUEST)
    i = 0
    while True:
        journal.append("g", i, answer(i))
        i += 1


def test_kill_9_loses_nothing_that_was_used(tmp_path):
    home = os.environ["LIMBECK_HOME"]
    process = multiprocessing.get_context("spawn").Process(target=_work_until_killed, args=(tmp_path / "run", home))
    process.start()
    while not list((tmp_path / "run").glob("answers-*.bin")):
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    again = Journal.resume(tmp_path / "run", REQUEST)  # the lease ended with the process
    i = 0
    while (stored := again.replay("g", i)) is not None:
        assert np.array_equal(stored, answer(i))
        i += 1
    assert i > 0
    again.close()
