"""Fetching a known dataset from its official address: checked before it is put in place, or not at all."""

import hashlib
import http.client
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from limbeck.data.catalogue import Entry, RemoteFile, data_folder, entry, find
from limbeck.errors import RequestError

PIECE = 2**18
PATIENCE = 30  # seconds without a byte

Progress = Callable[[int, int | None], object]


def get(
    name: str | Entry,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    base_url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fetch a dataset into the data folder, and say where it is; nothing is fetched if it is there already.

    Every file is fetched into a folder of its own, checked against its SHA-256 and unpacked there; the whole
    is then put in place by one rename. Whatever goes wrong, nothing is left behind.

    Args:
        name: the name of a dataset, or an entry of one's own.
        data_dir: the data folder; else LIMBECK_DATA, else the user's cache.
        base_url: a mirror that holds the same files by the same names.
        progress: called with the bytes done and the bytes in all (None if nobody knows).

    Raises:
        RequestError: the address cannot be reached, answers with an error, or sends another file.
    """
    dataset = entry(name) if isinstance(name, str) else name
    if not dataset.files:
        raise RequestError(f"{dataset.name} is embedded: there is nothing to fetch")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise RequestError(f"the mirror is {base_url!r}; an address that begins with http:// or https:// is expected")
    root = data_folder(data_dir)
    present = find(dataset, root)
    if present is not None:
        return present
    target = root / dataset.name
    if target.exists():
        raise RequestError(
            f"{target} exists and does not hold {dataset.title}; move it away, or use another --data-dir"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{dataset.name}-", dir=root) as work:
            folder = Path(work) / dataset.name
            folder.mkdir()
            _fetch_all(dataset.files, folder, base_url, progress)
            folder.rename(target)
    except OSError as error:
        raise RequestError(f"{dataset.name} cannot be written to {root}: {error.strerror or error}") from None
    return target


def _fetch_all(files: tuple[RemoteFile, ...], folder: Path, base_url: str | None, progress: Progress | None) -> None:
    total, done = sum(file.size for file in files) or None, 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    for file in files:
        url = file.url if base_url is None else f"{base_url.rstrip('/')}/{file.name}"
        _fetch(url, file, folder / file.name, tell)
        if file.name.endswith(".tar.gz"):
            _unpack(folder / file.name, folder)


def _fetch(url: str, file: RemoteFile, path: Path, tell: Callable[[int], None]) -> None:
    """Stream one file to disk, and refuse it if it is not the one expected."""
    digest, received = hashlib.sha256(), 0
    with path.open("wb") as out, _answer(url) as answer:
        while piece := _read(answer, url):
            received += len(piece)
            if received > file.size:
                break  # another file, perhaps without end
            digest.update(piece)
            out.write(piece)
            tell(len(piece))
    if received != file.size or digest.hexdigest() != file.sha256:
        raise RequestError(
            f"{url} did not send the file expected ({file.size} bytes, SHA-256 {file.sha256}); nothing was "
            "kept. Try again, or give a mirror that holds the official file"
        )


def _answer(url: str) -> http.client.HTTPResponse:
    try:
        return urllib.request.urlopen(url, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        raise RequestError(f"{url} answers {error.code}: try again later, or give a mirror") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise RequestError(_unreachable(url, error)) from None


def _read(answer: http.client.HTTPResponse, url: str) -> bytes:
    try:
        return answer.read(PIECE)
    except (OSError, http.client.HTTPException) as error:
        raise RequestError(_unreachable(url, error)) from None


def _unreachable(url: str, error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    reason = getattr(reason, "strerror", None) or reason
    return (
        f"{url} cannot be reached ({reason}). Without a network, copy the files from elsewhere and name "
        "their folder with --data-dir or LIMBECK_DATA"
    )


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar.gz and remove it; names that lead out of the folder, links and devices are refused."""
    if not hasattr(tarfile, "data_filter"):
        raise RequestError(f"{archive.name} needs Python 3.11.4 or newer to be unpacked safely")
    try:
        with tarfile.open(archive, "r:gz") as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise RequestError(f"{archive.name} cannot be unpacked: {type(error).__name__}") from None
    archive.unlink()
