"""What `limbeck verify` checks: one function a check, all of them pure, in the order in which they are shown."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import TableSchema
from limbeck.privacy.events import event_tree
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Measurement, Plan
from limbeck.release.card import headline
from limbeck.release.certificate import (
    Certificate,
    accountant_facts,
    digest_of,
    is_signal,
    ledger_line,
    software,
    with_schema,
    wording,
)
from limbeck.release.contents import Unreadable, file_digest, read_plain, small_array
from limbeck.release.evidence import Check, Evidence, Problem
from limbeck.release.price import Beyond, Price, is_cut
from limbeck.release.purchases import wrong_with
from limbeck.release.signature import SIGNATURE
from limbeck.release.tables import PLAIN

# The last digits move between versions of the accountant; a smaller edit than this breaks the seal.
RELATIVE = 1e-4
ARRAYS = ("x", "y", "y_soft")
NOT_LISTED = {"certificate.json", SIGNATURE}


def seals(e: Evidence) -> Check:
    """A digest of each field: which one was edited; and each field in the form in which it is written."""
    seal, fields = e.raw["seal"], e.raw.keys() - {"seal"}
    written = e.claimed.model_dump(mode="json")
    known = Certificate.model_fields.keys()
    problems = [
        Problem(name, "is missing") if name in known else Problem(f"seal.{name}", "seals no field")
        for name in sorted(seal.keys() - fields)
    ]
    for name in sorted(fields):
        if seal.get(name) != digest_of(e.raw[name]):
            problems.append(Problem(name, "was edited: its seal is broken"))
        elif e.raw[name] != written[name]:
            problems.append(Problem(name, "is not written as a certificate is: a number is expected as a number"))
    return Check("certificate", f"{len(fields)} fields, each as sealed", tuple(problems))


def files(e: Evidence) -> Check:
    """Every file is the certificate's, and no other is there."""
    listed = e.claimed.files
    parents = {str(p) for name in listed for p in Path(name).parents}
    problems = [Problem(name, "is missing") for name in sorted(listed.keys() - e.contents.keys())]
    for name, kind in sorted(e.contents.items()):
        if name in NOT_LISTED or (kind == "folder" and name in parents):
            continue
        if name not in listed:
            problems.append(Problem(name, "is not in the certificate"))
        elif kind != "file":
            problems.append(Problem(name, f"is a {kind}; a plain file is expected"))
        elif _digest(e.folder / name) != listed[name]:
            problems.append(Problem(name, "was changed: its SHA-256 is not the certificate's"))
    return Check("files", f"{len(listed)} files, each with its SHA-256, and no other", tuple(problems))


def _digest(path: Path) -> str | None:
    try:
        return file_digest(path)
    except OSError:
        return None


def inputs(e: Evidence) -> Check:
    """The public inputs of the run are the files in the folder, and the certificate agrees with the schema."""
    problems = list(e.unreadable)
    digests = {
        "schema": None if e.schema is None else e.schema.digest(),
        "recipe": None if e.recipe is None else digest_of(e.recipe),
    }
    for name, digest in digests.items():
        if digest is not None and e.claimed.public_inputs.get(name) != digest:
            problems.append(Problem(f"public_inputs.{name}", f"is not the digest of {name}.json"))
    if e.schema and e.claimed.rows_per_unit != e.schema.rows_per_unit:
        problems.append(Problem("rows_per_unit", f"is not schema.json's {e.schema.rows_per_unit}"))
    if e.schema and e.plan and e.claimed.unit != e.schema.unit:
        problems.append(Problem("unit", f"is not schema.json's {e.schema.unit}"))
    return Check("public inputs", "schema.json and recipe.json are those of the run", tuple(problems))


WORDS = {"W": "weights", "S": "class sums"}


