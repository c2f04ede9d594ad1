"""Property 15. A release's guarantee follows from its folder alone; an edit that contradicts the rest is named.

Every field and every file, edited, removed, resealed and forged: tests/release.
"""

import json

import pytest

from limbeck.privacy.accounting import epsilon_of
from limbeck.privacy.events import event_of
from limbeck.release import verify
from limbeck.release.certificate import digest_of
from tests.guarantee.problem import NOISES, data, tiny


@pytest.fixture(scope="module", params=NOISES)
def folder(request, tmp_path_factory):
    model = tiny(noise=request.param)
    model.fit_resample(*data())
    return model.release_.save(tmp_path_factory.mktemp("out") / "release")


def test_the_folder_is_consistent(folder):
    assert not verify(folder)


def test_epsilon_and_the_curve_follow_from_the_event_tree(folder):
    stated = json.loads((folder / "certificate.json").read_text())
    event, relation = event_of(stated["event"]), stated["relation"]
    assert epsilon_of(event, stated["delta"], relation) == pytest.approx(stated["epsilon"], rel=1e-6)
    for delta, epsilon in stated["curve"]:
        assert epsilon_of(event, delta, relation) == pytest.approx(epsilon, rel=1e-6)


def test_everything_that_a_reviewer_needs_is_stated(folder):
    stated = json.loads((folder / "certificate.json").read_text())
    (measured,) = stated["measurements"]
    assert {"sigma", "clip", "steps", "sampling", "noise"} <= measured.keys()
    for field in ("mechanism", "noise", "unit", "relation", "units", "curve", "accountant", "origin", "software"):
        assert stated[field], field
    assert {"schema", "recipe"} <= stated["public_inputs"].keys()
    assert {"data.npz", "schema.json", "recipe.json", "README.md"} <= stated["files"].keys()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c.update(epsilon=c["epsilon"] / 2), "epsilon"),
        (lambda c: c["measurements"][0].update(sigma=100.0), "event"),
        (lambda c: c["measurements"][0].update(steps=1), "event"),
        (lambda c: c.update(unit="person"), "unit"),
        (lambda c: c.update(relation="replace-one"), "epsilon"),
    ],
    ids=["epsilon", "sigma", "steps", "unit", "relation"],
)
def test_an_edit_that_contradicts_the_rest_is_named_even_if_resealed(folder, change, field):
    path = folder / "certificate.json"
    kept = path.read_text()
    forged = json.loads(kept)
    change(forged)
    forged["seal"] = {name: digest_of(forged[name]) for name in forged["seal"]}
    try:
        path.write_text(json.dumps(forged))
        assert field in {problem.field for problem in verify(folder)}
    finally:
        path.write_text(kept)
