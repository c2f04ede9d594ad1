"""What a table is worth: twelve classifiers trained on it and tested on real rows, beside what real rows would give."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, computed_field

from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress, part_of
from limbeck.evaluate.classifiers import CLASSIFIERS
from limbeck.evaluate.trial import Rows, Task, Trial, alone, attempt, check_rows, constant_metrics, metric_names

Protocol = Literal["fixed", "paper"]

SEEDS = 3


class ClassifierScores(BaseModel):
    """What one classifier scored.

    - `metrics`: by name, one value a seed.
    - `constant`: for how many seeds it predicted one class for every row, having been unable to learn.
    - `seconds`: that fitting and predicting took, over all seeds and settings.
    """

    model_config = ConfigDict(frozen=True)

    metrics: dict[str, tuple[float, ...]]
    constant: int = 0
    seconds: float = 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mean(self) -> dict[str, float]:
        """Mean over the seeds, by metric."""
        return {metric: statistics.fmean(found) for metric, found in self.metrics.items()}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sd(self) -> dict[str, float | None]:
        """Sample standard deviation over the seeds, by metric; None below two."""
        return {metric: _sd(found) for metric, found in self.metrics.items()}


class TableScores(BaseModel):
    """Scores of classifiers trained on one table, on real test rows.

    They are computed from the test rows without noise: private if those are, whatever the table.

    - `records`: how many rows the classifiers were trained on.
    - `available`: how many there were to choose from.
    - `test_records`: how many they were scored on.
    - `protocol`: "fixed": the settings of table 16, `roc` and `prc` from scores. "paper": the best of the papers'
      settings on the test rows themselves, each metric for itself, `roc` and `prc` from predicted classes.
    - `classifiers`: by name.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    available: int
    test_records: int
    classes: int
    protocol: Protocol
    classifiers: dict[str, ClassifierScores]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def optimistic(self) -> bool:
        """Whether settings were chosen on the test rows, so that the scores are better than a person would get."""
        return self.protocol == "paper"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mean(self) -> dict[str, float]:
        """Mean over classifiers and seeds, by metric."""
        return {metric: statistics.fmean(found) for metric, found in self._each_seed().items()}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sd(self) -> dict[str, float | None]:
        """Sample standard deviation, over the seeds, of the mean over classifiers; None below two."""
        return {metric: _sd(found) for metric, found in self._each_seed().items()}

    def _each_seed(self) -> dict[str, list[float]]:
        rows = [row.metrics for row in self.classifiers.values()]
        return {
            metric: [statistics.fmean(values) for values in zip(*(row[metric] for row in rows), strict=True)]
            for metric in metric_names(self.classes)
        }


def _sd(found: Sequence[float]) -> float | None:
    return statistics.stdev(found) if len(found) > 1 else None


