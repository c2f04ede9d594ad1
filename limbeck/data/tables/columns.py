"""The kinds of column that a person can declare: what a cell may hold, and what becomes of a cell that is missing."""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Value = str | int  # a category, level or class
Missing = Literal["null", "indicator", "sentinel"]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, pattern=r"^[^\r\n]*$")  # a header is a line


class _Feature(_Declared, ABC):
    """A column that is measured and released.

    `missing` says what becomes of a cell that is empty or holds nothing of the declared kind: the whole row is a
    "null" record and contributes nothing; an "indicator" beside the column says so, and released cells may be empty
    too; or the declared `fill` stands for it, a "sentinel".
    """

    missing: Missing = "null"
    fill: Any = None

    @property
    def indicated(self) -> bool:
        return self.missing == "indicator"

    @model_validator(mode="after")
    def _filled(self):
        if self.missing == "sentinel" and not self._fits(self.fill):
            raise ValueError(f"missing is sentinel, which needs a fill: {self._expected}")
        if self.missing != "sentinel" and self.fill is not None:
            raise ValueError("fill belongs to missing = sentinel")
        return self

    @abstractmethod
    def _fits(self, fill: Any) -> bool:
        """Whether this may stand in the column."""

    @property
    @abstractmethod
    def _expected(self) -> str:
        """What may, in words."""


class Numerical(_Feature):
    """Numbers from `low` to `high`, which hold what lies outside them; whole ones if `integer`.

    `scale` is "linear", or "log" where most values lie near `low` and a few far above it, as amounts do: the
    features then see the logarithm of 1 + value - low.
    """

    kind: Literal["numerical"]
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    integer: bool = False
    scale: Literal["linear", "log"] = "linear"

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("a number is expected")
        return value

    @field_validator("low", "high", mode="after")
    @classmethod
    def _one_zero(cls, value: float) -> float:
        return value + 0.0  # -0.0 becomes 0.0: equal schemas have equal digests

    @model_validator(mode="after")
    def _ordered(self) -> "Numerical":
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ValueError("low must be less than high, and high - low a finite number")
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError("low and high of an integer column must be whole numbers")
        if self.integer and max(abs(self.low), abs(self.high)) > 2**53:
            raise ValueError("low and high of an integer column must lie within 2^53")
        return self

    def _fits(self, fill: Any) -> bool:
        return isinstance(fill, int | float) and not isinstance(fill, bool) and self.low <= fill <= self.high

    @property
    def _expected(self) -> str:
        return "a number from low to high"


class _Listed(_Feature):
    @property
    @abstractmethod
    def values(self) -> tuple[Value, ...]:
        """What a cell may hold, by its index."""

    def _fits(self, fill: Any) -> bool:
        return isinstance(fill, Value) and str(fill) in {str(value) for value in self.values}

    @property
    def _expected(self) -> str:
        return "one of the listed values"


class Categorical(_Listed):
    """One of a list of `categories`; what is none of them is `other`, if that is named, or else missing."""

    kind: Literal["categorical"]
    categories: tuple[Value, ...] = Field(min_length=1)
    other: Value | None = None

    @field_validator("categories", mode="before")
    @classmethod
    def _categories(cls, value: Any) -> Any:
        return listed(value)

    @field_validator("other", mode="before")
    @classmethod
    def _other(cls, value: Any) -> Any:
        return None if value is None else listed([value])[0]

    @property
    def values(self) -> tuple[Value, ...]:
        named = {str(value) for value in self.categories}
        return self.categories if self.other is None or str(self.other) in named else (*self.categories, self.other)


class Ordinal(_Listed):
    """One of a list of `levels`, from the lowest to the highest."""

    kind: Literal["ordinal"]
    levels: tuple[Value, ...] = Field(min_length=2)

    @field_validator("levels", mode="before")
    @classmethod
    def _levels(cls, value: Any) -> Any:
        return listed(value)

    @property
    def values(self) -> tuple[Value, ...]:
        return self.levels


