"""A signal folder: written, read back, verified; and what is derived from it says so."""

import json
import shutil

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.release import Signal, examine, load, load_signal, verify
from limbeck.release.contents import file_digest
from tests.release.conftest import PLAN, RECIPE, SCHEMA, edit, make, mend

W = np.random.default_rng(0).normal(size=(16, 2)).astype(np.float32)
MEASURED = {name: value for name, value in RECIPE.items() if name not in ("per_class", "ridge")}


def signal(guarantee=None, weights=W) -> Signal:
    return Signal(SCHEMA, weights, guarantee or Guarantee.of(PLAN, seeded=False), MEASURED, PLAN)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return signal().save(tmp_path_factory.mktemp("out") / "signal")


@pytest.fixture
def copied(measured, tmp_path):
    shutil.copytree(measured, tmp_path / "signal")
    return tmp_path / "signal"


def fields(folder) -> set[str]:
    return {problem.field for problem in verify(folder)}


def test_a_signal_comes_back_as_it_was(measured):
    read = load_signal(measured)
    assert np.array_equal(read.W, W)
    assert (read.schema, read.recipe, read.plan) == (SCHEMA, MEASURED, PLAN)
    assert read.guarantee == signal().guarantee
    assert read.digest == file_digest(measured / "certificate.json")
    assert {p.name for p in measured.iterdir()} == {
        "signal.npz", "schema.json", "recipe.json", "certificate.json", "README.md"
    }  # fmt: skip
    assert "limbeck fit signal" in (measured / "README.md").read_text()


def test_a_signal_is_verified_as_a_release_is(measured):
    found = examine(measured)
    assert found.consistent, found.problems
    assert found.epsilon["stated"] == found.epsilon["pld"]
    (data,) = (check for check in found.checks if check.name == "signal.npz")
    assert data.shows == "weights of 16 features for 2 classes, as declared"
    origin = json.loads((measured / "certificate.json").read_text())["origin"]
    assert origin["initial weights"] == "zero"
    assert not {"labels", "initial images"} & origin.keys()


def test_a_seeded_signal_promises_nothing_and_is_its_owners(tmp_path):
    folder = signal(Guarantee("seeded")).save(tmp_path / "seeded")
    assert examine(folder).guarantee == "not private: seeded"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_existing_folder_is_kept_unless_forced(copied):
    with pytest.raises(RequestError, match="--force"):
        signal().save(copied)
    signal(weights=2 * W).save(copied, force=True)
    assert np.array_equal(load_signal(copied).W, 2 * W)


@pytest.mark.parametrize("name", ["signal.npz", "schema.json", "recipe.json", "README.md"])
def test_a_changed_file_is_named(copied, name):
    (copied / name).write_bytes((copied / name).read_bytes() + b" ")
    assert name in fields(copied)


@pytest.mark.parametrize(
    "arrays",
    [{"W": W[:, :1]}, {"W": W[:, 0]}, {"W": W, "x": W}, {"x": W}, {"W": np.full_like(W, np.nan)}, {"W": W.astype(int)}],
)
def test_weights_that_do_not_fit_are_named(copied, arrays):
    np.savez(copied / "signal.npz", **arrays)
    mend(copied)
    assert "signal.npz" in fields(copied)


def test_the_two_kinds_are_told_apart(measured, tmp_path):
    release = make().save(tmp_path / "release")
    with pytest.raises(RequestError, match="limbeck fit"):
        load(measured)
    with pytest.raises(RequestError, match="is a release"):
        load_signal(release)
    with pytest.raises(RequestError, match="not a signal"):
        load_signal(tmp_path)


def derived(folder, digest):
    from dataclasses import replace

    return replace(make(), derived_from=digest).save(folder)


def test_a_derived_release_names_its_signal(measured, tmp_path):
    digest = load_signal(measured).digest
    folder = derived(tmp_path / "release", digest)
    found = examine(folder)
    assert found.consistent, found.problems
    assert found.derived_from == digest == load(folder).derived_from
    assert found.facts()["derived from"] == digest
    assert f"signal {digest}: no further budget" in (folder / "README.md").read_text()


@pytest.mark.parametrize("digest", ["", "x" * 64, "0" * 63])
def test_what_is_no_digest_is_named(tmp_path, digest):
    assert fields(derived(tmp_path / "release", digest)) == {"derived_from"}


def test_a_signal_is_derived_from_nothing(copied):
    edit(copied / "certificate.json", lambda c: c.update(derived_from="0" * 64))
    mend(copied)
    assert "derived_from" in fields(copied)


def test_certificates_from_before_signals_are_read(tmp_path):
    folder = make().save(tmp_path / "release")
    edit(folder / "certificate.json", lambda c: c.pop("derived_from"))
    mend(folder)
    assert not verify(folder)
    assert load(folder).derived_from is None
