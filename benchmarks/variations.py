"""What networks learn from a release by what they are shown: its images, or variations of them of each kind.

    python benchmarks/variations.py --data-dir DATA [--dataset fashion_mnist] [--per-class 10] [--seeds 1]

One `PrivateDM` release at epsilon 1, on a split of the training set, the last 10,000 held out; the test split is not
opened. Variations are labelled by the release's own regression. A row that is in `benchmarks/results/variations.json`
is not run again, and its release was another one: begin with no file to have one release in all rows.
"""

import argparse
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from machine import facts
from transfer import Dataset

from limbeck.distill import fit_matched
from limbeck.evaluate import krr_fit, krr_predict, network_accuracies, variations, varied
from limbeck.evaluate.accuracy import accuracy, as_large_as_onehot
from limbeck.evaluate.training import Pace, training_steps
from limbeck.evaluate.variation import PACE, VARIATIONS
from limbeck.features import from_config

RESULTS = Path(__file__).parent / "results" / "variations.json"
HELD_OUT = 10_000
Shown = tuple[np.ndarray, np.ndarray]  # images and their labels
KINDS = ("patchworks", "patchworks, moved", "patchworks, recoloured", "dead leaves")  # the quarters of `variations`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="fashion_mnist")
    parser.add_argument("--per-class", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1, help="networks a row")
    o = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    data = Dataset(o.dataset, o.data_dir, HELD_OUT)
    release = fit_matched(data.measured(1.0, 0)[0].signal_, o.per_class)
    features, ridge = from_config(release.recipe["features"], data.schema.shape), release.recipe["ridge"]
    x, y = release.encoded, release.soft
    alpha = krr_fit(features, x, y, ridge)
    krr = accuracy(krr_predict(features, x, alpha, data.test[0]).argmax(1), data.test[1])

    @cache
    def quarters() -> list[np.ndarray]:
        return np.split(variations(x, y, 4 * VARIATIONS), 4)

    @cache
    def of_all_kinds() -> Shown:
        return varied(x, y, features, ridge)

    def of_a_kind(kind: int) -> Shown:
        made = quarters()[kind]
        return made, np.asarray(as_large_as_onehot(krr_predict(features, x, alpha, made).astype(np.float32)))

    def row(name: str, show: Callable[[], Shown], pace: Pace) -> None:
        if (key := f"{o.dataset} split, {o.per_class} a class: {name}") in rows:
            return
        shown = show()
        found = network_accuracies("convnet", *shown, *data.test, seeds=o.seeds, labels="soft", **pace._asdict())
        about = {"images": len(shown[0]), "seen": pace.steps * min(pace.batch, len(shown[0])), "krr": krr}
        rows[key] = {"convnet": list(found), "machine": facts()} | about
        print(key, found, about, flush=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")

    row("its images", lambda: (x, y), Pace(training_steps(len(x))))
    row("its images, as long as variations", lambda: (x, y), PACE)
    row("variations of all kinds", of_all_kinds, PACE)
    for i, kind in enumerate(KINDS):
        row(f"{kind} alone", partial(of_a_kind, i), PACE)
    row("fewer variations", lambda: varied(x, y, features, ridge, VARIATIONS // 8), PACE)
    row("a third of the steps", of_all_kinds, PACE._replace(steps=PACE.steps // 3))


if __name__ == "__main__":
    main()
