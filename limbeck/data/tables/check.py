"""A custodian's look at single rows of a table, outside the guarantee: which are bad, and why.

Nothing here belongs in a release or a log that leaves: that a row is bad is a fact about a person.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limbeck.data.tables.cells import as_text, class_indices, distinct, feature_values
from limbeck.data.tables.columns import Numerical
from limbeck.data.tables.schema import TableSchema
from limbeck.data.tables.table import Table

CLASS = "{name}: no declared class"
MISSING = "{name}: missing, or nothing of the declared kind"
RANGE = "{name}: outside the declared range"
UNREADABLE = "not as many cells as there are columns, or all of them empty"


def bad_rows(table: Table, schema: TableSchema) -> list[tuple[int, str]]:
    """Every bad row and every reason, by column and never with a value, in the order of the rows.

    A row of no class, and one that misses a cell which must be there, is a null record; what lies outside the range is
    held within it; an indicator or a sentinel stands for what else is missing.
    """
    found: list[tuple[int, str]] = []
    start = 0
    for batch in table.x.reveal().batches(schema.released_names):
        found += [(start + i, reason) for i, reason in _in_batch(batch, schema)]
        start += batch.num_rows
    return found


def _in_batch(batch: pa.RecordBatch, schema: TableSchema) -> list[tuple[int, str]]:
    empty = np.all([_empty(column) for column in batch.columns], axis=0)
    reasons = {UNREADABLE: empty}
    reasons[CLASS.format(name=schema.target.name)] = (
        class_indices(schema.target, batch.column(schema.target.name)) < 0
    ) & ~empty
    for column in schema.features:
        values = feature_values(column, batch.column(column.name), schema.decimal)
        reasons[MISSING.format(name=column.name)] = np.isnan(values) & ~empty
        if isinstance(column, Numerical):
            reasons[RANGE.format(name=column.name)] = (values < column.low) | (values > column.high)
    found = [(int(i), reason) for reason, bad in reasons.items() for i in np.flatnonzero(bad)]
    return sorted(found, key=lambda one: one[0])


def _empty(cells: pa.Array) -> np.ndarray:
    if not (pa.types.is_string(cells.type) or pa.types.is_dictionary(cells.type)):
        return np.asarray(pc.is_null(cells).to_numpy(zero_copy_only=False))
    texts, place = distinct(cells)
    return np.array([*(not as_text(text).strip() for text in texts), True])[place]
