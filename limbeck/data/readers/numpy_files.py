"""NumPy's own files: .npz (arrays by name) and .npy (one array, its labels in another)."""

from pathlib import Path

import numpy as np

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, load_array, opening
from limbeck.errors import RequestError

# Names by split, then names for a file that holds one set; {s} is the split.
BY_SPLIT = (("x_{s}", "y_{s}"), ("X_{s}", "y_{s}"), ("{s}_images", "{s}_labels"))
ONE_SET = (("x", "y"), ("X", "y"), ("images", "labels"), ("data", "labels"))


def recognises(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (".npz", ".npy")


def load(request: Request) -> Images:
    return _npz(request) if request.path.suffix.lower() == ".npz" else _npy(request)


def _npz(request: Request) -> Images:
    path, split = request.path, request.split
    if request.labels is not None:
        raise RequestError(f"{path} holds its own labels; leave out the labels file")
    with (
        opening(path, "an .npz file without Python objects"),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        names = _names(path, list(file.files), split)
        units = f"units_{split}" if f"units_{split}" in file.files else "units"
        person = request.schema.unit == "person" and units in file.files
        return Images(file[names[0]], file[names[1]], file[units] if person else None, str(path))


def _names(path: Path, present: list[str], split: str) -> tuple[str, str]:
    """The names of the images and the labels of a split."""
    for pair in (*BY_SPLIT, *ONE_SET):
        names = (pair[0].format(s=split), pair[1].format(s=split))
        if set(names) <= set(present):
            return names
    raise RequestError(
        f"{path} holds the arrays {', '.join(present) or '(none)'}; x_{split} and y_{split}, or x and y, are expected"
    )


def _npy(request: Request) -> Images:
    path = request.path
    labels = request.labels or _sibling(path)
    if labels is None:
        raise RequestError(
            f"the labels of {path} were not found; name the file, or put {path.stem}.labels.npy beside it"
        )
    units = path.with_name(f"{path.stem}.units.npy")
    person = request.schema.unit == "person" and units.exists()
    return Images(load_array(path), load_array(labels), load_array(units) if person else None, str(path))


def _sibling(path: Path) -> Path | None:
    """The labels beside an .npy file: NAME.labels.npy, y_train.npy for x_train.npy, or y.npy."""
    names = [f"{path.stem}.labels.npy", "y.npy"]
    if path.stem[:2].lower() == "x_":
        names.insert(1, f"y_{path.stem[2:]}.npy")
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
