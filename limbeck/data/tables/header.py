"""The header of a table against its schema: everything that is wrong with it at once, and never a value."""

from collections.abc import Sequence

import pyarrow as pa

from limbeck.data.tables.columns import Dropped
from limbeck.data.tables.schema import DATE_HINT, TableSchema
from limbeck.errors import RequestError


def check_names(schema: TableSchema, found: Sequence[str], source: str) -> None:
    """Refuse a header that is not the declared one; the order may differ.

    Where few of the declared names are found, the line may be a record and no header: then it is not quoted.

    Raises:
        RequestError: a column is missing, is there twice, or is not declared.
    """
    declared = schema.names
    absent = [name for name in declared if name not in found]
    if 2 * len(absent) > len(declared):
        raise RequestError(
            f"{source}: {len(declared) - len(absent)} of the {len(declared)} declared columns are in its header: it "
            "has no header, or another delimiter or encoding than the schema says, or is another file. A first line "
            f"with the names {_some(declared)} is expected."
        )
    wrong = [f"{name!r} is missing" for name in absent]
    wrong += [f"{name!r} is there {found.count(name)} times" for name in dict.fromkeys(found) if found.count(name) > 1]
    wrong += [f"{name!r} is not declared" for name in dict.fromkeys(found) if name not in declared]
    if wrong:
        raise RequestError(
            f"{source}: its header is not the schema's: {'; '.join(wrong)}. Mend the schema (a column that is not "
            "to be used is declared as dropped), or the file."
        )


def check_types(schema: TableSchema, types: pa.Schema, source: str) -> None:
    """Refuse columns whose type in the file is none that a declared kind could be.

    Raises:
        RequestError: a column that is not dropped holds dates, lists or other things that are no cells.
    """
    wrong = []
    for column in schema.columns:
        kind = types.field(column.name).type
        if isinstance(column, Dropped):
            continue
        if pa.types.is_temporal(kind):
            wrong.append(f"{column.name!r} holds dates: {DATE_HINT}")
        elif pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            wrong.append(f"{column.name!r} is of type {kind}: declare it dropped, or write it as numbers or text")
    if wrong:
        raise RequestError(f"{source}: {'; '.join(wrong)}")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
