"""What evaluation needs to know of a table's columns, and rows as a person would give them to a classifier."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from limbeck.errors import RequestError
from limbeck.evaluate.trial import Rows

BINS = 20


@dataclass(frozen=True)
class Column:
    """A column as it was declared; nothing here is learned from rows.

    - `low`, `high`: of a numerical column.
    - `categories`: of a categorical one.
    - `missing`: whether cells may be empty: classifiers are then told which are.
    """

    name: str
    kind: Literal["numerical", "categorical"]
    low: float = 0.0
    high: float = 1.0
    categories: tuple[Any, ...] = ()
    missing: bool = False

    def __post_init__(self) -> None:
        if self.kind == "numerical" and not self.low < self.high:
            raise RequestError(
                f"column {self.name!r} is declared from {self.low} to {self.high}; low < high is expected"
            )
        if self.kind == "categorical" and not self.categories:
            raise RequestError(f"column {self.name!r} is declared categorical and has no categories")
        if len(set(self.categories)) < len(self.categories):
            raise RequestError(f"column {self.name!r} has a category that is declared twice")

    @property
    def width(self) -> int:
        """Columns of its encoding."""
        return (1 if self.kind == "numerical" else len(self.categories)) + self.missing

    @property
    def cells(self) -> int:
        """Cells of its public histogram: categories or bins of the declared range, and one for all that is neither."""
        return (BINS if self.kind == "numerical" else len(self.categories)) + 1


def numbers(frame: pd.DataFrame, column: Column) -> Float[np.ndarray, " n"]:
    """A numerical column, its declared range as [0, 1] and what is beyond at the ends; NaN where there is no number."""
    found = pd.to_numeric(_cells(frame, column), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.clip((found - column.low) / (column.high - column.low), 0, 1)


def codes(frame: pd.DataFrame, column: Column) -> Int[np.ndarray, " n"]:
    """A categorical column as indices of its categories; -1 for a cell that is empty or none of them."""
    known = pd.Index(column.categories, dtype=object)
    return np.asarray(known.get_indexer(_cells(frame, column).astype(object)), np.int64)


def cell_indices(frame: pd.DataFrame, column: Column) -> Int[np.ndarray, " n"]:
    """The cell of the column's public histogram that each row falls into; the last is for no number, no category."""
    if column.kind == "categorical":
        found = codes(frame, column)
        return np.where(found < 0, column.cells - 1, found)
    x = numbers(frame, column)
    there = np.isfinite(x)
    return np.where(there, np.minimum(np.where(there, x, 0) * BINS, BINS - 1), BINS).astype(np.int64)


def one_hot(frame: pd.DataFrame, columns: Sequence[Column]) -> Float[np.ndarray, "n d"]:
    """Rows for classifiers: numbers in [0, 1], a column a category, and an indicator where cells may be missing.

    The shape depends on the declared columns alone. An empty number is in the middle of its range, an unknown category
    in none of the columns.
    """
    X = np.zeros((len(frame), sum(column.width for column in columns)))
    rows, at = np.arange(len(frame)), 0
    for column in columns:
        if column.kind == "numerical":
            x = numbers(frame, column)
            there = np.isfinite(x)
            X[:, at] = np.where(there, x, 0.5)
        else:
            found = codes(frame, column)
            there = found >= 0
            X[rows[there], at + found[there]] = 1
        if column.missing:
            X[:, at + column.width - 1] = ~there
        at += column.width
    return X


def encoded_rows(frame: pd.DataFrame, columns: Sequence[Column], target: Column) -> Rows:
    """A table's features one-hot and its classes as indices, in the order in which they are declared."""
    return Rows(one_hot(frame, columns), codes(frame, target))


def _cells(frame: pd.DataFrame, column: Column) -> pd.Series:
    if column.name not in frame.columns:
        raise RequestError(f"the table has no column {column.name!r}")
    return frame[column.name]
