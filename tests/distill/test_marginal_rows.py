"""Noisy counts of columns that are cut alike lend to each other, as far as noise explains how they differ."""

import numpy as np
import pytest

from limbeck.distill.marginal_rows import lent
from limbeck.features import Cells, Marginals

NOISE = 30.0


def columns(number: int, bins: int = 8) -> Marginals:
    return Marginals(number, tuple(Cells(i, i + 1, bins) for i in range(number)))


def error(found, true) -> float:
    return float(np.mean((np.stack(found) - true) ** 2))


def noisy(true, seed=0):
    return list(true + NOISE * np.random.default_rng(seed).standard_normal(true.shape))


def counts(number, seed, bins=8, alike=False):
    """Of two classes, one three times as large."""
    rng = np.random.default_rng(seed)
    shapes = rng.dirichlet(np.ones(bins), (1 if alike else number, 2)).transpose(0, 2, 1)
    return np.broadcast_to(shapes, (number, bins, 2)) * [3000, 1000]


def test_columns_of_one_shape_come_to_share_it():
    true = counts(50, 1, alike=True)
    assert error(lent(columns(50), noisy(true), NOISE), true) < 0.1 * NOISE**2


def test_columns_that_differ_beyond_the_noise_stay_as_they_are():
    parts = noisy(counts(50, 2))
    moved = lent(columns(50), parts, NOISE)
    assert error(moved, np.stack(parts)) < 0.05 * NOISE**2


@pytest.mark.parametrize("seed", range(4))
def test_what_a_class_departs_by_is_judged_apart_from_where_all_rows_lie(seed):
    """Columns with shapes of their own, in which both classes lie alike: the classes' noise goes, the shapes stay."""
    shapes = counts(60, seed)[:, :, :1]
    true = np.concatenate([shapes, shapes / 3], axis=2)
    parts = noisy(true, seed)
    assert error(lent(columns(60), parts, NOISE), true) < 0.75 * error(parts, true)


def test_without_noise_nothing_moves():
    parts = list(counts(10, 3))
    assert np.allclose(lent(columns(10), parts, 0.0), parts)


def test_neither_few_columns_nor_those_that_are_cut_otherwise_lend():
    cells = Marginals(9, (*(Cells(i, i + 1, 8) for i in range(3)), *(Cells(3 + i, 4 + i, 10 + i) for i in range(6))))
    rng = np.random.default_rng(0)
    parts = [rng.normal(0, NOISE, (column.number, 2)) for column in cells.columns]
    assert all(np.array_equal(a, b) for a, b in zip(lent(cells, parts, NOISE), parts, strict=True))
