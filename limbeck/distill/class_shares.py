"""How many of a small set's rows each class has: by counts that were bought with a share of the budget."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from limbeck.data import Schema
from limbeck.distill.inducing import PerClass, check_table, class_sizes, sampling_of
from limbeck.errors import RequestError
from limbeck.measure import ClassCounts, Session
from limbeck.privacy.plan import Measurement, Noise

Labels = Literal["uniform", "counted"]
COUNTS = "class counts"
SHARE = 0.02  # of the budget: shares of the classes need no more, of hundreds of records already


def check_labels(schema: Schema, labels: Labels, per_class: PerClass) -> None:
    if labels not in ("uniform", "counted"):
        raise RequestError(f"labels is {labels!r}; uniform or counted is expected.")
    if labels == "counted":
        check_table(schema, "labels 'counted'")
        if not isinstance(per_class, int):
            raise RequestError("per_class gives each class its number already, and labels 'counted' would: choose one.")


def counts_measurement(n: int, delta: float, noise: Noise) -> Measurement:
    """The counts of n units, with sigma 1."""
    return Measurement(name=COUNTS, sampling=sampling_of(n, "full", 1, delta), steps=1, clip=1.0, sigma=1, noise=noise)


def counted_sizes(session: Session, schema: Schema, per_class: int) -> dict[str, int]:
    """As many rows as `per_class` of every class would be, shared out by the noisy counts; one of a rare class."""
    counts = np.maximum(np.asarray(session.ask(COUNTS, ClassCounts), np.float64), 0)
    given = apportioned(counts + 1e-9, sum(class_sizes(schema, per_class)), least=1)
    return {str(name): int(rows) for name, rows in zip(schema.classes, given, strict=True)}


def apportioned(counts: Float[np.ndarray, " C"], rows: int, least: int) -> Int[np.ndarray, " C"]:
    """Rows of each class, by its count, and `least` of a rare one."""
    share = counts / counts.sum()
    given = least + np.floor(share * (rows - least * len(counts))).astype(int)
    given[share.argmax()] += rows - given.sum()
    return given
