"""Recompute a release's guarantee from its folder alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError

from limbeck.data import Schema, schema_of
from limbeck.errors import RequestError
from limbeck.privacy.plan import Plan
from limbeck.release.certificate import Certificate, is_signal, plan_of
from limbeck.release.checks import CHECKS
from limbeck.release.contents import Unreadable, array_shapes, contents, not_finite, parsed, read_plain
from limbeck.release.evidence import Check, Evidence, Problem
from limbeck.release.price import Price, beyond, price_of
from limbeck.release.signature import SIGNATURE, fingerprint, signer

T = TypeVar("T")


@dataclass(frozen=True)
class Verification:
    """What was checked, and what follows.

    - `consistent`: the folder is what its certificate says, and the certificate follows from what it states.
    - `authenticated`: besides, the key that was given signed it. Consistency alone does not show who wrote it.
    - `epsilon`: as stated and as recomputed; None where it was not.
    - `derived_from`: the digest of the signal that it was fitted to, if any: no further budget was spent on it.
    """

    checks: tuple[Check, ...]
    guarantee: str | None = None
    signed_by: str | None = None
    authenticated: bool = False
    epsilon: dict[str, float | None] | None = None
    derived_from: str | None = None

    @property
    def problems(self) -> list[Problem]:
        return list(dict.fromkeys(problem for check in self.checks for problem in check.problems))

    @property
    def consistent(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        if not self.consistent:
            return "not consistent"
        if self.authenticated:
            return f"authenticated: signed by {self.signed_by}"
        if self.signed_by:
            return f"consistent; signed by key {self.signed_by}, which was not given: not authenticated"
        return "consistent, not authenticated (the release is not signed)"

    def facts(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "consistent": self.consistent,
            "authenticated": self.authenticated,
            "signed by": self.signed_by,
            "guarantee": self.guarantee if self.consistent else None,
            "epsilon": self.epsilon,
            "derived from": self.derived_from,
            "checks": [{"check": c.name, "result": c.result, "found": c.found} for c in self.checks],
            "problems": [{"field": p.field, "problem": p.message} for p in self.problems],
        }


def verify(folder: str | Path, key: Ed25519PublicKey | None = None) -> list[Problem]:
    """Everything in the folder that is inconsistent; empty when the release is what its certificate says.

    With a key, a release that it did not sign is a problem too.
    """
    return examine(folder, key).problems


def examine(folder: str | Path, key: Ed25519PublicKey | None = None) -> Verification:
    """Check everything that can be checked from the folder alone, and who signed it if a key is given."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder; a release folder with a certificate.json is expected.")
    found = contents(folder)
    if "certificate.json" not in found:
        raise RequestError(f"{folder} holds no certificate.json, so it is not a release.")
    try:
        content = read_plain(folder / "certificate.json")
        raw = parsed(content)
    except Unreadable as error:
        return _rejected(Problem("certificate.json", str(error)))
    if nowhere := list(not_finite(raw)):
        return _rejected(*(Problem(at, "is not a finite number") for at in nowhere))
    try:
        claimed = Certificate.model_validate(raw)
        plan = plan_of(claimed) if claimed.measurements else None
    except ValidationError as error:
        return _rejected(*_complaints(error))
    if plan is not None and (too_far := beyond(plan)):
        return _rejected(Problem(too_far.field, too_far.message))
    evidence = _evidence(folder, found, raw, claimed, plan)
    checks = tuple(check for function in CHECKS if (check := function(evidence)) is not None)
    author, signature = _signature(folder, found, content, key)
    return Verification(
        (*checks, signature),
        guarantee=claimed.statement,
        signed_by=author,
        authenticated=key is not None and not any(check.problems for check in (*checks, signature)),
        epsilon=_epsilons(evidence),
        derived_from=claimed.derived_from,
    )


def _rejected(*problems: Problem) -> Verification:
    """Nothing more can be checked."""
    return Verification((Check("certificate", "not readable as a certificate", problems),))


def _complaints(error: ValidationError) -> list[Problem]:
    """Each wrong field and what is wrong with it; what is wrong with all of them together is the measurements'."""
    return [
        Problem(".".join(map(str, one["loc"])) or "measurements", one["msg"].removeprefix("Value error, ").lower())
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _evidence(
    folder: Path, found: dict[str, str], raw: dict[str, Any], claimed: Certificate, plan: Plan | None
) -> Evidence:
    unreadable: list[Problem] = []

    def attempt(name: str, read: Callable[[Path], T]) -> T | None:
        try:
            return read(folder / name)
        except Unreadable as error:
            unreadable.append(Problem(name, str(error)))
            return None

    return Evidence(
        folder=folder,
        contents=found,
        raw=raw,
        claimed=claimed,
        schema=attempt("schema.json", _schema),
        recipe=attempt("recipe.json", _object),
        arrays=attempt("signal.npz" if is_signal(claimed.files) else "data.npz", array_shapes),
        plan=plan,
        price=price_of(plan) if plan is not None and claimed.status == "private" else None,
        unreadable=tuple(unreadable),
    )


def _object(path: Path) -> dict[str, Any]:
    content = parsed(read_plain(path))
    if not isinstance(content, dict) or any(not_finite(content)):
        raise Unreadable("is not a JSON object of finite numbers")
    return content


def _schema(path: Path) -> Schema:
    try:
        return schema_of(_object(path))
    except RequestError as error:
        raise Unreadable(f"is not a schema: {error}") from None


def _signature(
    folder: Path, found: dict[str, str], content: bytes, key: Ed25519PublicKey | None
) -> tuple[str | None, Check]:
    """Who signed the certificate, and whether that is whose key was given."""
    if SIGNATURE not in found:
        missing = (Problem(SIGNATURE, "is missing: the release is not signed"),) if key else ()
        return None, Check("signature", "none", missing, note=True)
    try:
        author = signer(content, read_plain(folder / SIGNATURE))
    except Unreadable as error:
        return None, Check("signature", "not valid", (Problem(SIGNATURE, str(error)),))
    by = fingerprint(author)
    if key is not None and author != key:
        other = f"is by key {by}, and the key given is {fingerprint(key)}"
        return by, Check("signature", f"by another key, {by}", (Problem(SIGNATURE, other),))
    return by, Check("signature", f"by {'the key given' if key else 'key'} {by}", note=key is None)


def _epsilons(e: Evidence) -> dict[str, float | None]:
    accountant = e.plan.accountant if e.plan else "PLD"
    recomputed = e.price.epsilon if isinstance(e.price, Price) else None
    rdp = e.price.rdp if e.price else None
    found = {"stated": e.claimed.epsilon, accountant.lower(): recomputed, "rdp cross-check": rdp}
    if e.claimed.with_schema is not None:
        total = e.claimed.with_schema.get("epsilon")
        found["with the schema"] = float(total) if isinstance(total, int | float) else None
    return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}
