"""What a person declares about a set of labelled images: everything a run may know of it without paying."""

import hashlib
import json
import math
import operator
import os
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from limbeck.data import encoding
from limbeck.errors import RequestError


class ImageSchema(BaseModel):
    """A declared, public description of a set of labelled images.

    Shapes, classes and the value range come from here and never from the records: a record that does not
    fit becomes a **null record**, which contributes nothing and keeps its place in n.

    Example:
        >>> schema = ImageSchema(shape=(28, 28, 1), classes=range(10), low=0, high=255)
        >>> x, c = schema.encode(np.full((1, 28, 28), 255, np.uint8), [7])
        >>> float(x.max()), c.tolist()
        (1.0, [7])

    Attributes:
        shape: height, width, channels; a pair is taken as one channel.
        classes: the classes, in the order of their indices: text or whole numbers.
        low: the smallest value that a pixel can have.
        high: the largest.
        unit: what the guarantee protects: one record, or all the records of a person.
        rows_per_unit: the largest number of records of one unit that are used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["image"] = "image"
    shape: tuple[int, int, int]
    classes: tuple[str | int, ...] = Field(min_length=2)
    low: float = Field(strict=True, allow_inf_nan=False)
    high: float = Field(strict=True, allow_inf_nan=False)
    unit: Literal["record", "person"] = "record"
    rows_per_unit: int = Field(default=1, ge=1, strict=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise RequestError(f"the schema is wrong: {_complaints(error)}") from None

    @field_validator("shape", mode="before")
    @classmethod
    def _shape(cls, value: Any) -> Any:
        sides = _items(value, "a list of height, width, channels")
        sides = [_whole(side) for side in sides]
        if len(sides) not in (2, 3) or min(sides) < 1:
            raise ValueError("height, width, channels are expected, each 1 or more")
        return tuple(sides) if len(sides) == 3 else (*sides, 1)

    @field_validator("classes", mode="before")
    @classmethod
    def _classes(cls, value: Any) -> Any:
        classes = _items(value, "a list of classes")
        classes = [str(c) if isinstance(c, str) else _whole(c) for c in classes]
        if any(isinstance(c, int) and not -(2**63) <= c < 2**63 for c in classes):
            raise ValueError("a whole number must fit in 64 bits")
        if len({str(c) for c in classes}) < len(classes):
            raise ValueError('each class must be named once (1 and "1" are the same class)')
        return tuple(classes)

    @field_validator("low", "high", mode="before")
    @classmethod
    def _bound(cls, value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else value

    @field_validator("low", "high", mode="after")
    @classmethod
    def _one_zero(cls, value: float) -> float:
        return value + 0.0  # -0.0 becomes 0.0: equal schemas have equal digests

    @model_validator(mode="after")
    def _together(self) -> "ImageSchema":
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ValueError("low must be less than high, and high - low a finite number")
        if self.unit == "record" and self.rows_per_unit != 1:
            raise ValueError("rows_per_unit must be 1 where the unit is one record")
        return self

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "ImageSchema":
        """Read a schema from a JSON file."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise RequestError(f"the schema {path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise RequestError(f"the schema {path} is not JSON; see ImageSchema for its fields") from None
        if not isinstance(fields, dict):
            raise RequestError(f"the schema {path} must be a JSON object with the fields of ImageSchema")
        try:
            return cls(**fields)
        except RequestError as error:
            raise RequestError(f"{path}: {error}") from None

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a JSON file, from which `from_json` makes an equal one."""
        try:
            Path(path).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise RequestError(f"the schema cannot be written to {path}: {error.strerror}") from None

    def digest(self) -> str:
        """SHA-256 of the schema in canonical JSON: equal for equal schemas, in hexadecimal."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def encode(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Turn raw images and labels into arrays that the rest of the package computes with.

        A pixel v becomes 2 (v - low) / (high - low) - 1, with v held within the declared range: the centre
        of the range is 0, its ends are -1 and 1. An image with a value that is not finite or of another
        shape, or whose label is none of the declared classes, becomes the null record, silently.

        Formal guarantees:
            Row i of the result depends on record i and on the schema alone. The shapes depend on n and on the
            schema alone. No warning, error or log line depends on what a record holds.

        Args:
            X: images, (n, H, W, C), (n, H*W*C), or (n, H, W) where there is one channel; or a list of such.
            y: n labels.

        Returns:
            x: float32 (n, H, W, C) in [-1, 1]; zeros for a null record.
            c: int32 (n,), the index of each class; -1 for a null record.

        Raises:
            RequestError: X or y as a whole is of another shape or type, or their lengths differ.
        """
        rows, labels = self.raw(X, y)
        x = np.zeros((len(rows), *self.shape), dtype=np.float32)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            c = encoding.class_indices(labels, self.classes)
            for where, values, finite in encoding.blocks(rows, self.shape):
                c[where][~finite] = -1
                np.clip(values, self.low, self.high, out=values)
                values -= self.low
                values /= self.high - self.low
                values *= 2
                values -= 1
                values[c[where] < 0] = 0
                x[where] = values
        return x, c

    def raw(self, X: Any, y: Any) -> tuple[np.ndarray | list, np.ndarray | list]:
        """Images and labels as they are, one a record, so that they can be encoded a slice at a time.

        What is checked is their form as a whole. An array is neither read nor copied: it may be mapped from a file.

        Raises:
            RequestError: as `encode`.
        """
        rows, labels = encoding.as_rows(X, self.shape), encoding.as_labels(y)
        if len(rows) != len(labels):
            raise RequestError(f"{len(rows)} images with {len(labels)} labels; one label an image is expected")
        return rows, labels

    @property
    def provenance(self) -> tuple[()]:
        """Everything about images is declared."""
        return ()

    def by_record(self) -> "ImageSchema":
        """The same with one record as the unit."""
        return self.model_copy(update={"unit": "record", "rows_per_unit": 1})

    def decode(self, x: Any, *, whole: bool = False) -> np.ndarray:
        """Turn encoded pixels back into the declared units, as float32; nothing is held within the range.

        With `whole`, a range of bytes (0 to 255, or within) is held to, and comes back as uint8.
        """
        values = self.low + (np.asarray(x, dtype=np.float64) + 1) / 2 * (self.high - self.low)
        if whole and self.of_bytes:
            return np.clip(np.rint(values), self.low, self.high).astype(np.uint8)
        return values.astype(np.float32)

    def encoded(self, x: np.ndarray) -> np.ndarray:
        """Pixels in declared units as `decode` undoes it: the range mapped to [-1, 1], and not held within it."""
        return (2 * (x.astype(np.float64) - self.low) / (self.high - self.low) - 1).astype(np.float32)

    @property
    def of_bytes(self) -> bool:
        """Whether pixels are declared within what a byte holds, from one whole number to another, as pictures' are."""
        return self.low.is_integer() and self.high.is_integer() and self.low >= 0 and 1 < self.high <= 255

    def labels(self, c: Any) -> np.ndarray:
        """The declared classes at these indices: text, int64, or objects where classes are of both types."""
        index = np.asarray(c)
        if index.size and (index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(self.classes)):
            raise RequestError(f"class indices must be whole numbers from 0 to {len(self.classes) - 1}")
        mixed = len({type(name) for name in self.classes}) > 1
        return np.array(self.classes, dtype=object if mixed else None)[index.astype(np.int64)]


def _items(value: Any, expected: str) -> list:
    if not isinstance(value, (list, tuple, range, np.ndarray)):
        raise ValueError(f"{expected} is expected")
    return list(value)


def _whole(value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError("whole numbers are expected") from None


def _complaints(error: ValidationError) -> str:
    """Each wrong field and what is wrong with it, on one line."""
    wrong = error.errors(include_url=False, include_input=False, include_context=False)
    fields = [".".join(str(part) for part in one["loc"]) or "schema" for one in wrong]
    messages = [one["msg"].removeprefix("Value error, ") for one in wrong]
    return "; ".join(f"{field}: {message}" for field, message in zip(fields, messages, strict=True))
