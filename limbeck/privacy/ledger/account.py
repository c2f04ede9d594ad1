"""The account of one dataset, unit and relation: its grant, its runs, and where they stand."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from dp_accounting import dp_event

from limbeck.privacy.accounting import Relation, epsilon_of
from limbeck.privacy.events import event_of
from limbeck.privacy.ledger import store
from limbeck.privacy.ledger.filter import Standing, epsilon_spent, standing
from limbeck.privacy.ledger.grant import Grant


@dataclass(frozen=True)
class Account:
    """What the ledger holds of one dataset, unit and relation.

    - `grant`: the latest, or None: then spending is recorded and not limited.
    - `late`: the grant was made or changed after runs, so its proof assumes that no outcome of theirs would have led to
      a larger one.
    - `intents`: the runs, each charged in full; `unfinished` names those that never completed.
    """

    dataset: str
    unit: str
    relation: Relation
    grant: Grant | None
    late: bool
    intents: tuple[dict, ...]
    unfinished: tuple[str, ...]

    @classmethod
    def read(cls, connection: sa.Connection, dataset: str, unit: str, relation: Relation) -> "Account":
        name: dict[str, Any] = {"dataset": dataset, "unit": unit, "relation": relation}
        granted = store.rows(connection, store.grants, **name)
        grant = Grant(**name, **{k: granted[-1][k] for k in ("epsilon", "delta", "filter")}) if granted else None
        intents = tuple(store.rows(connection, store.intents, **name))
        done = {row["run"] for row in store.rows(connection, store.completions)}
        unfinished = tuple(row["run"] for row in intents if row["run"] not in done)
        return cls(**name, grant=grant, late=bool(granted and granted[-1]["runs_before"]), intents=intents,
                   unfinished=unfinished)  # fmt: skip

    @cached_property
    def events(self) -> tuple[dp_event.DpEvent, ...]:
        return tuple(event_of(json.loads(row["event"])) for row in self.intents)

    @property
    def order(self) -> int | None:
        """What the rdp filter was fixed to by the first run under a grant."""
        return next((row["renyi_order"] for row in self.intents if row["renyi_order"]), None)

    @property
    def standing(self) -> Standing | None:
        """What the filter has counted, in its own currency."""
        return standing(self.grant, self.events, self.order) if self.grant else None

    @property
    def exhausted(self) -> bool:
        """Whether the filter admits nothing more."""
        now = self.standing
        return now is not None and bool(self.intents) and (now.fraction >= 1 or not now.within)

    @property
    def spent(self) -> float | None:
        """The same as epsilon, at the grant's delta."""
        return epsilon_spent(self.grant, self.events, self.order) if self.grant else None

    @property
    def remaining(self) -> float | None:
        return max(0.0, self.grant.epsilon - (self.spent or 0.0)) if self.grant else None

    @cached_property
    def composed(self) -> tuple[float, float] | None:
        """(epsilon, delta) of all runs by their own accountant. For information: it assumes plans fixed in advance."""
        if not self.intents:
            return None
        delta = self.grant.delta if self.grant else min(row["delta"] for row in self.intents)
        alike = Counter(self.events).items()
        runs = tuple(dp_event.SelfComposedDpEvent(event, count) for event, count in alike)
        return epsilon_of(dp_event.ComposedDpEvent(runs), delta, self.relation), delta

    @property
    def summed(self) -> tuple[float, float] | None:
        """(epsilon, delta) as plain sums. For information, as above."""
        if not self.intents:
            return None
        return sum(row["epsilon"] for row in self.intents), sum(row["delta"] for row in self.intents)

    def facts(self) -> dict[str, Any]:
        """Plain JSON data."""
        now = self.standing
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "relation": self.relation,
            "granted": self.grant and {n: getattr(self.grant, n) for n in ("epsilon", "delta", "filter")},
            "granted_after_runs": self.late,
            "runs": len(self.intents),
            "unfinished": list(self.unfinished),
            "filter": now and {"order": now.order, "spent": now.spent, "budget": now.budget, "fraction": now.fraction},
            "spent_epsilon": self.spent,
            "remaining_epsilon": self.remaining,
            "exhausted": self.exhausted,
            "assuming_plans_fixed_in_advance": {"composed": self.composed, "plain_sum": self.summed},
        }
