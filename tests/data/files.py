"""Small files in the real formats, written without the readers."""

import gzip
import struct

import numpy as np


def idx_bytes(array):
    codes = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
    code = codes[array.dtype.str[1:]]
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_idx(path, array):
    content = idx_bytes(array)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_idx_folder(folder, train, test, suffix=".gz"):
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, (x, y) in (("train", train), ("t10k", test)):
        write_idx(folder / f"{prefix}-images-idx3-ubyte{suffix}", x)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte{suffix}", y)


def cifar_bytes(x, *labels):
    """x is (n, 32, 32, 3); one label a record (CIFAR-10), or coarse and fine (CIFAR-100)."""
    pixels = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
    return np.concatenate([np.stack(labels, axis=1).astype(np.uint8), pixels], axis=1).tobytes()


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)
