"""Rows of a table as numbers; `decoding` is the way back.

| column | encoded | decoded |
| --- | --- | --- |
| numerical | its declared range mapped to [-1, 1], and held within it | the range again, held, whole if declared so |
| categorical | 1 at its category, 0 at the others | the largest |
| ordinal | levels evenly from -1 to 1 | the nearest |
| boolean | -1, 1 | by the sign |
| missing, with an indicator | 0, and 1 at the indicator; its own category for a categorical column | above a half |

A missing cell of a column whose `missing` is "null", and a row of no declared class, make the row a null record.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int

from limbeck.data.tables.cells import class_indices, feature_values
from limbeck.data.tables.columns import Boolean, Categorical, Feature, Numerical, Ordinal
from limbeck.data.tables.layout import Slot

if TYPE_CHECKING:
    from limbeck.data.tables.schema import TableSchema


def encoded(schema: "TableSchema", batch: pa.RecordBatch) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
    """Some rows: float32 (n, d) and class indices; zeros and -1 for a null record."""
    x = np.zeros((batch.num_rows, schema.layout.width), np.float32)
    c = class_indices(schema.target, batch.column(schema.target.name))
    null = c < 0
    for slot in schema.layout.slots:
        values = feature_values(slot.column, batch.column(slot.column.name), schema.decimal)
        null |= _fill(x, slot, values)
    c[null], x[null] = -1, 0
    return x, c


def _fill(x: Float[np.ndarray, "n d"], slot: Slot, values: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Write one column's coordinates; returns which rows it makes null records."""
    column, missing = slot.column, np.isnan(values)
    if column.missing == "sentinel":
        values, missing = np.where(missing, sentinel(column), values), np.zeros_like(missing)
    known = np.where(missing, 0.0, values)
    if isinstance(column, Categorical):
        place = np.where(missing & column.indicated, len(column.values), known).astype(int)
        x[np.arange(len(x)), slot.start + place] = 1
    else:
        x[:, slot.start] = np.where(missing, 0.0, _scaled(column, known))
        if slot.indicator is not None:
            x[:, slot.indicator] = missing
    return missing if column.missing == "null" else np.zeros_like(missing)


def sentinel(column: Feature) -> float:
    if isinstance(column, Categorical | Ordinal):
        return float([str(value) for value in column.values].index(str(column.fill)))
    return float(column.fill)


def _scaled(column: Feature, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """From numbers or indices to [-1, 1]."""
    if isinstance(column, Numerical):
        above = np.clip(values, column.low, column.high) - column.low
        span = column.high - column.low
        share = np.log1p(above) / np.log1p(span) if column.scale == "log" else above / span
    else:
        share = values / (1 if isinstance(column, Boolean) else len(column.values) - 1)
    return 2 * share - 1
