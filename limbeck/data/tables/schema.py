"""What a person declares about a table: everything a run may know of it without paying."""

import codecs
import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_serializer

from limbeck.data.tables import encoding
from limbeck.data.tables.columns import KINDS, Column, Dropped, Feature, Split, Target, Unit, Value
from limbeck.data.tables.layout import Layout
from limbeck.data.tables.provenance import Bought, Read, Source, misplaced
from limbeck.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd

DATES = ("date", "datetime", "time", "timestamp")
NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")  # Python's own, of no file
DATE_HINT = "dates are not encoded: declare the column dropped, or write it as a number (days since a day) in the file"


class TableSchema(BaseModel):
    """A declared, public description of a table with one target column.

    Columns, bounds, categories and classes come from here and never from the records: a cell that does not fit is
    missing, and what that means is declared for its column.

    Example:
        >>> import pandas as pd
        >>> schema = TableSchema(columns=[
        ...     {"name": "age", "kind": "numerical", "low": 17, "high": 90, "integer": True},
        ...     {"name": "sex", "kind": "categorical", "categories": ["Female", "Male"]},
        ...     {"name": "income", "kind": "target", "classes": ["<=50K", ">50K"]},
        ... ])
        >>> x, c = schema.encode(pd.DataFrame({"age": [90], "sex": ["Male"], "income": ["<=50K"]}))
        >>> x.tolist(), c.tolist()
        ([[1.0, 0.0, 1.0]], [0])

    Attributes:
        columns: every column of the file, in its order: see `limbeck.data.tables.columns` for the kinds.
        delimiter: of a CSV file; found from the header line and the declared names when it is not given.
        encoding: of a CSV file's text.
        decimal: the sign before the decimals in a CSV file.
        provenance: where parts came from that nobody declared: bought under noise, or read from the data. Empty, and
            not written, for a schema that is declared throughout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["table"] = "table"
    columns: tuple[Column, ...]
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    encoding: str = "utf-8"
    decimal: Literal[".", ","] = "."
    provenance: tuple[Source, ...] = ()

    @model_serializer(mode="wrap")
    def _written(self, handler: Any) -> dict[str, Any]:
        """A declared schema has no provenance to write: its JSON and its digest are those of the declaration."""
        fields = handler(self)
        return fields if self.provenance else {name: v for name, v in fields.items() if name != "provenance"}

    def __init__(self, **fields: Any) -> None:
        found = problems(fields)
        if found:
            raise RequestError("the schema is wrong: " + "; ".join(problem for _, problem in found))
        super().__init__(**fields)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str], *, unsafe: bool = False) -> "TableSchema":
        """Read a schema from a JSON file; one whose parts were read from the data, only if that is asked for."""
        from limbeck.data.declared import load_schema

        schema = load_schema(path)
        if not isinstance(schema, TableSchema):
            raise RequestError(f"{path} is the schema of images; one of a table (kind: table) is expected")
        if schema.unsafe and not unsafe:
            raise RequestError(
                f"parts of {path} were read from the data: nothing that is made with it has a privacy guarantee. "
                "Declare or buy them, or read it with unsafe=True."
            )
        return schema

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a JSON file, from which `from_json` makes an equal one."""
        try:
            text = json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False)
            Path(path).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise RequestError(f"the schema cannot be written to {path}: {error.strerror}") from None

    def digest(self) -> str:
        """SHA-256 of the schema in canonical JSON: equal for equal schemas, in hexadecimal."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    # What is declared, by its part

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns that are measured and released besides the target."""
        return tuple(column for column in self.columns if isinstance(column, Feature))

    @property
    def target(self) -> Target:
        return next(column for column in self.columns if isinstance(column, Target))

    @property
    def classes(self) -> tuple[Value, ...]:
        return self.target.classes

    @property
    def unit_column(self) -> Unit | None:
        return next((column for column in self.columns if isinstance(column, Unit)), None)

    @property
    def split_column(self) -> Split | None:
        return next((column for column in self.columns if isinstance(column, Split)), None)

    @property
    def read_names(self) -> tuple[str, ...]:
        """The columns that are looked at: a dropped one is not."""
        return tuple(column.name for column in self.columns if not isinstance(column, Dropped))

    @property
    def released_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if isinstance(column, Feature | Target))

    @property
    def unit(self) -> Literal["record", "person"]:
        """What the guarantee protects: a row, or all the rows of a person."""
        return "record" if self.unit_column is None else "person"

    @property
    def bought(self) -> tuple[Bought, ...]:
        """What was measured under noise to make this schema, and is part of the price of whatever is made with it."""
        return tuple(source for source in self.provenance if isinstance(source, Bought))

    @property
    def unsafe(self) -> bool:
        """Whether parts were read from the data: whatever is made with this schema has no guarantee."""
        return any(isinstance(source, Read) for source in self.provenance)

    @property
    def rows_per_unit(self) -> int:
        return 1 if self.unit_column is None else self.unit_column.rows

    @cached_property
    def layout(self) -> Layout:
        """Where each column lies in an encoded row."""
        return Layout.of(self.features)

    @property
    def shape(self) -> tuple[int]:
        """Of an encoded row."""
        return (self.layout.width,)

    def by_record(self) -> "TableSchema":
        """The same with one row as the unit, for rows that are not private: where its parts came from is left out."""
        columns = tuple(Dropped(name=c.name, kind="dropped") if isinstance(c, Unit) else c for c in self.columns)
        return TableSchema(**(self.model_dump() | {"columns": columns, "provenance": ()}))

    # Encoding and decoding

    def encode(self, X: Any, y: Any = None) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
        """Rows and classes as numbers: see `limbeck.data.tables.encoding`.

        Formal guarantees:
            Row i of the result depends on row i and on the schema alone. The shapes depend on n and on the schema
            alone. No warning, error or log line depends on what a cell holds.

        Args:
            X: a DataFrame with the declared columns, or a piece of an Arrow table.
            y: the target, one a row, where it is not a column of X.

        Returns:
            x: float32 (n, d); zeros for a null record.
            c: int32 (n,), the index of each class; -1 for a null record.
        """
        from limbeck.data.tables.frames import batch_of

        batch = X if isinstance(X, pa.RecordBatch) else batch_of(self, X, y)
        return encoding.encoded(self, batch)

    def decode(self, x: Any) -> "pd.DataFrame":
        """Encoded rows as the declared columns: integers are whole, categories are members, bounds hold."""
        from limbeck.data.tables.decoding import decoded

        return decoded(self, np.asarray(x, np.float64))

    def encoded(self, frame: "pd.DataFrame") -> Float[np.ndarray, "m d"]:
        """Released rows as features see them: every one of them can be encoded."""
        x, _ = self.encode(frame, [self.classes[0]] * len(frame))
        return x

    def frame(self, x: Any, c: Any) -> "pd.DataFrame":
        """A table to release: the declared columns in their order, the target among them."""
        table = self.decode(x)
        table[self.target.name] = self.labels(c)
        return table[list(self.released_names)]

    def labels(self, c: Any) -> np.ndarray:
        """The declared classes at these indices: text, int64, or objects where classes are of both types."""
        index = np.asarray(c)
        if index.size and (index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(self.classes)):
            raise RequestError(f"class indices must be whole numbers from 0 to {len(self.classes) - 1}")
        mixed = len({type(name) for name in self.classes}) > 1
        return np.array(self.classes, dtype=object if mixed else None)[index.astype(np.int64)]


