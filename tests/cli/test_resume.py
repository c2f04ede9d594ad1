"""Ctrl-C leaves a checkpoint; resuming it spends nothing twice, and only one copy may go on."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from limbeck.release import load

OPTIONS = ("--features", "fc-ntk", "--batch", "20", "--epochs", "20", "--per-class", "1", "--delta", "1e-3")


def arguments(small, *more):
    return ["distill", str(small / "small.npz"), "--schema", str(small / "schema.json"), *OPTIONS, *more]


def interrupted(small, stop_signal=signal.SIGINT):
    """A real process, stopped in the middle of its steps."""
    script = (
        "import limbeck.measure.session as s, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have told us to ignore\n"
        "real = s.Session.ask\n"
        "def slow(self, *a):\n"
        "    time.sleep(0.1)\n"
        "    return real(self, *a)\n"
        "s.Session.ask = slow\n"
        "from limbeck.cli import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments(small, "--out", str(small / "out"))],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ.copy(),
    )
    run = small / "out.work" / "run"
    deadline = time.monotonic() + 120
    while not any(f.stat().st_size > 1500 for f in run.glob("answers-*.bin")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(stop_signal)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_ctrl_c_then_resume(limbeck, small):
    code, errors = interrupted(small)
    assert code == 130
    assert "--resume" in errors
    assert not (small / "out").exists()
    refused = limbeck(*arguments(small, "--out", small / "out"))
    assert refused.code == 2
    assert "--resume" in refused.err
    changed = limbeck(*arguments(small, "--out", small / "out", "--resume", "--learning-rate", "0.5"))
    assert changed.code == 2
    assert "learning_rate" in changed.err
    assert limbeck(*arguments(small, "--out", small / "out", "--resume")).code == 0
    assert limbeck("verify", small / "out").code == 0
    assert not (small / "out.work").exists()


def test_a_copied_checkpoint_does_not_become_two_releases(limbeck, small):
    interrupted(small, signal.SIGKILL)
    shutil.copytree(small / "out.work", small / "copy.work")
    assert limbeck(*arguments(small, "--out", small / "copy", "--resume")).code == 0
    refused = limbeck(*arguments(small, "--out", small / "out", "--resume"))
    assert refused.code == 2
    assert "already become a release" in refused.err.replace("\n", " ")
    assert not (small / "out").exists()


def test_a_resumed_run_uses_the_stored_answers(limbeck, small, monkeypatch):
    """Every answer that was stored is used again as it is, and none is drawn again."""
    interrupted(small)
    from limbeck.measure.session import Session

    drawn = []
    real = Session._noisy_mean

    def counting(self, *a):
        drawn.append(1)
        return real(self, *a)

    monkeypatch.setattr(Session, "_noisy_mean", counting)
    answers = small / "out.work" / "run"
    stored = sum(f.read_bytes().count(b'"name"') for f in answers.glob("answers-*.bin"))
    assert stored > 0
    assert limbeck(*arguments(small, "--out", small / "out", "--resume")).code == 0
    assert len(drawn) == 120 - stored
    assert np.isfinite(load(small / "out").x).all()
