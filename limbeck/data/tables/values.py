"""Values as a schema lists them: from the texts of cells, in an order that depends on the values alone."""

from collections.abc import Iterable, Mapping
from math import ceil, floor
from typing import Any

from limbeck.data.tables.cells import MISSING, as_number
from limbeck.data.tables.columns import Numerical, Value
from limbeck.data.tables.provenance import Part
from limbeck.data.tables.schema import TableSchema


def value_of(text: str) -> str | None:
    """The value that a cell's text stands for; None for a missing one, or one that no schema can list."""
    bare = text.strip()
    return None if bare.lower() in MISSING or set(bare) & set("\r\n") else bare


def in_order(texts: Iterable[str]) -> list[Value]:
    """Numbers by their size, then text by the alphabet; whole numbers as numbers, if all of them are."""
    found = sorted(texts, key=lambda text: (number if (number := as_number(text)) == number else float("inf"), text))
    whole = all(text.removeprefix("-").isdecimal() and str(int(text)) == text for text in found)
    return [int(text) for text in found] if whole and all(abs(int(text)) < 2**63 for text in found) else list(found)


def fitting(
    schema: TableSchema, parts: Mapping[str, tuple[Part, ...]], found: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Of what was found, the parts that are blank, as their columns have them: bounds of integers are whole."""
    columns = {column.name: column for column in schema.columns}
    kept: dict[str, dict[str, Any]] = {}
    for name, values in found.items():
        column = columns[name]
        if isinstance(column, Numerical) and column.integer:
            values = {"low": floor(values["low"]), "high": ceil(values["high"])}
        kept[name] = {part: values[part] for part in parts[name]}
    return kept
