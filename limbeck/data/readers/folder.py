"""A folder of pictures by class: the name of the sub-folder is the class."""

from collections.abc import Iterator
from pathlib import Path

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, opening
from limbeck.data.readers.picture import SUFFIXES, colours, read_picture
from limbeck.errors import RequestError

SPLITS = ("train", "test")


def recognises(path: Path) -> bool:
    return path.is_dir() and any(True for _ in _pictures(path))


def load(request: Request) -> Images:
    shape = request.schema.shape
    colours(shape[2])
    with opening(request.path, "a folder"):
        root = _root(request)
        files = sorted(_pictures(root), key=lambda file: file.relative_to(root).parts)
    if not files:
        raise RequestError(f"{root} holds no picture in a sub-folder; CLASS/picture.png is expected")
    names = tuple(file.relative_to(root).as_posix() for file in files)
    x = [read_picture(file, shape, request.resize) for file in files]
    return Images(x, [name.split("/")[0] for name in names], source=str(root), names=names)


def _root(request: Request) -> Path:
    """The folder of the classes: that of the split, where the folder is divided into train and test."""
    declared = {str(c) for c in request.schema.classes}
    divided = [s for s in SPLITS if s not in declared and (request.path / s).is_dir()]
    if not divided:
        return request.path
    if request.split not in divided:
        raise RequestError(f"{request.path} has no {request.split} split, only {divided[0]}")
    return request.path / request.split


def _pictures(root: Path) -> Iterator[Path]:
    """Every picture below a class folder, hidden ones apart; known by its name, not by its content."""
    for file in root.glob("*/**/*"):
        hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
        if file.suffix.lower() in SUFFIXES and not hidden and file.is_file():
            yield file
