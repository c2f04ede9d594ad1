"""What a reader returns: raw images and labels, not yet looked at."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Images:
    """Labelled images as they are in a file, for `ImageSchema.encode(images.x, images.y)`.

    Attributes:
        x: an array, or a list with one item a record (None for an image that could not be read).
        y: one label a record.
        units: whom each record belongs to, where the schema's unit is a person.
        source: the file or folder they were read from.
        names: the file of each record, in a folder of images.
    """

    x: np.ndarray | list
    y: np.ndarray | list
    units: np.ndarray | None = None
    source: str = ""
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        # Records are private: a printed object or a traceback must not show them.
        return f"Images({len(self)} records from {self.source!r})"
