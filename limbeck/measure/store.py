"""Where the features of private records are kept while a run lasts: in memory, or in a file that has no name.

**Why float16 is private too.** Contributions are clipped after they are read, so rounding a feature changes what a
record contributes and not what it may contribute at most. A feature too large for float16 becomes infinite, and a
contribution that is not finite counts as zero (`clipped_sum`). Zeros stay zeros, so null records stay null.
"""

import mmap
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal, TypedDict, cast, get_args

import numpy as np
from jaxtyping import Float, Int

from limbeck.errors import RequestError
from limbeck.files import nameless

Cache = Literal["auto", "memory", "disk"]
Precision = Literal["float32", "float16"]

SHARE = 1 / 2  # of the machine's memory, that features may take


class Keeping(TypedDict):
    """How features are kept: the two choices of `Records`."""

    cache: Cache
    precision: Precision


def check_choice(cache: str, precision: str) -> Keeping:
    for name, given, known in (("cache", cache, Cache), ("precision", precision, Precision)):
        if given not in get_args(known):
            raise RequestError(f"{name} is {given!r}; one of {', '.join(get_args(known))} is expected")
    return cast(Keeping, {"cache": cache, "precision": precision})


def store_bytes(n: int, d: int, precision: Precision = "float32") -> int:
    """What the store of n records with d features takes, wherever it is."""
    return n * d * np.dtype(precision).itemsize


def is_in_file(n: int, d: int, cache: Cache = "auto", precision: Precision = "float32") -> bool:
    """Whether a store is a file. By its size and the machine's alone: what records hold has no part in it."""
    size = store_bytes(n, d, precision)
    if cache == "auto":
        return size > SHARE * physical_memory()
    return cache == "disk" and size > 0  # nothing cannot be mapped


def new_store(n: int, d: int, cache: Cache = "auto", precision: Precision = "float32") -> np.ndarray:
    """An array (n, d) to `write` features to and to `read` them from."""
    if not is_in_file(n, d, cache, precision):
        return np.empty((n, d), precision)
    size, folder = store_bytes(n, d, precision), store_folder()
    check_space(size)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with nameless(folder) as file:
            _reserve(file.fileno(), size)
            return np.asarray(np.memmap(file, precision, "r+", shape=(n, d)))  # the mapping outlives the handle
    except OSError as error:
        raise RequestError(
            f"no file of {_in_words(size)}, for the features of {n} records, can be made in {folder}: "
            f"{error.strerror}. Set LIMBECK_CACHE to another folder."
        ) from None


def check_space(size: int) -> None:
    """Refuse a file that its disk has no room for, before anything is computed."""
    folder = store_folder()
    free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
    if size > free:
        raise RequestError(
            f"features take {_in_words(size)} on disk, and {folder} has {_in_words(free)} free. Set LIMBECK_CACHE to "
            "a folder on a larger disk; precision float16 takes half."
        )


def store_folder() -> Path:
    """LIMBECK_CACHE, or the system's folder for temporary files."""
    return Path(os.environ.get("LIMBECK_CACHE") or tempfile.gettempdir()).absolute()


def physical_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def write(store: np.ndarray, rows: slice, features: Float[np.ndarray, "k d"]) -> None:
    with np.errstate(all="ignore"):  # no warning may depend on what a record holds
        store[rows] = features
    let_go(store)


def read(store: np.ndarray, rows: slice | Int[np.ndarray, "..."]) -> Float[np.ndarray, "... d"]:
    """Some rows in float32: where they lie if the store is of that type and they follow one another, else a copy."""
    let_go(store)
    return store[rows].astype(np.float32, copy=False)


def let_go(array: np.ndarray) -> None:
    """Give back the memory that pages of a mapped file take; they are mapped again when they are looked at.

    The system could take them back itself, but until it does they count as the process's memory. Nothing is lost and
    no pointer breaks: the pages are the file's. Those of a private mapping (mode "c") may hold changes, and stay.
    """
    mode: str | None = None
    owner: Any = array
    while isinstance(owner, np.ndarray):
        mode = owner.mode if isinstance(owner, np.memmap) else mode
        owner = owner.base
    if mode in ("r", "r+", "w+") and isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def _reserve(handle: int, size: int) -> None:
    """Take the room now: a mapped file that finds its disk full later ends the process without a word."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.ftruncate(handle, size)


def _in_words(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
