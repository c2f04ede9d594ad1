"""What a set is worth: scores of a distilled set, and of the real sets that it is held against."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from pydantic import BaseModel, ConfigDict, computed_field

from limbeck.data.encoding import centred_onehot
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress, accuracy, part_of
from limbeck.evaluate.krr import krr_fit, krr_full, krr_predict
from limbeck.evaluate.training import network_accuracies, passes, training_steps
from limbeck.evaluate.variation import TrainOn, lessons, shown_for
from limbeck.features import FeatureMap, Kernel

FULL_STEPS = 2000  # at most, of networks on a whole training set
FULL_BATCH = 64


class Scores(BaseModel):
    """Accuracies of models trained on one set, on real test records.

    They are computed from the test records without noise: private if those are, whatever the set.

    - `records`: how many records the models were trained on.
    - `available`: how many there were, if a random subset had to stand for them.
    - `test_records`: how many they were scored on, null records left out.
    - `features`, `ridge`: what the kernel ridge regression used.
    - `krr`: its accuracy.
    - `networks`: accuracies of networks, one a seed, by their names; empty if none was trained.
    - `train_on`: what the networks were shown of the set.
    """

    model_config = ConfigDict(frozen=True)

    records: int
    available: int
    test_records: int
    features: dict[str, Any]
    ridge: float
    krr: float
    networks: dict[str, tuple[float, ...]] = {}
    train_on: TrainOn = "hard"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def network_mean(self) -> dict[str, float]:
        """Mean over the seeds, by network."""
        return {name: statistics.fmean(found) for name, found in self.networks.items()}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def network_sd(self) -> dict[str, float | None]:
        """Sample standard deviation over the seeds, by network; None below two."""
        return {name: statistics.stdev(found) if len(found) > 1 else None for name, found in self.networks.items()}


def evaluate_support(
    x_s: Float[np.ndarray, "m H W C"],
    y_s: Float[np.ndarray, "m classes"],
    features: FeatureMap | Kernel,
    ridge: float,
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    networks: Sequence[str] = ("convnet",),
    seeds: int = 3,
    train_on: TrainOn = "hard",
    steps: int | None = None,
    augment: bool = False,
    progress: Progress | None = None,
) -> Scores:
    """Kernel ridge regression and networks trained on a support set, scored on test records.

    **Arguments:**

    - `x_s`, `y_s`: encoded images and centred labels.
    - `features`, `ridge`: of the regression that the set was distilled for.
    - `x_test`, `c_test`: encoded test images and class indices; null records (-1) do not count.
    - `networks`: names from `limbeck.networks.NETWORKS`; none are trained if it is empty.
    - `train_on`: what networks are shown; the images with their class ("hard") or whole label ("soft"), or `varied`.
    - `seeds`, `steps`, `augment`: of the networks, as in `train_network`.
    - `progress`: called with (done, total), about proportional to time.
    """
    x_test, c_test = x_test[c_test >= 0], c_test[c_test >= 0]
    number, pace = shown_for(train_on, len(x_s))
    pace = pace if steps is None else pace._replace(steps=steps)
    each = passes(number, len(x_test), seeds, pace.steps, pace.batch)
    total = len(x_test) + len(networks) * each
    alpha = krr_fit(features, x_s, y_s, ridge)
    f = krr_predict(features, x_s, alpha, x_test, progress=part_of(progress, 0, len(x_test), total))
    krr = accuracy(f.argmax(1), c_test)
    shown, told, labels = lessons(train_on, x_s, y_s, features, ridge) if networks else (x_s, y_s, "hard")
    found = {
        name: network_accuracies(
            name,
            shown,
            told,
            x_test,
            c_test,
            seeds=seeds,
            labels=labels,
            **pace._asdict(),
            augment=augment,
            progress=part_of(progress, len(x_test) + i * each, each, total),
        )
        for i, name in enumerate(networks)
    }
    return Scores(
        records=len(x_s),
        available=len(x_s),
        test_records=len(x_test),
        features=features.config(),
        ridge=ridge,
        krr=krr,
        networks=found,
        train_on=train_on,
    )


def random_subset(c: Int[np.ndarray, " n"], per_class: int, *, seed: int = 0) -> Int[np.ndarray, " m"]:
    """Indices of `per_class` random records of every class, or all of a class that has fewer."""
    if per_class < 1:
        raise RequestError(f"per_class must be 1 or more; {per_class} was given")
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(c == one) for one in np.unique(c[c >= 0])]
    if not members:
        raise RequestError("there is no record with a declared class to choose from")
    return np.concatenate([rng.permutation(of_class)[:per_class] for of_class in members])


def random_subset_scores(
    x: Float[np.ndarray, "N H W C"],
    c: Int[np.ndarray, " N"],
    per_class: int,
    classes: int,
    features: FeatureMap | Kernel,
    ridge: float,
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    subset_seed: int = 0,
    networks: Sequence[str] = ("convnet",),
    seeds: int = 3,
    train_on: TrainOn = "hard",
    steps: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Scores of a balanced random subset of real records: what sharing as many of them would give.

    `subset_seed` is public: it chooses the records.
    """
    chosen = random_subset(c, per_class, seed=subset_seed)
    scores = evaluate_support(
        x[chosen],
        centred_onehot(c[chosen], classes),
        features,
        ridge,
        x_test,
        c_test,
        networks=networks,
        seeds=seeds,
        train_on=train_on,
        steps=steps,
        progress=progress,
    )
    return scores.model_copy(update={"available": int((c >= 0).sum())})


def full_set_scores(
    x: Float[np.ndarray, "N H W C"],
    c: Int[np.ndarray, " N"],
    classes: int,
    features: FeatureMap | Kernel,
    ridge: float,
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    subset_seed: int = 0,
    progress: Progress | None = None,
) -> Scores:
    """Scores of ridge regression on the whole training set; of a random part of it for an infinite kernel.

    `available` says how many records there were.
    """
    x_test, c_test = x_test[c_test >= 0], c_test[c_test >= 0]
    total = len(x) + len(x_test)
    full = krr_full(features, x, c, classes, ridge, seed=subset_seed, progress=part_of(progress, 0, len(x), total))
    f = full.regression.predict(x_test, progress=part_of(progress, len(x), len(x_test), total))
    return Scores(
        records=full.records,
        available=full.available,
        test_records=len(x_test),
        features=features.config(),
        ridge=ridge,
        krr=accuracy(f.argmax(1), c_test),
    )


def full_network_accuracies(
    name: str,
    x: Float[np.ndarray, "N H W C"],
    c: Int[np.ndarray, " N"],
    classes: int,
    x_test: Float[np.ndarray, "n H W C"],
    c_test: Int[np.ndarray, " n"],
    *,
    seeds: int = 3,
    progress: Progress | None = None,
) -> tuple[float, ...]:
    """Accuracies of a network trained on the whole training set: what the records themselves would give."""
    x, c = x[c >= 0], c[c >= 0]
    x_test, c_test = x_test[c_test >= 0], c_test[c_test >= 0]
    steps = full_steps(len(x))
    y = centred_onehot(c, classes)
    return network_accuracies(name, x, y, x_test, c_test, seeds=seeds, steps=steps, batch=FULL_BATCH, progress=progress)


def full_steps(records: int) -> int:
    """As many steps as ten passes over the records take, within what a small set of them gets and a limit."""
    return min(FULL_STEPS, max(training_steps(records), 10 * records // FULL_BATCH))
