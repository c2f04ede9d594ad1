"""Recompute a release's guarantee from its folder alone."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.privacy.accounting import event_tree
from limbeck.privacy.guarantee import Guarantee
from limbeck.release.certificate import Certificate, digest_of, plan_of

# The last digits move between versions of the accountant; a smaller edit than this breaks the seal.
RELATIVE = 1e-4


@dataclass(frozen=True)
class Problem:
    """A field or a file that is not what the rest of the folder says it must be."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def verify(folder: str | Path) -> list[Problem]:
    """Everything in the folder that is inconsistent; empty when the release is what its certificate says."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder; a release folder with a certificate.json is expected.")
    try:
        raw = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RequestError(f"{folder} holds no certificate.json, so it is not a release.") from None
    except (ValueError, OSError):
        return [Problem("certificate.json", "is not readable as JSON")]
    try:
        claimed = Certificate.model_validate(raw)
    except ValidationError as error:
        return [
            Problem(".".join(str(p) for p in e["loc"]) or "certificate.json", e["msg"].lower())
            for e in error.errors(include_url=False, include_input=False, include_context=False)
        ]
    problems = _seal(raw) + _files(folder, claimed) + _inputs(folder, claimed)
    return problems + (_promise(folder, claimed) if claimed.measurements else _no_promise(claimed))


def _seal(raw: dict) -> list[Problem]:
    """A digest of each field: which one was edited."""
    seal, fields = raw["seal"], raw.keys() - {"seal"}
    problems = [Problem(f"seal.{name}", "seals no field") for name in seal.keys() - fields]
    problems += [
        Problem(name, "was edited: its seal is broken")
        for name in sorted(fields)
        if seal.get(name) != digest_of(raw[name])
    ]
    return problems


def _files(folder: Path, claimed: Certificate) -> list[Problem]:
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {"certificate.json"}
    problems = [Problem(name, "is missing") for name in sorted(claimed.files.keys() - present)]
    problems += [Problem(name, "is not in the certificate") for name in sorted(present - claimed.files.keys())]
    for name in sorted(present & claimed.files.keys()):
        if file_digest(folder / name) != claimed.files[name]:
            problems.append(Problem(name, "was changed: its SHA-256 is not the certificate's"))
    return problems


def _inputs(folder: Path, claimed: Certificate) -> list[Problem]:
    """The public inputs of the run are the files in the folder, and the data fits its schema."""
    try:
        schema = ImageSchema.from_json(folder / "schema.json")
        recipe = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
        with np.load(folder / "data.npz", allow_pickle=False) as z:
            shapes = {k: z[k].shape for k in ("x", "y", "y_soft")}
    except (RequestError, OSError, ValueError, KeyError) as error:
        return [Problem("files", f"schema.json, recipe.json or data.npz cannot be read ({type(error).__name__})")]
    problems = []
    if claimed.public_inputs.get("schema") != schema.digest():
        problems.append(Problem("public_inputs.schema", "is not the digest of schema.json"))
    if claimed.public_inputs.get("recipe") != digest_of(recipe):
        problems.append(Problem("public_inputs.recipe", "is not the digest of recipe.json"))
    m = shapes["y"][0] if shapes["y"] else 0
    expected = {"x": (m, *schema.shape), "y": (m,), "y_soft": (m, len(schema.classes))}
    if shapes != expected:
        problems.append(Problem("data.npz", "does not have the shape that schema.json declares"))
    if claimed.rows_per_unit != schema.rows_per_unit:
        problems.append(Problem("rows_per_unit", "is not schema.json's"))
    if claimed.measurements:
        (measured,) = claimed.measurements if len(claimed.measurements) == 1 else (None,)
        stated = {"delta": claimed.delta}
        if measured is not None:
            stated |= {"steps": measured.steps, "clip_norm": measured.clip}
        for name, value in stated.items():
            if name in recipe and recipe[name] != value:
                problems.append(Problem(name, "is not recipe.json's"))
        if claimed.unit != schema.unit:
            problems.append(Problem("unit", "is not schema.json's"))
    return problems


def _promise(folder: Path, claimed: Certificate) -> list[Problem]:
    """The event from the measurements, and epsilon, the curve and the statement from the event."""
    try:
        plan = plan_of(claimed)
    except ValidationError:
        return [Problem("measurements", "do not make a plan with this unit, relation and delta")]
    problems = []
    if claimed.event != json.loads(json.dumps(event_tree(plan.event))):
        problems.append(Problem("event", "is not what the measurements (sigma, q, cap, steps) amount to"))
    if claimed.units != plan.n or any(m.sampling.n != plan.n for m in plan.measurements):
        problems.append(Problem("units", "is not the n of the measurements"))
    if claimed.status == "private":
        if claimed.epsilon is None or abs(claimed.epsilon - plan.epsilon) > RELATIVE * plan.epsilon:
            problems.append(Problem("epsilon", f"is stated as {claimed.epsilon}, and recomputed as {plan.epsilon:.6g}"))
        recomputed = plan.curve
        if len(claimed.curve or ()) != len(recomputed) or not np.allclose(
            claimed.curve or (), recomputed, rtol=RELATIVE, atol=1e-12
        ):
            problems.append(Problem("curve", "is not the recomputed one"))
    elif claimed.epsilon is not None or claimed.curve is not None:
        problems.append(Problem("epsilon", "is stated, although the release is seeded"))
    if claimed.statement != str(Guarantee.of(plan, seeded=claimed.status == "seeded")):
        problems.append(Problem("statement", "does not follow from the other fields"))
    return problems


def _no_promise(claimed: Certificate) -> list[Problem]:
    problems = []
    if claimed.status != "none":
        problems.append(Problem("status", "claims a guarantee without a measurement"))
    if claimed.statement != str(Guarantee("none")):
        problems.append(Problem("statement", "claims a guarantee without a measurement"))
    if any(v is not None for v in (claimed.epsilon, claimed.delta, claimed.curve, claimed.event)):
        problems.append(Problem("epsilon", "is stated without a measurement"))
    return problems


def file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
