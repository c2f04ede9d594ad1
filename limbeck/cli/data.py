"""`limbeck data`: known datasets."""

import json
from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli import app
from limbeck.cli.source import DataDir
from limbeck.cli.terminal import errors, output, progress

known_data = typer.Typer(no_args_is_help=True, help="Known datasets: list them, or fetch one.")
app.add_typer(known_data, name="data")


@known_data.command("list")
def list_known(
    data_dir: DataDir = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """What is known, its schema and terms, and whether it is here."""
    from rich.table import Table

    from limbeck.data import entry, known
    from limbeck.data.catalogue import data_folder, find
    from limbeck.data.tables.catalogue import EMBEDDED, TABLES, find_table

    entries = [entry(name) for name in known()]
    tables = list(TABLES.values())
    tables_here = {t.name for t in tables if t.name == EMBEDDED or find_table(t, data_folder(data_dir))}
    here = {e.name: e.reader == "embedded" or find(e, data_dir) is not None for e in entries}
    if as_json:
        facts = [
            {"name": e.name, "title": e.title, "schema": e.schema.model_dump(mode="json"), "records": e.records,
             "licence": e.licence, "homepage": e.homepage, "here": here[e.name]}
            for e in entries
        ]  # fmt: skip
        facts += [
            {"name": t.name, "title": t.title, "schema": t.schema.model_dump(mode="json"), "records": t.records,
             "licence": t.licence, "homepage": t.homepage, "here": t.name in tables_here}
            for t in tables
        ]  # fmt: skip
        print(json.dumps(facts, indent=1))
        return
    table = Table("name", "records", "shape", "classes", "licence", "here")
    for e in entries:
        table.add_row(
            e.name, str(e.records["train"]), "x".join(map(str, e.schema.shape)), str(len(e.schema.classes)),
            e.licence, "yes" if here[e.name] else "no",
        )  # fmt: skip
    for t in tables:
        table.add_row(
            t.name, str(t.records.get("train", "")), f"{len(t.schema.features)} columns", str(len(t.schema.classes)),
            t.licence, "yes" if t.name in tables_here else "no",
        )  # fmt: skip
    output.print(table)


@known_data.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A known dataset.")],
    data_dir: DataDir = None,
    base_url: Annotated[
        str | None, typer.Option("--from", help="Another address with the same files; hashes must match.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Download a known dataset from its official address, checking its SHA-256."""
    from limbeck.data.catalogue import data_folder
    from limbeck.data.download import get as download

    folder: Path = data_folder(data_dir)
    errors.print(f"fetching {name} into {folder}", highlight=False, soft_wrap=True)
    with progress(name) as report:
        where = download(name, folder, base_url=base_url, progress=report)
    if as_json:
        print(json.dumps({"name": name, "path": str(where)}))
        return
    output.print(f"{name} is in {folder}", highlight=False, soft_wrap=True)
