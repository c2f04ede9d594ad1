"""The audit as two pictures: the scores of both arms, and how well any threshold on them tells the arms apart."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.special import ndtr, ndtri

from limbeck.audit.runs import full_batch
from limbeck.audit.verdict import CanaryAudit

PRESENT, ABSENT, CLAIM = "#c8552d", "#2f6f9f", "#444444"


def write_plots(audit: CanaryAudit, folder: Path) -> list[Path]:
    """`scores.png` and `roc.png`."""
    return [_save(_scores, audit, folder / "scores.png"), _save(_roc, audit, folder / "roc.png")]


def roc(present: Float[np.ndarray, " n"], absent: Float[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates of "at least t" at every score t, from the strictest t to the laxest."""
    t = np.unique(np.concatenate([present, absent]))[::-1]
    fpr, tpr = (1 - np.searchsorted(np.sort(s), t) / len(s) for s in (absent, present))
    return fpr, tpr


def _scores(audit: CanaryAudit, ax: Axes) -> None:
    present, absent = (arm.shift for arm in audit.scores)
    # A broken mechanism may throw a few scores far away: they are counted in the last bars.
    low, high = np.quantile(np.concatenate([present, absent]), [0.001, 0.999])
    margin = 0.15 * (high - low) + 1e-9
    bins = np.linspace(low - margin, high + margin, 61).tolist()
    for arm, colour, name in ((present, PRESENT, "canary present"), (absent, ABSENT, "canary absent")):
        held = np.clip(arm, bins[0], bins[-1])
        ax.hist(held, bins, density=True, histtype="stepfilled", alpha=0.35, color=colour, label=name)
        ax.axvline(arm.mean(), color=colour, linewidth=1.5)
    if full_batch(audit.plan):
        x = np.linspace(bins[0], bins[-1], 400)
        centre = 0.0 if audit.plan.relation == "zero-out" else -audit.claimed_shift / 2
        for mean in (centre, centre + audit.claimed_shift):
            ax.plot(x, np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi), color=CLAIM, linewidth=1, linestyle=":")
        ax.plot([], [], color=CLAIM, linestyle=":", linewidth=1, label="as claimed")
    ax.set_xlabel("score: answers along the canary's direction, in units of the claimed noise")
    ax.set_ylabel("density of runs")
    ax.set_title(f"{audit.found.runs} runs an arm, claim epsilon {audit.claim:.3g} at delta {audit.delta:g}")
    ax.legend(frameon=False)


def _roc(audit: CanaryAudit, ax: Axes) -> None:
    present, absent = (arm.likelihood for arm in audit.scores)
    least = 10 / len(absent)  # fewer than ten runs say nothing of a rate
    fpr, tpr = roc(present, absent)
    ax.step(fpr, tpr, where="post", color=PRESENT, label="measured")
    x = np.geomspace(least, 1, 400)
    above = np.exp(audit.claim) * x + audit.delta
    mirror = 1 - np.exp(-audit.claim) * (1 - audit.delta - x)
    ax.plot(x, np.minimum(np.minimum(above, mirror), 1), color=CLAIM, label="most that the claim allows")
    if full_batch(audit.plan):
        ax.plot(x, ndtr(ndtri(x) + audit.claimed_shift), color=CLAIM, linestyle=":", label="the plan's Gaussian curve")
    ax.plot(x, x, color="#bbbbbb", linewidth=1, label="blind guessing")
    ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.2))
    ax.set_xlabel("false positive rate (canary absent)")
    ax.set_ylabel("true positive rate (canary present)")
    ax.set_title("ROC of the likelihood ratio, from ten runs up")
    ax.legend(frameon=False, loc="lower right")


def _save(draw, audit: CanaryAudit, path: Path) -> Path:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    draw(audit, ax)
    figure.savefig(path, dpi=130)
    return path
