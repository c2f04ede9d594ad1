"""A release is written whole or not at all, and read back as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest

import limbeck
from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.release import examine, load, verify
from tests.release.conftest import PLAN, RECIPE, SCHEMA, make, planned


def test_the_folder_holds_what_it_should(saved):
    names = {str(p.relative_to(saved)) for p in saved.rglob("*") if p.is_file()}
    assert {"data.npz", "schema.json", "certificate.json", "README.md", "recipe.json", "images/index.csv"} <= names
    assert sum(n.endswith(".png") for n in names) == 4
    assert not verify(saved)
    assert not list(saved.parent.glob(".release*"))


def test_what_is_loaded_is_what_was_saved(saved):
    original, loaded = make(), load(saved)
    assert np.array_equal(loaded.x, original.x)
    assert loaded.labels.tolist() == ["cat", "cat", "dog", "dog"]
    assert np.array_equal(loaded.soft, original.soft)
    assert loaded.schema == SCHEMA
    assert loaded.recipe == RECIPE
    assert loaded.guarantee == original.guarantee
    assert np.allclose(loaded.encoded, original.encoded, atol=1e-5)


def test_a_loaded_release_can_be_saved_again(saved, tmp_path):
    again = load(saved).save(tmp_path / "again")
    assert not verify(again)
    assert load(again).guarantee == load(saved).guarantee


def test_the_card_says_what_is_promised_and_how_to_use_it(saved):
    text = (saved / "README.md").read_text()
    assert text.startswith("---\n")
    assert str(make().guarantee)[1:] in text
    assert 'limbeck.load("release").classifier()' in text
    assert "limbeck predict release" in text
    assert 'limbeck.load("release").varied()' in text


def test_a_receiver_has_a_working_classifier(saved):
    model = limbeck.load(saved).classifier()
    raw = np.clip(load(saved).x, 0, 255)
    assert set(model.predict(raw)) <= {"cat", "dog"}
    assert np.allclose(model.predict_proba(raw).sum(1), 1)
    assert 0 <= model.score(raw, load(saved).labels) <= 1


def test_a_receiver_has_variations_to_train_networks_on(saved):
    release = limbeck.load(saved)
    x, p = release.varied(20, seed=1)
    assert x.shape == (20, *release.schema.shape)
    assert x.min() >= release.schema.low
    assert x.max() <= release.schema.high
    assert np.allclose(p.sum(axis=1), 1)
    assert all(np.array_equal(a, b) for a, b in zip((x, p), limbeck.load(saved).varied(20, seed=1), strict=True))
    likeliest = np.take(list(release.schema.classes), p.argmax(axis=1))
    assert np.mean(release.classifier().predict(x) == likeliest) > 0.9


def test_pictures_carry_label_and_range(saved):
    from PIL import Image

    release = load(saved)
    file = sorted((saved / "images").glob("*.png"))[0]
    with Image.open(file) as picture:
        assert picture.text["label"] == "cat"
        black, white = float(picture.text["black"]), float(picture.text["white"])
        pixels = np.asarray(picture, np.float64) / 255 * (white - black) + black
    assert np.allclose(pixels, release.x[0, :, :, 0], atol=(white - black) / 255)


def test_no_release_at_all_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match=r"certificate\.json"):
        verify(tmp_path)
    with pytest.raises(RequestError, match="not a release folder"):
        load(tmp_path)


def test_an_existing_folder_is_kept_without_force(copy):
    before = (copy / "certificate.json").read_text()
    with pytest.raises(RequestError, match="--force"):
        make().save(copy)
    assert (copy / "certificate.json").read_text() == before
    make(Guarantee("seeded")).save(copy, force=True)
    assert load(copy).guarantee.status == "seeded"
    assert not verify(copy)


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("limbeck.release.folder.write_pictures", fail)
    with pytest.raises(OSError, match="disk full"):
        make().save(tmp_path / "release")
    assert not list(tmp_path.iterdir())


def test_seeded_and_unprotected_releases_promise_nothing(tmp_path):
    for status, plan in (("seeded", PLAN), ("none", None)):
        folder = make(Guarantee(status), plan).save(tmp_path / status)
        assert not verify(folder)
        raw = json.loads((folder / "certificate.json").read_text())
        assert raw["epsilon"] is None
        assert raw["statement"] in ("not private: seeded", "no privacy guarantee")
        assert raw["statement"][1:] in (folder / "README.md").read_text()
        assert load(folder).guarantee.epsilon == float("inf")


LEDGERS = [
    ({"status": "none"}, "not recorded in a ledger"),
    ({"status": "not used: --no-ledger"}, "not used: --no-ledger"),
    (
        {"status": "recorded", "dataset": "ward", "run": "ab12", "grant": {"epsilon": 3.0, "delta": 1e-5}},
        "recorded in a ledger as dataset ward, run ab12, grant epsilon 3 at delta 1e-05",
    ),
    (
        {"status": "recorded", "dataset": "ward", "run": "ab12", "grant": None},
        "recorded in a ledger as dataset ward, run ab12, without a grant",
    ),
]


@pytest.mark.parametrize(("ledger", "said"), LEDGERS)
def test_card_and_verify_say_whether_the_run_was_charged(tmp_path, ledger, said):
    folder = replace(make(), ledger=ledger).save(tmp_path / "release")
    assert f"| ledger | {said} |" in (folder / "README.md").read_text()
    assert said in {check.found for check in examine(folder).checks}
    assert not verify(folder)
    assert load(folder).ledger == ledger


def test_discrete_noise_is_certified_by_its_own_accountant(tmp_path):
    plan = planned(noise="discrete")
    folder = make(Guarantee.of(plan, seeded=False), plan, noise="discrete", epsilon=2.0).save(tmp_path / "release")
    found = examine(folder)
    assert found.consistent, found.problems
    raw = json.loads((folder / "certificate.json").read_text())
    assert raw["accountant"]["name"] == "RDP"
    assert "discrete Gaussian" in raw["noise"]
    assert found.epsilon["rdp"] == pytest.approx(raw["epsilon"])
