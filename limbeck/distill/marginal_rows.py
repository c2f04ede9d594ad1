"""Made-up rows from noisy counts: what each class looks like, a column at a time. Post-processing throughout."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from limbeck.data import TableSchema
from limbeck.data.tables.columns import Boolean, Numerical, Ordinal
from limbeck.features import Cells, Marginals, Warp
from limbeck.privacy.plan import Plan

MARGINALS, SPREAD = "class marginals", "spread of numbers"  # what is measured
MIXED = 0.5  # of the rows
FEWEST_ALIKE = 4  # columns that lend to each other


def marginals_for(schema: TableSchema, bins: int) -> Marginals:
    """The cells of every column: `bins` for a number, and one for each value of a column that has few."""
    columns = []
    for slot in schema.layout.slots:
        if slot.is_group:
            columns.append(Cells(slot.start, slot.stop))
        else:
            column = slot.column
            few = 2 if isinstance(column, Boolean) else len(column.levels) if isinstance(column, Ordinal) else bins
            columns.append(Cells(slot.start, slot.stop, few, slot.indicator))
    return Marginals(schema.layout.width, tuple(columns))


def spread_for(schema: TableSchema, bins: int) -> Marginals | None:
    """Even pieces of each number's range, for a first look at where its rows lie; None of a table without numbers."""
    columns = tuple(
        Cells(slot.start, slot.stop, bins, slot.indicator)
        for slot in schema.layout.slots
        if isinstance(slot.column, Numerical)
    )
    return Marginals(schema.layout.width, columns) if columns else None


def warp_by(cells: Marginals, S: Float[np.ndarray, "F C"], n: float, noise: float = 0.0) -> Warp:
    """How numbers are to be stretched, from noisy sums over even pieces, all classes together."""
    S = np.asarray(S)
    found = ClassMarginals.of(cells, S.sum(axis=1, keepdims=True), n, noise * np.sqrt(S.shape[1]))
    shares = np.stack([part[: column.bins, 0] for part, column in zip(found.shares, cells.columns, strict=True)])
    return Warp.of(tuple(column.start for column in cells.columns), shares)


@dataclass(frozen=True)
class ClassMarginals:
    """How many rows each class has, and in which share they lie in each cell of each column.

    Read off noisy sums S of `Marginals`: every column's cells sum to the class's count, of which their weighted mean is
    the best estimate; then each column is projected on the counts that are possible, none negative and that sum.
    Before that, columns that are cut alike lend to each other (`lent`).
    """

    cells: Marginals
    counts: Float[np.ndarray, " C"]
    shares: tuple[Float[np.ndarray, "_ C"], ...]

    @classmethod
    def of(cls, cells: Marginals, S: Float[np.ndarray, "F C"], n: float, noise: float = 0.0) -> "ClassMarginals":
        """`S` as a session answers: sums over n units divided by n. `noise`: the standard deviation of a count."""
        noisy = np.asarray(S, np.float64) * n * np.sqrt(len(cells.columns))
        parts = lent(cells, np.split(noisy, np.cumsum([column.number for column in cells.columns])[:-1]), noise)
        weights = np.array([1 / len(part) for part in parts])  # a sum of v cells has v times a cell's variance
        counts = np.average([part.sum(axis=0) for part in parts], axis=0, weights=weights)
        counts = np.maximum(counts, 1.0)
        shares = tuple(
            np.stack([on_simplex(part[:, c] / count) for c, count in enumerate(counts)], axis=1) for part in parts
        )
        return cls(cells, counts, shares)

    def draw(self, c: Int[np.ndarray, " m"], rng: np.random.Generator) -> Float[np.ndarray, "m d"]:
        """Encoded rows of these classes, each column drawn on its own.

        Of a share `MIXED` of the rows, some columns are another class's: how many is drawn for each row, from none to
        all. Where columns are many, rows of pure classes would lie far apart, and whoever is trained on them might put
        the border anywhere between. All rows together have the same marginals either way.
        """
        x = np.zeros((len(c), self.cells.d), np.float32)
        other = rng.choice(len(self.counts), len(c), p=self.counts / self.counts.sum())
        own = np.where(rng.random(len(c)) < MIXED, rng.random(len(c)), 1.0)
        for column, shares in zip(self.cells.columns, self.shares, strict=True):
            place = _drawn(shares, np.where(rng.random(len(c)) < own, c, other), rng)
            if not column.bins:
                x[np.arange(len(c)), column.start + place] = 1
                continue
            missing = place == column.bins
            share = (np.where(missing, 0, place) + rng.random(len(c))) / column.bins
            x[:, column.start] = np.where(missing, 0, 2 * share - 1)
            if column.indicator is not None:
                x[:, column.indicator] = missing
        return x


