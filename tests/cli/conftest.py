"""The command line as a person uses it: arguments in, exit code and text out."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def limbeck(monkeypatch, capsys):
    def run(*arguments):
        from limbeck.cli import main

        monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        code = stop.value.code or 0
        return SimpleNamespace(code=code, out=captured.out, err=captured.err, text=captured.out + captured.err)

    return run


@pytest.fixture
def small(tmp_path):
    """A file of one's own and its schema: 120 images of 6 x 6, two classes that differ in brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = np.clip(rng.normal(80 + 90 * y[:, None, None], 40, (120, 6, 6)), 0, 255).astype(np.uint8)
    np.savez(tmp_path / "small.npz", x=x, y=y)
    (tmp_path / "schema.json").write_text('{"shape": [6, 6, 1], "classes": [0, 1], "low": 0, "high": 255}')
    return tmp_path


QUICK = ("--features", "fc-ntk", "--batch", "full", "--epochs", "6", "--per-class", "1", "--delta", "1e-3")


@pytest.fixture
def distilled(limbeck, small):
    done = limbeck("distill", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--out", small / "out")
    assert done.code == 0, done.text
    return small / "out"
