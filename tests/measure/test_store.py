"""Features are the same wherever and however they are kept; a file of them has no name, and leaves nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.features import FCNTK
from limbeck.measure import Records, Session, WeightGradient, store
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from tests.measure.wide import Wide

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1)
PEOPLE = SCHEMA.model_copy(update={"unit": "person", "rows_per_unit": 2})
N = 300  # more than two chunks, the last one not full
CHOICES = [(cache, precision) for cache in ("memory", "disk") for precision in ("float32", "float16")]

linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads Linux's /proc")


def data(n=N, seed=0):
    """Some records are null: by a value, or by a label."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, 4, 4)), rng.choice(["a", "b"], n)
    X[::7, 1, 2], y[::11] = np.nan, "c"
    return X, y


def expected_features(X, y, features):
    """Encoded as a whole, and mapped without any chunk."""
    x, c = SCHEMA.encode(X, y)
    seen = np.asarray(features(x)) if isinstance(features, Wide) else x.reshape(len(x), -1)
    return np.where(c[:, None] >= 0, seen, 0), c


BATCHES = {"all": np.arange(N), "a run": np.arange(130, 270), "some, and padding": np.array([299, 0, 7, -1, 11, -1])}


@pytest.mark.parametrize(("place", "precision"), CHOICES)
@pytest.mark.parametrize("features", [Wide(3), FCNTK()], ids=["map", "kernel"])
def test_batches_are_the_same_wherever_features_are(features, place, precision):
    X, y = data()
    made = Records(SCHEMA, X, y, cache=place, precision=precision)
    made.prepare(features)
    expected, c = expected_features(X, y, features)
    for units in BATCHES.values():
        inputs, targets = made.batch(units)
        there = units >= 0
        assert inputs.dtype == np.float32
        assert np.allclose(inputs[there, 0], expected[units[there]], rtol=2**-10 if precision == "float16" else 1e-6)
        assert not inputs[~there].any()
        assert np.array_equal(np.isnan(targets[..., 0]).ravel(), (c[units] < 0) | ~there)
        assert not inputs[np.isnan(targets[..., 0])].any()


@pytest.mark.parametrize(("place", "precision"), CHOICES)
def test_batches_of_persons_are_the_same_wherever_features_are(place, precision):
    X, y = data(60)
    X = np.round(X * 64) / 64  # which both precisions hold exactly
    people = np.arange(60) // 3
    batches = []
    for choice in ({}, {"cache": place, "precision": precision}):
        made = Records(PEOPLE, X, y, people, **choice)
        made.prepare(Wide(1))
        batches.append(made.batch(np.array([3, 19, -1, 0])))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*batches, strict=True))


def test_a_full_batch_is_read_where_it_lies():
    for cache in ("memory", "disk"):
        made = Records(SCHEMA, *data(), cache=cache)
        made.prepare(Wide())
        whole = made._targets.store.reveal()
        assert np.shares_memory(made.batch(np.arange(10, 200))[0], whole)
        assert not np.shares_memory(made.batch(np.array([1, 0]))[0], whole)


@given(
    size=st.integers(1, 40),
    n=st.integers(0, 30),
    form=st.sampled_from(["array", "list", "mapped", "ragged", "objects"]),
)
@settings(deadline=None, max_examples=60)
def test_blocks_are_slices_of_the_whole(tmp_path_factory, size, n, form):
    X, y = data(n)
    if form == "list":
        X, y = list(X), y.tolist()
    elif form == "ragged":
        X, y = [row if i % 3 else row[:2].tolist() for i, row in enumerate(X)], [None, *y[1:]] if n else []
    elif form == "objects":
        X, y = X.astype(object), y.astype(object)
    elif form == "mapped":
        path = tmp_path_factory.mktemp("x") / "x.npy"
        np.save(path, X)
        X = np.load(path, mmap_mode="r")
    x, c = SCHEMA.encode(X, y)
    blocks = list(Records(SCHEMA, X, y).encoded_blocks(size))
    assert [rows.start for rows, _, _ in blocks] == list(range(0, n, size))
    assert b"".join(part.tobytes() for _, part, _ in blocks) == x.tobytes()
    assert b"".join(part.tobytes() for _, _, part in blocks) == c.tobytes()


def test_progress_is_told_in_order():
    told = []
    made = Records(SCHEMA, *data())
    made.prepare(Wide(), progress=lambda *done: told.append(done))
    made.prepare(Wide(), progress=lambda *done: pytest.fail("computed twice"))
    assert told == [(128, N), (256, N), (300, N)]


