"""SVHN's MATLAB files (version 5): X is height, width, channels, records; y is 1 to 10, where 10 means 0."""

from pathlib import Path

import numpy as np

from limbeck.data.images import Images
from limbeck.data.readers.opening import Request, opening
from limbeck.errors import RequestError


def recognises(path: Path) -> bool:
    if path.is_dir():
        return any((path / f"{split}_32x32.mat").is_file() for split in ("train", "test"))
    return path.suffix.lower() == ".mat"


def load(request: Request) -> Images:
    from scipy.io import loadmat

    path = request.path
    if path.is_dir():
        path = path / f"{request.split}_32x32.mat"
        if not path.is_file():
            raise RequestError(f"{request.path} has no {request.split} split; {path.name} is expected")
    with opening(path, "a MATLAB file of version 5 (save -v7)"):
        file = loadmat(path, variable_names=["X", "y"])
    if not {"X", "y"} <= set(file) or np.ndim(file["X"]) != 4 or file["X"].shape[-1] != np.size(file["y"]):
        raise RequestError(f"{path} must hold X (height, width, channels, records) and y, a label for each")
    y = np.ravel(file["y"])
    if "10" not in {str(c) for c in request.schema.classes} and y.dtype.kind in "iuf":
        y = np.where(y == 10, 0, y)
    return Images(np.moveaxis(file["X"], -1, 0), y, source=str(path))
