"""What a drafted schema leaves blank: bounds, categories, levels and classes that are not stated yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.data.tables.provenance import Part
from limbeck.data.tables.schema import TableSchema, problems
from limbeck.errors import RequestError

PARTS: dict[str, tuple[Part, ...]] = {
    "numerical": ("low", "high"),
    "categorical": ("categories",),
    "ordinal": ("levels",),
    "target": ("classes",),
}
STAND_INS: dict[str, Any] = {
    "low": 0,
    "high": 1,
    "categories": ["a"],
    "levels": ["a", "b"],
    "classes": ["a", "b"],
}

Parts = Mapping[str, tuple[Part, ...]]  # of columns, by name


@dataclass(frozen=True)
class Blanks:
    """A drafted schema, and what is blank in it.

    - `fields`: the draft, as it was given. `parts`: the blank parts of each column that has any.
    - `stand_in`: a schema of the same columns, with something in the blanks, by which the file can be opened.
    """

    fields: dict[str, Any]
    parts: Parts
    stand_in: TableSchema

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Blanks":
        """The blanks of a draft that is otherwise in order.

        Raises:
            RequestError: something else is wrong with it, such as a column without a kind.
        """
        given = columns_of(fields)
        parts = {str(c.get("name")): blank for c in given if (blank := _blank(c))}
        complete = [_with_stand_ins(c, parts.get(str(c.get("name")), ())) for c in given]
        if wrong := problems(fields | ({"columns": complete} if complete else {})):
            said = "; ".join(problem for _, problem in wrong)
            raise RequestError(f"the draft is wrong besides what it leaves blank: {said}")
        return cls(fields, parts, TableSchema(**(fields | {"columns": complete})))

    def filled(self, values: Mapping[str, Mapping[str, Any]], source: Mapping[str, Any]) -> dict[str, Any]:
        """The draft with these values in its blanks, and where they came from: `source` has the fields of one."""
        columns = [column | dict(values.get(column["name"], {})) for column in self.fields["columns"]]
        filled = {name: list(parts) for name, parts in values.items() if parts}
        came = [*self.fields.get("provenance", ()), {**source, "columns": filled}]
        return self.fields | {"columns": columns, "provenance": came}


def columns_of(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns of a draft, as far as it has any."""
    columns = fields.get("columns")
    return [column for column in columns if isinstance(column, dict)] if isinstance(columns, list) else []


def _blank(column: dict[str, Any]) -> tuple[Part, ...]:
    return tuple(part for part in PARTS.get(str(column.get("kind")), ()) if column.get(part) in (None, "", [], ()))


def _with_stand_ins(column: dict[str, Any], blank: tuple[Part, ...]) -> dict[str, Any]:
    """A column that is in order if what it states is. What it states of missing cells is judged once it is filled."""
    if not blank:
        return column
    stated = {name: value for name, value in column.items() if name not in ("missing", "fill")}
    values = {part: STAND_INS[part] for part in blank}
    low, high = column.get("low"), column.get("high")
    if "high" in blank and isinstance(low, int | float):
        values["high"] = low + max(1, abs(low))
    if "low" in blank and isinstance(high, int | float):
        values["low"] = high - max(1, abs(high))
    return stated | values
