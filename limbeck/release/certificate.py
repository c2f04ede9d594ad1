"""The certificate: what was promised and how it comes about, in a form that another person can recompute."""

import hashlib
import json
from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from limbeck.privacy.accounting import ACCOUNTANT, GRID, Relation, accountant_version, event_tree
from limbeck.privacy.guarantee import Guarantee, Status
from limbeck.privacy.plan import Measurement, Plan

MECHANISM = "Gaussian noise on sums of clipped contributions, composed adaptively"
NOISE = "normal draws in float64 by inverse CDF of 54 bits from ChaCha20 keyed by the operating system"
PUBLIC = {
    "shape": "declared",
    "classes": "declared",
    "value range": "declared",
    "number of units": "public, null units included",
    "initial images": "random, public seed",
    "labels": "fixed",
}


class Certificate(BaseModel):
    """Every field is public. `seal` holds a digest of each other field, so that an edit is named by `verify`.

    The seal shows that a certificate is consistent; it does not show who wrote it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
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
    event: dict[str, Any] | None
    accountant: dict[str, Any] | None
    origin: dict[str, str]
    public_inputs: dict[str, str]
    files: dict[str, str]
    software: dict[str, str]
    seal: dict[str, str]


def certificate(
    plan: Plan | None,
    guarantee: Guarantee,
    rows_per_unit: int,
    public_inputs: dict[str, str],
    files: dict[str, str],
) -> Certificate:
    """The certificate of a release made by running `plan`; None for a method without one."""
    fields: dict[str, Any] = {
        "format": 1,
        "statement": str(guarantee),
        "status": guarantee.status,
        "mechanism": MECHANISM if plan else "none",
        "noise": NOISE if guarantee.status == "private" else "seeded" if plan else "none",
        "unit": plan.unit if plan else "record",
        "rows_per_unit": rows_per_unit,
        "relation": plan.relation if plan else None,
        "units": plan.n if plan else None,
        "epsilon": plan.epsilon if guarantee.status == "private" and plan else None,
        "delta": plan.delta if plan else None,
        "curve": plan.curve if guarantee.status == "private" and plan else None,
        "measurements": [m.model_dump(mode="json") for m in plan.measurements] if plan else [],
        "event": event_tree(plan.event) if plan else None,
        "accountant": {"name": ACCOUNTANT, "version": accountant_version(), "grid": GRID} if plan else None,
        "origin": PUBLIC if plan else {"everything": "the data itself"},
        "public_inputs": public_inputs,
        "files": files,
        "software": software(),
    }
    return Certificate(**fields, seal={name: digest_of(value) for name, value in fields.items()})


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
