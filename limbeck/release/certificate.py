"""The certificate: what was promised and how it comes about, in a form that another person can recompute."""

import hashlib
import json
from collections.abc import Container
from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from limbeck.data import Schema
from limbeck.privacy.accounting import Relation, accountant_version, grid_of
from limbeck.privacy.events import event_tree
from limbeck.privacy.guarantee import UNSAFE, Guarantee, Status
from limbeck.privacy.plan import Measurement, Plan
from limbeck.privacy.renyi import ORDERS

MECHANISM = "Gaussian noise on sums of clipped contributions, composed adaptively"
NOISE = {
    "normal": "normal draws in float64 by inverse CDF of 54 bits from ChaCha20 keyed by the operating system",
    "discrete": "discrete Gaussian draws on exact integer sums, from ChaCha20 keyed by the operating system",
}
PUBLIC = {
    "image": {"shape": "declared", "classes": "declared", "value range": "declared"},
    "table": {"columns": "declared", "classes": "declared", "bounds and categories": "declared"},
}
COUNT = {"number of units": "public, null units included"}
FIXED_LABELS = "uniform, fixed"
REAL_RECORDS = "real records"  # what a recipe calls the initial images that are some
NO_LEDGER = {"status": "none"}


class Certificate(BaseModel):
    """Every field is public. `seal` holds a digest of each other field, so that an edit is named by `verify`.

    The seal shows that a certificate is consistent; it does not show who wrote it. `derived_from` is the SHA-256 of
    the certificate of the signal that a release was fitted to: the measurements and the ledger are then that signal's.
    `epsilon`, `delta` and `curve` are the measurements' own; where the schema was bought, `with_schema` has the sum of
    both prices, which is the promise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    statement: str
    status: Status
    mechanism: str
    noise: str
    unit: str
    rows_per_unit: int
    relation: Relation | None
    units: int | None
    epsilon: float | None
    delta: float | None
    curve: list[tuple[float, float]] | None
    measurements: list[Measurement]
    with_schema: dict[str, Any] | None = None
    event: dict[str, Any] | None
    accountant: dict[str, Any] | None
    ledger: dict[str, Any]
    derived_from: str | None = None
    origin: dict[str, str]
    public_inputs: dict[str, str]
    files: dict[str, str]
    software: dict[str, str]
    seal: dict[str, str]


def certificate(
    plan: Plan | None,
    guarantee: Guarantee,
    schema: Schema,
    recipe: dict[str, Any],
    files: dict[str, str],
    ledger: dict[str, Any] = NO_LEDGER,
    derived_from: str | None = None,
) -> Certificate:
    """The certificate of what was made by running `plan`; None for a method without one."""
    fields: dict[str, Any] = {
        "format": 1,
        "statement": str(guarantee),
        "status": guarantee.status,
        **wording(plan, guarantee.status, files, recipe, schema),
        "unit": plan.unit if plan else "record",
        "rows_per_unit": schema.rows_per_unit,
        "relation": plan.relation if plan else None,
        "units": plan.n if plan else None,
        "epsilon": plan.epsilon if guarantee.status == "private" and plan else None,
        "delta": plan.delta if plan else None,
        "curve": plan.curve if guarantee.status == "private" and plan else None,
        "measurements": [m.model_dump(mode="json") for m in plan.measurements] if plan else [],
        "with_schema": with_schema(guarantee),
        "event": event_tree(plan.event) if plan else None,
        "accountant": accountant_facts(plan) if plan else None,
        "ledger": ledger,
        "derived_from": derived_from,
        "public_inputs": {"schema": schema.digest(), "recipe": digest_of(recipe)},
        "files": files,
        "software": software(),
    }
    return Certificate(**fields, seal={name: digest_of(value) for name, value in fields.items()})


def with_schema(guarantee: Guarantee) -> dict[str, Any] | None:
    """Both prices' sum, and the schema's part of it; None where the schema had none."""
    if guarantee.schema is None:
        return None
    epsilon, delta = guarantee.schema
    total = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    return total | {"schema": {"epsilon": epsilon, "delta": delta}, "composition": "basic"}


def wording(
    plan: Plan | None, status: Status, files: Container[str], recipe: dict[str, Any], schema: Schema | None
) -> dict[str, Any]:
    """The fields in words: how the promise comes about, and where what is not measured comes from."""
    if plan is None:
        start = {"initial images": REAL_RECORDS} if recipe.get("init") == REAL_RECORDS else {}
        origin = {"everything": "the data itself"} | start | schema_origin(schema)
        return {"mechanism": "none", "noise": "none", "origin": origin}
    kinds = sorted({m.noise for m in plan.measurements})
    noise = "; ".join(NOISE[kind] for kind in kinds) if status == "private" else "seeded"
    noise = f"none that protects: {UNSAFE}" if status == "none" else noise
    form = "image" if schema is None else schema.kind
    origin = PUBLIC[form] | schema_origin(schema) | COUNT | _start(files, recipe, form)
    return {"mechanism": MECHANISM, "noise": noise, "origin": origin}


def schema_origin(schema: Schema | None) -> dict[str, str]:
    """Where the parts of a schema come from that nobody declared, a column at a time, and what they cost."""
    if schema is None or not schema.provenance:
        return {}
    columns = {
        f"column {name!r}: {', '.join(parts)}": str(source)
        for source in schema.provenance
        for name, parts in source.columns.items()
    }
    others = "declared, but for the columns named here"
    return {"classes": others, "bounds and categories": others} | columns


def _start(files: Container[str], recipe: dict[str, Any], kind: str) -> dict[str, str]:
    """Where what the measurements began with comes from: weights, or images or rows and their labels."""
    if is_signal(files):
        return {"initial weights": "zero"}
    fixed = recipe.get("labels", FIXED_LABELS) == FIXED_LABELS
    labels = "fixed" if fixed else "computed from the noisy answers and public inputs"
    began = "initial images" if kind == "image" else "initial rows"
    return {began: "random, public seed", "labels": labels}


def is_signal(files: Container[str]) -> bool:
    """Whether a certificate is a signal's or a release's, by the files that it lists."""
    return "signal.npz" in files and "data.npz" not in files


def accountant_facts(plan: Plan) -> dict[str, Any]:
    """Who computed epsilon, and how finely."""
    settings = {"grid": grid_of(plan.event)} if plan.accountant == "PLD" else {"orders": f"{ORDERS[0]} to {ORDERS[-1]}"}
    return {"name": plan.accountant, "version": accountant_version(), **settings}


def ledger_line(ledger: dict[str, Any]) -> str:
    """Whether the run was charged to a budget, for card and terminal; `ValueError` if the ledger field says neither."""
    match ledger:
        case {"status": "none"}:
            return "not recorded in a ledger"
        case {"status": "not used: --no-ledger"}:
            return "not used: --no-ledger"
        case {"status": "recorded", "dataset": str(dataset), "run": str(run), **rest}:
            return f"recorded in a ledger as dataset {dataset}, run {run}, {_grant_line(rest.get('grant'))}"
    raise ValueError("is neither none, nor not used, nor recorded with a dataset and a run")


def _grant_line(grant: Any) -> str:
    match grant:
        case {"epsilon": float() | int() as epsilon, "delta": float() | int() as delta}:
            return f"grant epsilon {epsilon:g} at delta {delta:g}"
        case None:
            return "without a grant"
    raise ValueError("has a grant without epsilon and delta")


def plan_of(certificate: Certificate) -> Plan:
    """The plan that a certificate describes; only for certificates that have one."""
    return Plan.model_validate(
        {
            "measurements": tuple(certificate.measurements),
            "delta": certificate.delta,
            "relation": certificate.relation,
            "unit": certificate.unit,
        }
    )


def software() -> dict[str, str]:
    return {name: version(name) for name in ("limbeck", "dp-accounting", "jax", "numpy", "scipy", "cryptography")}


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    canonical = json.dumps(json.loads(json.dumps(value)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