def data(e: Evidence) -> Check:
    """The arrays have the shapes that schema and recipe declare."""
    if is_signal(e.claimed.files):
        return _measured(e)
    if e.arrays is None or e.schema is None:
        return Check("data.npz", "not checked", e.unreadable)
    m = e.arrays.get("y", (0,))[:1]
    expected = {"x": (*m, *e.schema.shape), "y": m, "y_soft": (*m, len(e.schema.classes))}
    problems = []
    if e.arrays != expected:
        problems.append(Problem("data.npz", f"does not hold {', '.join(ARRAYS)} in the shapes of schema.json"))
    classes, per_class = len(e.schema.classes), (e.recipe or {}).get("per_class")
    if per_class is not None and (_records_of(per_class, e.schema.classes),) != m:
        problems.append(Problem("recipe.per_class", f"is {per_class!r}, for {classes} classes and {sum(m)} records"))
    if isinstance(e.schema, TableSchema):
        problems += _plain_tables(e.folder, e.schema, sum(m))
    return Check("data.npz", f"{sum(m)} records, {classes} classes, as declared", tuple(problems))


def _records_of(per_class: Any, classes: Sequence[Any]) -> float | None:
    """How many records that is: of every class, or, of a table, of each by its name."""
    if isinstance(per_class, dict):
        named = sorted(per_class) == sorted(str(c) for c in classes)
        return sum(per_class.values()) if named and all(map(_is_number, per_class.values())) else None
    return per_class * len(classes) if _is_number(per_class) else None


def _plain_tables(folder: Path, schema: TableSchema, m: int) -> list[Problem]:
    """The same table in plain formats: the declared columns, in their order, and as many rows."""
    problems = []
    for name, described in PLAIN.items():
        try:
            found = described(folder / name)
        except Unreadable as error:
            problems.append(Problem(name, str(error)))
            continue
        if found != (list(schema.released_names), m):
            problems.append(Problem(name, f"does not hold the columns of schema.json, in their order, and {m} rows"))
    return problems


def _measured(e: Evidence) -> Check:
    """The same of a signal: weights, and class sums if the recipe has embeddings, for every class, all finite."""
    if e.arrays is None or e.schema is None:
        return Check("signal.npz", "not checked", e.unreadable)
    classes = len(e.schema.classes)
    expected = ["S", "W"] if "embeddings" in (e.recipe or {}) else ["W"]
    good = all(len(shape) == 2 and shape[0] > 0 and shape[1] == classes for shape in e.arrays.values())
    if sorted(e.arrays) != expected or not good:
        names = " and ".join(expected)
        problem = f"does not hold {names}, one column for each of the {classes} classes, and nothing else"
        return Check("signal.npz", "other arrays", (Problem("signal.npz", problem),))
    wrongs = [wrong for name in expected if (wrong := _not_finite(e.folder / "signal.npz", name))]
    shows = f"weights of {e.arrays['W'][0]} features for {classes} classes"
    shows += f", class sums of {e.arrays['S'][0]} coordinates" if "S" in e.arrays else ""
    return Check("signal.npz", f"{shows}, as declared", tuple(Problem("signal.npz", wrong) for wrong in wrongs))


def _not_finite(path: Path, name: str) -> str | None:
    try:
        array = small_array(path, name)
    except Unreadable as error:
        return str(error)
    good = array.dtype.kind == "f" and np.isfinite(array).all()
    return None if good else f"holds {WORDS[name]} that are not finite numbers"


def recipe(e: Evidence) -> Check:
    """What certificate and recipe both state, they state alike; no more is delivered than was asked for."""
    if e.recipe is None or e.plan is None:
        return Check("recipe.json", "states nothing that the certificate does", e.unreadable, note=True)
    given = e.recipe
    stated = {name: value for name, value in _in_recipe_words(e.claimed, e.plan, given).items() if name in given}
    problems = [
        Problem(f"recipe.{name}", f"is {given[name]!r}, and the certificate says {value!r}")
        for name, value in stated.items()
        if given[name] != value
    ]
    if "epsilon" in given and (delivered := e.claimed.epsilon) is not None:
        stated["epsilon"] = delivered
        if not (_is_number(given["epsilon"]) and delivered <= given["epsilon"]):
            problems.append(Problem("recipe.epsilon", f"is {given['epsilon']!r}, and {delivered:.6g} is delivered"))
    return Check("recipe.json", f"agrees in {', '.join(stated)}", tuple(problems))


