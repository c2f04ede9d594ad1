"""A custodian's look at single records, outside the guarantee: which are bad, and why.

Nothing here belongs in a release or a log that leaves: that a record is bad is a fact about a person.
"""

import warnings

import numpy as np

from limbeck.data import encoding
from limbeck.data.images import Images
from limbeck.data.schema import ImageSchema

LABEL = "label outside the declared classes"
FINITE = "non-finite value"
RANGE = "value outside the declared range"
UNREADABLE = "image unreadable"


def bad_records(images: Images, schema: ImageSchema) -> list[tuple[int, str]]:
    """Every bad record and every reason, in the order of the records; reasons carry no values.

    All but those outside the range become null records; those are held within it. In a folder, the reason
    ends with the file.

    Raises:
        RequestError: the images as a whole do not fit the schema.
    """
    rows, y = encoding.as_rows(images.x.reveal(), schema.shape), encoding.as_labels(images.y.reveal())
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        c = encoding.class_indices(y, schema.classes)
        found += [(int(i), LABEL) for i in np.flatnonzero(c < 0)]
        odd = _odd_shapes(rows, schema.shape)
        found += odd.items()
        for where, values, finite in encoding.blocks(rows, schema.shape):
            far = ((values < schema.low) | (values > schema.high)) & np.isfinite(values)
            for reason, bad in ((FINITE, ~finite), (RANGE, far.any(axis=(1, 2, 3)))):
                found += [(i, reason) for i in (np.flatnonzero(bad) + where.start).tolist() if i not in odd]
    found.sort(key=lambda record: record[0])
    if images.names is None:
        return found
    names = images.names.reveal()
    return [(i, f"{reason} ({names[i]})") for i, reason in found]


def _odd_shapes(rows: np.ndarray | list, shape: tuple[int, int, int]) -> dict[int, str]:
    """The records of a list that are no images of the declared shape."""
    if isinstance(rows, np.ndarray):
        return {}
    odd = {}
    for i, item in enumerate(rows):
        if encoding.as_record(item, shape) is None:
            found = item.shape if isinstance(item, np.ndarray) else None
            differs = found is not None and found not in encoding.forms(shape)
            odd[i] = f"shape {found} where {shape} is declared" if differs else UNREADABLE
    return odd
