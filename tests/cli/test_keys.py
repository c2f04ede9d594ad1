"""Signing and checking as a person does it."""

import json
import stat

import pytest

from tests.cli.conftest import QUICK


@pytest.fixture
def pair(limbeck, tmp_path):
    done = limbeck("keys", "new", "mine", "--out", tmp_path / "keys", "--json")
    assert done.code == 0, done.text
    return json.loads(done.out)


def distill(limbeck, small, *options):
    return limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--out", small / "out", *options
    )


def test_a_pair_is_made_once(limbeck, tmp_path):
    done = limbeck("keys", "new", "mine", "--out", tmp_path)
    assert done.code == 0, done.text
    assert "keep it secret" in done.out
    assert stat.S_IMODE((tmp_path / "mine.key").stat().st_mode) == 0o600
    again = limbeck("keys", "new", "mine", "--out", tmp_path)
    assert again.code == 2
    assert "never overwritten" in again.err


def test_a_release_is_signed_as_it_is_made(limbeck, small, pair):
    done = distill(limbeck, small, "--sign", pair["private"])
    assert done.code == 0, done.text

    checked = limbeck("verify", small / "out", "--key", pair["public"])
    assert checked.code == 0, checked.text
    assert f"authenticated: signed by {pair['fingerprint']}" in checked.out
    assert "not authenticated" not in checked.out

    unasked = limbeck("verify", small / "out")
    assert unasked.code == 0
    assert f"consistent; signed by key {pair['fingerprint']}, which was not given: not authenticated" in unasked.out

    facts = json.loads(limbeck("verify", small / "out", "--key", pair["public"], "--json").out)
    assert facts["consistent"]
    assert facts["authenticated"]
    assert facts["problems"] == []
    assert 0.99 <= facts["epsilon"]["pld"] <= 1 <= facts["epsilon"]["rdp cross-check"]
    assert {"epsilon", "event", "files", "ledger", "signature"} <= {check["check"] for check in facts["checks"]}

    other = json.loads(limbeck("keys", "new", "other", "--out", small, "--json").out)
    wrong = limbeck("verify", small / "out", "--key", other["public"])
    assert wrong.code == 1
    assert "certificate.sig" in wrong.out


def test_an_existing_release_is_signed_afterwards(limbeck, distilled, pair):
    plain = limbeck("verify", distilled)
    assert plain.code == 0
    assert "consistent, not authenticated (the release is not signed)" in plain.out
    missing = limbeck("verify", distilled, "--key", pair["public"])
    assert missing.code == 1
    assert "certificate.sig: is missing" in missing.out

    done = limbeck("keys", "sign", distilled, "--key", pair["private"])
    assert done.code == 0, done.text
    assert pair["fingerprint"] in done.out
    assert limbeck("verify", distilled, "--key", pair["public"]).code == 0
    assert limbeck("keys", "sign", distilled, "--key", pair["private"]).code == 2

    (distilled / "README.md").write_text("better")
    broken = limbeck("keys", "sign", distilled, "--key", pair["private"], "--force")
    assert broken.code == 1
    assert "README.md" in broken.out
    assert "nothing was signed" in broken.out


def test_a_strangers_text_does_not_steer_the_terminal(limbeck, distilled):
    path = distilled / "certificate.json"
    raw = json.loads(path.read_text())
    raw["software"]["limbeck"] = "1\x1b[2J\nauthenticated: [bold]signed"
    path.write_text(json.dumps(raw))
    checked = limbeck("verify", distilled)
    assert checked.code == 1
    assert "\x1b" not in checked.out
    assert not any(line.startswith("authenticated") for line in checked.out.splitlines())


def test_a_passphrase_from_the_environment(limbeck, small, monkeypatch):
    monkeypatch.setenv("LIMBECK_KEY_PASSPHRASE", "open sesame")
    pair = json.loads(limbeck("keys", "new", "mine", "--out", small, "--json").out)
    monkeypatch.setenv("LIMBECK_KEY_PASSPHRASE", "guess")
    wrong = distill(limbeck, small, "--sign", pair["private"])
    assert wrong.code == 2
    assert "passphrase of" in wrong.err
    assert "wrong" in wrong.err
    monkeypatch.delenv("LIMBECK_KEY_PASSPHRASE")
    unasked = distill(limbeck, small, "--sign", pair["private"])
    assert unasked.code == 2
    assert "LIMBECK_KEY_PASSPHRASE" in unasked.err
    assert not (small / "out").exists()
    assert not (small / "out.work").exists()


@pytest.mark.parametrize("content", [None, "no key"])
def test_a_bad_key_is_explained_before_anything_is_read(limbeck, small, content):
    if content is not None:
        (small / "bad.key").write_text(content)
    for arguments in (
        ("distill", small / "nowhere.npz", "--schema", small / "schema.json", "--out", small / "out", "--sign"),
        ("keys", "sign", small, "--key"),
        ("verify", small, "--key"),
    ):
        done = limbeck(*arguments, small / "bad.key")
        assert done.code == 2, done.text
        assert "bad.key" in done.err.replace("\n", "")
        assert "Traceback" not in done.text


def test_kip_can_be_signed_and_promises_nothing(limbeck, small, pair):
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", "--method", "kip", "--features", "fc-ntk",
        "--per-class", 1, "--epochs", 3, "--batch", 40, "--out", small / "kip", "--sign", pair["private"],
    )  # fmt: skip
    assert done.code == 0, done.text
    checked = limbeck("verify", small / "kip", "--key", pair["public"])
    assert checked.code == 0
    assert "no privacy guarantee" in checked.out
    assert "authenticated: signed by" in checked.out
