"""IDX files, the format of MNIST: a big-endian header (type, sizes) and the numbers; plain or gzipped."""

import gzip
import io
import math
import struct
from pathlib import Path

import numpy as np

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, opening
from limbeck.errors import RequestError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
PREFIX = {"train": "train", "test": "t10k"}


def recognises(path: Path) -> bool:
    if path.is_dir():
        return any(_images(path, split) for split in PREFIX)
    with opening(path, "an IDX file"):
        try:
            with _stream(path) as file:
                magic = file.read(4)
        except (EOFError, gzip.BadGzipFile):
            return False
    return len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in TYPES and 1 <= magic[3] <= 4


def load(request: Request) -> Images:
    path = request.path
    images = _images(path, request.split) if path.is_dir() else path
    if images is None:
        raise RequestError(
            f"{path} has no {request.split} split; {PREFIX[request.split]}-images-idx3-ubyte[.gz] is expected"
        )
    labels = request.labels or _sibling(images)
    if labels is None:
        raise RequestError(f"the labels of {images} were not found; put its labels-idx1 file beside it, or name it")
    return Images(read_idx(images), read_idx(labels), source=str(images))


def read_idx(path: Path) -> np.ndarray:
    """The array of one IDX file."""
    with opening(path, "an IDX file"), _stream(path) as file:
        zero, kind, sides = struct.unpack(">HBB", file.read(4))
        shape = struct.unpack(f">{sides}I", file.read(4 * sides))
        dtype = np.dtype(TYPES[kind])
        length = math.prod(shape) * dtype.itemsize
        content = file.read(length + 1)  # one more, to see that nothing follows
        if zero or len(content) != length:
            raise ValueError
        return np.frombuffer(content, dtype).reshape(shape)


def _stream(path: Path) -> gzip.GzipFile | io.BufferedReader:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")


def _images(folder: Path, split: str) -> Path | None:
    names = [f"{PREFIX[split]}-images{dot}idx3-ubyte{gz}" for dot in "-." for gz in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _sibling(images: Path) -> Path | None:
    """train-labels-idx1-ubyte for train-images-idx3-ubyte, plain or gzipped."""
    name = images.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    if name == images.name.removesuffix(".gz"):
        return None
    names = [name + ".gz", name] if images.suffix == ".gz" else [name, name + ".gz"]
    return next((images.with_name(n) for n in names if images.with_name(n).is_file()), None)
