"""`limbeck check`: a custodian's look at a file, outside the guarantee."""

import json
from typing import Annotated

import typer

from limbeck.cli import app, source
from limbeck.cli.terminal import errors, output
from limbeck.data import Images, Schema, Table, TableSchema


@app.command()
def check(
    data: source.Data,
    schema: source.Schema = None,
    data_dir: source.DataDir = None,
    labels: source.Labels = None,
    resize: source.Resize = False,
    split: Annotated[str, typer.Option("--split", help="train or test.")] = "train",
    strict: Annotated[bool, typer.Option("--strict", help="List the bad records; exit code 1 if any.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Whether a file is of the declared kind and shape; with --strict, which records are bad and why.

    What --strict prints is about single records: it is for the custodian and is not covered by any guarantee.
    """
    declared = source.declared(data, schema, tell=not as_json)
    images = source.records(data, declared, split=split, data_dir=data_dir, labels=labels, resize=resize)
    bad: list[tuple[int, str]] = []
    if strict:
        bad = _bad(images, declared)
        errors.print("[yellow]private:[/] this list is outside the guarantee. Keep it.", highlight=False)
    if as_json:
        found = [{"record": i, "reason": reason} for i, reason in bad]
        print(json.dumps({"records": len(images), "bad": found if strict else None}, indent=1))
    else:
        output.print(f"{images.source}: {len(images)} records of {_form(declared)}", highlight=False)
        for i, reason in bad:
            output.print(f"  record {i}: {reason}", markup=False, highlight=False)
        if strict and not bad:
            output.print("no bad records", highlight=False)
    if bad:
        raise typer.Exit(1)


def _bad(records: Images | Table, declared: Schema) -> list[tuple[int, str]]:
    if isinstance(declared, TableSchema):
        from limbeck.data.tables.check import bad_rows

        assert isinstance(records, Table)
        return bad_rows(records, declared)
    from limbeck.data.check import bad_records

    assert isinstance(records, Images)
    return bad_records(records, declared)


def _form(declared: Schema) -> str:
    return f"{len(declared.features)} columns" if isinstance(declared, TableSchema) else f"shape {declared.shape}"
