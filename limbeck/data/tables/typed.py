"""Rows of a table as a person would hold them: numbers, and declared values as text.

For what compares rows with rows (`limbeck.evaluate`): real rows and released ones come out alike, whatever the file.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool

from limbeck.data.tables.cells import ABSENT, class_indices, feature_values
from limbeck.data.tables.columns import Boolean, Feature, Numerical, Target
from limbeck.data.tables.encoding import sentinel
from limbeck.data.tables.rows import Rows
from limbeck.data.tables.schema import TableSchema
from limbeck.errors import RequestError


def typed_frame(schema: TableSchema, rows: Rows) -> pd.DataFrame:
    """The columns that are released, as the schema reads them; null records are left out.

    A number is held within its bounds, and NaN where it is missing; a category, level, truth value or class is the text
    of its declared value, and None where it is missing.

    Raises:
        RequestError: the rows are of a table without some of the columns.
    """
    absent = [name for name in schema.released_names if name not in rows.schema.names]
    if absent:
        raise RequestError(
            f"{rows.source or 'the table'} has no column {absent[0]!r}, which the schema declares"
            f"{f', nor {len(absent) - 1} others' if len(absent) > 1 else ''}: it is another table"
        )
    blocks = [_block(schema, batch) for batch in rows.batches(schema.released_names)]
    return pd.concat(blocks, ignore_index=True)


def released_form(schema: TableSchema) -> TableSchema:
    """The schema of a release's own data.csv: UTF-8, commas, the released columns, classes by their own names."""
    columns = [
        column.model_copy(update={"groups": {}}) if isinstance(column, Target) else column
        for column in schema.columns
        if column.name in schema.released_names
    ]
    return TableSchema(columns=columns, delimiter=",")


def written(column: Feature | Target) -> tuple[str, ...]:
    """The declared values of a column as text, by their indices; none of a numerical column."""
    if isinstance(column, Numerical):
        return ()
    if isinstance(column, Boolean):
        stated = column.true is not None
        return (str(column.false), str(column.true)) if stated else ("False", "True")
    return tuple(str(value) for value in (column.classes if isinstance(column, Target) else column.values))


def _block(schema: TableSchema, batch: pa.RecordBatch) -> pd.DataFrame:
    target = schema.target
    c = class_indices(target, batch.column(target.name))
    cells: dict[str, Any] = {target.name: _texts(target, c)}
    null = c == ABSENT
    for column in schema.features:
        values = feature_values(column, batch.column(column.name), schema.decimal)
        cells[column.name], missing = _typed(column, values)
        null |= missing & (column.missing == "null")
    return pd.DataFrame({name: cells[name][~null] for name in schema.released_names})


def _typed(column: Feature, values: np.ndarray) -> tuple[np.ndarray, Bool[np.ndarray, " n"]]:
    """One column's cells, and which of them are missing."""
    if column.missing == "sentinel":
        values = np.where(np.isnan(values), sentinel(column), values)
    missing = np.isnan(values)
    if isinstance(column, Numerical):
        return np.clip(values, column.low, column.high), missing
    return _texts(column, np.where(missing, ABSENT, values).astype(int)), missing


def _texts(column: Feature | Target, index: np.ndarray) -> np.ndarray:
    """Texts by their indices: the last is for a cell that is missing, whose index is -1."""
    return np.array([*written(column), None], object)[index]
