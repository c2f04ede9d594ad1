"""From what people have (arrays, lists, labels of any kind) to arrays of one declared form.

Everything here works record by record: what one record holds never changes how another is read. That is why
a list is never turned into one array (NumPy would choose a common type, or refuse a ragged one) and why
nothing is raised, warned or logged because of a value.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from limbeck.errors import RequestError

BLOCK = 2**18  # numbers a block: float64 temporaries of 2 MB, whatever the number of records
REAL = "biuf"  # NumPy's kinds of real number: bool, int, unsigned, float


def forms(shape: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
    """The shapes in which one image of the declared shape may come."""
    H, W, C = shape
    return (shape, (H * W * C,), *([(H, W)] if C == 1 else []))


def as_rows(X: Any, shape: tuple[int, int, int]) -> np.ndarray | list:
    """The records of X: an array (n, H, W, C) of real numbers, or a list with one item a record.

    A list and an object array are taken record by record, so their shapes are not looked at here.

    Raises:
        RequestError: X as a whole is not a set of images of the declared shape.
    """
    if not hasattr(X, "__array__"):
        if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__"):
            raise RequestError(f"the images are of type {type(X).__name__}; give an array or a list of images")
        return list(X)
    try:
        array = np.asarray(X)
    except Exception:
        raise RequestError(
            f"the images, of type {type(X).__name__}, cannot be read as an array; give a NumPy array"
        ) from None
    if array.dtype.kind == "O" and array.ndim > 0:
        return list(array)
    wrong = misfit(array.shape, array.dtype, shape)
    if wrong:
        raise RequestError(wrong)
    return array.reshape(len(array), *shape)


def misfit(found: tuple[int, ...], dtype: np.dtype, shape: tuple[int, int, int]) -> str | None:
    """Why an array of this shape and type cannot hold images of the declared shape, or None if it can."""
    if dtype.kind not in REAL:
        return f"the images are of type {dtype.type.__name__}; real numbers are expected"
    if found[1:] in forms(shape) and len(found) > 1:
        return None
    H, W, C = shape
    expected = " or ".join(str(("n", *form)).replace("'", "") for form in forms(shape))
    hint = "; move the channels last" if found[1:] == (C, H, W) else ""
    return f"the images have shape {found}; {expected} is expected by the schema{hint}"


def as_record(item: Any, shape: tuple[int, int, int]) -> np.ndarray | None:
    """One image as a real array (H, W, C), or None if it is not one."""
    try:
        row = np.asarray(item)
        if row.dtype.kind == "O":
            row = row.astype(np.float64)
    except Exception:  # whatever a record holds, it must not stop the run
        return None
    if row.dtype.kind not in REAL or row.shape not in forms(shape):
        return None
    return row.reshape(shape)


def blocks(rows: np.ndarray | list, shape: tuple[int, int, int]) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Walk the records in blocks: (where, float64 values (k, H, W, C), which images are all finite)."""
    step = max(1, BLOCK // int(np.prod(shape)))
    for start in range(0, len(rows), step):
        where = slice(start, min(start + step, len(rows)))
        if isinstance(rows, np.ndarray):
            values = rows[where].astype(np.float64)
        else:
            values = np.full((where.stop - start, *shape), np.nan)
            for k, item in enumerate(rows[where]):
                row = as_record(item, shape)
                if row is not None:
                    values[k] = row
        yield where, values, np.asarray(np.isfinite(values).all(axis=(1, 2, 3)))


def as_labels(y: Any) -> np.ndarray | list:
    """The labels as an array (n,), or as a list with one item a record.

    Raises:
        RequestError: y as a whole is not one label a record.
    """
    if not hasattr(y, "__array__"):
        if isinstance(y, (str, bytes, dict)) or not hasattr(y, "__iter__"):
            raise RequestError(f"the labels are of type {type(y).__name__}; give one label a record")
        return list(y)
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise RequestError(f"the labels have shape {array.shape}; (n,) is expected, one label a record")
    if array.dtype.kind in REAL:
        return array
    # Dates and the like match no class, although some of them turn into whole numbers.
    return array.tolist() if array.dtype.kind in "USOT" else [None] * len(array)


def class_indices(y: np.ndarray | list, classes: tuple[str | int, ...]) -> np.ndarray:
    """The index of each label among the declared classes, -1 where it is none of them.

    Labels match by value: 3, numpy.int8(3), 3.0, True (as 1) match the class 3 or "3"; text matches the
    class of that very text. Anything else matches nothing.
    """
    texts = {str(c): i for i, c in enumerate(classes)}
    whole = {int(text): i for text, i in texts.items() if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text)}
    if isinstance(y, list):
        return np.array([_class_index(label, texts, whole) for label in y], dtype=np.int32).reshape(len(y))
    return _array_indices(y, whole)


def _class_index(label: Any, texts: dict[str, int], whole: dict[int, int]) -> int:
    """The index of one label of any type."""
    try:
        if getattr(label, "ndim", None) == 0 and label.dtype.kind in REAL + "US":
            label = label.item()  # NumPy and JAX scalars
        if isinstance(label, bytes):
            label = label.decode()
        if isinstance(label, str):
            return texts.get(label, -1)
        if isinstance(label, (float, np.floating)) and label.is_integer():
            label = int(label)
        return whole.get(label, -1) if isinstance(label, int) else -1
    except Exception:  # whatever a record holds, it must not stop the run
        return -1


def _array_indices(y: np.ndarray, whole: dict[int, int]) -> np.ndarray:
    """The same for an array of real numbers, without a loop."""
    known = {value: i for value, i in whole.items() if -(2**63) <= value < 2**63}
    if not known:
        return np.full(len(y), -1, dtype=np.int32)
    # A float or an unsigned integer that int64 cannot hold equals no declared class.
    fits = (y >= -(2.0**63)) & (y < 2.0**63) & (y == np.trunc(y)) if y.dtype.kind == "f" else y <= 2**63 - 1
    values = np.where(fits, y, 0).astype(np.int64)
    ordered = np.array(sorted(known), dtype=np.int64)
    place = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    index = np.array([known[int(value)] for value in ordered], dtype=np.int32)[place]
    return np.where(fits & (ordered[place] == values), index, -1).astype(np.int32)


def centred_onehot(c: np.ndarray, classes: int) -> np.ndarray:
    """Y = onehot(c) - 1/classes in float32, the targets of ridge regression; NaN throughout for a null record."""
    y = np.eye(classes, dtype=np.float32)[np.maximum(c, 0)] - np.float32(1 / classes)
    return np.where((c >= 0)[..., None], y, np.float32(np.nan))
