"""pandas DataFrames as Arrow, column by column and, where a column is of Python objects, cell by cell."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from limbeck.data.tables.cells import as_text
from limbeck.data.tables.schema import DATE_HINT, TableSchema
from limbeck.errors import RequestError


def frame_of(schema: TableSchema, X: Any) -> pd.DataFrame:
    """X as a DataFrame: it is one, a dict of columns, or an array with the declared features in their order."""
    if isinstance(X, pd.DataFrame):
        return X
    names = [column.name for column in schema.features]
    if isinstance(X, dict):
        return pd.DataFrame(X)
    array = X if isinstance(X, np.ndarray) else None
    if array is None or array.ndim != 2 or array.shape[1] != len(names):
        raise RequestError(
            f"the rows are of type {type(X).__name__}; a pandas DataFrame with the declared columns is expected, or an "
            f"array with the {len(names)} features in their order"
        )
    return pd.DataFrame(array, columns=names)


def batch_of(schema: TableSchema, X: Any, y: Any = None, names: tuple[str, ...] | None = None) -> pa.RecordBatch:
    """The declared columns of a DataFrame, features and target unless others are named; y is the target if given.

    Raises:
        RequestError: a column is missing, or is there twice, or holds dates; or y is of another length.
    """
    frame, target = frame_of(schema, X), schema.target.name
    names = names or schema.released_names
    needed = [name for name in names if y is None or name != target]
    present = [str(name) for name in frame.columns]
    wrong = [f"{name!r} is missing" for name in needed if name not in present]
    wrong += [f"{name!r} is there {present.count(name)} times" for name in needed if present.count(name) > 1]
    columns = {name: frame.iloc[:, present.index(name)] for name in needed if name in present}
    wrong += [
        f"column {name!r} holds dates: {DATE_HINT}" for name, series in columns.items() if _is_dates(series.dtype)
    ]
    target_cells = y if y is None or isinstance(y, pd.Series) else pd.Series(_cells(y))
    if target_cells is not None and len(target_cells) != len(frame):
        wrong.append(f"the target has {len(target_cells)} values for {len(frame)} rows")
    if target_cells is not None and _is_dates(target_cells.dtype):
        wrong.append(f"column {target!r} holds dates: {DATE_HINT}")
    if wrong:
        raise RequestError(f"the table does not fit the schema: {'; '.join(wrong)}")
    arrays = {name: arrow(series) for name, series in columns.items()}
    if y is not None:
        arrays[target] = arrow(target_cells)
    return pa.RecordBatch.from_arrays([arrays[name] for name in names], names=list(names))


def arrow(series: pd.Series) -> pa.Array:
    """One column. A cell of another type than its neighbours, or one that is no text, changes none of them."""
    if series.dtype.kind in "biuf":
        own = hasattr(series.array, "__arrow_array__") and not isinstance(series.dtype, np.dtype)
        cells = pa.array(series.array if own else np.asarray(series))  # pandas' own types keep whole numbers whole
        return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if isinstance(series.dtype, pd.StringDtype):  # all cells are text or missing
        return text_array(series.array)
    if isinstance(series.dtype, pd.CategoricalDtype):  # each category is looked at once
        place = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return pa.DictionaryArray.from_arrays(place, _texts(series.cat.categories.tolist()))
    return _texts(series.tolist())


def text_array(cells: Any) -> pa.Array:
    """Text as Arrow keeps it; characters that UTF-8 cannot write are replaced, in their own cells."""
    try:
        found = pa.array(cells, pa.string(), from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except (UnicodeError, pa.ArrowException):
        return pa.array([None if _is_null(c) else c.encode("utf-8", "replace").decode() for c in cells], pa.string())


def _texts(cells: list[Any]) -> pa.Array:
    return text_array([None if _is_null(cell) else as_text(cell) for cell in cells])


def _cells(y: Any) -> Any:
    """A target of any form, without a common type for a list: one label must not change the others."""
    array = np.asarray(y) if hasattr(y, "__array__") else None
    if array is not None and array.ndim == 1 and array.dtype.kind in "biuf":
        return array
    cells = np.empty(len(y), object)
    for i, cell in enumerate(y):
        cells[i] = cell
    return cells


def _is_dates(dtype: Any) -> bool:
    """By the declared type alone: a column of objects is read cell by cell, whatever they are."""
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories is not None and _is_dates(dtype.categories.dtype)
    return dtype.kind in "mM" or isinstance(dtype, pd.PeriodDtype)


def _is_null(cell: Any) -> bool:
    return cell is None or cell is pd.NA or cell is pd.NaT
