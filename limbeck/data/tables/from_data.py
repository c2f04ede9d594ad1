"""What a schema leaves blank, read from the records as they are: outside the guarantee, and only when asked by name.

The largest income of a file is somebody's income. Whatever is made with such a schema has no privacy guarantee, and the
schema says so itself (`provenance.Read`).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.tables.blanks import Blanks, columns_of
from limbeck.data.tables.cells import FALSE, TRUE, as_number, distinct
from limbeck.data.tables.provenance import Part, Read
from limbeck.data.tables.table import Table, read_table
from limbeck.data.tables.values import fitting, in_order, value_of

SOURCE = Read(columns={}).model_dump(mode="json")
FEW = 20  # values, at most, of a column of text or whole numbers that is taken for a categorical one


def values_of(table: Table, names: tuple[str, ...]) -> dict[str, set[str]]:
    """Every value of some columns: the records' own."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for batch in table.x.reveal().batches(names):
        for name in names:
            texts, place = distinct(batch.column(name))
            held = {texts[i] for i in np.unique(place) if i < len(texts)}
            found[name] |= {value for text in held if (value := value_of(text)) is not None}
    return found


def inferred(values: set[str], decimal: str) -> dict[str, Any]:
    """A kind for a column that holds these values: by simple rules, for a person to look at."""
    numbers = [as_number(value, decimal) for value in values]
    if values and all(value.lower() in TRUE | FALSE for value in values) and len(values) <= 2:
        return {"kind": "boolean"}
    if values and all(map(math.isfinite, numbers)):
        return {"kind": "numerical", "integer": True} if all(map(float.is_integer, numbers)) else {"kind": "numerical"}
    return {"kind": "categorical"} if 0 < len(values) <= FEW else {"kind": "dropped"}


def read_from_data(path: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """A draft with its blanks filled in by what the records hold, and marked so: kinds too, by simple rules.

    Levels come in the order of numbers, or of the alphabet, for a person to put right.
    """
    unknown = [str(c.get("name")) for c in columns_of(fields) if c.get("kind") in (None, "")]
    guess = [c | {"kind": "categorical"} if c.get("name") in unknown else c for c in columns_of(fields)]
    opened = Blanks.of(fields | {"columns": guess} if guess else fields)
    held = values_of(read_table(path, opened.stand_in), tuple(opened.parts))
    decimal = opened.stand_in.decimal
    kinds = {name: inferred(held[name], decimal) for name in unknown}
    known = Blanks.of(fields | {"columns": [c | kinds.get(c["name"], {}) for c in columns_of(fields)]})
    found = {name: _parts(held[name], parts, decimal) for name, parts in known.parts.items()}
    values = fitting(known.stand_in, known.parts, {name: parts for name, parts in found.items() if parts})
    read = {name: {"kind": kinds[name]["kind"]} for name in unknown}
    return known.filled(read | {name: read.get(name, {}) | parts for name, parts in values.items()}, SOURCE)


def _parts(values: set[str], blank: tuple[Part, ...], decimal: str) -> dict[str, Any]:
    if "low" not in blank and "high" not in blank:
        return {blank[0]: in_order(values)} if values else {}
    numbers = [number for value in values if math.isfinite(number := as_number(value, decimal))]
    if not numbers:
        return {}
    return {"low": min(numbers), "high": max(numbers) if min(numbers) < max(numbers) else min(numbers) + 1}
