"""A grant: how much may be learned about one unit of a dataset, ever, whatever versions of it there are."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from limbeck.errors import RequestError
from limbeck.privacy.accounting import RELATIONS, Relation
from limbeck.privacy.plan import check_privacy

FilterKind = Literal["rdp", "gdp"]
UNITS = ("record", "person")


@dataclass(frozen=True)
class Grant:
    """(epsilon, delta) for a dataset, unit and relation, and the filter that keeps to it.

    - `filter`: "rdp" takes every plan; "gdp" takes plans of full-batch Gaussian measurements only, and is exact.
    """

    dataset: str
    epsilon: float
    delta: float
    unit: str = "record"
    relation: Relation = "zero-out"
    filter: FilterKind = "rdp"

    @classmethod
    def of(cls, dataset: str, epsilon: float, delta: float, unit: str, relation: Any, filter: Any) -> "Grant":
        """A grant as a person asks for it."""
        check_privacy(epsilon, delta)
        if not dataset.strip():
            raise RequestError("a grant needs the dataset's name.")
        for name, given, expected in (
            ("unit", unit, UNITS),
            ("relation", relation, tuple(RELATIONS)),
            ("filter", filter, get_args(FilterKind)),
        ):
            if given not in expected:
                raise RequestError(f"the {name} is {given!r}; {' or '.join(expected)} is expected.")
        return cls(dataset, epsilon, delta, unit, relation, filter)

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:g} at delta {self.delta:g} for {self.dataset!r}, per {self.unit}, "
            f"{self.relation}, {self.filter} filter"
        )
