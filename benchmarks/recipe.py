"""How the default recipe was chosen: on a split of Fashion-MNIST's training set alone, one change at a time.

    python benchmarks/recipe.py --data-dir DATA [--quick] [--json benchmarks/results/recipe.json]

The first 50,000 of the 60,000 training images are the private records; the other 10,000 are what is scored on. The
test split is not opened. A row has the default recipe with one thing changed; each is one run of fresh noise, in which
two equal runs differ by about 0.2 points (the first rows show it). The teacher's own accuracy stands beside that of the
sets poured from it. A row that is in the JSON file is not run again.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts, write

from limbeck.data import entry, load
from limbeck.distill import Decant, fit_signal
from limbeck.evaluate import krr_fit, krr_predict
from limbeck.features import FeatureMap, Whitened, features_of, named
from limbeck.measure import Records

TRAIN = 50_000
DELTA = 1e-5
RESULTS = Path(__file__).parent / "results" / "recipe.json"


@dataclass(frozen=True)
class Change:
    """What a row changes: settings of the teacher, of the fit, or that the features are whitened."""

    teacher: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    whitened: bool = True


SAME = Change()
TEACHERS = {
    "the default recipe": SAME,
    "the default recipe, again": SAME,
    "features as they are, not whitened": Change(whitened=False),
    "quadratic loss": Change({"loss": "quadratic"}),
    "half the noise in the logits": Change({"logit_noise": 0.45}),
    "twice the noise in the logits": Change({"logit_noise": 1.8}),
    "twice the steps": Change({"steps": "double"}),
    "no momentum": Change({"momentum": 0.0}),
    "clip at 0.5": Change({"clip_norm": 0.5}),
    "projected to 1,000 dimensions": Change({"project": 1000}),
    "Poisson batches of 5,000": Change({"batch": 5000}),
}
FITS = {
    "the default fit": SAME,
    "towards the weights alone": Change(fit={"nearness": 1e6}),
    "towards the predictions alone": Change(fit={"nearness": 0.0}),
    "predictions not softened": Change(fit={"temperature": 1.0}),
    "pixels not held in the range": Change(fit={"valid_range": False}),
    "smoothness 0.1": Change(fit={"smoothness": 0.1}),
    "smoothness 1": Change(fit={"smoothness": 1.0}),
}


class Split:
    """Records and validation images of the training set, with features by whether they are whitened."""

    def __init__(self, data_dir: Path | None):
        self.schema = entry("fashion_mnist").schema
        images = load("fashion_mnist", "train", data_dir)
        x, y = images.x.reveal(), images.y.reveal()  # a public dataset
        self.records = Records(self.schema, x[:TRAIN], y[:TRAIN])
        self.x, self.c = self.schema.encode(x[TRAIN:], y[TRAIN:])

    def features(self, whiten: bool) -> FeatureMap:
        base = named("scattering", self.schema.shape)
        assert isinstance(base, FeatureMap)
        return Whitened.of(base) if whiten else base

    def accuracy(self, predicted: np.ndarray) -> float:
        return 100 * float(np.mean(predicted.argmax(1) == self.c))


def teacher(split: Split, epsilon: float, change: Change) -> tuple[Decant, dict]:
    """A teacher by the changed recipe, and its row."""
    settings = dict(change.teacher)
    if settings.get("steps") == "double":
        settings["steps"] = 2 * Decant(split.schema, epsilon=epsilon, delta=DELTA).steps_for(TRAIN)
    model = Decant(split.schema, epsilon=epsilon, delta=DELTA, features=split.features(change.whitened), **settings)
    begun = time.perf_counter()
    model.measure(split.records)
    seconds = time.perf_counter() - begun
    score = split.accuracy(features_of(model.resolved_features(), split.x) @ model.signal_.W)
    return model, {"teacher": score, "steps": model.signal_.recipe["steps"], "seconds": seconds}


def fitted(split: Split, model: Decant, per_class: int, change: Change) -> dict:
    """The accuracy of a set poured from a teacher by the changed fit."""
    features = model.resolved_features()
    begun = time.perf_counter()
    release = fit_signal(model.signal_, per_class, features=features, init_seed=0, **change.fit)
    seconds = time.perf_counter() - begun
    alpha = krr_fit(features, release.encoded, release.soft, release.recipe["ridge"])
    score = split.accuracy(krr_predict(features, release.encoded, alpha, split.x))
    return {"krr": score, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--quick", action="store_true", help="the default recipe alone, epsilon 1")
    parser.add_argument("--json", type=Path, default=RESULTS)
    o = parser.parse_args()
    rows = json.loads(o.json.read_text())["rows"] if o.json.exists() else {}
    split = Split(o.data_dir)

    def add(key: str, row: dict) -> None:
        rows[key] = row | {"date": facts()["date"]}
        print(key, {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        write(o.json, {"rows": rows})

    for epsilon in (1.0,) if o.quick else (1.0, 10.0):
        for name, change in list(TEACHERS.items())[: 1 if o.quick else None]:
            if (key := f"teacher, epsilon {epsilon:g}: {name}") not in rows:
                add(key, teacher(split, epsilon, change)[1])
        wanted = [
            (f"fit, {per_class}/class, epsilon {epsilon:g}: {name}", per_class, change)
            for per_class in (1, 10)
            for name, change in list(FITS.items())[: 1 if o.quick else None]
        ]
        missing = [case for case in wanted if case[0] not in rows]
        if missing:
            model, _ = teacher(split, epsilon, SAME)  # one for all fits, so that they can be compared
            for key, per_class, change in missing:
                add(key, fitted(split, model, per_class, change))


if __name__ == "__main__":
    main()
