"""A declared schema of either kind, from JSON: images or a table, as its field `kind` says."""

import json
import os
from pathlib import Path
from typing import Any

from limbeck.data.schema import ImageSchema
from limbeck.data.tables.schema import TableSchema
from limbeck.errors import RequestError

Schema = ImageSchema | TableSchema


def schema_of(fields: dict[str, Any]) -> Schema:
    """The schema with these fields; a set of images where `kind` is not given and no columns are."""
    kind = fields.get("kind", "table" if "columns" in fields else "image")
    if kind not in ("image", "table"):
        raise RequestError("the schema is wrong: kind: image or table is expected")
    return TableSchema(**fields) if kind == "table" else ImageSchema(**fields)


def of_images(schema: Schema, what: str) -> ImageSchema:
    """The schema, if it is of images; `what` is made for nothing else."""
    if not isinstance(schema, ImageSchema):
        raise RequestError(f"{what} is for images, and the schema declares a table.")
    return schema


def load_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema from a JSON file."""
    fields = read_fields(path)
    try:
        return schema_of(fields)
    except RequestError as error:
        raise RequestError(f"{path}: {error}") from None


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of a schema, or of one that is not finished, as they stand in a JSON file."""
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"the schema {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise RequestError(f"the schema {path} is not JSON; see ImageSchema and TableSchema for its fields") from None
    if not isinstance(fields, dict):
        raise RequestError(f"the schema {path} must be a JSON object with the fields of ImageSchema or TableSchema")
    return fields
