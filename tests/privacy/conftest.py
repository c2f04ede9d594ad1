"""A ledger on either database. PostgreSQL is a real server: a cluster of our own on a private socket."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def server_program(name: str) -> str | None:
    return shutil.which(name) or next((str(p / name) for p in SERVERS if (p / name).exists()), None)


@pytest.fixture(scope="session")
def postgres():
    """The folder of a running server's socket; one a test process."""
    initdb, server = server_program("initdb"), server_program("postgres")
    if not (initdb and server):
        said = "no PostgreSQL server here (initdb and postgres): install Debian's postgresql package"
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)
    home = Path(tempfile.mkdtemp(prefix="limbeck-pg-", dir="/tmp"))  # a socket's path must be short
    user = {}
    if os.geteuid() == 0:  # which a server refuses to be
        names = {entry.pw_name for entry in pwd.getpwall()}
        owner = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.chown(home, owner.pw_uid, owner.pw_gid)
        user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    settings = {"cwd": home, "stdout": subprocess.DEVNULL, **user}
    data = home / "data"
    subprocess.run(
        [initdb, "-D", data, "-U", "limbeck", "-A", "trust", "-N", "--no-instructions"],
        check=True, stderr=subprocess.DEVNULL, **settings,
    )  # fmt: skip
    # A server may be set to any isolation; the ledger chooses its own.
    options = ("listen_addresses=", "fsync=off", "default_transaction_isolation=serializable")
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [server, "-D", data, "-k", home, *(word for option in options for word in ("-c", option))],
            stderr=log, **settings,
        )  # fmt: skip
    try:
        _wait(home, process)
        yield home
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        shutil.rmtree(home)


def _wait(home: Path, process: subprocess.Popen) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(host=str(home), user="limbeck", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            assert process.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def postgres_url(postgres):
    """An empty database."""
    import psycopg

    name = f"ledger_{time.monotonic_ns()}"
    with psycopg.connect(host=str(postgres), user="limbeck", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://limbeck@/{name}?host={postgres}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where a ledger may be made, in each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return request.getfixturevalue("postgres_url")
