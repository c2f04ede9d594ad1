"""What is written where: private files below the work folder, closed and named so, whatever the umask."""

import json
import os
import signal
import stat

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.files import appending, private_folder, replacing, write_private
from limbeck.measure import store
from limbeck.privacy import journal
from tests.cli.conftest import QUICK
from tests.cli.test_resume import interrupted


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def tree(folder):
    """Everything below a folder, by its name in it."""
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}


def test_files_are_closed_from_their_first_moment(tmp_path, umask):
    folder = private_folder(tmp_path / "work")
    with replacing(folder / "a") as file:
        assert [mode(path) for path in folder.iterdir()] == [0o600]
        file.write(b"1")
    for content in (b"2", b"3"):
        with appending(folder / "b") as file:
            assert mode(folder / "b") == 0o600
            file.write(content)
    write_private(folder / "a", b"4")
    assert {name: (mode(path), path.read_bytes()) for name, path in tree(folder).items()} == {
        "a": (0o600, b"4"),
        "b": (0o600, b"23"),
    }
    assert mode(folder) == 0o700


def test_what_is_there_already_is_closed(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work").chmod(0o777)
    (tmp_path / "work" / "a").write_text("1")
    (tmp_path / "work" / "a").chmod(0o666)
    (tmp_path / "work" / "a.new").symlink_to(tmp_path / "elsewhere")
    write_private(private_folder(tmp_path / "work") / "a", b"2")
    assert mode(tmp_path / "work") == 0o700
    assert mode(tmp_path / "work" / "a") == 0o600
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    write_private(tmp_path / "a", b"before")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_private(tmp_path / "a", b"half")
    assert {name: path.read_bytes() for name, path in tree(tmp_path).items()} == {"a": b"before"}


def test_a_folder_that_cannot_be_closed_is_refused(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.chmod", refused)
    with pytest.raises(RequestError, match="open to others"):
        private_folder(tmp_path)


PUBLIC = {"README.md", "certificate.json", "data.npz", "images", "recipe.json", "schema.json"}


def checked_work(folder):
    """A work folder: closed, and whatever in it is not named private was declared public."""
    assert mode(folder) == 0o700
    found = tree(folder)
    for path in found.values():
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    return {name for name, path in found.items() if path.is_file()}


def checked_home(folder):
    """The custodian's own folder: closed too. What the registry in it holds is public."""
    assert mode(folder) == 0o700
    for name, path in tree(folder).items():
        assert mode(path) == (0o700 if path.is_dir() else 0o600), name
    for path in folder.glob("runs/*.json"):
        assert json.loads(path.read_text()).keys() == {"answers", "digest", "finished"}


def test_a_whole_distillation_and_its_evaluation(limbeck, small, cache, monkeypatch, open_umask):
    home, work = small / "home", small / "out.work"
    monkeypatch.setenv("LIMBECK_HOME", str(home / "limbeck"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(small)
    before, finish, seen = set(tree(small)), journal.Journal.finish, set()

    def watched(self):
        seen.update(checked_work(work))
        checked_home(home / "limbeck")
        finish(self)

    monkeypatch.setattr(journal.Journal, "finish", watched)
    monkeypatch.setattr(journal, "SNAPSHOT_BYTES", 500)
    data = small / "small.npz"
    done = limbeck("distill", data, "--schema", small / "schema.json", *QUICK, "--out", small / "out")
    assert done.code == 0, done.text
    assert {name.split("-")[0] for name in seen} >= {"run/run.private.json", "run/state.private.npz"}
    assert all(".private." in name for name in seen)
    assert not work.exists()

    for options in ((), ("--public",)):
        done = limbeck("evaluate", small / "out", "--test", data, "--reference", data, "--networks", "none", *options)
        assert done.code == 0, done.text
    assert checked_work(work) == {"scores.private.json", "scores.json"}
    assert json.loads((work / "scores.json").read_text())["public"]
    assert not json.loads((work / "scores.private.json").read_text())["public"]

    assert limbeck("predict", small / "out", data, "--out", small / "p.csv").code == 0
    checked_home(home / "limbeck")
    written = {name.split("/")[0] for name in set(tree(small)) - before}
    assert written == {"out", "out.work", "p.csv", "home"}
    assert {path.name for path in (small / "out").iterdir()} == PUBLIC
    assert not any(".private" in name for place in (small / "out", home, cache) for name in tree(place))
    assert all(isinstance(json.loads(path.read_text()), float) for path in cache.rglob("*.json"))
    assert [path.name for path in cache.iterdir()] == ["numbers"]


def test_features_too_large_for_memory_leave_nothing(limbeck, small, tmp_path, monkeypatch):
    """A run whose features go to disk writes what any other does: of that file, nothing is ever seen."""
    real, made = store.nameless, []

    def watched(folder):
        made.append(folder)
        return real(folder)

    monkeypatch.setattr(store, "nameless", watched)
    monkeypatch.setattr(store, "SHARE", 0)
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "disk"))
    data = small / "small.npz"
    done = limbeck("distill", data, "--schema", small / "schema.json", *QUICK, "--out", small / "out")
    assert done.code == 0, done.text
    assert made == [tmp_path / "disk"]
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["numbers"]
    assert {path.name for path in (small / "out").iterdir()} == PUBLIC


def test_public_files_hold_no_record_and_no_path(limbeck, small, tmp_path, open_umask):
    """A value of the data that nothing else could hold is found in no file that was written."""
    marked = np.full((40, 6, 6), 123.456789)
    np.savez(small / "marked.npz", x=marked, y=np.arange(40) % 2)
    before = set(tree(small))
    done = limbeck(
        "distill", small / "marked.npz", "--schema", small / "schema.json", *QUICK, "--out", small / "out", "--json"
    )
    assert done.code == 0, done.text
    encoded = (2 * 123.456789 / 255 - 1) * np.ones(1)
    marks = [np.full(1, 123.456789).astype(t).tobytes() for t in ("f4", "f8")] + [encoded.astype("f4").tobytes()]
    for name in set(tree(small)) - before:
        path = small / name
        if path.is_file():
            content = path.read_bytes()
            assert not any(mark in content for mark in marks), name
            assert b"marked.npz" not in content, name


@pytest.mark.parametrize(
    ("options", "expected"),
    [(("--seed", 1), 0o700), (("--method", "kip"), 0o700), ((), 0o755)],
    ids=["seeded", "kip", "private"],
)
def test_a_release_without_a_guarantee_is_closed(limbeck, small, open_umask, options, expected):
    quick = QUICK if "kip" not in options else QUICK[:-2]
    done = limbeck(
        "distill", small / "small.npz", "--schema", small / "schema.json", *quick, *options, "--out", small / "o"
    )
    assert done.code == 0, done.text
    assert mode(small / "o") == expected


def test_an_interrupted_run_is_closed(small, open_umask):
    interrupted(small, signal.SIGKILL)
    files = checked_work(small / "out.work")
    assert files
    assert all(".private." in name for name in files)
    assert not (small / "out").exists()
