"""What networks learn from a release by what they are shown: its images, variations of them, or real ones.

    python benchmarks/variations.py --data-dir DATA [--dataset fashion_mnist] [--per-class 10] [--seeds 1]
        [--keep FOLDER] [--kinds]

One `PrivateDM` release at epsilon 1, on a split of the training set, the last 10,000 held out; the test split is not
opened. All but the release's own images are labelled by its own regression. Rows with real images are not private:
they bound what better variations could teach. With `--kinds`, each kind of variation alone too. A row that is in
`benchmarks/results/variations.json` is not run again; with `--keep` all rows are of one release, which is kept there.
"""

import argparse
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from machine import facts
from transfer import Dataset

from limbeck.data.encoding import centred_onehot
from limbeck.distill import fit_matched
from limbeck.evaluate import krr_fit, krr_predict, network_accuracies, random_subset, variations
from limbeck.evaluate.accuracy import accuracy, as_large_as_onehot
from limbeck.evaluate.training import Pace, training_steps
from limbeck.evaluate.variation import PACE, VARIATIONS
from limbeck.features import from_config
from limbeck.release import Release, load

RESULTS = Path(__file__).parent / "results" / "variations.json"
HELD_OUT = 10_000
KINDS = ("patchworks", "patchworks, moved", "patchworks, recoloured", "dead leaves")  # the quarters of `variations`


def one_release(data: Dataset, per_class: int, kept: Path | None) -> Release:
    if kept is not None and kept.exists():
        return load(kept)
    release = fit_matched(data.measured(1.0, 0)[0].signal_, per_class)
    if kept is not None:
        release.save(kept)
    return release


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="fashion_mnist")
    parser.add_argument("--per-class", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1, help="networks a row")
    parser.add_argument("--keep", type=Path, help="where the release is kept, and found again")
    parser.add_argument("--kinds", action="store_true", help="each kind of variation alone too")
    o = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    data = Dataset(o.dataset, o.data_dir, HELD_OUT)
    release = one_release(data, o.per_class, o.keep)
    features, ridge = from_config(release.recipe["features"], data.schema.shape), release.recipe["ridge"]
    x, y = release.encoded, release.soft
    alpha = krr_fit(features, x, y, ridge)

    def labels(of: np.ndarray) -> np.ndarray:
        return np.asarray(as_large_as_onehot(krr_predict(features, x, alpha, of).astype(np.float32)))

    krr = accuracy(labels(data.test[0]).argmax(1), data.test[1])
    real, c = data.train

    @cache
    def quarters() -> list[np.ndarray]:
        return np.split(variations(x, y, 4 * VARIATIONS), 4)

    def of_real() -> np.ndarray:
        chosen = random_subset(c, o.per_class)
        return variations(real[chosen], centred_onehot(c[chosen], y.shape[1]), VARIATIONS)

    def row(name: str, show: Callable[[], np.ndarray], pace: Pace = PACE) -> None:
        if (key := f"{o.dataset} split, {o.per_class} a class: {name}") in rows:
            return
        shown = show()
        told = y if shown is x else labels(shown)
        found = network_accuracies("convnet", shown, told, *data.test, seeds=o.seeds, labels="soft", **pace._asdict())
        about = {"images": len(shown), "seen": pace.steps * min(pace.batch, len(shown)), "krr": krr}
        rows[key] = {"convnet": list(found), "machine": facts()} | about
        print(key, found, about, flush=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")

    row("variations", lambda: variations(x, y, VARIATIONS))
    row("a third as many variations", lambda: variations(x, y, VARIATIONS // 3))
    row("real images instead (not private)", lambda: real[: VARIATIONS // 3])
    row("variations of as many real images (not private)", of_real)
    row("its images", lambda: x, Pace(training_steps(len(x))))
    row("its images, as long as variations", lambda: x)
    row("twice the steps", lambda: variations(x, y, VARIATIONS), PACE._replace(steps=2 * PACE.steps))
    if o.kinds:
        for i, kind in enumerate(KINDS):
            row(f"{kind} alone", partial(lambda i: quarters()[i], i))


if __name__ == "__main__":
    main()
