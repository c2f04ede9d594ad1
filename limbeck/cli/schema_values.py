"""What a drafted schema leaves blank, filled in: bought under differential privacy, or read from the data."""

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from limbeck.cli.charge import Charge
from limbeck.cli.plan import warn_delta
from limbeck.cli.terminal import note, progress
from limbeck.data import read_table
from limbeck.data.tables.blanks import Blanks
from limbeck.data.tables.schema import problems
from limbeck.errors import RequestError

NOT_FOUND = (
    "not everything was found: too few records for this epsilon, or too many values for so few records. What was found "
    "is written, and spent for; state the rest yourself, or spend more:"
)
UNSAFE = (
    "warning: these are the records' own values, read without protection. The schema says so, and nothing that is made "
    "with it has a privacy guarantee: `limbeck distill` takes it only with --unsafe-schema. Keep it as you do the data."
)


def bought(data: Path, fields: dict[str, Any], epsilon: float, delta: float, charge: Charge, out: Path | None) -> None:
    """Checked against the ledger before the data is opened, charged before it is measured."""
    from limbeck.measure import Records
    from limbeck.measure.schema_counts import Purchase, buy, source
    from limbeck.privacy.plan import check_privacy

    check_privacy(epsilon, delta)
    blanks = Blanks.of(fields)
    _check_buyable(blanks)
    schema = blanks.stand_in
    purchase = Purchase(blanks.parts, schema.rows_per_unit)
    charge.check_request({"epsilon": epsilon, "delta": delta, "relation": "zero-out"}, schema.unit)
    charge.check(purchase.plan(1, epsilon, delta, schema.unit))  # its price does not depend on the number of records
    with _written(out) as write:
        with progress(f"reading {data}"):
            table = read_table(data, schema)
            records = Records(schema, table.x, table.y, table.units)
        plan = purchase.plan(records.n, epsilon, delta, schema.unit)
        warn_delta(delta, records.n)
        run = secrets.token_hex(16)
        recorded = charge.reserve(run, plan, None, out or Path("schema.json"))
        with progress("counting"):
            filled = blanks.filled(buy(records, purchase, plan), source(plan, recorded))
        write(filled)
    charge.complete(run)
    left = [problem for _, problem in problems(filled)]
    what = f"{plan.epsilon:.4g} at delta {plan.delta:g}, per {plan.unit}, {plan.relation}"
    note(f"schema in {out or 'the output'}: spent epsilon {what}")
    if left:
        note("\n  ".join([NOT_FOUND, *left]))
        raise typer.Exit(1)
    note(f"next: look at it; limbeck distill {data} --schema {out or 'SCHEMA'} --out RELEASE, which says both prices")


def read_exactly(data: Path, fields: dict[str, Any], out: Path | None) -> None:
    """Outside the guarantee, and said to be."""
    from limbeck.data.tables.from_data import read_from_data

    with _written(out, private=True) as write:
        with progress(f"reading {data}"):
            filled = read_from_data(data, fields)
        write(filled)
    note(UNSAFE, style="bold red")
    if left := [problem for _, problem in problems(filled)]:
        note("\n  ".join(["not everything was found; state the rest yourself:", *left]))
        raise typer.Exit(1)


def _check_buyable(blanks: Blanks) -> None:
    if not blanks.parts:
        raise RequestError("nothing is blank in the draft, so there is nothing to buy; nothing was spent.")
    if blanks.stand_in.unsafe:
        raise RequestError(
            "parts of the draft were read from the data (provenance: unsafe), and no purchase makes it private. Begin "
            "with a fresh draft: limbeck schema init DATA."
        )
    ordered = [name for name, parts in blanks.parts.items() if "levels" in parts]
    grouped = [blanks.stand_in.target.name] if blanks.stand_in.target.groups else []
    if ordered:
        raise RequestError(
            f"the levels of {', '.join(map(repr, ordered))} are blank, and an order is not measured: state them, or "
            "declare the column categorical."
        )
    if grouped and grouped[0] in blanks.parts:
        raise RequestError(f"column {grouped[0]!r} has groups, and their classes are blank: state them.")


@contextmanager
def _written(out: Path | None, *, private: bool = False) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes the schema, to a place that is known to be writable before anything is spent."""
    from limbeck.cli.schema import written

    if out is None:
        yield lambda fields: print(written(fields), end="")
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.resolve().parent)
    except OSError as error:
        raise RequestError(f"{out} cannot be written: {error.strerror}; nothing was spent.") from None
    if out.is_dir():
        folder.cleanup()
        raise RequestError(f"{out} is a folder; a file to write is expected.")
    with folder as beside:
        new = Path(beside) / "schema.json"

        def write(fields: dict[str, Any]) -> None:
            try:
                new.write_text(written(fields), encoding="utf-8")
                if private:
                    new.chmod(0o600)
                new.replace(out)
            except OSError as error:  # what was paid for is not lost
                print(written(fields), end="")
                raise RequestError(
                    f"{out} cannot be written: {error.strerror}; the schema is printed instead"
                ) from None

        yield write
