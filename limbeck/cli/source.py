"""DATA on the command line: a name from the catalogue, or a file or folder with a schema."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.terminal import errors
from limbeck.data import Images, ImageSchema, Table, TableSchema, entry, known, load, load_schema, read, read_table
from limbeck.data import Schema as Declared
from limbeck.data.catalogue import data_folder
from limbeck.data.tables.catalogue import TABLES, load_table
from limbeck.errors import RequestError

Data = Annotated[
    str, typer.Argument(metavar="DATA", help=f"A file or folder, or a known dataset: {', '.join((*known(), *TABLES))}.")
]
Schema = Annotated[
    Path | None,
    typer.Option("--schema", help="What the data may hold (JSON, or a known table's name). Needed for your own file."),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where known datasets are; LIMBECK_DATA by default.")]
Labels = Annotated[Path | None, typer.Option("--labels", help="The labels' file, for .npy and IDX.")]
Resize = Annotated[bool, typer.Option("--resize", help="Resize pictures to the declared shape.")]


def declared(data: str, schema: Path | None, *, tell: bool = True) -> Declared:
    """The schema of DATA: the given one, or the catalogue's, which is printed. Reads no records."""
    if schema is not None:
        return TABLES[str(schema)].schema if str(schema) in TABLES and not schema.exists() else load_schema(schema)
    known_schema = _known_schema(data)
    if known_schema is not None:
        if tell:
            facts = known_schema.model_dump_json()
            told = facts if isinstance(known_schema, ImageSchema) else f"limbeck schema show {data}"
            errors.print(f"schema of {data} (public): {told}", highlight=False, soft_wrap=True, markup=False)
        return known_schema
    if not Path(data).exists():
        names = ", ".join((*known(), *TABLES))
        raise RequestError(f"{data} is neither a file or folder here nor a known dataset ({names}).")
    raise RequestError(
        f"{data} needs a schema: say with --schema FILE.json what it may hold. Images, for example: "
        '{"shape": [28, 28, 1], "classes": [0, 1, 2], "low": 0, "high": 255}; a table: `limbeck schema init` drafts it.'
        " It is declared and never read from the data, which would give the data away."
    )


def records(
    data: str,
    schema: Declared,
    *,
    split: str = "train",
    data_dir: Path | None = None,
    labels: Path | None = None,
    resize: bool = False,
) -> Images | Table:
    """Read DATA."""
    if isinstance(schema, TableSchema):
        if labels is not None or resize:
            raise RequestError("--labels and --resize are for images; a table holds its own target.")
        if data in TABLES and not Path(data).exists():
            return load_table(data, split, data_folder(data_dir))
        return read_table(data, schema, split=split)
    if data in known() and not Path(data).exists():
        return load(data, split, data_dir)
    return read(data, schema, split=split, labels=labels, resize=resize)


def public_count(data: str) -> int | None:
    """How many records a known dataset has; None for a file of one's own, which is not looked at."""
    if Path(data).exists():
        return None
    if data in TABLES:
        return TABLES[data].records.get("train")
    return entry(data).records["train"] if data in known() else None


def _known_schema(data: str) -> Declared | None:
    if Path(data).exists():
        return None
    return TABLES[data].schema if data in TABLES else entry(data).schema if data in known() else None
