"""A release is written whole or not at all, read back as it was, and rejected when anything in it was edited."""

import json
import shutil

import numpy as np
import pytest

import limbeck
from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.features import named
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.release import Release, load, verify
from limbeck.release.certificate import digest_of

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("cat", "dog"), low=0, high=255)
PLAN = Plan(measurements=(Measurement(name="g", sampling=FullBatch(n=500), steps=4, clip=0.5, sigma=7.5),), delta=1e-5)
RECIPE = {
    "method": "DPKIP",
    "per_class": 2,
    "features": named("fc-ntk", SCHEMA.shape).config(),
    "ridge": 1e-3,
    "delta": 1e-5,
    "steps": 4,
    "clip_norm": 0.5,
}


def make(guarantee=None, plan=PLAN):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 4, 4, 1)).astype(np.float32)
    y = np.repeat(np.eye(2, dtype=np.float32) - 0.5, 2, axis=0)
    return Release.of(SCHEMA, x, y, guarantee or Guarantee.of(PLAN, seeded=False), RECIPE, plan)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return make().save(tmp_path_factory.mktemp("out") / "release")


@pytest.fixture
def copy(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "release")
    return tmp_path / "release"


def edit(folder, change, reseal=()):
    path = folder / "certificate.json"
    raw = json.loads(path.read_text())
    change(raw)
    for name in reseal:
        raw["seal"][name] = digest_of(raw[name])
    path.write_text(json.dumps(raw))


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


def test_a_receiver_has_a_working_classifier(saved):
    model = limbeck.load(saved).classifier()
    raw = np.clip(load(saved).x, 0, 255)
    assert set(model.predict(raw)) <= {"cat", "dog"}
    assert np.allclose(model.predict_proba(raw).sum(1), 1)
    assert 0 <= model.score(raw, load(saved).labels) <= 1


def test_pictures_carry_label_and_range(saved):
    from PIL import Image

    release = load(saved)
    file = sorted((saved / "images").glob("*.png"))[0]
    with Image.open(file) as picture:
        assert picture.text["label"] == "cat"
        black, white = float(picture.text["black"]), float(picture.text["white"])
        pixels = np.asarray(picture, np.float64) / 255 * (white - black) + black
    assert np.allclose(pixels, release.x[0, :, :, 0], atol=(white - black) / 255)


CERTIFIED = json.loads('["statement", "status", "mechanism", "noise", "unit", "rows_per_unit", "relation", "units", '
                       '"epsilon", "delta", "curve", "measurements", "event", "accountant", "origin", '
                       '"public_inputs", "files", "software", "format", "seal"]')  # fmt: skip


def another(value):
    """A different value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value * 2 + 1
        case str():
            return {"record": "person", "zero-out": "replace-one", "private": "seeded"}.get(value, value + "x")
        case list():
            return [another(value[0]), *value[1:]]
        case dict():
            key = sorted(value)[0]
            return {**value, key: another(value[key])}
    raise AssertionError(value)


@pytest.mark.parametrize("field", CERTIFIED)
def test_any_edited_field_is_named(copy, field):
    edit(copy, lambda raw: raw.update({field: another(raw[field])}))
    problems = verify(copy)
    named = {p.field.split(".")[0] for p in problems}
    assert field in named or (field == "seal" and problems)


@pytest.mark.parametrize("field", CERTIFIED)
def test_any_missing_field_is_named(copy, field):
    edit(copy, lambda raw: raw.pop(field))
    assert any(field in str(p) for p in verify(copy))


def test_all_fields_are_tried(saved):
    assert set(json.loads((saved / "certificate.json").read_text())) == set(CERTIFIED)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c.update(epsilon=c["epsilon"] / 2), "epsilon"),
        (lambda c: c["measurements"][0].update(sigma=1.0), "event"),
        (lambda c: c["measurements"][0].update(steps=1), "event"),
        (lambda c: c["measurements"][0].update(clip=0.1), "clip_norm"),
        (lambda c: c["measurements"][0]["sampling"].update(n=5000), "units"),
        (lambda c: c.update(delta=1e-3), "epsilon"),
        (lambda c: c.update(relation="replace-one"), "epsilon"),
        (lambda c: c.update(unit="person"), "unit"),
        (lambda c: c.update(units=5), "units"),
        (lambda c: c.update(statement="epsilon 0.1 at delta 1e-05, per record, zero-out"), "statement"),
        (lambda c: c["curve"].pop(), "curve"),
        (lambda c: c["event"]["events"][0].update(count=2), "event"),
        (lambda c: c.update(measurements=[], event=None), "status"),
        (lambda c: c["public_inputs"].update(schema="0" * 64), "public_inputs.schema"),
    ],
)
def test_an_edit_with_its_seal_mended_is_still_inconsistent(copy, change, field):
    edit(copy, change, reseal=[f for f in CERTIFIED if f != "seal"])
    assert field in {p.field for p in verify(copy)}


@pytest.mark.parametrize("name", ["data.npz", "schema.json", "recipe.json", "README.md", "images/index.csv"])
def test_a_changed_file_is_named(copy, name):
    (copy / name).write_bytes((copy / name).read_bytes() + b" ")
    assert name in {p.field for p in verify(copy)}


def test_missing_and_extra_files_are_named(copy):
    (copy / "README.md").unlink()
    (copy / "extra.txt").write_text("!")
    assert {"README.md", "extra.txt"} <= {p.field for p in verify(copy)}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}'])
def test_a_certificate_that_is_none_is_a_problem_and_no_crash(copy, text):
    (copy / "certificate.json").write_text(text)
    assert verify(copy)


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


def test_a_seeded_release_cannot_be_relabelled(tmp_path):
    folder = make(Guarantee("seeded")).save(tmp_path / "seeded")
    edit(folder, lambda c: c.update(status="private"), reseal=["status"])
    assert verify(folder)
