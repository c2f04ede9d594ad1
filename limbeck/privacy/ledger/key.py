"""The key of the fingerprints: without it, a digest in the ledger says nothing about the records behind it."""

import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from limbeck.errors import RequestError
from limbeck.privacy.ledger.place import home, sqlite_file

BYTES = 32


def key_file(url: sa.URL) -> Path:
    """Beside a SQLite ledger; in this user's state folder for a shared one."""
    if url.get_backend_name() == "sqlite":
        return sqlite_file(url).with_suffix(".key")
    return home() / "ledger.key"


def key_name(key: bytes) -> str:
    """Which key this is, without giving it away."""
    return hmac.digest(key, b"limbeck ledger key", "sha256").hex()[:16]


def read_key(path: Path) -> bytes | None:
    """The key, or None if there is no file."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RequestError(f"the ledger's key {path} cannot be read: {error.strerror}.") from None
    if len(key) != BYTES:
        raise RequestError(f"the ledger's key {path} is damaged: {BYTES} bytes are expected. {how_to_restore(path)}")
    return key


def make_key(path: Path, *, replace: bool = False) -> bytes:
    """A fresh key, readable by this user alone; where there is one already, that one, unless `replace`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as f:
            f.write(secrets.token_bytes(BYTES))
            f.flush()
            os.fsync(f.fileno())
        if replace:
            os.replace(new, path)
        else:
            with suppress(FileExistsError):
                os.link(new, path)
            os.unlink(new)
    except OSError as error:
        raise RequestError(f"the ledger's key {path} cannot be made: {error.strerror}.") from None
    key = read_key(path)
    assert key is not None
    return key


def how_to_restore(path: Path) -> str:
    return (
        f"Copy the key from a backup (or a colleague who uses this ledger) to {path}. If it is lost, `limbeck ledger "
        "rekey` makes a new one: records seen before are then no longer recognised under another name."
    )
