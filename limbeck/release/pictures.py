"""Pictures of a support: one PNG an image, and grids to look at."""

import csv
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from limbeck.data import ImageSchema


def to_uint8(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Pixels as 8-bit grey or colour, `low` black and `high` white."""
    scaled = np.clip((np.asarray(x, np.float64) - low) / max(high - low, 1e-12), 0, 1)
    return np.round(255 * scaled).astype(np.uint8)


def picture(x: np.ndarray, low: float, high: float) -> Image.Image:
    """One (H, W, C) image; channels beyond RGB are averaged to grey."""
    pixels = to_uint8(x, low, high)
    if pixels.shape[-1] != 3:
        pixels = pixels.mean(axis=-1).astype(np.uint8)
    return Image.fromarray(pixels)


def write_pictures(folder: Path, schema: ImageSchema, x: np.ndarray, labels: np.ndarray) -> None:
    """A PNG for each image, scaled to its own range (distilled pixels leave the declared one), and an index.

    The range and the label are in `index.csv` and in each PNG's own text fields: `data.npz` holds the exact values.
    """
    folder.mkdir()
    index = io.StringIO()
    rows = csv.writer(index, lineterminator="\n")
    rows.writerow(["file", "label", "black", "white"])
    for i, (image, label) in enumerate(zip(x, labels, strict=True)):
        low, high = float(image.min()), float(image.max())
        name = f"{i:05d}_{re.sub(r'[^A-Za-z0-9_-]+', '-', str(label))}.png"
        text = PngInfo()
        for key, value in (("label", label), ("black", low), ("white", high)):
            text.add_text(key, str(value))
        picture(image, low, high).save(folder / name, pnginfo=text)
        rows.writerow([name, label, low, high])
    (folder / "index.csv").write_text(index.getvalue(), encoding="utf-8")


def grid(x: np.ndarray, columns: int, *, scale: int = 1) -> Image.Image:
    """Images (n, H, W, C) side by side, `columns` a row, each scaled to its own range."""
    n, h, w, _ = x.shape
    rows = -(-n // columns)
    sheet = Image.new("RGB", (columns * (w + 1) + 1, rows * (h + 1) + 1), "white")
    for i, image in enumerate(x):
        bounds = float(image.min()), float(image.max())
        at = (1 + (i % columns) * (w + 1), 1 + (i // columns) * (h + 1))
        sheet.paste(picture(image, *bounds).convert("RGB"), at)
    return sheet.resize((sheet.width * scale, sheet.height * scale), Image.Resampling.NEAREST)
