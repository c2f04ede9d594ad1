"""One picture (PNG, JPEG, ...) to one array, through Pillow."""

import io
import warnings
from pathlib import Path

import numpy as np

from limbeck.errors import RequestError

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
# Formats whose decoders are silent: what a record holds must not write a line (libtiff does).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm")


def colours(channels: int) -> str:
    """Pillow's mode for a declared number of channels."""
    if channels not in MODES:
        raise RequestError(f"pictures have 1 to 4 channels; the schema declares {channels}")
    return MODES[channels]


def read_picture(source: Path | bytes, shape: tuple[int, int, int], resize: bool) -> np.ndarray | None:
    """The picture with the declared channels, or None if it cannot be read.

    Its height and width are its own unless `resize` is set. Depths above 8 bits are kept.
    """
    from PIL import Image

    H, W, C = shape
    mode = colours(C)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = io.BytesIO(source) if isinstance(source, bytes) else source
            with Image.open(stream, formats=FORMATS) as opened:
                deep = opened.mode[0] in "IF"  # 16 or 32 bits, one channel: convert("L") would cut it at 255
                picture = opened.convert("F") if deep else opened.convert(mode)
            if resize and picture.size != (W, H):
                picture = picture.resize((W, H), Image.Resampling.BILINEAR)
            pixels = np.asarray(picture)
    except Exception:  # an unreadable picture is a null record, whatever the reason
        return None
    if deep:
        return np.repeat(pixels[:, :, None], C, axis=2)
    return pixels.reshape(*pixels.shape[:2], C)
