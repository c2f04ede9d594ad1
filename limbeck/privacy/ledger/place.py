"""Where the ledger is, and what to do when it cannot be reached."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from limbeck.errors import RequestError
from limbeck.privacy.journal import registry

ENVIRONMENT = "LIMBECK_LEDGER"
BACKENDS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def home() -> Path:
    """Where this user's ledger and key are by default: beside the registry of runs."""
    return registry().parent


def located(given: str | os.PathLike[str] | None) -> sa.URL:
    """The ledger's address: the given path, sqlite:///... or postgresql://...; LIMBECK_LEDGER; or the default."""
    text = str(given or os.environ.get(ENVIRONMENT) or home() / "ledger.sqlite")
    if "://" not in text:
        return sa.URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = sa.make_url(text)
        if url.database in (None, "", ":memory:"):
            raise KeyError("a ledger outlives its process")
        return url.set(drivername=BACKENDS[url.get_backend_name()])
    except (ArgumentError, KeyError, NoSuchModuleError):
        raise RequestError(
            "the ledger's address is not understood. Give a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE."
        ) from None


def sqlite_file(url: sa.URL) -> Path:
    name = str(url.database)
    return Path(name.removeprefix("file:") if "uri" in url.query else name)


def described(url: sa.URL) -> str:
    """The address for people: without user and password."""
    if url.get_backend_name() == "sqlite":
        return str(sqlite_file(url))
    return f"PostgreSQL, database {url.database} at {url.host or url.query.get('host') or 'the local socket'}"


DAMAGED = (
    "is damaged: keep the file, and put a backup in its place; without one its spending is forgotten, so grant again "
    "only what is still right to spend"
)
ADVICE = (
    (("readonly", "read-only", "permission denied", "unable to open database file"),
     "cannot be written: make it, and its folder, writable for this user, or choose another with --ledger"),
    (("disk is full", "disk i/o error", "no space left", "could not extend file", "disk full"),
     "cannot be written, the disk is full or failing: make room and run again"),
    (("not a database", "malformed", "disk image", "unsupported file format"), DAMAGED),
    (("database is locked", "lock timeout", "could not obtain lock"),
     "is held by another process: run again when that is done"),
    (("append-only",), "is append-only: rows are never changed or deleted"),
)  # fmt: skip


@contextmanager
def explained(url: sa.URL) -> Iterator[None]:
    """Turn a database's errors into what a person can do about them; nothing was recorded when they occur."""
    try:
        yield
    except DBAPIError as error:
        raise trouble(url, _advice(str(error.orig), url)) from None


def trouble(url: sa.URL, advice: str) -> RequestError:
    return RequestError(f"the ledger ({described(url)}) {advice}. Nothing was recorded, so nothing was run.")


def _advice(said: str, url: sa.URL) -> str:
    for words, advice in ADVICE:
        if any(word in said.lower() for word in words):
            return advice
    # A driver's first line names host and user at most; should it ever name the password, that is hidden.
    line = next(iter(said.strip().splitlines()), "no answer")
    line = line.replace(str(url.password), "***") if url.password else line
    return f"cannot be used ({line}): mend that, or choose another with --ledger"
