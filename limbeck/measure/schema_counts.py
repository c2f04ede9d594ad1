"""What a schema leaves blank, bought: private quantiles for bounds, private partition selection for lists."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from limbeck.data.tables.blanks import Parts
from limbeck.data.tables.cells import distinct, numbers
from limbeck.data.tables.columns import Value
from limbeck.data.tables.provenance import Bought
from limbeck.data.tables.schema import TableSchema
from limbeck.data.tables.values import fitting, in_order, value_of
from limbeck.measure.public_cells import CELLS, bounds, cell_of
from limbeck.measure.records import Records
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Selection, check_privacy
from limbeck.privacy.stream import Stream

NAME = "schema"
MECHANISM = (
    "Gaussian noise on counts of a public grid's cells and of values, of which those above a threshold are named"
)
FAILURE = 1e-8  # of delta: so little that the ledger's filter, which pays e^epsilon times it, pays next to nothing


@dataclass(frozen=True)
class Purchase:
    """What is to be bought: bounds of some columns and lists of others, where a unit has at most `rows` rows."""

    parts: Parts
    rows: int = 1

    @property
    def bounded(self) -> tuple[str, ...]:
        return tuple(name for name, parts in self.parts.items() if {"low", "high"} & set(parts))

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(name for name in self.parts if name not in self.bounded)

    @property
    def sensitivity(self) -> float:
        """One vote in each column, at most: the root of their number."""
        return math.sqrt(len(self.parts))

    def plan(self, n: int, epsilon: float, delta: float, unit: Literal["record", "person"]) -> Plan:
        """One measurement of all columns together, of n units, that costs at most (epsilon, delta)."""
        check_privacy(epsilon, delta)
        facts: dict[str, Any] = {
            "name": NAME,
            "sampling": FullBatch(n=n),
            "steps": 1,
            "clip": self.sensitivity,
            "sigma": 1.0,
        }
        one = Selection(**facts, failure=FAILURE * delta) if self.listed else Measurement(**facts)
        return Plan(measurements=(one,), delta=delta, relation="zero-out", unit=unit).calibrated(epsilon)

    def threshold(self, plan: Plan) -> float:
        """What a noisy count must exceed for its value to be named.

        A unit that alone holds some values gives a column's no more than one vote together, so each of them has a count
        of at most 1, and there are at most `rows` in each of the listed columns: by the union bound, one of them passes
        with a probability of at most `failure`.
        """
        measured = plan.measurement(NAME)
        assert isinstance(measured, Selection), "values are named only by a plan that pays for it"
        return 1.0 - float(ndtri(measured.failure / (self.rows * len(self.listed)))) * measured.sigma * measured.clip


def buy(records: Records, purchase: Purchase, plan: Plan, stream: Stream | None = None) -> dict[str, dict[str, Any]]:
    """Bounds, categories and classes of columns, each a function of noisy counts; a column without any is left out.

    **Why this is private.** Every unit has one vote a column, shared by its first `rows` rows, and a row's share goes
    to the cell of a public grid or to the value that it holds, by that row alone; so zeroing a unit out moves all
    counts together by at most the root of the number of columns, which is the plan's `clip`. Noise of sigma times that
    is added to every count: of a public grid, to all cells; of values, to those that somebody holds, and then only what
    exceeds the threshold is named, in an order that depends on the names alone (`Selection` has the argument). Counts
    do not leave; neither does how many values there were. n, the number of units, is public.

    **Parameters**

    - `records`: encoded by a schema in which something stands for the blanks. `purchase`, `plan`: what, and at what
      price.
    - `stream`: secret randomness; a fresh one by default.
    """
    measured, stream = plan.measurement(NAME), stream or Stream()
    assert records.n == plan.n, "a plan is made for the records' public number of units"
    assert (measured.clip, measured.steps) == (purchase.sensitivity, 1), "the plan is for this purchase"
    assert isinstance(records.schema, TableSchema)
    deviation = measured.sigma * measured.clip
    cells, values = _votes(records, purchase)
    found: dict[str, dict[str, Any]] = {}
    for name in purchase.bounded:
        noisy = cells[name] + deviation * stream.normal((CELLS,))
        if (pair := bounds(noisy, deviation)) is not None:
            found[name] = dict(zip(("low", "high"), pair, strict=True))
    for name in purchase.listed:
        if passed := named(values[name], purchase.threshold(plan), deviation, stream):
            found[name] = {purchase.parts[name][0]: passed}
    return fitting(records.schema, purchase.parts, found)


def named(votes: Mapping[str, float], threshold: float, deviation: float, stream: Stream) -> list[Value]:
    """The values whose votes, with noise of this deviation, exceed the threshold."""
    noisy = np.array([*votes.values()]) + deviation * stream.normal((len(votes),))
    return in_order(value for value, count in zip(votes, noisy, strict=True) if count > threshold)


def _votes(records: Records, purchase: Purchase) -> tuple[dict[str, np.ndarray], dict[str, dict[str, float]]]:
    """The votes for each cell of the grid, and for each value that is held, without noise: private."""
    schema = records.schema
    assert isinstance(schema, TableSchema)
    cells = {name: np.zeros(CELLS) for name in purchase.bounded}
    values: dict[str, dict[str, float]] = {name: {} for name in purchase.listed}
    for batch, shares in records.cells(tuple(purchase.parts)):
        for name in purchase.bounded:
            cell = cell_of(numbers(batch.column(name), schema.decimal))
            cells[name] += np.bincount(cell + 1, shares, CELLS + 1)[1:]
        for name in purchase.listed:
            texts, place = distinct(batch.column(name))
            votes = np.bincount(place, shares, len(texts) + 1)
            for text, vote in zip(texts, votes, strict=False):  # the last are of cells that are null
                # A row that is not kept has no share in a vote: what it alone holds is not there, and draws no noise.
                if vote > 0 and (value := value_of(text)) is not None:
                    values[name][value] = values[name].get(value, 0.0) + float(vote)
    return cells, values


def source(plan: Plan, ledger: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says of values that were bought by a plan, but for their columns."""
    stated = Bought(
        columns={},
        mechanism=MECHANISM,
        epsilon=plan.epsilon,
        delta=plan.delta,
        unit=plan.unit,
        relation="zero-out",
        measurements=tuple(m.model_dump(mode="json") for m in plan.measurements),
        ledger=dict(ledger),
    )
    return stated.model_dump(mode="json")
