"""`limbeck schema`: draft one from a header, check one, or show a known one."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli import app
from limbeck.cli.terminal import errors, output
from limbeck.errors import RequestError

schemas = typer.Typer(no_args_is_help=True, help="What a table may hold: draft a schema, check one, show a known one.")
app.add_typer(schemas, name="schema")

NEXT = (
    "next: give every column a kind (numerical with low and high, categorical with categories, ordinal with levels, "
    "boolean, dropped; one target with classes; perhaps a unit), from what you know of them and not from the records; "
    "then `limbeck schema check {out} {data}`. Names are the file's first line: if that is a record, give it a header."
)


@schemas.command("init")
def init(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A CSV, Parquet or Arrow file.")],
    out: Annotated[Path | None, typer.Option("--out", help="The schema to write; printed if not given.")] = None,
    encoding: Annotated[str, typer.Option("--encoding", help="Of a CSV file's text.")] = "utf-8",
    delimiter: Annotated[str | None, typer.Option("--delimiter", help="Of a CSV file; found when not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Draft a schema from the header alone: no value is read, and none is written."""
    from limbeck.data.tables.draft import draft

    if out is not None and out.exists() and not force:
        raise RequestError(f"{out} exists. Choose another --out, or replace it with --force.")
    text = written(draft(data, encoding=encoding, delimiter=delimiter))
    if out is None:
        print(text, end="")
    else:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"{out} cannot be written: {error.strerror}") from None
    errors.print(NEXT.format(out=out or "SCHEMA", data=data), highlight=False, markup=False, soft_wrap=True)


@schemas.command("check")
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema (JSON).")],
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="The file that it is meant for.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Everything that is wrong with a schema, by line and column, and whether DATA has its header. Shows no values.

    Exit code 1 if anything is wrong.
    """
    found = _problems(schema) or _header_problems(schema, data)
    if as_json:
        print(json.dumps({"schema": str(schema), "problems": found}, indent=1))
    else:
        for problem in found:
            output.print(f"{schema}: {problem}", highlight=False, markup=False, soft_wrap=True)
        if not found:
            output.print(f"{schema}: no problems", highlight=False, markup=False, soft_wrap=True)
    if found:
        raise typer.Exit(1)


@schemas.command("show")
def show(name: Annotated[str, typer.Argument(help="A known table.")]) -> None:
    """The schema of a known table, to use or to begin with."""
    from limbeck.data.tables.catalogue import known_table

    print(written(known_table(name).schema.model_dump(mode="json")), end="")


def written(fields: dict[str, Any]) -> str:
    """JSON with a line a column, so that a person finds their way."""
    columns = [json.dumps(column, ensure_ascii=False) for column in fields["columns"]]
    others = [f" {json.dumps(n)}: {json.dumps(v, ensure_ascii=False)}" for n, v in fields.items() if n != "columns"]
    lines = ",\n  ".join(columns)
    return "{\n" + ",\n".join([*others, f' "columns": [\n  {lines}\n ]']) + "\n}\n"


def _problems(path: Path) -> list[str]:
    from limbeck.data.tables.draft import line_of
    from limbeck.data.tables.schema import problems

    try:
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text)
    except OSError as error:
        raise RequestError(f"the schema {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        return ["is no text in utf-8"]
    except json.JSONDecodeError as error:
        return [f"line {error.lineno}: is not JSON here ({error.msg})"]
    except RecursionError:
        return ["is not JSON"]
    if not isinstance(fields, dict):
        return ["a JSON object is expected"]
    if fields.get("kind", "table" if "columns" in fields else "image") == "image":
        return _image_problems(path)
    found = []
    for column, problem in problems(fields):
        line = None if column is None else line_of(text, column)
        found.append(problem if line is None else f"line {line}: {problem}")
    return found


def _image_problems(path: Path) -> list[str]:
    from limbeck.data import load_schema

    try:
        load_schema(path)
    except RequestError as error:
        return [str(error)]
    return []


def _header_problems(schema: Path, data: Path | None) -> list[str]:
    from limbeck.data import TableSchema, load_schema, read_table

    declared = load_schema(schema)
    if data is None or not isinstance(declared, TableSchema):
        return []
    try:
        read_table(data, declared)
    except RequestError as error:
        return [str(error)]
    return []
