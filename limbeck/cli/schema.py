"""`limbeck schema`: draft one from a header, buy or read what it leaves blank, check one, or show a known one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli import app, options
from limbeck.cli.charge import Charge
from limbeck.cli.terminal import errors, output
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.data import TableSchema

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
    draft: Annotated[
        Path | None, typer.Option("--schema", help="A draft with kinds, whose blanks are to be bought or read.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="The column to predict, if the draft names none.")
    ] = None,
    spend: Annotated[
        float | None, typer.Option("--spend", help="Buy blank bounds, categories and classes for this epsilon.")
    ] = None,
    delta: options.Delta = 1e-5,
    unsafe: Annotated[
        bool, typer.Option("--unsafe-from-data", help="Read them from the records instead: NO privacy guarantee.")
    ] = False,
    dataset: options.Dataset = None,
    ledger: options.Ledger = None,
    no_ledger: options.NoLedger = False,
) -> None:
    """Draft a schema from the header alone: no value is read, and none is written.

    With --spend, what a draft leaves blank is bought under differential privacy; with --unsafe-from-data it is read
    from the records, and nothing that is made with such a schema is private.
    """
    from limbeck.cli.schema_values import bought, read_exactly
    from limbeck.data.declared import read_fields
    from limbeck.data.tables import draft as drafts

    if out is not None and out.exists() and not force:
        raise RequestError(f"{out} exists. Choose another --out, or replace it with --force.")
    if spend is not None and unsafe:
        raise RequestError("--spend buys what --unsafe-from-data reads for nothing and without protection: give one.")
    if spend is None and (dataset or ledger or no_ledger):
        raise RequestError("--dataset, --ledger and --no-ledger belong to --spend: nothing else is charged.")
    if spend is None and not unsafe and (draft or target):
        raise RequestError("--schema and --target belong to --spend or --unsafe-from-data, which fill in a draft.")
    fields = read_fields(draft) if draft else drafts.draft(data, encoding=encoding, delimiter=delimiter)
    if target is not None:
        fields = _with_target(fields, target)
    if spend is not None:
        bought(data, fields, spend, delta, Charge.of(str(data), dataset, ledger, no_ledger), out)
        return
    if unsafe:
        read_exactly(data, fields, out)
        return
    text = written(fields)
    if out is None:
        print(text, end="")
    else:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"{out} cannot be written: {error.strerror}") from None
    errors.print(NEXT.format(out=out or "SCHEMA", data=data), highlight=False, markup=False, soft_wrap=True)


def _with_target(fields: dict[str, Any], target: str) -> dict[str, Any]:
    """The draft with this column to predict."""
    columns = [dict(column) for column in fields.get("columns", ()) if isinstance(column, dict)]
    chosen = [column for column in columns if column.get("name") == target]
    if len(chosen) != 1:
        raise RequestError(f"--target is {target!r}; the name of one of the columns is expected.")
    (column,) = chosen
    if column.get("kind") not in (None, "", "target", "categorical", "boolean", "numerical"):
        raise RequestError(f"--target is {target!r}, which the draft declares to be {column['kind']}.")
    if column.get("kind") != "target":
        column.clear()
        column |= {"name": target, "kind": "target"}
    return fields | {"columns": columns}


@schemas.command("check")
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema (JSON).")],
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="The file that it is meant for.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Everything that is wrong with a schema, by line and column, and whether DATA has its header. Shows no values.

    Exit code 1 if anything is wrong.
    """
    found = _problems(schema)
    found += _header_problems(schema, data, names_alone=bool(found))
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
    """JSON with a line a column, and one for each source of what was not declared, so that a person finds their way."""
    listed = {name: fields[name] for name in ("columns", "provenance") if name in fields}
    others = [f" {json.dumps(n)}: {json.dumps(v, ensure_ascii=False)}" for n, v in fields.items() if n not in listed]
    lists = [
        f' "{name}": [\n  ' + ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in ones) + "\n ]"
        for name, ones in listed.items()
    ]
    return "{\n" + ",\n".join([*others, *lists]) + "\n}\n"


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


def _header_problems(schema: Path, data: Path | None, *, names_alone: bool) -> list[str]:
    """What is wrong with DATA as a whole; of a schema that is wrong itself, by the names of its columns alone."""
    from limbeck.data import TableSchema, load_schema, read_table

    if data is None:
        return []
    declared = _of_names(schema) if names_alone else load_schema(schema)
    if not isinstance(declared, TableSchema):
        return []
    try:
        read_table(data, declared)
    except RequestError as error:
        return [str(error)]
    return []


def _of_names(path: Path) -> "TableSchema | None":
    """The columns of a schema as if all were dropped; None where there are none to be found."""
    from limbeck.data import TableSchema
    from limbeck.data.tables.columns import Dropped
    from limbeck.data.tables.schema import problems

    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        names = dict.fromkeys(column["name"] for column in fields["columns"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    columns = tuple(Dropped(name=name, kind="dropped") for name in names if isinstance(name, str) and name)
    of_file = {name: fields[name] for name in ("delimiter", "encoding") if name in fields}
    wrong = [problem for column, problem in problems(of_file | {"columns": list(columns)}) if column is None]
    if not columns or any(problem.startswith(("delimiter", "encoding")) for problem in wrong):
        return None
    return TableSchema.model_construct(columns=columns, **of_file)
