"""What was bought to make a schema, priced again from what the schema states of it."""

import math

from pydantic import ValidationError

from limbeck.data.tables.provenance import Bought, Read
from limbeck.privacy.plan import Plan, Selection
from limbeck.release.price import Beyond, beyond, price_of

RELATIVE = 1e-4  # as of a release's own epsilon
LISTS = {"categories", "classes", "levels"}


def wrong_with(source: Bought | Read) -> list[tuple[str, str]]:
    """The fields of a source that do not follow from its others, and why. Read from the data, it promises nothing."""
    if isinstance(source, Read):
        return []
    stated = {name: getattr(source, name) for name in ("measurements", "delta", "unit", "relation")}
    try:
        plan = Plan.model_validate(stated)
    except ValidationError:
        return [("measurements", "are not those of a plan")]
    return _mechanism(source, plan) + _epsilon(source, plan)


def _mechanism(source: Bought, plan: Plan) -> list[tuple[str, str]]:
    """Whether such measurements can have given such parts: one vote a column, and lists by selection alone."""
    found = []
    if sum(m.clip**2 for m in plan.measurements) < len(source.columns) * (1 - 1e-9):
        found.append(("measurements", f"have a clip too small for {len(source.columns)} columns"))
    listed = any(LISTS & set(parts) for parts in source.columns.values())
    if listed and not any(isinstance(m, Selection) for m in plan.measurements):
        found.append(("measurements", "select no values, and lists of values are said to come from them"))
    return found


def _epsilon(source: Bought, plan: Plan) -> list[tuple[str, str]]:
    price = beyond(plan) or price_of(plan)
    if isinstance(price, Beyond):
        return [(price.field, price.message)]
    if not math.isclose(source.epsilon, price.epsilon, rel_tol=RELATIVE):
        return [("epsilon", f"is stated as {source.epsilon:.6g}, and recomputed as {price.epsilon:.6g}")]
    return []
