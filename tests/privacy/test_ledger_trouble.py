"""A ledger that is damaged, read-only, full or out of reach: one message that says what to do, and nothing lost."""

import os
import shutil
import subprocess
import sys

import pytest
import sqlalchemy as sa

from limbeck.errors import RequestError
from limbeck.privacy.ledger import Ledger
from tests.privacy.plans import full


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home" / "ledger.sqlite"
    ledger = Ledger.open(path)
    ledger.grant("census", epsilon=3, delta=1e-5)
    ledger.reserve("census", full(20.0), run="a")
    return path


def charged(path):
    return [row["run"] for row in Ledger.open(path).history() if row["row"] == "intent"]


def test_files_are_their_owners_alone(path):
    Ledger.open(path).fingerprint_key()
    assert {p.name: oct(p.stat().st_mode & 0o777) for p in path.parent.iterdir()} == {
        "ledger.sqlite": "0o600",
        "ledger.key": "0o600",
    }
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("damage", ["text", "truncated", "overwritten"])
def test_a_damaged_file(path, damage):
    data = path.read_bytes()
    broken = {
        "text": b"this is no ledger " * 100,
        "truncated": data[: len(data) // 2],
        "overwritten": data[:4096] + bytes(range(256)) * 16 + data[8192:],
    }[damage]
    path.write_bytes(broken)
    with pytest.raises(RequestError, match=r"damaged: keep the file.*backup"):
        Ledger.open(path)
    assert path.read_bytes() == broken  # kept as it is
    path.write_bytes(data)
    assert charged(path) == ["a"]


def test_an_empty_file_is_not_taken_for_a_new_ledger(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(RequestError, match="not a ledger"):
        Ledger.open(tmp_path / "empty")


def test_a_read_only_file(path):
    ledger = Ledger.open(f"sqlite:///file:{path}?mode=ro&uri=true")
    with pytest.raises(RequestError, match=r"writable.*nothing was run"):
        ledger.reserve("census", full(20.0), run="b")
    assert charged(path) == ["a"]


def told(path, code):
    """What a process of its own prints; `code` may use `path` and ends at the first RequestError."""
    script = (
        "import os, sqlite3, sys\n"
        "from limbeck.errors import RequestError\n"
        "from limbeck.privacy.ledger import Ledger\n"
        "from tests.privacy.plans import full\n"
        "path = sys.argv[1]\n"
        "try:\n"
        f"    {code}\n"
        "except RequestError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", script, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_folder_that_is_not_writable(tmp_path):
    os.chmod(tmp_path, 0o555)
    nobody = "os.geteuid() or os.setgroups([]) or os.setgid(65534) or os.setuid(65534)"  # root is let in everywhere
    try:
        (said,) = told(tmp_path / "ledger.sqlite", f"{nobody}; Ledger.open(path)")
    finally:
        os.chmod(tmp_path, 0o755)
    assert "cannot be made: Permission denied. Make its folder writable" in said
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_full_disk(path):
    """SQLite's own limit on pages gives what a full disk gives."""
    ledger = Ledger.open(path)

    def full_disk(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    sa.event.listen(ledger._store.engine, "connect", full_disk)
    done, said = [], ""
    while not said:
        try:
            done.append(ledger.reserve("census", full(1000.0), run=f"r{len(done)}").run)
        except RequestError as refused:
            said = str(refused)
    assert "disk is full or failing: make room" in said
    assert "nothing was run" in said
    assert charged(path) == ["a", *done]
    Ledger.open(path).reserve("census", full(20.0), run="with room")


def test_a_file_that_may_not_grow(path):
    """The same from the kernel's side: writes fail in the middle of a transaction."""
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2**14, 2**14))"
    )
    reserving = (
        "for i in range(200): print(Ledger.open(path).reserve('census', full(1e3), run=f'r{i}').run, flush=True)"
    )
    *done, said = told(path, f"{limited}\n    {reserving}")
    assert "disk is full or failing" in said
    assert charged(path) == ["a", *done]


def test_a_ledger_that_is_held(path, monkeypatch):
    monkeypatch.setattr("limbeck.privacy.ledger.store.WAIT", 0.2)
    with Ledger.open(path)._store.write(), pytest.raises(RequestError, match="held by another process"):
        Ledger.open(path).reserve("census", full(20.0), run="b")
    assert charged(path) == ["a"]


def test_a_copy_of_the_file_alone_is_whole(path, tmp_path):
    """Connections are closed after each transaction, so the write-ahead log is empty and a copy is a backup."""
    shutil.copy(path, tmp_path / "backup.sqlite")
    assert charged(tmp_path / "backup.sqlite") == ["a"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://limbeck:hunter2@127.0.0.1:1/ledger",
        "postgresql+psycopg://limbeck:hunter2@/ledger?host=/nowhere",
        "postgresql://limbeck:hunter2@127.0.0.1:1/ledger?nonsense=1",
    ],
)
def test_a_server_out_of_reach(url):
    with pytest.raises(RequestError) as refused:
        Ledger.open(url)
    assert "PostgreSQL, database ledger at" in str(refused.value)
    assert "nothing was run" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense://", "://", "sqlite://", "sqlite:///:memory:"])
def test_an_address_that_is_not_understood(url):
    with pytest.raises(RequestError, match="address is not understood"):
        Ledger.open(url)
