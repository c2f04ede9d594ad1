"""Fidelity as three pictures: marginals, both correlation matrices side by side, class balance.

They show real rows as they are: private, unless those are public.
"""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from limbeck.evaluate.columns import BINS, Column
from limbeck.evaluate.fidelity import Fidelity, correlations, histogram

REAL, RELEASE = "#2f6f9f", "#c8552d"
ACROSS = 4  # marginals side by side
MARGINALS = 24  # at most, the least alike
CATEGORIES = 12  # bars at most, the most frequent in real rows; what is left is one more
NAMED = 40  # columns whose names a matrix has room for


def write_fidelity_plots(
    found: Fidelity,
    real: pd.DataFrame,
    release: pd.DataFrame,
    columns: Sequence[Column],
    target: Column,
    folder: Path,
) -> list[Path]:
    """`marginals.png`, `correlations.png` and `classes.png` in a folder that is there."""
    figures = {
        "marginals.png": _marginals(found, real, release, columns),
        "correlations.png": _correlations(found, real, release, (*columns, target)),
        "classes.png": _classes(found, real, release, target),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a script that the font lacks is drawn as boxes
        for name, figure in figures.items():
            FigureCanvasAgg(figure)
            figure.savefig(folder / name, dpi=130)
    return [folder / name for name in figures]


def _marginals(found: Fidelity, real: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column]) -> Figure:
    shown = sorted(columns, key=lambda column: found.marginals[column.name])[:MARGINALS]
    down = -(-len(shown) // ACROSS)
    figure = Figure(figsize=(4 * ACROSS, 2.6 * down + 0.6), layout="constrained")
    for place, column in enumerate(shown, 1):
        ax = figure.add_subplot(down, ACROSS, place)
        _bars(ax, real, release, column)
        ax.set_title(f"{_short(column.name, 24)}: {found.marginals[column.name]:.2f}", fontsize=9, parse_math=False)
    some = "" if len(shown) == len(columns) else f", the {len(shown)} least alike of {len(columns)}"
    figure.suptitle(f"marginals, {found.marginal_mean:.3f} alike on average{some}")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _bars(ax: Axes, real: pd.DataFrame, release: pd.DataFrame, column: Column) -> None:
    """Shares of both in the column's public cells, side by side."""
    shares, names = _cells(histogram(real, column), histogram(release, column), column)
    at = np.arange(len(names))
    for offset, share, colour, label in ((-0.2, shares[0], REAL, "real"), (0.2, shares[1], RELEASE, "release")):
        ax.bar(at + offset, share, 0.4, color=colour, label=label)
    few = at if column.kind == "categorical" else np.array([0, (len(at) - 1) // 2, len(at) - 1])
    ax.set_xticks(few, [names[i] for i in few], parse_math=False)
    ax.tick_params(labelsize=7)
    if column.kind == "categorical" and max(map(len, names)) * len(names) > 30:
        ax.tick_params(axis="x", rotation=60)
    ax.spines[["top", "right"]].set_visible(False)


def _cells(real: np.ndarray, release: np.ndarray, column: Column) -> tuple[np.ndarray, list[str]]:
    """Shares and names of what is drawn: bins in order, categories by their share; "none" only where there is some."""
    both = np.array([real, release])
    if column.kind == "numerical":
        edges = np.linspace(column.low, column.high, BINS + 1)
        names = [f"{(low + high) / 2:.3g}" for low, high in pairwise(edges)]
    else:
        names = [_short(str(category), 14) for category in column.categories]
        order = np.argsort(-real[:-1], kind="stable")
        kept, left = order[:CATEGORIES], order[CATEGORIES:]
        both = np.column_stack([both[:, kept], both[:, left].sum(1), both[:, -1]])
        names = [names[i] for i in kept] + [f"{len(left)} more"]
        if not len(left):
            both, names = np.delete(both, len(kept), axis=1), names[:-1]
    if both[:, -1].any():
        return both, [*names, "none"]
    return both[:, :-1], names


def _correlations(found: Fidelity, real: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column]) -> Figure:
    size = float(np.clip(0.25 * len(columns) + 2, 4, 10))
    figure = Figure(figsize=(2 * size + 1, size + 1), layout="constrained")
    axes = figure.subplots(1, 2)
    for ax, frame, name in zip(axes, (real, release), ("real", "release"), strict=True):
        image = ax.imshow(correlations(frame, columns), cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set_title(f"{name}, {len(frame)} rows")
        if len(columns) <= NAMED:
            names = [_short(column.name, 18) for column in columns]
            ax.set_xticks(range(len(columns)), names, rotation=90, fontsize=7, parse_math=False)
            ax.set_yticks(range(len(columns)), names, fontsize=7, parse_math=False)
    figure.colorbar(image, ax=axes, shrink=0.7)
    figure.suptitle(f"Pearson's r, Cramer's V and correlation ratios, {found.correlations:.3f} alike")
    return figure


def _classes(found: Fidelity, real: pd.DataFrame, release: pd.DataFrame, target: Column) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.add_subplot()
    _bars(ax, real, release, target)
    ax.set_ylabel("share of rows")
    ax.set_title(f"classes, {found.class_balance:.3f} alike")
    ax.legend(frameon=False)
    return figure


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