def _in_recipe_words(claimed: Certificate, plan: Plan, given: dict[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {"delta": claimed.delta, "relation": claimed.relation, "unit": claimed.unit}
    if len(plan.measurements) == 1:
        (m,) = plan.measurements
        asked, run = given.get("batch"), m.sampling.expected
        words |= {"steps": m.steps, "clip_norm": m.clip, "noise": m.noise}
        words["batch"] = asked if _is_batch(asked, run, plan.n) else run
    return words


def _is_batch(asked: Any, expected: float, n: int) -> bool:
    """A batch of at least n is a full one, whatever it is called; q n may miss a whole number by rounding.

    A number below 1 is a share of n.
    """
    if asked == "full":
        return expected == n
    if not _is_number(asked):
        return False
    return math.isclose(max(1, round(asked * n)) if 0 < asked < 1 else min(asked, n), expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def event(e: Evidence) -> Check:
    """The event tree is what the measurements amount to."""
    if e.plan is None:
        return _nothing_measured(e)
    problems = []
    if e.claimed.event != json.loads(json.dumps(event_tree(e.plan.event))):
        problems.append(Problem("event", "is not what the measurements (sigma, q, cap, steps, noise) amount to"))
    if e.claimed.units != e.plan.n:
        problems.append(Problem("units", f"is {e.claimed.units}, and the measurements are of {e.plan.n}"))
    return Check("event", "; ".join(_described(m) for m in e.plan.measurements), tuple(problems))


def _described(m: Measurement) -> str:
    q = "full batch" if m.sampling.kind == "full" else f"q {m.sampling.q:.4g}, cap {m.sampling.cap}"
    return f"{m.steps} x {m.name}: sigma {m.sigma:.4g}, C {m.clip:g}, {q} of {m.sampling.n}, {m.noise} noise"


def _nothing_measured(e: Evidence) -> Check:
    claimed, problems = e.claimed, []
    if claimed.status != "none":
        problems.append(Problem("status", "claims a guarantee without a measurement"))
    for name in ("epsilon", "delta", "curve", "event", "relation", "units", "accountant"):
        if getattr(claimed, name) is not None:
            problems.append(Problem(name, "is stated without a measurement"))
    return Check("event", "none: nothing was measured under a plan", tuple(problems), note=True)


def accountant(e: Evidence) -> Check | None:
    """The accountant is one that is known, and the one that such a plan needs."""
    if e.plan is None:
        return None
    stated, expected = e.claimed.accountant or {}, accountant_facts(e.plan)
    problems = [
        Problem(f"accountant.{name}", f"is {stated.get(name)!r}; {expected.get(name)!r} is expected for such a plan")
        for name in sorted(stated.keys() | expected.keys())
        if name != "version" and stated.get(name) != expected.get(name)
    ]
    if not isinstance(stated.get("version"), str):
        problems.append(Problem("accountant.version", "is missing"))
    return Check("accountant", f"{stated.get('name')}, {stated.get('version')}", tuple(problems))


def epsilon(e: Evidence) -> Check | None:
    """The stated epsilon is the one that the plan delivers at the stated delta."""
    stated, price = e.claimed.epsilon, e.price
    if e.plan is None:
        return None
    if price is None:  # seeded
        numbers = {"epsilon": stated, "curve": e.claimed.curve}
        promised = [Problem(n, "is stated, although nothing is promised") for n, v in numbers.items() if v is not None]
        return Check("epsilon", "none: nothing is promised", tuple(promised), note=True)
    if isinstance(price, Beyond):
        return Check("epsilon", "not recomputed", (Problem(price.field, price.message),))
    shows = f"{price.epsilon:.6g} by {e.plan.accountant} at delta {e.plan.delta:g}, stated {_short(stated)}"
    if stated is None or not math.isclose(stated, price.epsilon, rel_tol=RELATIVE):
        wrong = Problem("epsilon", f"is stated as {_short(stated)}, and recomputed as {price.epsilon:.6g}")
        return Check("epsilon", shows, (wrong,))
    return Check("epsilon", shows)


def cross_check(e: Evidence) -> Check | None:
    """Renyi accounting is looser than privacy loss distributions, so it should give no less."""
    if e.plan is None or not isinstance(e.price, Price):
        return None
    cut = is_cut(e.plan.event)
    low = e.price.rdp < (1 - 0.02) * e.price.epsilon  # rounding of the loss, and a share of delta for cut batches
    why = (
        "batches that are cut, or rounding over many steps, cost the difference" if cut else "the accountants disagree"
    )
    shows = f"{e.price.rdp:.6g} by {'untruncated RDP' if cut else 'RDP'}, a cross-check{f': {why}' if low else ''}"
    return Check("cross-check", shows, note=low)


def curve(e: Evidence) -> Check | None:
    """The guarantee at other deltas."""
    if not isinstance(e.price, Price):
        return None
    stated, recomputed = np.array(e.claimed.curve or ()), np.array(e.price.curve)
    alike = stated.shape == recomputed.shape and np.allclose(stated, recomputed, rtol=RELATIVE, atol=1e-12)
    problems = () if alike else (Problem("curve", "is not the recomputed one"),)
    return Check("curve", f"epsilon at {len(recomputed)} other deltas", problems)


def provenance(e: Evidence) -> Check | None:
    """What was bought to make the schema costs what it says, recomputed; what was read from the data is named."""
    if e.schema is None or not e.schema.provenance:
        return None
    sources = e.schema.provenance
    found = [Problem(f"schema.json provenance.{i}.{at}", m) for i, s in enumerate(sources) for at, m in wrong_with(s)]
    said = [f"{', '.join(map(repr, source.columns)) or 'no column'} {source}" for source in sources]
    return Check("schema", "; ".join(said), tuple(found), note=isinstance(e.schema, TableSchema) and e.schema.unsafe)


def statement(e: Evidence) -> Check:
    """The certificate's words follow from its numbers, and the card opens with them."""
    claimed = e.claimed
    if e.plan is not None and claimed.status == "private" and claimed.epsilon is not None:
        promised = Guarantee("private", claimed.epsilon, e.plan.delta, e.plan.unit, e.plan.relation)
    else:
        promised = Guarantee("seeded" if e.plan is not None else "none")
    promised = promised.with_schema(e.schema.provenance if e.schema else ())
    expected = {
        "status": promised.status,
        "statement": str(promised),
        "with_schema": with_schema(promised),
    }
    expected |= wording(e.plan, promised.status, claimed.files, e.recipe or {}, e.schema)
    problems = [
        Problem(name, "does not follow from the other fields")
        for name, value in expected.items()
        if getattr(claimed, name) != value
    ]
    try:
        if f"**{headline(str(promised))}**".encode() not in read_plain(e.folder / "README.md"):
            problems.append(Problem("README.md", "does not open with the statement of the certificate"))
    except Unreadable as error:
        problems.append(Problem("README.md", str(error)))
    return Check("statement", claimed.statement, tuple(problems))


def randomness(e: Evidence) -> Check:
    """Whether the noise can be subtracted."""
    none = "no noise" if e.plan is None else "noise that protects nothing, beside such a schema"
    shows = {"private": "a secret stream, as stated: not seeded", "seeded": "seeded: not private", "none": none}
    return Check("randomness", shows[e.claimed.status], note=e.claimed.status != "private")


def versions(e: Evidence) -> Check:
    """Which software made it and which verifies it: a difference is worth knowing."""
    made, here = e.claimed.software, software()
    other = [f"{n} {made.get(n, 'unknown')} (here {v})" for n, v in here.items() if made.get(n) != v]
    same = f"limbeck {here['limbeck']} and dp-accounting {here['dp-accounting']} made it, and verify it"
    return Check("software", f"made with {', '.join(other)}" if other else same, note=bool(other))


def ledger(e: Evidence) -> Check:
    """Whether the run was charged to a budget."""
    try:
        return Check("ledger", ledger_line(e.claimed.ledger), note=e.claimed.ledger["status"] != "recorded")
    except ValueError as error:
        return Check("ledger", "not known", (Problem("ledger", str(error)),))


def derivation(e: Evidence) -> Check | None:
    """Whether it was fitted to a signal, whose measurements and ledger it then states."""
    signal = e.claimed.derived_from
    if signal is None:
        return None
    problems = [] if re.fullmatch("[0-9a-f]{64}", signal) else ["is not the SHA-256 of a certificate"]
    if e.plan is None:
        problems.append("names a signal, and nothing was measured")
    if is_signal(e.claimed.files):
        problems.append("names a signal, and this is one")
    found = tuple(Problem("derived_from", problem) for problem in problems)
    return Check("derived from", f"signal {signal[:16]}: no further budget, as stated", found)


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


CHECKS = (
    seals, files, inputs, data, recipe, event, accountant, epsilon, cross_check, curve, provenance, statement,
    randomness, versions, ledger, derivation,
)  # fmt: skip