def test_too_large_for_float16_is_silent_and_contributes_nothing(capfd):
    """One record's features overflow: its unit counts as null, and the others as ever. Warnings are errors here."""
    X, y = np.full((4, 4, 4), 0.75), ["a", "b", "a", "b"]
    X[2] = 1.0
    features = Wide(1, scale=100_000.0)  # 50,000 fits in float16, and 100,000 does not
    answers = []
    for labels, precision in ((y, "float16"), (["a", "b", "c", "b"], "float32")):
        made = Records(SCHEMA, X, labels, precision=precision)
        made.prepare(features)
        plan = Plan(
            measurements=(Measurement(name="g", sampling=FullBatch(n=4), steps=1, clip=1.0, sigma=1e-9),), delta=1e-5
        )
        answers.append(Session(made, plan).ask("g", lambda: WeightGradient(jnp.zeros((16, 2)))))
    assert np.isfinite(answers[0]).all()
    assert np.abs(answers[0]).max() > 0
    assert np.allclose(*answers, rtol=1e-3, atol=1e-6)
    assert capfd.readouterr() == ("", "")


# The file; that it has no name and is its owner's alone: tests/guarantee/test_11*.py


def test_a_folder_that_is_not_there_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "new" / "cache"))
    store.new_store(3, 4, "disk")
    assert list((tmp_path / "new" / "cache").iterdir()) == []


def test_the_systems_temporary_folder_is_the_default(monkeypatch):
    monkeypatch.delenv("LIMBECK_CACHE")
    assert store.store_folder() == Path(store.tempfile.gettempdir())


def test_too_little_room_is_said_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    made = Records(SCHEMA, *data(), cache="disk")
    with pytest.raises(RequestError, match=rf"take 9\.4 MiB .*{tmp_path.name} has 1\.0 MiB free.* LIMBECK_CACHE"):
        made.prepare(Wide(512), progress=lambda *_: pytest.fail("computed"))
    made.prepare(Wide(1))


def test_a_disk_that_fills_up_meanwhile_is_said(tmp_path, monkeypatch):
    """Room is taken when the file is made: a mapped file without it would end the process."""
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "check_space", lambda _: None)
    with pytest.raises(RequestError, match="LIMBECK_CACHE"):
        store.new_store(2**31, 2**20, "disk")


def test_a_folder_that_cannot_be_used_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "file"))
    with pytest.raises(RequestError, match="LIMBECK_CACHE"):
        store.new_store(3, 4, "disk")


@pytest.mark.parametrize("choice", [("ram", "float32"), ("auto", "float64"), ("auto", "int8")])
def test_an_unknown_choice_is_refused(choice):
    with pytest.raises(RequestError, match=r"one of .* is expected"):
        store.check_choice(*choice)


def test_the_place_depends_on_sizes_alone(monkeypatch):
    monkeypatch.setattr(store, "physical_memory", lambda: 8000)
    assert [store.is_in_file(n, 10) for n in (99, 100, 101)] == [False, False, True]
    assert [store.is_in_file(n, 10, precision="float16") for n in (199, 200, 201)] == [False, False, True]
    assert not store.is_in_file(10**9, 10, "memory")
    assert store.is_in_file(1, 1, "disk")
    assert store.new_store(0, 10, "disk").shape == (0, 10)


def test_pages_are_let_go_and_nothing_is_lost(tmp_path):
    """In every mode of mapping, views and slices too; a private mapping has its changes nowhere else."""
    path, X = tmp_path / "x.npy", np.arange(40_000.0).reshape(200, 200)
    np.save(path, X)
    for value, mode in enumerate(("r", "r+", "c")):
        mapped = np.load(path, mmap_mode=mode)
        if mode != "r":
            mapped[5] = X[5] = -value
        view = np.asarray(mapped)[3:50, None]
        store.let_go(view)
        assert np.array_equal(view[:, 0], X[3:50])
    store.let_go(X)


# A whole process


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Peak memory for a quarter of the images and for all, and what is in the folder before and after a kill."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / "cache").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (40_000, 32, 32, 1), dtype=np.uint8)
    np.save(folder / "images.npy", images)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.measure.wide", str(folder / "images.npy")],
        env={**os.environ, "LIMBECK_CACHE": str(folder / "cache")},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        peaks = [int(process.stdout.readline() or "0") for _ in range(2)]
        assert process.poll() is None
        alive = list((folder / "cache").iterdir())
        process.kill()
    return peaks, alive, list((folder / "cache").iterdir()), images.nbytes


@linux
def test_memory_is_flat_in_the_number_of_images(run):
    (quarter, whole), _, _, raw = run
    three_quarters = 0.75 * (raw + 4 * raw)  # of the images, and of their features in float32
    assert whole - quarter < three_quarters / 5


@linux
def test_nothing_remains_of_a_process_that_is_killed(run):
    peaks, alive, afterwards, _ = run
    assert all(peaks), "it was killed while it held its features"
    assert alive == afterwards == []