class Boolean(_Feature):
    """Yes or no: `true` and `false` as they are written; when they are not given, in any of the usual ways."""

    kind: Literal["boolean"]
    true: Value | None = None
    false: Value | None = None

    @model_validator(mode="after")
    def _both(self) -> "Boolean":
        if (self.true is None) != (self.false is None) or (self.true is not None and str(self.true) == str(self.false)):
            raise ValueError("give both true and false, and not the same, or neither")
        return self

    def _fits(self, fill: Any) -> bool:
        return isinstance(fill, bool)

    @property
    def _expected(self) -> str:
        return "true or false"


class Dropped(_Declared):
    """A column that is neither read nor released."""

    kind: Literal["dropped"]


class Target(_Declared):
    """The column that is to be predicted, one of `classes`.

    `groups` lists, for a class, the values in the file that are meant by it: attack names for their family, or the
    numbers 2 to 5 for "rest". A class that is not in it is written as it is called. A row of no class is a null record.
    """

    kind: Literal["target"]
    classes: tuple[Value, ...] = Field(min_length=2)
    groups: dict[str, tuple[Value, ...]] = {}

    @field_validator("classes", mode="before")
    @classmethod
    def _classes(cls, value: Any) -> Any:
        return listed(value)

    @field_validator("groups", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("a list of values for each class is expected")
        return {str(name): listed(members) for name, members in value.items()}

    @model_validator(mode="after")
    def _known(self) -> "Target":
        if not self.groups.keys() <= {str(c) for c in self.classes}:
            raise ValueError("groups are of declared classes")
        if any(str(c).strip() == "" for c in self.classes) or any("" in group for group in self.groups.values()):
            raise ValueError("a class has a name, and an empty cell is of none")
        members = [str(value) for c in self.classes for value in self.groups.get(str(c), (c,))]
        if len(set(members)) < len(members):
            raise ValueError("a value belongs to one class")
        return self

    def members(self, label: Value) -> tuple[Value, ...]:
        """The values that are meant by a class: its group, and its own name, by which it is released."""
        claimed = {str(value) for name, group in self.groups.items() if name != str(label) for value in group}
        group = self.groups.get(str(label), ())
        own = str(label) in claimed | {str(value) for value in group}
        return group if own else (*group, label)


class Unit(_Declared):
    """Who a row belongs to: the guarantee is then for all rows of one person, of which the first `rows` are used."""

    kind: Literal["unit"]
    rows: int = Field(ge=1, strict=True)


class Split(_Declared):
    """Which rows are for training and which for testing. Public: rows of the other split are no part of the data."""

    kind: Literal["split"]
    train: tuple[Value, ...] = ("train",)
    test: tuple[Value, ...] = ("test",)

    @field_validator("train", "test", mode="before")
    @classmethod
    def _values(cls, value: Any) -> Any:
        return listed(value)


Feature = Numerical | Categorical | Ordinal | Boolean
Column = Annotated[Feature | Dropped | Target | Unit | Split, Field(discriminator="kind")]
KINDS = ("numerical", "categorical", "ordinal", "boolean", "dropped", "target", "unit", "split")


def listed(value: Any) -> tuple[Value, ...]:
    """A list of text and whole numbers, each named once."""
    if not isinstance(value, list | tuple | range | np.ndarray):
        raise ValueError("a list is expected")
    values = [item.item() if isinstance(item, np.generic) else item for item in value]
    if any(isinstance(item, bool) or not isinstance(item, str | int) for item in values):
        raise ValueError("text and whole numbers are expected")
    if any(isinstance(item, str) and set(item) & set("\r\n") for item in values):
        raise ValueError("a value has no line breaks")
    if any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in values):
        raise ValueError("a whole number must fit in 64 bits")
    if len({str(item) for item in values}) < len(values):
        raise ValueError('each value must be named once (1 and "1" are the same)')
    return tuple(values)
