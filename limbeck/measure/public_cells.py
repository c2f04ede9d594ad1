"""A public grid on the number line, fixed here for every table, and bounds from noisy counts in its cells."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

# Edges at 1, 1.25, 1.5 and 1.75 times each power of two, on both sides of zero, and a cell around it.
_POWERS = 2.0 ** np.arange(-20, 53)
_ABOVE = np.append((_POWERS[:, None] * np.array([1.0, 1.25, 1.5, 1.75])).ravel(), 2.0**53)
EDGES = np.concatenate([-_ABOVE[::-1], _ABOVE])
CELLS = len(EDGES) - 1
# The first cell of each octave: of the four between two powers of two, and of the one around zero.
OCTAVES = np.concatenate(
    [np.arange(0, CELLS // 2, 4), np.arange(CELLS // 2, CELLS // 2 + 1), np.arange(CELLS // 2 + 1, CELLS, 4)]
)
TAIL = 0.005  # of what is counted, on either side, that may lie outside the bounds
DOUBT = 0.01  # of a chance that any empty cell of a column is taken for one that is not


def cell_of(values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The cell of each number, beyond the grid its last one on that side; -1 for NaN. A function of each alone."""
    cells = np.clip(np.searchsorted(EDGES, values, side="right") - 1, 0, CELLS - 1)
    return np.where(np.isnan(values), -1, cells)


def bounds(counts: Float[np.ndarray, " cells"], deviation: float) -> tuple[float, float] | None:
    """Where all but TAIL of what is counted lies on either side, from noisy counts: edges of the grid, outwards.

    Post-processing. Cells that noise of this deviation alone may have filled count for nothing: there are hundreds, and
    their noise together would hide the tails. Where many cells are too small for that, four of them are taken as one.
    None if less than half of what is there stands out.
    """
    fine, coarse = _standing(counts, np.arange(CELLS), deviation), _standing(counts, OCTAVES, 2 * deviation)
    kept, starts = (fine, np.arange(CELLS)) if fine.sum() >= (1 - 2 * TAIL) * coarse.sum() else (coarse, OCTAVES)
    total = kept.sum()
    if total <= max(counts.sum() / 2, 0.0):  # noise can take the sum below zero
        return None
    first = np.searchsorted(np.cumsum(kept), TAIL * total, side="right")
    last = len(kept) - 1 - np.searchsorted(np.cumsum(kept[::-1]), TAIL * total, side="right")
    return float(EDGES[starts[first]]), float(EDGES[np.append(starts, CELLS)[last + 1]])


def _standing(
    counts: Float[np.ndarray, " cells"], starts: Int[np.ndarray, " groups"], deviation: float
) -> Float[np.ndarray, " groups"]:
    """The counts of groups of cells that stand out of noise of this deviation, and 0 for the others."""
    sums = np.add.reduceat(counts, starts)
    return np.where(sums > -ndtri(DOUBT / len(sums)) * deviation, sums, 0.0)
