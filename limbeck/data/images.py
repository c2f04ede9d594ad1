"""What a reader returns: raw images and labels, not yet looked at, and private."""

from typing import Any

from limbeck.data.private import Private


class Images:
    """Labelled images as they are in a file, for `limbeck.measure.Records(schema, images.x, images.y, images.units)`.

    Attributes:
        x: an array, or a list with one item a record (None for an image that could not be read).
        y: one label a record.
        units: whom each record belongs to, where the schema's unit is a person.
        names: the file of each record, in a folder of images.
        source: the file or folder they were read from.
    """

    def __init__(self, x: Any, y: Any, units: Any = None, source: str = "", names: tuple[str, ...] | None = None):
        self.x, self.y = Private(x), Private(y)
        self.units = None if units is None else Private(units)
        self.names = None if names is None else Private(names)
        self.source = source

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Images({len(self)} records from {self.source!r})"
