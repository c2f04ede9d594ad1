"""How like real rows a release is: its marginals, its pairwise correlations and its class balance.

Nothing here is private: real rows are compared as they are, and what comes out stays with whoever holds them. Small
releases are far from any distribution: hold a release's scores against those of as many random real rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, computed_field
from scipy import sparse

from limbeck.errors import RequestError
from limbeck.evaluate.columns import Column, cell_indices, codes, numbers


class Fidelity(BaseModel):
    """Scores of a release in [0, 1], by their kind; 1 is no difference from the real rows.

    - `marginals`: by feature, 1 - the total variation distance of the histograms over declared categories, or over
      bins of the declared range.
    - `correlations`: 1 - the mean difference over all pairs of columns, as a share of the largest there could be.
    - `class_balance`: 1 - the total variation distance of the classes.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    real_records: int
    marginals: dict[str, float]
    correlations: float
    class_balance: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def marginal_mean(self) -> float:
        """Mean over the features."""
        return float(np.mean(list(self.marginals.values())))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overall(self) -> float:
        """Mean of the three."""
        return float(np.mean([self.marginal_mean, self.correlations, self.class_balance]))


def fidelity(real: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column], target: Column) -> Fidelity:
    """How like the real rows a release is.

    **Arguments:**

    - `real`: test rows, which the release was not made from.
    - `columns`, `target`: features and classes, as declared.
    """
    if not columns:
        raise RequestError("there is no feature column to compare")
    if not len(real) or not len(release):
        raise RequestError(
            f"there are {len(real)} real rows and {len(release)} of the release; some of both are expected"
        )
    every = (*columns, target)
    return Fidelity(
        records=len(release),
        real_records=len(real),
        marginals={column.name: _likeness(real, release, column) for column in columns},
        correlations=correlation_score(correlations(real, every), correlations(release, every), every),
        class_balance=_likeness(real, release, target),
    )


def histogram(frame: pd.DataFrame, column: Column) -> Float[np.ndarray, " cells"]:
    """The share of rows in each of the column's public cells."""
    return np.bincount(cell_indices(frame, column), minlength=column.cells) / max(len(frame), 1)


def _likeness(real: pd.DataFrame, release: pd.DataFrame, column: Column) -> float:
    distance = np.abs(histogram(real, column) - histogram(release, column)).sum() / 2
    return float(np.clip(1 - distance, 0, 1))


def correlation_score(
    real: Float[np.ndarray, "c c"], release: Float[np.ndarray, "c c"], columns: Sequence[Column]
) -> float:
    """1 - the mean difference over pairs, each as a share of its range: [-1, 1] between two numbers, else [0, 1]."""
    numerical = np.array([column.kind == "numerical" for column in columns])
    span = 1.0 + np.outer(numerical, numerical)
    pairs = np.triu_indices(len(columns), 1)
    return float(1 - (np.abs(real - release) / span)[pairs].mean())


def correlations(frame: pd.DataFrame, columns: Sequence[Column]) -> Float[np.ndarray, "c c"]:
    """Pearson's r between numbers, Cramer's V between categories, the correlation ratio between the two.

    V (Bergsma 2013) and the ratio (as in an adjusted R²) are freed of their bias, which is upwards and goes with
    categories / rows: a small release of independent columns must not look correlated. A number is compared over the
    rows that have it; no category is a category. What does not vary is correlated with nothing but itself.

    Every pair comes from a few products of matrices, since a table may have thousands of columns.
    """
    is_number = np.array([column.kind == "numerical" for column in columns])
    number, category = np.flatnonzero(is_number).tolist(), np.flatnonzero(~is_number).tolist()
    R = np.zeros((len(columns), len(columns)))
    x = _numbers(frame, [columns[i] for i in number])
    o = _categories(frame, [columns[i] for i in category])
    R[np.ix_(number, number)] = _pearson(x)
    R[np.ix_(category, category)] = _cramer(o)
    R[np.ix_(category, number)] = ratio = _correlation_ratio(o, x)
    R[np.ix_(number, category)] = ratio.T
    np.fill_diagonal(R, 1.0)
    return R


class _Numbers(NamedTuple):
    """Centred numbers in units of their spread, zero where there is none, and which there are."""

    X: Float[np.ndarray, "n p"]
    there: Float[np.ndarray, "n p"]


