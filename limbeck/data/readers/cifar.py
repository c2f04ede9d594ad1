"""CIFAR-10 and CIFAR-100 binary batches: a label (CIFAR-100: coarse, fine) and 3072 bytes, channels first."""

from pathlib import Path

import numpy as np

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, opening
from limbeck.errors import RequestError

PIXELS = 3 * 32 * 32
INNER = ("cifar-10-batches-bin", "cifar-100-binary")


def recognises(path: Path) -> bool:
    if path.is_dir():
        return any(_batches(path, split) for split in ("train", "test"))
    return path.suffix.lower() == ".bin"


def load(request: Request) -> Images:
    path = request.path
    batches = _batches(path, request.split) if path.is_dir() else [path]
    if not batches:
        raise RequestError(f"{path} has no {request.split} split of CIFAR binary batches (.bin)")
    parts = [_read(batch, len(request.schema.classes)) for batch in batches]
    x = np.concatenate([images for images, _ in parts])
    return Images(x, np.concatenate([labels for _, labels in parts]), source=str(path))


def _read(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    with opening(path, "a CIFAR binary batch"):
        content = np.frombuffer(path.read_bytes(), np.uint8)
        labels = _labels_a_record(path.name, len(content), classes)
        records = content.reshape(-1, labels + PIXELS)  # fails where a batch is truncated
    x = records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return x, records[:, labels - 1]  # the fine label is the last


def _labels_a_record(name: str, length: int, classes: int) -> int:
    """One label (CIFAR-10) or two (CIFAR-100): by length, by official name, by the declared classes."""
    fits = [labels for labels in (1, 2) if length and length % (labels + PIXELS) == 0]
    if not fits:
        raise ValueError
    if len(fits) == 1:
        return fits[0]
    if "batch" in name:
        return 1
    return 2 if name in ("train.bin", "test.bin") or classes > 10 else 1


def _batches(folder: Path, split: str) -> list[Path]:
    ten, hundred = ("data_batch_*.bin", "train.bin") if split == "train" else ("test_batch.bin", "test.bin")
    for place in (folder, *(folder / inner for inner in INNER)):
        found = sorted(place.glob(ten)) or sorted(place.glob(hundred))
        if found:
            return found
    return []
