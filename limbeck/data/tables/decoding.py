"""Numbers as rows of a table again: whatever they are, the rows fit the schema."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from limbeck.data.tables.columns import Categorical, Numerical, Ordinal, Value
from limbeck.data.tables.layout import Slot

if TYPE_CHECKING:
    from limbeck.data.tables.schema import TableSchema


def decoded(schema: "TableSchema", x: Float[np.ndarray, "m d"]) -> pd.DataFrame:
    """The feature columns in their order. Whatever finite numbers x holds, what comes out fits the schema."""
    return pd.DataFrame({slot.column.name: _column(slot, x) for slot in schema.layout.slots})


def _column(slot: Slot, x: Float[np.ndarray, "m d"]) -> pd.Series:
    column = slot.column
    if isinstance(column, Categorical):
        place = x[:, slot.start : slot.stop].argmax(axis=1)
        missing = place == len(column.values)
        return _values(column.values, np.where(missing, 0, place), missing)
    share = (np.clip(x[:, slot.start], -1, 1) + 1) / 2
    missing = x[:, slot.indicator] > 0.5 if slot.indicator is not None else np.zeros(len(x), bool)
    if isinstance(column, Numerical):
        return _numbers(column, share, missing)
    if isinstance(column, Ordinal):
        return _values(column.levels, np.rint(share * (len(column.levels) - 1)).astype(int), missing)
    if column.true is None or column.false is None:
        truth = pd.Series(share >= 0.5)
        return truth.astype("boolean").mask(missing) if column.indicated else truth
    return _values((column.false, column.true), (share >= 0.5).astype(int), missing)


def _numbers(column: Numerical, share: Float[np.ndarray, " m"], missing: Bool[np.ndarray, " m"]) -> pd.Series:
    span = column.high - column.low
    above = np.expm1(share * np.log1p(span)) if column.scale == "log" else share * span
    values = np.clip(column.low + above, column.low, column.high)
    if not column.integer:
        return pd.Series(np.where(missing, np.nan, values))
    whole = pd.Series(np.rint(values).astype(np.int64))
    return whole.astype("Int64").mask(missing) if column.indicated else whole


def _values(values: tuple[Value, ...], place: Int[np.ndarray, " m"], missing: Bool[np.ndarray, " m"]) -> pd.Series:
    """Listed values: whole numbers if all of them are, else text."""
    if all(isinstance(value, int) for value in values):
        whole = pd.Series(np.array(values, np.int64)[place])
        return whole.astype("Int64").mask(missing) if missing.any() else whole
    text: Any = np.array([str(value) for value in values], object)[place]
    return pd.Series(text, dtype="str").mask(missing) if missing.any() else pd.Series(text, dtype="str")
