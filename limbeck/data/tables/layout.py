"""Where each column of a table lies in an encoded row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from limbeck.data.tables.columns import Categorical, Feature


@dataclass(frozen=True)
class Slot:
    """The coordinates of one column.

    - `start`, `stop`: one coordinate in [-1, 1], or one for each category, of which one is 1 and the others are 0. A
      category that stands for a missing cell is the last of them.
    - `indicator`: the coordinate that is 1 where a column of one coordinate is missing, and else 0; None without one.
    """

    column: Feature
    start: int
    stop: int
    indicator: int | None = None

    @property
    def end(self) -> int:
        return self.stop if self.indicator is None else self.indicator + 1

    @property
    def is_group(self) -> bool:
        return isinstance(self.column, Categorical)


@dataclass(frozen=True)
class Layout:
    slots: tuple[Slot, ...]

    @classmethod
    def of(cls, columns: Sequence[Feature]) -> "Layout":
        slots: list[Slot] = []
        for column in columns:
            start = slots[-1].end if slots else 0
            if isinstance(column, Categorical):
                slots.append(Slot(column, start, start + len(column.values) + column.indicated))
            else:
                slots.append(Slot(column, start, start + 1, start + 1 if column.indicated else None))
        return cls(tuple(slots))

    @property
    def width(self) -> int:
        """Coordinates of an encoded row."""
        return self.slots[-1].end

    @cached_property
    def scalars(self) -> Int[np.ndarray, " s"]:
        """The coordinates in [-1, 1]: of numerical, ordinal and boolean columns."""
        return np.array([slot.start for slot in self.slots if not slot.is_group], int)

    @cached_property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """The coordinates of each categorical column."""
        return tuple((slot.start, slot.stop) for slot in self.slots if slot.is_group)

    @cached_property
    def indicators(self) -> Int[np.ndarray, " i"]:
        return np.array([slot.indicator for slot in self.slots if slot.indicator is not None], int)
