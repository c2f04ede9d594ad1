"""Where what a schema says came from, for the parts that nobody declared: bought under noise, or read from the data."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Part = Literal["kind", "low", "high", "categories", "levels", "classes"]


class _Sourced(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    columns: dict[str, tuple[Part, ...]]  # which parts of which columns


class Bought(_Sourced):
    """Measured under noise, together, for this much of the budget: the parts of a purchase have no price of their own.

    `measurements` are those of the plan that was run, as a certificate has them, so that epsilon can be recomputed;
    `ledger` is the row that they were charged to, as a certificate has it too.
    """

    origin: Literal["dp"] = "dp"
    mechanism: str
    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    unit: Literal["record", "person"]
    relation: Literal["zero-out"]
    measurements: tuple[dict[str, Any], ...]
    ledger: dict[str, Any]

    def __str__(self) -> str:
        return f"dp: epsilon {self.epsilon:.4g} at delta {self.delta:g}, for all that was bought at once"


class Read(_Sourced):
    """Read from the records as they are: whatever is made with such a schema has no privacy guarantee."""

    origin: Literal["unsafe"] = "unsafe"

    def __str__(self) -> str:
        return "unsafe: read from the data"


Source = Annotated[Bought | Read, Field(discriminator="origin")]


def misplaced(sources: tuple[Bought | Read, ...], names: Collection[str], unit: str) -> list[str]:
    """What is wrong with sources beside columns of these names, whose rows belong to units of this kind.

    A column may be dropped, or its categories put in an order, after its parts were bought: it is not held to its kind.
    """
    found = []
    for i, source in enumerate(sources):
        where = f"provenance.{i}"
        found += [f"{where}: column {name!r} is not declared" for name in source.columns if name not in names]
        if isinstance(source, Bought) and source.unit != unit:
            found.append(
                f"{where}: bought for a {source.unit} as the unit, and the schema's unit is a {unit}: buy anew"
            )
    return found
