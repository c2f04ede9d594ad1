"""`limbeck verify`: recompute a release's guarantee from its folder alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli import app
from limbeck.cli.terminal import output, progress

if TYPE_CHECKING:
    from limbeck.release import Verification

MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "failed": "[bold red]failed[/]"}


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="A release or signal folder.")],
    key: Annotated[Path | None, typer.Option("--key", help="The public key (.pub) that must have signed it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute epsilon from the certificate and compare every file. Exit code 1 if anything is inconsistent."""
    from limbeck.release import examine
    from limbeck.release.signature import read_public

    author = read_public(key) if key else None
    with progress("recomputing"):
        found = examine(release, author)
    if as_json:
        print(json.dumps(found.facts(), indent=1))
    else:
        show(release, found)
    if not found.consistent:
        raise typer.Exit(1)


def show(release: Path, found: "Verification") -> None:
    """What was checked, then what follows from it."""
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "", "found")
    for check in found.checks:
        table.add_row(check.name, MARKS[check.result], Text(printable(check.found)))
    output.print(table)
    if found.consistent:
        promised = (found.epsilon or {}).get("stated") is not None
        statement = f"{found.guarantee}: recomputed from the folder alone" if promised else f"{found.guarantee}"
        style = "" if promised else "bold red"
        output.print(statement, style=style, markup=False, highlight=False, soft_wrap=True)
        if found.derived_from:
            line = f"derived from signal {found.derived_from}: no further budget"
            output.print(line, markup=False, highlight=False, soft_wrap=True)
        output.print(found.verdict, markup=False, highlight=False, soft_wrap=True)
        return
    output.print(f"{release} is NOT what its certificate says:", style="bold red", markup=False, highlight=False)
    for problem in found.problems:
        output.print(f"  {printable(str(problem))}", markup=False, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """On one line of moderate length: a stranger's text must not pass for ours, nor steer the terminal."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:500])
    return shown if len(text) <= 500 else f"{shown}..."