class _Categories(NamedTuple):
    """One column a category in `O`; `of` says which column of the table each belongs to."""

    O: sparse.csr_array
    of: sparse.csr_array

    @property
    def rows(self) -> np.ndarray:
        """How many rows each category has."""
        return np.asarray(self.O.sum(0)).ravel()

    @property
    def present(self) -> np.ndarray:
        """How many categories of each column occur."""
        return self.of.T @ (self.rows > 0).astype(float)


def _numbers(frame: pd.DataFrame, columns: Sequence[Column]) -> _Numbers:
    X = np.array([numbers(frame, column) for column in columns]).reshape(len(columns), len(frame)).T
    there = np.isfinite(X)
    n = np.maximum(there.sum(0), 1)
    X = np.where(there, X, 0)
    X = np.where(there, X - X.sum(0) / n, 0)
    spread = np.sqrt((X**2).sum(0) / n)
    varies = spread > 1e-12  # of the declared range: below is rounding
    return _Numbers(np.where(varies, X / np.where(varies, spread, 1), 0), there.astype(float))


def _categories(frame: pd.DataFrame, columns: Sequence[Column]) -> _Categories:
    """Row by row which categories it has; a cell that is none of them is one more category."""
    n, widths = len(frame), [len(column.categories) + 1 for column in columns]
    starts = np.cumsum([0, *widths])
    found = [starts[i] + codes(frame, column) % widths[i] for i, column in enumerate(columns)]
    at = np.concatenate(found) if found else np.zeros(0, int)
    rows = np.tile(np.arange(n), len(columns))
    O = sparse.csr_array((np.ones(len(at)), (rows, at)), shape=(n, starts[-1]))
    owner = np.repeat(np.arange(len(columns)), widths)
    of = sparse.csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(columns)))
    return _Categories(O, of)


def _pearson(x: _Numbers) -> Float[np.ndarray, "p p"]:
    """r over the rows that have both numbers."""
    X, there = x
    n = np.maximum(there.T @ there, 1)
    sums, squares = X.T @ there, (X**2).T @ there  # of the row's number, over the rows that have the column's too
    covariance = X.T @ X - sums * sums.T / n
    variance = squares - sums**2 / n
    return np.clip(_ratio(covariance, np.sqrt(np.maximum(variance, 0) * np.maximum(variance.T, 0))), -1, 1)


def _cramer(o: _Categories) -> Float[np.ndarray, "q q"]:
    """V, from φ² = Σ n_ab² / (n_a n_b) - 1 over the categories a, b of a pair of columns."""
    n, rows, k = o.O.shape[0], np.maximum(o.rows, 1), o.present
    joint = (o.O.T @ o.O).tocoo()
    shares = sparse.csr_array(
        (joint.data**2 / (rows[joint.row] * rows[joint.col]), (joint.row, joint.col)), joint.shape
    )
    phi2 = (o.of.T @ shares @ o.of).toarray() - 1
    phi2 = np.maximum(phi2 - np.outer(k - 1, k - 1) / max(n - 1, 1), 0)
    free = k - 1 - (k - 1) ** 2 / max(n - 1, 1)
    return np.clip(np.sqrt(_ratio(phi2, np.minimum.outer(free, free))), 0, 1)


def _correlation_ratio(o: _Categories, x: _Numbers) -> Float[np.ndarray, "q p"]:
    """η, from η² = the share of a number's variance that lies between categories, over the rows that have it."""
    sums, counts = o.O.T @ x.X, o.O.T @ x.there
    between = o.of.T @ (sums**2 / np.maximum(counts, 1))  # the numbers are centred
    total = np.sum(x.X**2, 0)
    n, k = x.there.sum(0), o.of.T @ (counts > 0).astype(float)
    within = _ratio((total - between) * (n - 1), (n - k) * total, undefined=1.0)
    return np.sqrt(np.clip(1 - within, 0, 1))


def _ratio(a: np.ndarray, b: np.ndarray, undefined: float = 0.0) -> np.ndarray:
    """a / b, where b is more than rounding."""
    fine = b > 1e-12
    return np.where(fine, a / np.where(fine, b, 1), undefined)
