"""A private run, from records to what goes out: planned, checked, charged, journalled, resumed."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from limbeck.cli.charge import Charge
from limbeck.cli.plan import summary, warn_delta
from limbeck.cli.terminal import errors, output, progress
from limbeck.data import Images, Table, TableSchema
from limbeck.errors import RequestError
from limbeck.files import private_folder
from limbeck.release import Release, Signal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from limbeck.distill import DPKIP, Decant, PrivateDM, TableDecant
    from limbeck.measure import Records
    from limbeck.measure.store import Keeping
    from limbeck.privacy.journal import Journal
    from limbeck.privacy.plan import Plan

Product = TypeVar("Product", Release, Signal)


@dataclass(frozen=True)
class Destination:
    """Where the result goes, how the run is begun, and how features are kept meanwhile."""

    out: Path
    force: bool
    resume: bool
    quiet: bool
    key: "Ed25519PrivateKey | None"
    keeping: "Keeping"


def private_run(
    model: "DPKIP | Decant | PrivateDM | TableDecant",
    read: Callable[[], Images | Table],
    charge: Charge,
    n: int | None,
    to: Destination,
    *,
    recipe: "Callable[[Plan], dict]",
    produce: "Callable[[Records, Plan, Journal], Product]",
) -> Product:
    """Checked against the ledger before the data is read where n is public, charged before it is measured.

    `recipe` is what the run is asked to do besides its plan; `produce` measures, and returns what is to be saved.
    """
    from limbeck.distill import TableDecant
    from limbeck.measure import Records
    from limbeck.privacy.guarantee import UNSAFE, check_terms
    from limbeck.privacy.journal import Journal

    if model.seed is not None:
        errors.print("[bold red]not private: seeded.[/] Whoever knows the seed can subtract the noise.")
    schema = model.schema
    check_terms(schema.provenance, model.relation)
    if isinstance(schema, TableSchema) and schema.unsafe:
        errors.print(f"[bold red]no privacy guarantee: {UNSAFE}.[/] Treat the result as the data itself.")
    fresh = None if to.resume else charge  # a run that is resumed has been charged
    if fresh:
        terms = {"epsilon": model.epsilon, "delta": model.delta, "relation": model.relation}
        fresh.check_request(terms, schema.unit)
    plan = _planned(model, n, fresh, to) if n else None
    images = read()
    records = Records(schema, images.x, images.y, images.units, **to.keeping)
    if plan is None:
        plan = _planned(model, records.n, fresh, to)
    if records.n != plan.n:
        raise RequestError(
            f"the data holds {records.n} {schema.unit}s, and the plan is for {plan.n}: noise and sampling depend on "
            "that number. Give it with --n, or leave --n out."
        )
    work = work_folder(to.out)
    request: dict[str, Any] = {"plan": plan.model_dump(mode="json"), "schema": schema.model_dump(mode="json")}
    request |= {k: v for k, v in recipe(plan).items() if k != "init_seed"}
    request |= {"data": images.source, "ledger": charge.request}
    if to.resume:
        journal = Journal.resume(work / "run", request)
    else:
        journal = Journal.start(private_folder(work) / "run", request)
    recorded: dict[str, Any] | None = None
    try:
        model.init_seed = journal.remember("init_seed", model.init_seed)
        with progress("features") as report:
            kept = model.first_seen if isinstance(model, TableDecant) else model.resolved_features()
            records.prepare(kept, progress=report)
        # From here on the run is charged; a crash before leaves a folder that nothing was measured in, and resuming
        # it comes by here.
        recorded = charge.reserve(journal.run, plan, records, to.out)
        product = replace(produce(records, plan, journal), ledger=recorded)
        product.save(to.out, force=to.force, sign=to.key)
    except BaseException as error:
        journal.close()
        if recorded is None and not to.resume:
            _discard(work)
        if isinstance(error, KeyboardInterrupt) and recorded is not None:
            errors.print(
                f"\nstopped; what has been measured is kept in {work}. Continue, without spending again, with the "
                "same command and --resume.",
                highlight=False,
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
        raise
    journal.finish()
    charge.complete(journal.run)
    _remove_if_empty(work)
    return product


def _planned(
    model: "DPKIP | Decant | PrivateDM | TableDecant", n: int, charge: Charge | None, to: Destination
) -> "Plan":
    from limbeck.distill.cost import check_memory

    check_memory(model, n, **to.keeping)
    warn_delta(model.delta, n)
    with progress("planning"):
        plan = model.plan(n)
    if not to.quiet:
        output.print(summary(plan))
    if charge:
        charge.check(plan)
    return plan


def _discard(work: Path) -> None:
    """Drop the folder of a run that was not charged, so that nothing was measured in it."""
    shutil.rmtree(work / "run")
    _remove_if_empty(work)


def _remove_if_empty(folder: Path) -> None:
    if not os.listdir(folder):
        folder.rmdir()


def work_folder(out: Path) -> Path:
    """What stays with the custodian: checkpoints, and scores that were computed on private records."""
    return out.with_name(out.name + ".work")


def done(what: str, out: Path, guarantee: Any, following: str) -> None:
    """The last two lines of a run, for a person."""
    colour = {"private": "green", "seeded": "bold red", "none": "bold red"}[guarantee.status]
    output.print(f"{what} in {out}: [{colour}]{guarantee}[/]", highlight=False)
    output.print(f"next: {following}", highlight=False, soft_wrap=True)