Problem = tuple[str | None, str]  # the column that it is about, and what it is
_COLUMN: TypeAdapter = TypeAdapter(Column)
_SOURCES: TypeAdapter = TypeAdapter(tuple[Source, ...])


def problems(fields: dict[str, Any]) -> list[Problem]:
    """Everything that is wrong with a schema, at once, so that it is mended at once: each with its column, or None.

    `limbeck schema check` shows them with their lines.
    """
    found: list[Problem] = []
    unknown = sorted(fields.keys() - TableSchema.model_fields.keys())
    found += [(None, f"{name}: no such field of a table's schema") for name in unknown]
    if fields.get("kind", "table") != "table":
        found.append((None, "kind: table is expected"))
    given = fields.get("encoding", "utf-8")
    if not _is_text_encoding(given):
        found.append((None, f"encoding: {given!r} is not known; utf-8, latin-1 or cp1252 are usual"))
    sign = fields.get("delimiter")
    if sign is not None and not (isinstance(sign, str) and len(sign) == 1 and sign not in '"\r\n'):
        found.append((None, "delimiter: one character is expected, such as a comma"))
    if fields.get("decimal", ".") not in (".", ","):
        found.append((None, 'decimal: "." or "," is expected'))
    columns = fields.get("columns")
    if not isinstance(columns, list | tuple) or not columns:
        return [*found, (None, "columns: a list of the columns of the file, in their order, is expected")]
    for i, column in enumerate(columns):
        found += _column_problems(i, column)
    return found + _problems_together(columns) + _source_problems(fields.get("provenance", ()), columns)


