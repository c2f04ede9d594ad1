"""What is promised, in words and numbers."""

from dataclasses import dataclass
from typing import Literal

from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import Plan

Status = Literal["private", "seeded", "none"]


@dataclass(frozen=True)
class Guarantee:
    """What a release promises about one unit of the private data.

    `status` is "private", "seeded" (the noise came from a seed, so whoever knows it can subtract it) or "none"
    (a method without noise). Only "private" is a promise, and only then are epsilon and delta finite.
    """

    status: Status
    epsilon: float = float("inf")
    delta: float = 1.0
    unit: str = "record"
    relation: Relation | None = None

    @classmethod
    def of(cls, plan: Plan, *, seeded: bool) -> "Guarantee":
        if seeded:
            return cls("seeded")
        return cls("private", plan.epsilon, plan.delta, plan.unit, plan.relation)

    def __str__(self) -> str:
        match self.status:
            case "none":
                return "no privacy guarantee"
            case "seeded":
                return "not private: seeded"
        return f"epsilon {self.epsilon:.4g} at delta {self.delta:g}, per {self.unit}, {self.relation}"
