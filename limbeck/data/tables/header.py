"""A table as a whole against its schema: everything that is wrong with it at once, and never a value."""

from collections.abc import Sequence

import pyarrow as pa

from limbeck.data.tables.columns import Dropped
from limbeck.data.tables.schema import DATE_HINT, TableSchema
from limbeck.errors import RequestError


def check_table(
    schema: TableSchema, found: Sequence[str], source: str, *, types: pa.Schema | None = None, empty: bool = False
) -> None:
    """Refuse a table whose columns are not the declared ones, or that has no rows; the columns' order may differ.

    The names of a file without types stand in its first line, which may be a record, or run on into one: a name that
    is not declared is quoted only where all the declared ones are there. Where few are, nothing of the line is.

    Raises:
        RequestError: a column is missing, is there twice, is not declared, or holds dates, lists or other things that
            are no cells; or there are no rows.
    """
    declared = schema.names
    absent = [name for name in declared if name not in found]
    none = ["it holds no rows; at least one is expected"] if empty else []
    if 2 * len(absent) > len(declared):
        raise RequestError(
            f"{source}: {len(declared) - len(absent)} of the {len(declared)} declared columns are in its header: it "
            "has no header, or another delimiter or encoding than the schema says, or is another file. A first line "
            f"with the names {_some(declared)} is expected.{''.join(f' And {wrong}.' for wrong in none)}"
        )
    wrong = [f"{name!r} is missing" for name in absent]
    wrong += _not_declared(declared, found, quoted=types is not None or not absent)
    if wrong:
        wrong[-1] += ". Mend the schema (a column that is not to be used is declared as dropped), or the file"
        wrong[0] = f"its header is not the schema's: {wrong[0]}"
    wrong += [] if types is None else _of_no_kind(schema, types)
    if wrong or none:
        raise RequestError(f"{source}: {'; '.join(wrong + none)}")


def type_problem(name: str, kind: pa.DataType) -> str | None:
    """What is wrong with a column of this type that is not dropped; None for what cells can be."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_temporal(kind):
        return f"{name!r} holds dates: {DATE_HINT}"
    plain = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if any(is_kind(kind) for is_kind in (*plain, *numbers)):
        return None
    return f"{name!r} is of type {kind}: declare it dropped, or write it as numbers or text"


def _not_declared(declared: Sequence[str], found: Sequence[str], *, quoted: bool) -> list[str]:
    """Names that stand there more than once, and those that no schema declares, by their places if not `quoted`."""
    known = [name for name in dict.fromkeys(found) if quoted or name in declared]
    wrong = [f"{name!r} is there {found.count(name)} times" for name in known if found.count(name) > 1]
    if quoted:
        return wrong + [f"{name!r} is not declared" for name in known if name not in declared]
    places = [str(i) for i, name in enumerate(found, 1) if name not in declared]
    shown = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
    return wrong + ([f"of its {len(found)} columns, number {shown} is not declared"] if places else [])


def _of_no_kind(schema: TableSchema, types: pa.Schema) -> list[str]:
    dropped = {column.name for column in schema.columns if isinstance(column, Dropped)}
    used = [field for field in types if field.name in schema.names and field.name not in dropped]
    return [wrong for field in used if (wrong := type_problem(field.name, field.type))]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
