"""What limits networks that learn from a private release: its labels, or how many images there are and of what kind.

    python benchmarks/limits.py --data-dir DATA [--dataset fashion_mnist] [--seeds 1]

A ConvNet is trained by the fixed recipe of `limbeck evaluate` on images that a private teacher (`Decant`, epsilon 1)
has labelled: real ones, and samples of each class's Gaussian, of its exact mean and covariance. Neither set is private,
and nothing of them leaves: they bound what a release with such labels could be worth. On a split of the training set,
the last 10,000 held out; the test split is not opened. A row that is in `benchmarks/results/limits.json`
is not run again.
"""

import argparse
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from machine import facts
from utility import DELTA

from limbeck.data import entry, load
from limbeck.distill import Decant
from limbeck.evaluate import network_accuracies
from limbeck.evaluate.accuracy import as_large_as_onehot
from limbeck.features import features_of
from limbeck.measure import Records

RESULTS = Path(__file__).parent / "results" / "limits.json"
HELD_OUT = 10_000
SIZES = {"real": (10, 50, 400), "Gaussian": (50, 400)}  # images a class


def gaussian(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n samples of the Gaussian with the mean and covariance of these images, held within the range."""
    flat = x.reshape(len(x), -1)
    variances, directions = np.linalg.eigh(np.cov(flat.T))
    draws = rng.normal(size=(n, flat.shape[1])) * np.sqrt(np.maximum(variances, 0))
    return np.clip(flat.mean(axis=0) + draws @ directions.T, -1, 1).reshape(n, *x.shape[1:]).astype(np.float32)


def images(kind: str, x: np.ndarray, c: np.ndarray, per_class: int) -> np.ndarray:
    """As many of each class."""
    rng = np.random.default_rng(0)
    chosen = (x[c == k] for k in range(c.max() + 1))
    return np.concatenate(
        [of[rng.permutation(len(of))[:per_class]] if kind == "real" else gaussian(of, per_class, rng) for of in chosen]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="fashion_mnist")
    parser.add_argument("--seeds", type=int, default=1, help="networks a row")
    o = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    train = load(o.dataset, "train", o.data_dir)
    schema, X, y = entry(o.dataset).schema, train.x.reveal(), train.y.reveal()  # a public dataset
    (x, c), (x_test, c_test) = schema.encode(X[:-HELD_OUT], y[:-HELD_OUT]), schema.encode(X[-HELD_OUT:], y[-HELD_OUT:])
    model = Decant(schema, epsilon=1.0, delta=DELTA)
    W = model.measure(Records(schema, X[:-HELD_OUT], y[:-HELD_OUT])).W
    features = model.resolved_features()

    def labels(of: np.ndarray) -> np.ndarray:
        return np.asarray(as_large_as_onehot(jnp.asarray(features_of(features, of) @ W)))

    teacher = float((labels(x_test).argmax(1) == c_test).mean())
    for kind, sizes in SIZES.items():
        for per_class in sizes:
            if (key := f"{o.dataset} split, {kind}, {per_class} a class") in rows:
                continue
            shown = images(kind, x, c, per_class)
            found = network_accuracies("convnet", shown, labels(shown), x_test, c_test, seeds=o.seeds, labels="soft")
            rows[key] = {"convnet": list(found), "teacher": teacher, "machine": facts()}
            print(key, found, f"teacher {teacher:.3f}", flush=True)
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
