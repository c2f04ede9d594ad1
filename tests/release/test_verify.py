"""Any inconsistent edit is rejected, naming the field; nothing in a folder can crash `verify` or keep it busy."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Poisson
from limbeck.release import examine, verify
from tests.release.conftest import PLAN, edit, make, mend, planned


def fields(folder) -> set[str]:
    return {problem.field for problem in verify(folder)}


# One field edited, and nothing else


def another(value):
    """A different value of the same type."""
    match value:
        case None:
            return "0" * 64
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


CERTIFIED = (
    "accountant", "curve", "delta", "derived_from", "epsilon", "event", "files", "format", "ledger", "measurements",
    "mechanism", "noise", "origin", "public_inputs", "relation", "rows_per_unit", "seal", "software", "statement",
    "status", "unit", "units", "with_schema",
)  # fmt: skip


@pytest.mark.parametrize("field", CERTIFIED)
def test_an_edited_field_of_the_certificate_is_named(copy, field):
    edit(copy / "certificate.json", lambda raw: raw.update({field: another(raw[field])}))
    problems = verify(copy)
    assert field in {p.field.split(".")[0] for p in problems} or (field == "seal" and problems)


@pytest.mark.parametrize("field", CERTIFIED)
def test_a_missing_field_of_the_certificate_is_named(copy, field):
    edit(copy / "certificate.json", lambda raw: raw.pop(field))
    assert field in {p.field.split(".")[0] for p in verify(copy)}


def test_all_fields_are_tried(saved):
    assert set(json.loads((saved / "certificate.json").read_text())) == set(CERTIFIED)


@pytest.mark.parametrize(
    ("name", "field", "value", "named"),
    [
        ("recipe.json", "epsilon", 0.5, "recipe.epsilon"),
        ("recipe.json", "delta", 1e-6, "recipe.delta"),
        ("recipe.json", "steps", 3, "recipe.steps"),
        ("recipe.json", "clip_norm", 0.25, "recipe.clip_norm"),
        ("recipe.json", "batch", 100, "recipe.batch"),
        ("recipe.json", "batch", "half", "recipe.batch"),
        ("recipe.json", "noise", "discrete", "recipe.noise"),
        ("recipe.json", "relation", "replace-one", "recipe.relation"),
        ("recipe.json", "unit", "person", "recipe.unit"),
        ("recipe.json", "per_class", 1, "recipe.per_class"),
        ("recipe.json", "per_class", {}, "recipe.per_class"),
        ("recipe.json", "ridge", 1, "recipe.json"),
        ("schema.json", "shape", [4, 4, 3], "data.npz"),
        ("schema.json", "classes", ["cat", "dog", "cow"], "data.npz"),
        ("schema.json", "unit", "person", "unit"),
        ("schema.json", "rows_per_unit", 2, "schema.json"),
        ("schema.json", "high", 1, "public_inputs.schema"),
        ("schema.json", "low", "none", "schema.json"),
    ],
)
def test_an_edited_field_of_recipe_or_schema_is_named(copy, name, field, value, named):
    edit(copy / name, lambda raw: raw.update({field: value}))
    assert {named, name} <= fields(copy)


@pytest.mark.parametrize("name", ["data.npz", "schema.json", "recipe.json", "README.md", "images/index.csv"])
def test_a_changed_file_is_named(copy, name):
    (copy / name).write_bytes((copy / name).read_bytes() + b" ")
    assert name in fields(copy)


def leaves(value, path=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        return [path]
    return [leaf for name, below in inner for leaf in leaves(below, (*path, name))]


def at(raw, path):
    for name in path:
        raw = raw[name]
    return raw


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_any_leaf_of_the_certificate_is_caught(copy, saved, data):
    raw = json.loads((saved / "certificate.json").read_text())
    path = data.draw(st.sampled_from(leaves(raw)))
    old = at(raw, path)
    kinds = [st.none(), st.booleans(), st.integers(-3, 10**9), st.text(max_size=8), st.just([]), st.just({})]
    if isinstance(old, int | float):
        kinds += [st.floats(0.7, 1.5).map(lambda factor: old * factor), st.floats()]
    new = data.draw(st.one_of(kinds).filter(lambda value: json.dumps(value) != json.dumps(old)))
    at(raw, path[:-1])[path[-1]] = new
    (copy / "certificate.json").write_text(json.dumps(raw))
    assert verify(copy), (path, old, new)


# One field edited, and all hashes and seals mended


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c.update(epsilon=c["epsilon"] / 2), "epsilon"),
        (lambda c: c.update(epsilon=None), "epsilon"),
        (lambda c: c["measurements"][0].update(sigma=9.0), "event"),
        (lambda c: c["measurements"][0].update(steps=1), "event"),
        (lambda c: c["measurements"][0].update(noise="discrete"), "event"),
        (lambda c: c["measurements"][0].update(clip=0.1), "recipe.clip_norm"),
        (lambda c: c["measurements"][0].update(steps="4"), "measurements"),
        (lambda c: c["measurements"][0]["sampling"].update(n=5000), "units"),
        (lambda c: c.update(measurements=2 * c["measurements"]), "measurements"),
        (lambda c: c.update(delta=1e-3), "epsilon"),
        (lambda c: c.update(relation="replace-one"), "epsilon"),
        (lambda c: c.update(unit="person"), "unit"),
        (lambda c: c.update(unit="planet"), "unit"),
        (lambda c: c.update(units=5), "units"),
        (lambda c: c.update(rows_per_unit=5), "rows_per_unit"),
        (lambda c: c.update(statement="epsilon 0.1 at delta 1e-05, per record, zero-out"), "statement"),
        (lambda c: c.update(mechanism="magic"), "mechanism"),
        (lambda c: c.update(noise="louder"), "noise"),
        (lambda c: c["origin"].update(labels="noisy"), "origin"),
        (lambda c: c.update(status="seeded"), "epsilon"),
        (lambda c: c.update(status="none"), "status"),
        (lambda c: c["curve"].pop(), "curve"),
        (lambda c: c["curve"][0].reverse(), "curve"),
        (lambda c: c["event"]["events"][0].update(count=2), "event"),
        (lambda c: c["event"]["events"][0]["of"].update(noise_multiplier=8), "event"),
        (lambda c: c.update(measurements=[], event=None), "status"),
        (lambda c: c["accountant"].update(name="guess"), "accountant.name"),
        (lambda c: c["accountant"].update(name="RDP"), "accountant.name"),
        (lambda c: c["accountant"].pop("name"), "accountant.name"),
        (lambda c: c["accountant"].update(grid=0.1), "accountant.grid"),
        (lambda c: c.update(accountant=None), "accountant.name"),
        (lambda c: c.update(ledger={}), "ledger"),
        (lambda c: c.update(ledger={"status": "recorded"}), "ledger"),
    ],
)
def test_an_edit_that_is_sealed_again_is_still_inconsistent(copy, change, field):
    edit(copy / "certificate.json", change)
    mend(copy)
    assert field in fields(copy)


@pytest.mark.parametrize("field", ["epsilon", "delta", "steps", "clip_norm", "per_class"])
def test_a_recipe_that_is_sealed_again_still_disagrees(copy, field):
    edit(copy / "recipe.json", lambda raw: raw.update({field: raw[field] / 2}))
    mend(copy)
    assert fields(copy) == {f"recipe.{field}"}


def test_a_card_that_promises_more_is_named(copy):
    text = (copy / "README.md").read_text()
    (copy / "README.md").write_text(text.replace("**Epsilon 0.9943", "**Epsilon 0.1"))
    mend(copy)
    assert fields(copy) == {"README.md"}


def test_another_version_is_a_note(copy):
    edit(copy / "certificate.json", lambda c: c["software"].update(limbeck="0.0.9"))
    mend(copy)
    found = examine(copy)
    assert found.consistent
    (software,) = (check for check in found.checks if check.name == "software")
    assert software.result == "note"
    assert "limbeck 0.0.9" in software.found


def test_a_seeded_release_cannot_be_relabelled(tmp_path):
    folder = make(Guarantee("seeded")).save(tmp_path / "seeded")
    edit(folder / "certificate.json", lambda c: c.update(status="private"))
    mend(folder)
    assert {"epsilon", "status"} <= fields(folder)


def test_a_release_without_a_guarantee_cannot_be_relabelled(tmp_path):
    folder = make(Guarantee("none"), None).save(tmp_path / "kip")
    assert examine(folder).guarantee == "no privacy guarantee"
    assert examine(folder).consistent
    edit(folder / "certificate.json", lambda c: c.update(status="private", epsilon=1.0, statement="epsilon 1"))
    mend(folder)
    assert {"status", "epsilon", "statement"} <= fields(folder)


# What is recomputed


def test_epsilon_is_recomputed_and_cross_checked(saved):
    found = examine(saved)
    assert found.epsilon["pld"] == pytest.approx(PLAN.epsilon)
    assert found.epsilon["stated"] == pytest.approx(PLAN.epsilon)
    assert 1 <= found.epsilon["rdp cross-check"] / PLAN.epsilon <= 1.2
    assert {check.result for check in found.checks} <= {"ok", "note"}


def test_the_cross_check_of_a_cut_batch_says_that_it_is_untruncated(tmp_path):
    plan = planned(sampling=Poisson(n=500, q=0.1, cap=120), sigma=3.0)
    folder = make(Guarantee.of(plan, seeded=False), plan, batch=50).save(tmp_path / "release")
    found = examine(folder)
    assert found.consistent, found.problems
    assert any("untruncated RDP, a cross-check" in check.found for check in found.checks)
    edit(folder / "certificate.json", lambda c: c["measurements"][0]["sampling"].update(cap=60))
    mend(folder)
    assert "event" in fields(folder)


# What a stranger's folder may hold


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b'{"format": 1, "format": 1}'])
def test_what_is_not_json_is_a_problem_and_no_crash(copy, text):
    (copy / "certificate.json").write_bytes(text)
    assert fields(copy) == {"certificate.json"}


@pytest.mark.parametrize("text", ["[]", "3", "null", '{"format": 1}', '{"format": 2}'])
def test_what_is_no_certificate_is_a_problem_and_no_crash(copy, text):
    (copy / "certificate.json").write_text(text)
    assert verify(copy)


def test_a_field_that_is_stated_twice_is_named(copy):
    text = (copy / "certificate.json").read_text()
    (copy / "certificate.json").write_text(text.replace('"epsilon":', '"epsilon": 0.1, "epsilon":', 1))
    assert "'epsilon' twice" in str(verify(copy)[0])


ABSURD = [
    ("sigma", float("nan")), ("sigma", float("inf")), ("sigma", -1.0), ("sigma", 0), ("sigma", 1e-300),
    ("sigma", 1e-6), ("sigma", 0.01), ("sigma", 1e300), ("steps", 10**12), ("steps", 10**400), ("steps", -1),
    ("steps", 0.5), ("clip", float("nan")), ("clip", 0), ("sigma", 10**400), ("steps", True), ("noise", "loud"),
]  # fmt: skip


@pytest.mark.parametrize("noise", ["normal", "discrete"])
@pytest.mark.parametrize(("field", "value"), ABSURD)
def test_absurd_measurements_are_named_at_once(copy, field, value, noise):
    edit(copy / "certificate.json", lambda c: c["measurements"][0].update({"noise": noise, field: value}))
    mend(copy)
    assert any(field in name or name in ("epsilon", "event", "measurements") for name in fields(copy))


@pytest.mark.parametrize(
    "sampling",
    [
        {"n": 10**30}, {"n": 10**400}, {"n": 0}, {"q": 0}, {"q": 1}, {"q": 1e-320}, {"q": 2}, {"cap": 0}, {"cap": 1},
        {"cap": 10**400}, {"q": 1 - 1e-16, "cap": 1}, {"kind": "shuffled"},
    ],
)  # fmt: skip
def test_absurd_sampling_is_named_at_once(copy, sampling):
    given = {"kind": "poisson", "n": 500, "q": 0.1, "cap": 120} | sampling
    edit(copy / "certificate.json", lambda c: c["measurements"][0].update(sampling=given))
    mend(copy)
    assert any(name in ("event", "units") or "sampling" in name for name in fields(copy))


@pytest.mark.parametrize("delta", [0, -1, 1, float("nan"), 5e-324, 10**400, "small", None])
def test_an_absurd_delta_is_named(copy, delta):
    edit(copy / "certificate.json", lambda c: c.update(delta=delta))
    mend(copy)
    assert fields(copy) & {"delta", "epsilon"}


@pytest.mark.parametrize(
    ("count", "change"),
    [
        (1000, {}),
        (2, {"steps": 10**7}),
        (1, {"sigma": 0.1, "sampling": {"kind": "poisson", "n": 500, "q": 1e-12, "cap": 1}}),
        (60, {"sigma": 4.0, "sampling": {"kind": "poisson", "n": 500, "q": 1e-12, "cap": 1}}),
    ],
)
def test_more_work_than_a_minute_is_refused(copy, count, change):
    def many(c):
        c["measurements"] = [c["measurements"][0] | change | {"name": str(i)} for i in range(count)]

    edit(copy / "certificate.json", many)
    mend(copy)
    assert fields(copy) == {"measurements"}


def test_missing_and_extra_files_are_named(copy):
    (copy / "README.md").unlink()
    (copy / "extra.txt").write_text("!")
    (copy / "empty").mkdir()
    (copy / os.fsdecode(b"\xff\x1b[2J")).write_text("!")
    assert {"README.md", "extra.txt", "empty"} < fields(copy)


@pytest.mark.parametrize("name", ["README.md", "schema.json", "recipe.json", "data.npz", "certificate.json"])
@pytest.mark.parametrize("kind", ["folder", "symbolic link", "special file"])
def test_what_is_no_plain_file_is_neither_followed_nor_read(copy, tmp_path, name, kind):
    real = tmp_path / "real"
    (copy / name).rename(real)
    match kind:
        case "folder":
            (copy / name).mkdir()
        case "symbolic link":
            (copy / name).symlink_to(real)
        case _:
            os.mkfifo(copy / name)
    (problem, *_) = (p for p in verify(copy) if p.field == name)
    assert f"is a {kind}; a plain file is expected" in problem.message


def test_a_linked_folder_of_pictures_is_not_followed(copy, tmp_path):
    shutil.move(copy / "images", tmp_path / "images")
    (copy / "images").symlink_to(tmp_path / "images")
    assert {"images", "images/index.csv"} <= fields(copy)


def test_a_file_outside_the_folder_is_not_looked_at(copy, tmp_path):
    (tmp_path / "outside").write_text("secret")
    edit(copy / "certificate.json", lambda c: c["files"].update({"../outside": "0" * 64}))
    assert ("../outside", "is missing") in {(p.field, p.message) for p in verify(copy)}


def broken_data(folder: Path, kind: str) -> None:
    path = folder / "data.npz"
    with np.load(path) as z:
        arrays = {name: z[name] for name in z.files}
    match kind:
        case "text":
            path.write_bytes(b"no archive")
        case "objects":
            np.savez(path, **arrays | {"y": np.array(["cat", 1, 2, 3], object)}, allow_pickle=True)
        case "another array":
            np.savez(path, **arrays, real=arrays["x"])
        case "an array less":
            np.savez(path, x=arrays["x"])
        case "a record less":
            np.savez(path, **{name: a[1:] for name, a in arrays.items()})


@pytest.mark.parametrize("kind", ["text", "objects", "another array", "an array less", "a record less"])
def test_data_that_does_not_fit_is_named(copy, kind):
    broken_data(copy, kind)
    mend(copy)
    assert fields(copy) & {"data.npz", "recipe.per_class"}
