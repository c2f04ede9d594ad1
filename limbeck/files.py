"""Files that stay with the custodian: their owner's alone from their first moment, whatever the umask.

Private files are written by these functions alone, below the work folder, and are called `*.private.*`, or have no
name at all. Whatever is written in another way is public: a release, the caches, what a command was asked to write.
The registry is public too, and written here because it must survive a crash.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from limbeck.errors import RequestError


def private_folder(path: Path) -> Path:
    """The folder with mode 0700: made if it is not there, closed to others if it is."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        try:
            path.chmod(0o700)
        except OSError:
            raise RequestError(
                f"{path} is open to others and cannot be closed: it belongs to another user, or its disk knows no "
                "modes. Choose another place."
            ) from None
    return path


def write_private(path: Path, content: bytes) -> None:
    """A small file with mode 0600, in the place of the one that may be there."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write with mode 0600, put in the place of `path` at the end: whole and durable, or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a crash
    try:
        with _durable(new, "xb") as file:
            yield file
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextmanager
def appending(path: Path) -> Iterator[IO[bytes]]:
    """The end of a file with mode 0600; what was appended is durable afterwards."""
    first = not path.exists()
    with _durable(path, "ab") as file:
        yield file
    if first:
        _sync_folder(path.parent)


def nameless(folder: Path) -> IO[bytes]:
    """A file with mode 0600 that is in no folder: the system frees it when the process ends, however it ends.

    It never has a name where the system can do that (Linux's O_TMPFILE); elsewhere it loses it before anything is
    written. Freed blocks of a disk are not wiped, no more than those of swap: that is for an encrypted disk.
    """
    file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
    os.fchmod(file.fileno(), 0o600)
    return file


@contextmanager
def _durable(path: Path, mode: str) -> Iterator[IO[bytes]]:
    with open(path, mode, opener=_closed) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _closed(path: str, flags: int) -> int:
    """Opened with mode 0600: a umask can only take bits away, and those are put back."""
    handle = os.open(path, flags, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
