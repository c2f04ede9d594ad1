"""DP-KIP on real images under the honest protocol, against the published figures.

    python benchmarks/utility.py --data-dir DATA [--dataset fashion_mnist] [--features fc-ntk scattering]
        [--epsilon 1 10] [--per-class 1] [--epochs 10] [--settings preset default] [--convnet]

Each run goes from the raw file to a release, is verified, and is scored on the test split; its row is added to
`benchmarks/results/utility.json` at once, and a row that is there already is not run again. `--epochs` caps the
epochs of a preset where the published number of them would take hours.
"""

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path

from machine import facts, peak_memory

from limbeck.data import entry, load
from limbeck.distill import DPKIP, presets
from limbeck.evaluate import evaluate_support
from limbeck.features import named
from limbeck.release import verify

RESULTS = Path(__file__).parent / "results" / "utility.json"
DELTA = 1e-5


def settings_of(name: str, features: str, dataset: str, per_class: int, epsilon: float, epochs: float) -> dict:
    settings = {"per_class": per_class, "epsilon": epsilon}
    if name == "preset":
        settings |= presets.settings("dpkip", features, f"{dataset}/{per_class}/eps{epsilon:g}")
    settings["epochs"] = min(epochs, settings.get("epochs", epochs))
    return settings | {"features": features, "delta": DELTA}


def run(dataset: str, data_dir: Path, settings: dict, convnet: bool) -> dict:
    schema = entry(dataset).schema
    begun = time.perf_counter()
    train = load(dataset, "train", data_dir)
    model = DPKIP(schema, **settings)
    model.fit_resample(train.x, train.y, progress=_dots)
    with tempfile.TemporaryDirectory() as folder:
        problems = verify(model.release_.save(Path(folder) / "release"))
    assert not problems, problems
    seconds = time.perf_counter() - begun
    test = load(dataset, "test", data_dir)
    x_test, c_test = schema.encode(test.x.reveal(), test.y.reveal())
    features = named(settings["features"], schema.shape)
    scores = evaluate_support(
        model.release_.encoded, model.release_.soft, features, model.ridge, x_test, c_test, convnet=convnet,
    )  # fmt: skip
    measured = model.plan_.measurements[0]
    return {
        "krr": scores.krr, "convnet": list(scores.convnet), "guarantee": str(model.guarantee_), "seconds": seconds,
        "peak_GB": peak_memory(), "steps": measured.steps, "sigma": measured.sigma, "machine": facts(),
        "recipe": model.release_.recipe,
    }  # fmt: skip


def _dots(done: int, total: int) -> None:
    if done * 10 // total != (done - 1) * 10 // total:
        print(f"  {done} of {total}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="fashion_mnist")
    parser.add_argument("--features", nargs="+", default=["fc-ntk", "scattering"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--per-class", nargs="+", type=int, default=[1])
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--settings", nargs="+", default=["preset", "default"], choices=["preset", "default"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--convnet", action="store_true")
    o = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    grid = itertools.product(range(o.repeats), o.features, o.per_class, o.epsilon, o.settings)
    for repeat, features, per_class, epsilon, name in grid:
        kind = f"{name}, at most {o.epochs:g} epochs"
        key = f"{o.dataset}, {per_class}/class, {features}, epsilon {epsilon:g}, {kind}, run {repeat}"
        if key in rows:
            continue
        print(key, flush=True)
        settings = settings_of(name, features, o.dataset, per_class, epsilon, o.epochs)
        rows[key] = run(o.dataset, o.data_dir, settings, o.convnet)
        print(f"  KRR {100 * rows[key]['krr']:.1f} in {rows[key]['seconds']:.0f} s", flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
