"""Property 3. Shapes, classes, range and n come from what was declared; a bad record is null, silently."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.cli import terminal
from limbeck.data import ImageSchema
from limbeck.release import load
from tests.cli.conftest import QUICK
from tests.guarantee.problem import SCHEMA, data, quickly, records, tiny

BAD = {
    "a NaN": np.full((4, 4), np.nan),
    "an infinite pixel": np.full((4, 4), np.inf),
    "a ragged row": [[1.0, 2.0], [3.0]],
    "another shape": np.zeros((3, 5)),
    "text": "not an image",
    "nothing": None,
    "a complex number": np.full((4, 4), 1j),
    "a number too large for a float": [[10**400] * 4] * 4,
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_is_null_and_keeps_its_place(kind):
    X, y = data(5)
    clean = records(X, y).batch(np.arange(5))
    inputs, targets = records([*X[:2], BAD[kind], *X[3:]], y).batch(np.arange(5))
    assert not inputs[2].any()
    assert np.isnan(targets[2]).all()
    others = np.arange(5) != 2
    assert inputs[others].tobytes() == clean[0][others].tobytes()
    assert targets[others].tobytes() == clean[1][others].tobytes()


@given(label=st.none() | st.text() | st.integers() | st.floats() | st.binary() | st.lists(st.integers()))
@settings(parent=quickly, max_examples=100)
def test_an_undeclared_label_is_null_and_keeps_its_place(label):
    X, y = data(3)
    made = records(X, [y[0], label if label not in ("a", "b", b"a", b"b") else None, y[2]])
    assert made.n == 3
    _, targets = made.batch(np.arange(3))
    assert np.isnan(targets[1]).all()
    assert not np.isnan(targets[[0, 2]]).any()


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@settings(parent=quickly, max_examples=100)
def test_an_outlier_is_held_within_the_declared_range_and_moves_no_other(value):
    X, y = data(4)
    before, _ = records(X, y).batch(np.arange(4))
    X[3] = value
    after, _ = records(X, y).batch(np.arange(4))
    assert after[:3].tobytes() == before[:3].tobytes()
    assert np.abs(after[3]).max() <= 1


def test_the_release_has_the_declared_shape_whatever_the_records_hold(capsys, caplog):
    X, y = data()
    bad = list(BAD.values())
    for held, labels in ((X, y), (bad[:4], y), (bad[4:], y), (X * 1e38, ["a"] * 4), (X, ["c", None, np.nan, b"\xff"])):
        model = tiny()
        x, classes = model.fit_resample(held, labels)
        assert x.shape == (4, 4, 4, 1)
        assert np.isfinite(x).all()
        assert classes.tolist() == ["a", "a", "b", "b"]
        assert model.plan_.n == 4
    assert capsys.readouterr() == ("", "")
    assert not caplog.records


def test_the_number_of_units_is_declared_persons_and_not_their_good_rows():
    X, y = data(6)
    schema = ImageSchema(**SCHEMA.model_dump() | {"unit": "person", "rows_per_unit": 2})
    labels = ["c", "c", *y[2:]]  # the first person has no usable row at all
    assert records(X, labels, units=list("ppqqrr"), schema=schema).n == 3


@pytest.mark.parametrize("kind", ["poisoned", "of one class"])
def test_the_command_line_shows_nothing_of_what_records_hold(limbeck, small, kind, monkeypatch):
    """Same exit code, same words, same files and shapes, as without; by a stopped clock, for progress takes time."""
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: 0.0))
    with np.load(small / "small.npz") as z:
        x, y = z["x"].astype(float), z["y"].astype(float)
    (small / "clean").mkdir()
    np.savez(small / "clean" / "d.npz", x=x, y=y)
    if kind == "poisoned":
        x[0, 0, 0], x[1, 0, 0], x[2], y[3] = np.nan, np.inf, 1e38, 99
    else:
        y[:] = 0
    (small / "other").mkdir()
    np.savez(small / "other" / "d.npz", x=x, y=y)

    def run(folder):
        done = limbeck("distill", folder / "d.npz", "--schema", small / "schema.json", *QUICK, "--out", folder / "out")
        release = load(folder / "out")
        files = {str(p.relative_to(folder)) for p in folder.rglob("*")}
        words = done.text.replace(str(folder), "FOLDER").split()
        return done.code, words, release.x.shape, release.labels.tolist(), release.guarantee, files

    assert run(small / "other") == run(small / "clean")
