"""A draft of a schema, from a table's header alone: it copies no values and infers none."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from limbeck.data.tables import columnar, delimited
from limbeck.data.tables.cells import as_number
from limbeck.data.tables.table import KNOWN
from limbeck.errors import RequestError


def draft(path: Path, *, encoding: str = "utf-8", delimiter: str | None = None) -> dict[str, Any]:
    """The fields of a schema for a person to complete: names and, where the file declares them, kinds by type.

    Bounds, categories and classes are left empty: they are declared by somebody who knows what the columns mean, since
    those of the records at hand would give these away.
    """
    if not path.exists():
        raise RequestError(f"{path} does not exist")
    if columnar.recognises(path):
        types, _ = columnar.described(path)
        return {"kind": "table", "columns": [_typed(field) for field in types]}
    if not delimited.recognises(path):
        raise RequestError(f"{path} is no table of a known kind; known are {KNOWN}")
    header = delimited.read_header(path, encoding)
    sign = delimiter or max(delimited.DELIMITERS, key=header.count)
    fields: dict[str, Any] = {"kind": "table"}
    fields |= {} if delimiter is None else {"delimiter": delimiter}
    fields |= {} if encoding == "utf-8" else {"encoding": encoding}
    names = delimited.names_of(header, sign)
    _check_header(names, path)
    return fields | {"columns": [{"name": name, "kind": ""} for name in names]}


def _check_header(names: list[str], path: Path) -> None:
    """Refuse a first line that may be a record: a draft would carry it out of the building. It is not quoted."""
    numbers = sum(math.isfinite(as_number(name)) for name in names)
    wrong = [
        *([f"{numbers} of its {len(names)} cells are numbers"] if numbers else []),
        *(["some are empty"] if "" in names else []),
        *(["some are the same"] if len(set(names)) < len(names) else []),
    ]
    if wrong:
        raise RequestError(
            f"the first line of {path} may be a record and no header: {', and '.join(wrong)}. Give the file a first "
            "line with a name for each column; columns that are called by numbers need a schema written by hand."
        )


def _typed(field: pa.Field) -> dict[str, Any]:
    kind, name = field.type, field.name
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return {"name": name, "kind": "boolean"}
    if pa.types.is_integer(kind):
        return {"name": name, "kind": "numerical", "low": None, "high": None, "integer": True}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"name": name, "kind": "numerical", "low": None, "high": None}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return {"name": name, "kind": "categorical", "categories": []}
    return {"name": name, "kind": "dropped"}  # dates, lists and other things that are no cells


def line_of(text: str, name: str) -> int | None:
    """The line of a schema's JSON on which a column is named, from 1; None if it is nowhere."""
    ways = {re.escape(json.dumps(name, ensure_ascii=ascii)) for ascii in (False, True)}
    found = re.search(rf'"name"\s*:\s*({"|".join(ways)})', text)
    return None if found is None else text.count("\n", 0, found.start()) + 1
