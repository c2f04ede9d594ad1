"""`limbeck ledger`: grant a budget, and see what was spent of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli import app, options
from limbeck.cli.terminal import note, output, progress

if TYPE_CHECKING:
    from limbeck.privacy.ledger import Account

commands = typer.Typer(no_args_is_help=True, help="The budget ledger: what was granted, what is spent, what remains.")
app.add_typer(commands, name="ledger")

Dataset = Annotated[str | None, typer.Argument(metavar="[DATASET]", help="One dataset; all by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command()
def grant(
    dataset: Annotated[str, typer.Argument(help="The dataset's name: every version of the data draws on its grant.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="All runs together, for ever.")],
    delta: Annotated[float, typer.Option("--delta", help="Well below 1 / records.")],
    unit: Annotated[str, typer.Option("--unit", help="record or person.")] = "record",
    relation: options.Relation = "zero-out",
    filter: Annotated[
        str, typer.Option("--filter", help="rdp, or gdp: exact, for full batches with normal noise only.")
    ] = "rdp",
    ledger: options.Ledger = None,
    as_json: Json = False,
) -> None:
    """Set what may be spent on DATASET from now on, in place of an earlier grant. What is spent stays spent."""
    from limbeck.privacy.ledger import Ledger

    account = Ledger.open(ledger).grant(
        dataset, epsilon=epsilon, delta=delta, unit=unit, relation=relation, filter=filter
    )
    _warn(account)
    if as_json:
        print(json.dumps(account.facts(), indent=1))
    else:
        output.print(f"granted: {account.grant}", highlight=False, soft_wrap=True)


@commands.command()
def show(dataset: Dataset = None, ledger: options.Ledger = None, as_json: Json = False) -> None:
    """What was granted, what the filter has counted, what remains; and unfinished runs, which are charged in full."""
    from limbeck.privacy.ledger import Ledger

    accounts = Ledger.open(ledger, create=False).status(dataset)
    with progress("pricing"):
        facts = [account.facts() for account in accounts]
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    for account in accounts:
        for line in _lines(account):
            output.print(line, highlight=False, soft_wrap=True, markup=False)
        _warn(account)
    if not accounts:
        output.print("the ledger holds no grants and no runs")


@commands.command()
def history(dataset: Dataset = None, ledger: options.Ledger = None, as_json: Json = False) -> None:
    """Every row in the order of writing: grants, intents (charged) and completions."""
    from limbeck.privacy.ledger import Ledger

    rows = Ledger.open(ledger, create=False).history(dataset)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    from rich.table import Table

    table = Table("at", "row", "dataset", "per", "epsilon", "delta", "run", "out", "software")
    for row in rows:
        terms = f"{row['unit']}, {row['relation']}" if "unit" in row else ""
        numbers = [f"{row[name]:.4g}" if name in row else "" for name in ("epsilon", "delta")]
        table.add_row(
            row["at"][:19], row["row"], row["dataset"], terms, *numbers, row.get("run", row.get("filter", "")),
            row.get("out") or "", row["software"],
        )  # fmt: skip
    output.print(table)


@commands.command()
def export(
    out: Annotated[Path | None, typer.Option("--out", help="The file to write; standard output by default.")] = None,
    ledger: options.Ledger = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON is what is written in any case.")] = False,
) -> None:
    """The whole ledger as JSON, for a backup or a reviewer. It holds fingerprints, and neither records nor the key."""
    from limbeck.files import write_private
    from limbeck.privacy.ledger import Ledger

    with progress("pricing"):
        text = json.dumps(Ledger.open(ledger, create=False).export(), indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        write_private(out, text.encode())


@commands.command()
def rekey(ledger: options.Ledger = None) -> None:
    """Make a new fingerprint key where the old one is lost. Records seen before are then no longer recognised."""
    from limbeck.privacy.ledger import Ledger

    Ledger.open(ledger, create=False).rekey()
    output.print("a new fingerprint key is in use; fingerprints made with the old one are kept and not compared")


def _lines(account: "Account") -> list[str]:
    lines = [f"{account.dataset}: per {account.unit}, {account.relation}; runs: {len(account.intents)}"]
    now, grant = account.standing, account.grant
    if grant is None or now is None:
        lines.append("  granted       nothing: spending is recorded but not limited")
    else:
        currency = "mu^2" if grant.filter == "gdp" else f"D_alpha at order {now.order or '(fixed by the first run)'}"
        lines += [
            f"  granted       epsilon {grant.epsilon:g} at delta {grant.delta:g}, {grant.filter} filter",
            f"  spent         epsilon {account.spent:.4g}: {now.fraction:.1%} of the filter's budget "
            f"({now.spent:.4g} of {now.budget:.4g} {currency})",
            f"  remaining     {max(0.0, 1 - now.fraction):.1%} of the budget, and epsilon {account.remaining:.4g}"
            f"{': nothing more may run' if account.exhausted else ''}",
        ]
    information: dict[str, Any] = {"all runs, PLD": account.composed, "plain sum": account.summed}
    lines += [
        f"  {name:<13} epsilon {pair[0]:.4g} at delta {pair[1]:g} (for information: assumes plans fixed in advance)"
        for name, pair in information.items()
        if pair
    ]
    if account.unfinished:
        lines.append(f"  unfinished    {', '.join(account.unfinished)} (charged in full)")
    return lines


def _warn(account: "Account") -> None:
    if account.exhausted and account.late:
        note(
            f"warning: {account.dataset!r} has spent epsilon {account.spent:.4g} already, which uses up this grant: "
            "nothing more may run.",
            style="yellow",
        )
    elif account.late:
        note(
            f"the grant of {account.dataset!r} was made or changed after runs: it holds as stated if no outcome of "
            "theirs would have led to a larger one."
        )