def _column_problems(i: int, column: Any) -> list[Problem]:
    if isinstance(column, BaseModel):
        return []  # it was checked when it was made
    if not isinstance(column, dict):
        return [(None, f"columns.{i}: an object with name and kind is expected")]
    name, kind = str(column.get("name", i)), column.get("kind")
    where = f"column {name!r}"
    if kind in DATES:
        return [(name, f"{where}: {DATE_HINT}")]
    if kind not in KINDS:
        stated = "kind is missing" if kind in (None, "") else "kind is not known"
        return [(name, f"{where}: {stated}; {', '.join(KINDS)} are possible")]
    try:
        _COLUMN.validate_python(column)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        return [(name, f"{where}: {_field(one['loc'])}{one['msg'].removeprefix('Value error, ')}") for one in wrong]
    return []


def _problems_together(columns: Any) -> list[Problem]:
    """What is wrong with the columns as a whole, whatever is wrong with each."""
    facts = [column.model_dump() if isinstance(column, BaseModel) else column for column in columns]
    facts = [column for column in facts if isinstance(column, dict)]
    names = [str(column.get("name")) for column in facts]
    kinds = [column.get("kind") for column in facts]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    found: list[Problem] = [(name, f"column {name!r}: named more than once") for name in twice]
    if kinds.count("target") != 1:
        found.append((None, f"columns: one has kind target, the column to predict; {kinds.count('target')} have"))
    for kind in ("unit", "split"):
        if kinds.count(kind) > 1:
            found.append((None, f"columns: at most one has kind {kind}; {kinds.count(kind)} have"))
    if not any(kind in ("numerical", "categorical", "ordinal", "boolean") for kind in kinds):
        found.append((None, "columns: at least one is numerical, categorical, ordinal or boolean"))
    return found


def _source_problems(sources: Any, columns: Any) -> list[Problem]:
    """What is wrong with where parts are said to come from."""
    try:
        checked = _SOURCES.validate_python(sources)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        return [(None, f"provenance.{'.'.join(map(str, one['loc']))}: {one['msg']}") for one in wrong]
    facts = [column.model_dump() if isinstance(column, BaseModel) else column for column in columns]
    facts = [column for column in facts if isinstance(column, dict)]
    unit = "person" if any(column.get("kind") == "unit" for column in facts) else "record"
    return [(None, problem) for problem in misplaced(checked, {str(column.get("name")) for column in facts}, unit)]


def _field(place: tuple[Any, ...]) -> str:
    """The field of a column that is wrong: the first part of its place is the column's kind."""
    return ".".join(str(part) for part in place[1:]) + ": " if len(place) > 1 else ""


def _is_text_encoding(name: Any) -> bool:
    try:
        found = codecs.lookup(name) if isinstance(name, str) else None
    except LookupError:
        return False
    return found is not None and found._is_text_encoding and found.name not in NO_ENCODINGS
