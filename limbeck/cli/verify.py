"""`limbeck verify`: recompute a release's guarantee from its folder alone."""

import json
from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli import app
from limbeck.cli.terminal import output, progress


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute epsilon from the certificate and compare every file. Exit code 1 if anything is inconsistent."""
    from limbeck.release import load
    from limbeck.release import verify as verify_folder

    with progress("recomputing"):
        problems = verify_folder(release)
    guarantee = str(load(release).guarantee) if not problems else None
    if as_json:
        found = [{"field": p.field, "problem": p.message} for p in problems]
        print(json.dumps({"consistent": not problems, "guarantee": guarantee, "problems": found}, indent=1))
    elif problems:
        output.print(f"[bold red]{release} is NOT what its certificate says:[/]", highlight=False)
        for problem in problems:
            output.print(f"  {problem}", markup=False, highlight=False, soft_wrap=True)
    else:
        output.print(f"{guarantee}: recomputed from the folder alone", highlight=False)
        output.print("consistent, not authenticated (the release is not signed)", highlight=False)
    if problems:
        raise typer.Exit(1)
