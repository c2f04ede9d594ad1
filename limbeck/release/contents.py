"""Reading a folder that a stranger may have written: nothing is followed, waited for, or read without end."""

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 64 * 2**20  # bytes of a file that is read into memory whole


class Unreadable(ValueError):
    """What is wrong with a file, as the end of a sentence that begins with its name."""


def contents(folder: Path) -> dict[str, str]:
    """Everything below the folder by its relative name: file, folder, symbolic link or special file."""
    found = {}
    for where, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(where) / name
            readable = path.relative_to(folder).as_posix().encode("utf-8", "backslashreplace").decode()
            found[readable] = kind_of(path)
    return found


def kind_of(path: Path) -> str:
    mode = path.lstat().st_mode
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symbolic link"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file of moderate size."""
    try:
        if (kind := kind_of(path)) != "file":
            raise Unreadable(f"is a {kind}; a plain file is expected")
        if path.stat().st_size > LIMIT:
            raise Unreadable(f"is larger than {LIMIT // 2**20} MiB")
        return path.read_bytes()
    except FileNotFoundError:
        raise Unreadable("is missing") from None
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None


def parsed(content: bytes) -> Any:
    """JSON in which no name is stated twice."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_named_once)
    except Unreadable:
        raise
    except (ValueError, RecursionError):
        raise Unreadable("is not readable as JSON") from None


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise Unreadable(f"states {twice!r} twice")
    return named


def not_finite(value: Any, at: str = "") -> Iterator[str]:
    """Where a JSON value holds NaN or an infinity."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from not_finite(inner, f"{at}.{name}" if at else str(name))
        case list():
            for i, inner in enumerate(value):
                yield from not_finite(inner, f"{at}.{i}" if at else str(i))
        case float() if not math.isfinite(value):
            yield at


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The arrays of an .npz by name, from their headers: nothing is unpacked."""
    if (kind := kind_of(path) if os.path.lexists(path) else "missing file") != "file":
        raise Unreadable(f"is a {kind}; a plain file is expected")
    shapes = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as f:
                    shapes[member.filename.removesuffix(".npy")] = _header(f)
    except Exception:  # whatever a broken archive does to its reader
        raise Unreadable("is not readable as NumPy arrays") from None
    return shapes


def small_array(path: Path, name: str) -> np.ndarray:
    """One array of an .npz of moderate size, unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_plain(path))) as archive:
            if archive.getinfo(f"{name}.npy").file_size > LIMIT:
                raise ValueError
            with archive.open(f"{name}.npy") as f:
                return np.lib.format.read_array(f, allow_pickle=False)
    except Unreadable:
        raise
    except Exception:  # whatever a broken archive does to its reader
        raise Unreadable(f"holds no readable array {name} of moderate size") from None


def _header(f: Any) -> tuple[int, ...]:
    major, _ = np.lib.format.read_magic(f)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(f)
    if dtype.hasobject:
        raise ValueError
    return shape


def file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
