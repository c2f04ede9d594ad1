"""DATA on the command line: a name from the catalogue, or a file or folder with a schema."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.terminal import errors
from limbeck.data import Images, ImageSchema, entry, known, load, read
from limbeck.errors import RequestError

Data = Annotated[
    str, typer.Argument(metavar="DATA", help=f"A file or folder, or a known dataset: {', '.join(known())}.")
]
Schema = Annotated[
    Path | None,
    typer.Option("--schema", help="What the data may hold (JSON). Needed for a file of your own."),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where known datasets are; LIMBECK_DATA by default.")]
Labels = Annotated[Path | None, typer.Option("--labels", help="The labels' file, for .npy and IDX.")]
Resize = Annotated[bool, typer.Option("--resize", help="Resize pictures to the declared shape.")]


def declared(data: str, schema: Path | None, *, tell: bool = True) -> ImageSchema:
    """The schema of DATA: the given one, or the catalogue's, which is printed. Reads no records."""
    if schema is not None:
        return ImageSchema.from_json(schema)
    if data in known() and not Path(data).exists():
        known_schema = entry(data).schema
        if tell:
            errors.print(
                f"schema of {data} (public): {known_schema.model_dump_json()}",
                highlight=False,
                soft_wrap=True,
            )
        return known_schema
    if not Path(data).exists():
        raise RequestError(f"{data} is neither a file or folder here nor a known dataset ({', '.join(known())}).")
    raise RequestError(
        f"{data} needs a schema: say with --schema FILE.json what its images may hold, for example "
        '{"shape": [28, 28, 1], "classes": [0, 1, 2], "low": 0, "high": 255}. It is declared and never read from '
        "the data, which would give the data away."
    )


def records(
    data: str,
    schema: ImageSchema,
    *,
    split: str = "train",
    data_dir: Path | None = None,
    labels: Path | None = None,
    resize: bool = False,
) -> Images:
    """Read DATA."""
    if data in known() and not Path(data).exists():
        return load(data, split, data_dir)
    return read(data, schema, split=split, labels=labels, resize=resize)


def public_count(data: str) -> int | None:
    """How many records a known dataset has; None for a file of one's own, which is not looked at."""
    return entry(data).records["train"] if data in known() and not Path(data).exists() else None