def count_noise(plan: Plan, name: str, cells: Marginals) -> float:
    """The standard deviation of a count of cells that the plan's measurement of this name will have."""
    return plan.measurement(name).sigma * float(np.sqrt(len(cells.columns)))


def lent(cells: Marginals, parts: list[Float[np.ndarray, "_ C"]], noise: float) -> list[Float[np.ndarray, "_ C"]]:
    """Noisy counts, those of columns that are cut alike moved towards their mean.

    By as much as noise explains how the columns differ, twice: for all classes together, and for how each class departs
    from that. Samples of one signal come to share one shape; columns that differ beyond the noise stay as they are.
    """
    parts, alike = list(parts), defaultdict(list)
    for j, column in enumerate(cells.columns):
        if column.bins:
            alike[column.bins, column.indicator is None].append(j)
    for group in alike.values():
        if len(group) < FEWEST_ALIKE:
            continue
        counts = np.stack([parts[j] for j in group])  # columns, cells, classes
        share = np.maximum(counts.sum(axis=(0, 1)), 1)
        share /= share.sum()
        together = counts.sum(axis=2, keepdims=True)
        others = (len(share) - 1) * share**2  # of the noise of other classes, in what is a class's share of them all
        departs = shrunk(counts - share * together, noise**2 * ((1 - share) ** 2 + others))
        for j, part in zip(group, share * shrunk(together, noise**2 * len(share)) + departs, strict=True):
            parts[j] = part
    return parts


def shrunk(
    v: Float[np.ndarray, "k cells C"], variance: float | Float[np.ndarray, " C"]
) -> Float[np.ndarray, "k cells C"]:
    """k noisy vectors moved towards their mean (James & Stein 1961), as far as their noise has moved them from it."""
    mean = v.mean(axis=0)
    spread = (((v - mean) ** 2).sum(axis=0) / (len(v) - 1)).mean(axis=0)
    return mean + np.clip(1 - variance / np.maximum(spread, 1e-12), 0, 1) * (v - mean)


def uniform_marginals(cells: Marginals, classes: int) -> ClassMarginals:
    """Where nothing was measured: every cell of the declared range alike."""
    shares = tuple(np.full((column.number, classes), 1 / column.number) for column in cells.columns)
    return ClassMarginals(cells, np.ones(classes), shares)


def on_simplex(v: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """The nearest shares: none negative, and one in all (Duchi et al. 2008). Small noisy counts become zero."""
    u = np.sort(v)[::-1]
    excess = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    return np.maximum(v - excess[np.flatnonzero(u > excess)[-1]], 0)


def _drawn(shares: Float[np.ndarray, "v C"], c: Int[np.ndarray, " m"], rng: np.random.Generator) -> np.ndarray:
    """A cell for each class index, by inverting the cumulated shares."""
    place = np.empty(len(c), int)
    u = rng.random(len(c))
    for k in np.unique(c):
        of = c == k
        cumulated = np.cumsum(shares[:, k])
        place[of] = np.searchsorted(cumulated, u[of] * cumulated[-1], side="right")
    return np.minimum(place, len(shares) - 1)
