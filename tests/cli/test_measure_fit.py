"""Measured once where the data lives, fitted for ever where it does not."""

import json
import shutil

import numpy as np
import pytest

from limbeck.privacy.ledger import Ledger
from limbeck.release import load, load_signal

QUICK = ("--steps", "3", "--delta", "1e-3")


@pytest.fixture
def small(tmp_path):
    """120 images of 8 x 8, two classes that differ in where they are bright."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.normal(100, 30, (120, 8, 8))
    x[y == 0, :4] += 80
    x[y == 1, :, :4] += 80
    np.savez(tmp_path / "small.npz", x=np.clip(x, 0, 255).astype(np.uint8), y=y)
    (tmp_path / "schema.json").write_text('{"shape": [8, 8, 1], "classes": [0, 1], "low": 0, "high": 255}')
    return tmp_path


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    """Of fitting: what is tested here is what goes in and out."""
    monkeypatch.setattr("limbeck.distill.pouring.default_steps", lambda m: 3)


@pytest.fixture
def measured(limbeck, small):
    done = limbeck("measure", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--out", small / "signal")
    assert done.code == 0, done.text
    assert "limbeck fit" in done.out
    return small / "signal"


def test_one_measurement_serves_every_size_and_is_charged_once(limbeck, small, measured):
    assert not (small / "signal.work").exists()
    (before,) = Ledger.open().status()
    assert len(before.intents) == 1
    (small / "small.npz").rename(small / "gone.npz")  # fitting needs no data
    (small / "schema.json").unlink()
    digest = load_signal(measured).digest
    for per_class in (1, 3):
        out = small / f"release{per_class}"
        done = limbeck("fit", measured, "--per-class", per_class, "--out", out, "--json")
        assert done.code == 0, done.text
        assert json.loads(done.out)["derived from"] == digest
        assert len(load(out)) == 2 * per_class
        assert load(out).ledger == load_signal(measured).ledger
        checked = limbeck("verify", out)
        assert checked.code == 0, checked.text
        assert f"derived from signal {digest}: no further budget" in checked.out
    (after,) = Ledger.open().status()
    assert after.intents == before.intents
    assert limbeck("verify", measured).code == 0
    predicted = limbeck("predict", small / "release3", small / "gone.npz", "--out", small / "p.csv")
    assert predicted.code == 0, predicted.text


def test_a_grant_refuses_a_second_measurement_and_no_fit(limbeck, small):
    data, schema = small / "small.npz", small / "schema.json"
    limbeck("ledger", "grant", "small", "--epsilon", 1.2, "--delta", "1e-3")
    assert limbeck("measure", data, "--schema", schema, *QUICK, "--out", small / "a").code == 0
    refused = limbeck("measure", data, "--schema", schema, *QUICK, "--out", small / "b")
    assert refused.code == 2
    assert not (small / "b").exists()
    assert limbeck("fit", small / "a", "--per-class", 1, "--out", small / "release").code == 0


def test_fit_options(limbeck, small, measured):
    limbeck("keys", "new", "me", "--out", small)
    done = limbeck(
        "fit", measured, "--per-class", 1, "--init-seed", 7, "--valid-range", "--sign", small / "me.key",
        "--out", small / "release",
    )  # fmt: skip
    assert done.code == 0, done.text
    release = load(small / "release")
    assert release.recipe["init_seed"] == 7
    assert release.x.min() >= 0
    assert release.x.max() <= 255
    assert limbeck("verify", small / "release", "--key", small / "me.pub").code == 0
    assert limbeck("fit", measured, "--out", small / "release").code == 2
    again = limbeck("fit", measured, "--per-class", 1, "--init-seed", 7, "--valid-range", "--out", small / "again")
    assert again.code == 0
    assert np.array_equal(load(small / "again").x, release.x)


def test_a_measurement_is_resumed(limbeck, small, monkeypatch):
    from limbeck.measure.session import Session

    asked = []
    real = Session._noisy_mean

    def stopping(self, *a):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(1)
        return real(self, *a)

    arguments = ("measure", small / "small.npz", "--schema", small / "schema.json", *QUICK, "--out", small / "signal")
    with monkeypatch.context() as patched:
        patched.setattr(Session, "_noisy_mean", stopping)
        stopped = limbeck(*arguments)
    assert stopped.code == 130
    assert "--resume" in stopped.err
    assert limbeck(*arguments).code == 2
    other = limbeck(*arguments, "--resume", "--learning-rate", 3)
    assert other.code == 2
    assert "learning_rate" in other.err
    assert limbeck(*arguments, "--resume").code == 0
    assert limbeck("verify", small / "signal").code == 0
    (account,) = Ledger.open().status()
    assert len(account.intents) == 1


@pytest.mark.usefixtures("few_networks")
def test_distill_chooses_and_says_why(limbeck, small):
    arguments = ("distill", small / "small.npz", "--schema", small / "schema.json", "--delta", "1e-3")
    done = limbeck(*arguments, "--per-class", 2, "--out", small / "both")
    assert done.code == 0, done.text
    assert "method private-dm: its set serves networks and regression" in done.err
    recipe = load(small / "both").recipe
    assert (recipe["method"], recipe["serves"]) == ("PrivateDM", "both")

    done = limbeck(*arguments, "--per-class", 2, "--learning-rate", 8, "--out", small / "decant")
    assert done.code == 0, done.text
    assert "method decant: --learning-rate or --batch full was given" in done.err
    release = load(small / "decant")
    assert release.recipe["method"] == "Decant"
    assert release.derived_from is None
    assert release.ledger["status"] == "recorded"
    assert limbeck("verify", small / "decant").code == 0
    scored = limbeck("evaluate", small / "decant", "--test", small / "small.npz", "--networks", "none", "--json")
    assert scored.code == 0, scored.text

    done = limbeck(*arguments, "--per-class", 2, "--epochs", 0.5, "--features", "fc-ntk", "--out", small / "dpkip")
    assert done.code == 0, done.text
    assert "method dpkip: --epochs was given" in done.err
    assert load(small / "dpkip").recipe["method"] == "DPKIP"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--method", "decant", "--epochs", "2"), "--epochs belongs to kip and dpkip"),
        (("--method", "decant", "--preset", "mnist/1/eps1"), "--preset belongs"),
        (("--method", "decant", "--clip", "pixels"), "--clip belongs to dpkip"),
        (("--method", "decant", "--features", "fc-ntk"), "finite map"),
        (("--method", "decant", "--steps", "0"), "--steps"),
        (("--method", "decant", "--per-class", "10000000"), "GiB"),
        (("--method", "dpkip", "--steps", "3"), "--steps belongs to decant and dm"),
        (("--method", "dpkip", "--valid-range"), "--valid-range belongs to decant"),
        (("--learn-labels",), "labels by its teacher"),
    ],
)
def test_a_wrong_request_is_explained_and_leaves_nothing(limbeck, small, options, said):
    before = set(small.iterdir())
    done = limbeck("distill", small / "small.npz", "--schema", small / "schema.json", *options, "--out", small / "out")
    assert done.code == 2, done.text
    assert said in done.err.replace("\n", " ")
    assert set(small.iterdir()) == before


def test_a_wrong_signal_is_explained(limbeck, small, measured):
    assert "not a signal" in limbeck("fit", small, "--out", small / "release").err
    assert "images a class" in limbeck("fit", measured, "--per-class", 0, "--out", small / "release").err
    shutil.copytree(measured, small / "broken")
    np.savez(small / "broken" / "signal.npz", W=2 * load_signal(measured).W)
    assert "limbeck verify" in limbeck("fit", small / "broken", "--out", small / "release").err
    (small / "broken" / "signal.npz").write_bytes(b"no archive")
    assert limbeck("fit", small / "broken", "--out", small / "release").code == 2
    assert not (small / "release").exists()


def test_plan_of_a_teacher(limbeck, small):
    done = limbeck("plan", small / "small.npz", "--schema", small / "schema.json", "--n", 120, *QUICK, "--json")
    assert done.code == 0, done.text
    facts = json.loads(done.out)
    (measured,) = facts["plan"]["measurements"]
    assert (measured["name"], measured["steps"]) == ("weight gradient", 3)
    assert facts["recipe"]["method"] == "Decant"
    assert facts["seconds"] > 0
    assert facts["memory_bytes"] > 0


@pytest.fixture
def few_networks(monkeypatch):
    """Of PrivateDM: what is tested here is what goes in and out."""
    from limbeck.distill import matching, private_dm

    monkeypatch.setattr(matching, "default_steps", lambda m: (3, 2))
    monkeypatch.setattr(private_dm, "default_steps", lambda m: (3, 2))
    monkeypatch.setattr(private_dm, "LEAST", 3)
    monkeypatch.setattr(private_dm, "NETWORKS", 3)


@pytest.mark.usefixtures("few_networks")
def test_a_signal_for_both_serves_networks_and_regression_alike(limbeck, small):
    data = (small / "small.npz", "--schema", small / "schema.json", "--delta", "1e-3")
    done = limbeck("measure", *data, "--for", "both", "--out", small / "signal")
    assert done.code == 0, done.text
    assert load_signal(small / "signal").S is not None
    checked = limbeck("verify", small / "signal")
    assert checked.code == 0, checked.text
    for serves in ("krr", "networks", "both"):
        done = limbeck("fit", small / "signal", "--per-class", 1, "--for", serves, "--out", small / serves)
        assert done.code == 0, done.text
        assert limbeck("verify", small / serves).code == 0
    assert load(small / "networks").recipe["serves"] == "networks"
    refused = limbeck("fit", small / "signal", "--for", "both", "--free-range", "--out", small / "x")
    assert refused.code == 2
    assert "--free-range" in refused.text


@pytest.mark.usefixtures("few_networks")
def test_distill_for_both_is_private_dm(limbeck, small):
    data = (small / "small.npz", "--schema", small / "schema.json", "--delta", "1e-3", "--per-class", 1)
    done = limbeck("distill", *data, "--for", "both", "--out", small / "release")
    assert done.code == 0, done.text
    assert load(small / "release").recipe["method"] == "PrivateDM"
    assert limbeck("verify", small / "release").code == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--for", "all"), "krr, networks, both"),
        (("--for", "both", "--method", "dpkip"), "private-dm"),
        (("--for", "both", "--clip-norm", "2"), "--clip-norm"),
        (("--for", "networks", "--batch", "full"), "--batch"),
        (("--for", "both", "--steps", "3"), "--steps"),
    ],
)
def test_what_private_dm_does_not_know_is_refused(limbeck, small, given, says):
    data = (small / "small.npz", "--schema", small / "schema.json")
    done = limbeck("distill", *data, *given, "--out", small / "release")
    assert done.code == 2
    assert says in done.text
    assert not (small / "release").exists()
    assert not (small / "release.work").exists()


def test_a_signal_without_class_sums_serves_regression_alone(limbeck, small, measured):
    done = limbeck("fit", measured, "--for", "networks", "--out", small / "release")
    assert done.code == 2
    assert "no class sums" in done.text
