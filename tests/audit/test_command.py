"""`limbeck audit`: a table, a folder and an exit code."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from limbeck.cli import app
from limbeck.errors import RequestError

QUICK = ("audit", "canary", "--epsilon", "4", "--steps", "1", "--runs", "60", "--confidence", "0.99999")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_sound_mechanism_passes_and_the_folder_holds_the_evidence(tmp_path):
    done = run(*QUICK, "--out", tmp_path / "audit", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts == json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert facts["verdict"] == "consistent with the claim"
    assert facts["found"]["epsilon"] < facts["claim"] <= 4
    assert facts["controls"]["half the noise"]["flagged"]
    for name in ("scores.png", "roc.png"):
        with Image.open(tmp_path / "audit" / name) as picture:
            assert picture.width > 500


def test_half_the_noise_is_flagged_with_exit_code_1():
    done = run(*QUICK, "--sigma-factor", "0.4")
    assert done.exit_code == 1
    assert "FLAGGED: the mechanism gives away more than it claims" in done.output
    assert "no proof of privacy" in done.output


@pytest.mark.parametrize("wrong", [("--batch", "some"), ("--relation", "other"), ("--confidence", "2")])
def test_wrong_requests(wrong):
    assert isinstance(run(*QUICK, *wrong).exception, RequestError)


def test_one_run_on_a_file(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.integers(0, 255, (40, 4, 4)).astype(np.uint8), y=np.arange(40) % 2)
    (tmp_path / "s.json").write_text('{"shape": [4, 4, 1], "classes": [0, 1], "low": 0, "high": 255}')
    request = (
        "audit", "one-run", tmp_path / "d.npz", "--schema", tmp_path / "s.json", "--features", "fc-ntk", "--batch",
        "full", "--epochs", 3, "--per-class", 1, "--canaries", 50, "--confidence", 0.9999,
    )  # fmt: skip
    assert isinstance(run(*request).exception, RequestError)  # private records are not for this
    done = run(*request, "--public")
    assert done.exit_code == 0, done.output
    assert "not for publication" in done.output
