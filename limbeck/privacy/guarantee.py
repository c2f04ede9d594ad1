"""What is promised, in words and numbers."""

from dataclasses import dataclass, replace
from typing import Literal

from limbeck.data.tables.provenance import Bought, Read
from limbeck.errors import RequestError
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import Plan

Status = Literal["private", "seeded", "none"]
Sources = tuple[Bought | Read, ...]  # where parts of a schema came from that nobody declared
UNSAFE = "the schema was read from the data"


@dataclass(frozen=True)
class Guarantee:
    """What a release promises about one unit of the private data.

    `status` is "private", "seeded" (the noise came from a seed, so whoever knows it can subtract it) or "none"
    (a method without noise, or a schema that was read from the data). Only "private" is a promise, and only then are
    epsilon and delta finite.

    `schema` is the part of epsilon and of delta that was spent on the schema, where that was bought; `why`, for what
    reason nothing is promised, where it is not the method's own.
    """

    status: Status
    epsilon: float = float("inf")
    delta: float = 1.0
    unit: str = "record"
    relation: Relation | None = None
    schema: tuple[float, float] | None = None
    why: str | None = None

    @classmethod
    def of(cls, plan: Plan, *, seeded: bool, sources: Sources = ()) -> "Guarantee":
        """Of what was measured by a plan, with a schema that may have had a price of its own."""
        if seeded:
            return cls("seeded").with_schema(sources)
        return cls("private", plan.epsilon, plan.delta, plan.unit, plan.relation).with_schema(sources)

    def with_schema(self, sources: Sources) -> "Guarantee":
        """The same of the run and its schema together; its price is added once, however often this is asked for.

        **Why this is private.** What bought the schema and what was measured with it are each (epsilon_i, delta_i)-DP,
        the second whatever the first gave. By basic composition both together are (sum epsilon_i, sum delta_i)-DP, also
        where the later were chosen in sight of the earlier: sums are a privacy filter (Rogers et al. 2016).
        """
        if any(isinstance(source, Read) for source in sources):
            return Guarantee("none", why=UNSAFE)
        bought = [source for source in sources if isinstance(source, Bought)]
        if not bought or self.status != "private" or self.schema:
            return self
        check_terms(sources, self.relation)
        epsilon, delta = sum(one.epsilon for one in bought), sum(one.delta for one in bought)
        return replace(self, epsilon=self.epsilon + epsilon, delta=self.delta + delta, schema=(epsilon, delta))

    def __str__(self) -> str:
        match self.status:
            case "none":
                return "no privacy guarantee" + (f": {self.why}" if self.why else "")
            case "seeded":
                return "not private: seeded"
        total = f"epsilon {self.epsilon:.4g} at delta {self.delta:g}, per {self.unit}, {self.relation}"
        if self.schema is None:
            return total
        epsilon, delta = self.schema
        return f"{total}, of which epsilon {epsilon:.4g} at delta {delta:g} for the schema"


def check_terms(sources: Sources, relation: str | None) -> None:
    """Refuse terms on which a schema was not bought: prices add up on the same ones only. Asked before data is read."""
    if any(isinstance(source, Bought) and source.relation != relation for source in sources):
        raise RequestError(
            f"the schema was bought against zeroing a unit out, and this run is {relation}: their prices do not add "
            "up. Run it with --relation zero-out, or declare the schema."
        )