def evaluate_table(
    train: Rows | Sequence[Rows],
    test: Rows,
    classes: int,
    *,
    protocol: Protocol = "fixed",
    seeds: int = SEEDS,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    positive: int = 1,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> TableScores:
    """Classifiers trained on a table and scored on real rows, side by side.

    **Arguments:**

    - `train`: encoded rows; or one table a seed, say releases of independent runs.
    - `test`: encoded real rows.
    - `classes`: how many are declared.
    - `protocol`: "fixed", or "paper" for what published figures can be held against. See `TableScores`.
    - `seeds`: how often each classifier is trained, from seeds 0, 1, ...; those without randomness once a table.
    - `positive`: the class that is looked for, of two.
    - `jobs`: classifiers at a time; one a core unless told otherwise. It changes no score.
    - `progress`: called with (fits done, fits).
    """
    tables = [train] * seeds if isinstance(train, Rows) else list(train)
    _check(tables, test, classes, classifiers, protocol, positive)
    tasks = list(_tasks(tables, classes, classifiers, protocol))
    found: dict[tuple[str, int], list[Trial]] = {}
    with alone():
        for done, (task, trial) in enumerate(_run(tasks, tables, test, classes, positive, jobs), 1):
            found.setdefault((task.name, task.seed), []).append(trial)
            if progress is not None:
                progress(done, len(tasks))
    records = round(statistics.fmean(len(table) for table in tables))
    return TableScores(
        records=records,
        available=records,
        test_records=len(test),
        classes=classes,
        protocol=protocol,
        classifiers={name: _gathered(name, found, tables, classes) for name in classifiers},
    )


def _tasks(tables: Sequence[Rows], classes: int, classifiers: Sequence[str], protocol: Protocol) -> Iterator[Task]:
    for name in classifiers:
        settings = CLASSIFIERS[name].settings(classes) if protocol == "paper" else (None,)
        for seed in range(len(tables)):
            if seed == _fitted_seed(name, seed, tables):
                yield from (Task(name, seed, setting, hard=protocol == "paper") for setting in settings)


def _fitted_seed(name: str, seed: int, tables: Sequence[Rows]) -> int:
    """The seed whose fit stands for this one: without randomness, the first with the same table."""
    if CLASSIFIERS[name].seeded:
        return seed
    return next(first for first, table in enumerate(tables) if table is tables[seed])


def _run(
    tasks: Sequence[Task], tables: Sequence[Rows], test: Rows, classes: int, positive: int, jobs: int | None
) -> Iterator[tuple[Task, Trial]]:
    from joblib import Parallel, cpu_count, delayed

    def one(task: Task) -> tuple[Task, Trial]:
        return task, attempt(task, tables[task.seed], test, classes, positive)

    # The slowest first, so that no core is left alone with one of them at the end.
    order = sorted(tasks, key=lambda task: -CLASSIFIERS[task.name].cost)
    # Threads: what takes long leaves the interpreter's lock, and processes have their own start and memory to pay for.
    jobs = min(cpu_count() if jobs is None else jobs, len(tasks))
    return Parallel(n_jobs=jobs, backend="threading", return_as="generator_unordered")(delayed(one)(t) for t in order)


def _gathered(
    name: str, found: dict[tuple[str, int], list[Trial]], tables: Sequence[Rows], classes: int
) -> ClassifierScores:
    """The best setting of each seed, metric by metric."""
    each = [found[name, _fitted_seed(name, seed, tables)] for seed in range(len(tables))]
    return ClassifierScores(
        metrics={
            metric: tuple(max(trial.metrics[metric] for trial in trials) for trials in each)
            for metric in metric_names(classes)
        },
        constant=sum(all(trial.constant for trial in trials) for trials in each),
        seconds=sum(trial.seconds for (of, _), trials in found.items() if of == name for trial in trials),
    )


def _check(
    tables: list[Rows], test: Rows, classes: int, classifiers: Sequence[str], protocol: str, positive: int
) -> None:
    if not classifiers or not set(classifiers) <= set(CLASSIFIERS):
        given = ", ".join(classifiers) or "none"
        raise RequestError(f"classifiers are {given}; some of {', '.join(CLASSIFIERS)} are expected")
    if protocol not in ("fixed", "paper"):
        raise RequestError(f"protocol is {protocol!r}; fixed or paper is expected")
    if positive not in (0, 1):
        raise RequestError(f"the positive class is {positive}; 0 or 1, its index among two, is expected")
    if not tables:
        raise RequestError("there is no table to train on; seeds must be 1 or more")
    for table in {id(table): table for table in tables}.values():
        check_rows(table, test, classes)


def random_rows(real: Rows, like: Int[np.ndarray, " m"], classes: int, *, seed: int) -> Rows:
    """Random real rows, as many of every class as `like` has, or all of a class that has fewer."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(like[like >= 0], minlength=classes)
    chosen = [rng.permutation(np.flatnonzero(real.y == one))[: counts[one]] for one in range(classes)]
    order = np.sort(np.concatenate(chosen))
    if not len(order):
        raise RequestError("the real rows have none of the classes that the release has; is it another table's?")
    return Rows(real.X[order], real.y[order])


def majority_scores(real: Rows, test: Rows, classes: int, *, positive: int = 1) -> TableScores:
    """What knowing no more than the most frequent class would score: chance for ROC, the class's share for PRC."""
    check_rows(real, test, classes)
    found = constant_metrics(real.y[real.y >= 0], test.y[test.y >= 0], classes, positive)
    row = ClassifierScores(metrics={metric: (value,) for metric, value in found.items()}, constant=1)
    return TableScores(
        records=len(real),
        available=len(real),
        test_records=len(test),
        classes=classes,
        protocol="fixed",
        classifiers={"majority class": row},
    )


def reference_scores(
    real: Rows,
    release_y: Int[np.ndarray, " m"],
    test: Rows,
    classes: int,
    *,
    seeds: int = SEEDS,
    positive: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, TableScores]:
    """The rows that a release is held against, by name.

    - "random real subset": as many real rows as the release has, class by class; others for every seed. Not where that
      is all of them.
    - "all real rows".
    - "majority class": of the real rows.

    **Arguments:**

    - `real`: encoded real training rows.
    - `release_y`: the release's classes.
    - `options`: of `evaluate_table`.
    """
    subsets = [random_rows(real, release_y, classes, seed=seed) for seed in range(seeds)]
    fewer = [subset for subset in subsets if len(subset) < len(real)]
    few, many = sum(map(len, fewer)), seeds * len(real)
    same: dict[str, Any] = {"positive": positive, **options}
    found = {}
    if fewer:
        chosen = evaluate_table(fewer, test, classes, progress=part_of(progress, 0, few, few + many), **same)
        found["random real subset"] = chosen.model_copy(update={"available": len(real)})
    whole = evaluate_table(
        real, test, classes, seeds=seeds, progress=part_of(progress, few, many, few + many), **same
    )  # fmt: skip
    return found | {
        "all real rows": whole,
        "majority class": majority_scores(real, test, classes, positive=positive),
    }
