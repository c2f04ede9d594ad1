"""Images to classify: any labelled source with its labels ignored, an array, a picture, or a flat folder of them."""

from pathlib import Path

import numpy as np

from limbeck.data.encoding import as_rows
from limbeck.data.private import Private
from limbeck.data.readers import read
from limbeck.data.readers.opening import load_array, opening
from limbeck.data.readers.picture import SUFFIXES, colours, read_picture
from limbeck.data.schema import ImageSchema
from limbeck.errors import RequestError

ARRAYS = ("x_{s}", "x", "X", "images", "data", "arr_0")


def read_unlabelled(path: Path, schema: ImageSchema, split: str = "test") -> tuple[list[str], Private, np.ndarray]:
    """(names, x, readable): one name an image, raw images for a classifier, and which of them are usable.

    Pictures are resized to the declared shape. An image that cannot be read is kept as one without a prediction.
    """
    names, x = _collect(path, schema, split)
    rows = as_rows(x, schema.shape)
    _, c = schema.encode(rows, [schema.classes[0]] * len(rows))
    return names, Private(rows), c >= 0


def _collect(path: Path, schema: ImageSchema, split: str) -> tuple[list[str], np.ndarray | list]:
    if not path.exists():
        raise RequestError(f"{path} does not exist; a file or a folder of images is expected")
    if path.is_file() and path.suffix.lower() in SUFFIXES:
        pictures = [path]
    elif path.is_dir():
        pictures = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
    else:
        pictures = []
    if pictures:
        colours(schema.shape[2])
        return [p.name for p in pictures], [read_picture(p, schema.shape, resize=True) for p in pictures]
    if path.suffix.lower() == ".npy":
        x = load_array(path)
    elif path.suffix.lower() == ".npz":
        with (
            opening(path, "an .npz file without Python objects"),
            path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as file,
        ):
            found = [name for a in ARRAYS if (name := a.format(s=split)) in file.files]
            if not found:
                raise RequestError(f"{path} holds the arrays {', '.join(file.files)}; x, images or data is expected")
            x = file[found[0]]
    else:
        unit_free = schema.by_record()
        images = read(path, unit_free, split=split, resize=True)
        names = map(str, range(len(images))) if images.names is None else images.names.reveal()
        return list(names), images.x.reveal()
    return [str(i) for i in range(len(x))], x
