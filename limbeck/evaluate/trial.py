"""One classifier, trained on one table and tested on real rows, whatever the table."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from limbeck.errors import RequestError
from limbeck.evaluate.classifiers import CLASSIFIERS, Setting

TWO = ("roc", "prc")
MORE = ("f1_macro", "f1_weighted")


@dataclass(frozen=True)
class Rows:
    """Encoded rows and class indices; -1 is a row of no class, which is left out."""

    X: Float[np.ndarray, "n d"]
    y: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        return int((self.y >= 0).sum())


class Task(NamedTuple):
    """One fit: a classifier by name, a setting (None for the fixed one), a seed, and whether only labels count."""

    name: str
    seed: int
    setting: Setting | None = None
    hard: bool = False


class Trial(NamedTuple):
    """What a classifier scored.

    - `metrics`: by name, those of `metric_names`.
    - `constant`: whether one class was predicted for every row, because the training rows have only one class or the
      classifier cannot be fitted to them.
    - `seconds`: that fitting and predicting took.
    """

    metrics: dict[str, float]
    constant: bool
    seconds: float


def metric_names(classes: int) -> tuple[str, ...]:
    """Areas under the ROC and the precision-recall curve for two classes, F1 for more."""
    return TWO if classes == 2 else MORE


def scores(
    classifier: str,
    X_train: Float[np.ndarray, "n d"],
    y_train: Int[np.ndarray, " n"],
    X_test: Float[np.ndarray, "t d"],
    y_test: Int[np.ndarray, " t"],
    classes: int,
    seed: int,
    *,
    positive: int = 1,
    setting: Setting | None = None,
    hard: bool = False,
) -> Trial:
    """Train one of the twelve classifiers and score it on real rows.

    Two classes: `roc` and `prc` (average precision) of the scores that the positive class is given. More: `f1_macro`,
    the plain mean over the classes that the test rows have, and `f1_weighted`, weighted by how often each occurs.

    **Arguments:**

    - `classifier`: a name from `CLASSIFIERS`.
    - `X_train`, `y_train`, `X_test`, `y_test`: encoded rows and class indices; rows of no class (-1) are left out.
    - `positive`: the class, of two, that is looked for.
    - `setting`: in place of the fixed one.
    - `hard`: give `roc` and `prc` predicted classes for scores, as the papers do.

    | training rows | prediction |
    | --- | --- |
    | of one class | that class, always |
    | without some of the classes | one of the others |
    | that the classifier cannot be fitted to, or gives no finite score | the most frequent class, always |

    Not to be called from several threads: `alone` says why, and `evaluate_table` runs classifiers side by side.
    """
    train, test = Rows(X_train, y_train), Rows(X_test, y_test)
    check_rows(train, test, classes)
    with alone():
        return attempt(Task(classifier, seed, setting, hard), train, test, classes, positive)


def attempt(task: Task, train: Rows, test: Rows, classes: int, positive: int) -> Trial:
    """What `scores` does, with checked rows and inside `alone`."""
    begun = time.perf_counter()
    X, y = train.X[train.y >= 0], train.y[train.y >= 0]
    X_test, y_test = test.X[test.y >= 0], test.y[test.y >= 0]
    seen, codes = np.unique(y, return_inverse=True)
    found = None
    if len(seen) > 1:
        model = CLASSIFIERS[task.name](task.seed, len(seen), task.setting)
        found = _predict(model, X, codes, X_test, score=classes == 2 and not task.hard)
    if found is None:
        metrics = constant_metrics(y, y_test, classes, positive)
    elif classes > 2:
        metrics = _f1(y_test, seen[found.astype(int)])
    else:  # both classes are seen, so a code is a class, and scores and labels both grow with class 1
        metrics = _areas(y_test, found if positive == 1 else -found, positive)
    return Trial(metrics, found is None, time.perf_counter() - begun)


def constant_metrics(
    y_train: Int[np.ndarray, " n"], y_test: Int[np.ndarray, " t"], classes: int, positive: int = 1
) -> dict[str, float]:
    """What predicting the training rows' most frequent class for every row would score."""
    if classes == 2:
        return _areas(y_test, np.zeros(len(y_test)), positive)
    return _f1(y_test, np.full(len(y_test), np.bincount(y_train).argmax()))


def check_rows(train: Rows, test: Rows, classes: int) -> None:
    """Checked before anything is fitted, so that what fails then is the classifier's own doing."""
    if classes < 2:
        raise RequestError(f"{classes} class was declared; a classifier needs two or more")
    for what, rows in (("training", train), ("test", test)):
        if len(rows.X) != len(rows.y):
            raise RequestError(f"{len(rows.X)} {what} rows with {len(rows.y)} classes; one class a row is expected")
        if not len(rows):
            raise RequestError(f"there is no {what} row with a declared class")
        if rows.y.max() >= classes:
            raise RequestError(f"a {what} row has a class index above {classes - 1}; {classes} classes were declared")
        if not np.isfinite(rows.X).all():
            raise RequestError(f"the {what} rows have values that are not finite; encode them first")
    if train.X.shape[1] != test.X.shape[1]:
        raise RequestError(
            f"the training rows have {train.X.shape[1]} columns and the test rows {test.X.shape[1]}; encode both alike"
        )
    if classes == 2 and len(np.unique(test.y[test.y >= 0])) < 2:
        raise RequestError("the test rows are all of one class; ROC and PRC need rows of both: take more test rows")


@contextmanager
def alone() -> Iterator[None]:
    """Classifiers one thread each, and silent: that one has not converged is for its scores to show.

    Both are the process's own: enter once, around all classifiers that run side by side. One thread, because others
    run beside it, and sums in another order would make scores depend on the number of cores.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _predict(model: Any, X: np.ndarray, codes: np.ndarray, X_test: np.ndarray, *, score: bool) -> np.ndarray | None:
    """Scores of code 1, or codes; None where the classifier has no answer.

    Tiny and odd tables break classifiers in many ways (too few rows for a covariance, no variance, a bag of one
    class), and each says so by a ValueError of its own, or by a number that is none.
    """
    try:
        model.fit(X, codes)
        if not score:
            return np.asarray(model.predict(X_test))
        has_shares = hasattr(model, "predict_proba")
        found = model.predict_proba(X_test)[:, 1] if has_shares else model.decision_function(X_test)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return np.asarray(found, np.float64) if np.isfinite(found).all() else None


def _areas(y: np.ndarray, score: np.ndarray, positive: int) -> dict[str, float]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    truth = y == positive
    return {"roc": float(roc_auc_score(truth, score)), "prc": float(average_precision_score(truth, score))}


def _f1(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import f1_score

    # A class that no test row has cannot be found, and would pull the mean down for every table alike.
    of: dict[str, Any] = {"labels": np.unique(y), "zero_division": 0.0}
    return {f"f1_{how}": float(f1_score(y, predicted, average=how, **of)) for how in ("macro", "weighted")}
