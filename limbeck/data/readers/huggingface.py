"""A folder written by `save_to_disk` of Hugging Face's datasets: nothing is fetched."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, opening
from limbeck.data.readers.picture import colours, read_picture
from limbeck.errors import RequestError

LABELS = ("label", "labels", "fine_label", "class", "target", "y")
IMAGES = ("image", "img", "images", "pixels", "x")
UNITS = ("units", "unit", "person", "person_id")


def recognises(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))


def load(request: Request) -> Images:
    try:
        import datasets
    except ImportError:
        raise RequestError(
            f"{request.path} is a Hugging Face dataset: install limbeck[huggingface] to read it"
        ) from None
    path, schema = request.path, request.schema
    with opening(path, "a Hugging Face dataset folder"):
        table = datasets.load_from_disk(str(path))
        if isinstance(table, datasets.DatasetDict):
            if request.split not in table:
                raise RequestError(f"{path} has no {request.split} split, only {', '.join(table)}")
            table = table[request.split]
        image = _column(table, path, "image", IMAGES, datasets.Image)
        label = _column(table, path, "label", LABELS, datasets.ClassLabel)
        unit = next((name for name in UNITS if name in table.column_names), None)
        if isinstance(table.features[image], datasets.Image):
            colours(schema.shape[2])
            # Undecoded, so that a picture that cannot be read is one null record, and no address is followed.
            table = table.cast_column(image, datasets.Image(decode=False))
            x: list = [_picture(row[image], request) for row in table.select_columns([image])]
        else:
            x = [row[image] for row in table.select_columns([image])]
        y = _labels(list(table[label]), table.features[label], schema.classes)
        units = np.asarray(list(table[unit])) if unit and schema.unit == "person" else None
    return Images(x, y, units, str(path))


def _column(table: Any, path: Path, what: str, names: tuple[str, ...], kind: type) -> str:
    """The column of a declared kind, or else of a usual name."""
    columns = [name for name, feature in table.features.items() if isinstance(feature, kind)]
    columns = [name for name in names if name in columns] + columns
    columns = columns or [name for name in names if name in table.column_names]
    if not columns:
        raise RequestError(
            f"{path} has the columns {', '.join(table.column_names)}; no {what} column was found among them"
        )
    return columns[0]


def _picture(cell: Any, request: Request) -> np.ndarray | None:
    """One cell of an image column: bytes, or the name of a file on this machine."""
    if not isinstance(cell, dict):
        return None
    source = cell.get("bytes")
    if source is None:
        name = cell.get("path") or ""
        if not os.path.isfile(name):
            return None
        source = Path(name)
    return read_picture(source, request.schema.shape, request.resize)


def _labels(labels: list, feature: Any, classes: tuple[str | int, ...]) -> list:
    """Class numbers as names, where the schema declares the names."""
    names = getattr(feature, "names", None)
    if not names or not {str(c) for c in classes} & set(names):
        return labels
    return [names[label] if label is not None and 0 <= label < len(names) else None for label in labels]
