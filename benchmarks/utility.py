"""Private distillation of real images under the honest protocol, against the published figures.

    python benchmarks/utility.py --data-dir DATA [--dataset mnist fashion_mnist cifar10] [--settings recipe]
        [--epsilon 1 10] [--per-class 1 10 50] [--repeats 3] [--quick]
    python benchmarks/utility.py --data-dir DATA --settings preset --features fc-ntk scattering --epochs 10

"recipe" is what `limbeck distill` does by default, one recipe for all datasets: Decant, whose one signal serves every
size (a repeat has a signal of its own). "features" is DP-KIP clipped in features; "preset" the paper's DP-KIP, clipped
in pixels, with its tuned settings, "pixels" the same with Limbeck's. `--epochs` caps the epochs of the last two.

Each run goes from the raw file to a verified release and is scored on the test split by kernel ridge regression and,
in one of its repeats, by a ConvNet; its row is added to `benchmarks/results/utility.json` at once, and a row that is
there is not run again: an interrupted table goes on where it stopped. The first run's images of each dataset and
epsilon are drawn in `docs/images/`.
"""

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import facts, peak_memory

from limbeck.data import entry, load
from limbeck.distill import DPKIP, Decant, presets
from limbeck.distill.pouring import fit_signal
from limbeck.evaluate import evaluate_support
from limbeck.features import from_config
from limbeck.measure import Records
from limbeck.release import Release, verify
from limbeck.release.pictures import grid

RESULTS = Path(__file__).parent / "results" / "utility.json"
PICTURES = Path(__file__).parent.parent / "docs" / "images"
DELTA = 1e-5


def paper_settings(name: str, features: str, dataset: str, per_class: int, epsilon: float, epochs: float) -> dict:
    settings = {"per_class": per_class, "epsilon": epsilon}
    if name == "preset":
        settings |= presets.settings("dpkip", features, f"{dataset}/{per_class}/eps{epsilon:g}")
    settings["epochs"] = min(epochs, settings.get("epochs", epochs))
    return settings | {"features": features, "delta": DELTA}


class Dataset:
    """Records and test images, read once; features of the records are kept between runs."""

    def __init__(self, name: str, data_dir: Path):
        self.schema = entry(name).schema
        train, test = load(name, "train", data_dir), load(name, "test", data_dir)
        self.records = Records(self.schema, train.x, train.y)
        self.test = self.schema.encode(test.x.reveal(), test.y.reveal())
        self._teacher: tuple[float, Decant] | None = None

    def teacher(self, epsilon: float) -> Decant:
        """A fresh signal for every repeat; all sizes of it share one."""
        if self._teacher is None or self._teacher[0] != epsilon:
            model = Decant(self.schema, epsilon=epsilon, delta=DELTA)
            model.measure(self.records, progress=_dots)
            self._teacher = (epsilon, model)
        return self._teacher[1]

    def forget_teacher(self) -> None:
        self._teacher = None

    def by_recipe(self, per_class: int, epsilon: float) -> Release:
        teacher = self.teacher(epsilon)
        return fit_signal(teacher.signal_, per_class, features=teacher.resolved_features(), progress=_dots)

    def by_paper(self, settings: dict) -> Release:
        return DPKIP(self.schema, **settings).fit(self.records, progress=_dots).release_

    def in_features(self, per_class: int, epsilon: float) -> Release:
        model = DPKIP(self.schema, epsilon=epsilon, delta=DELTA, per_class=per_class, clip="features")
        return model.fit(self.records, progress=_dots).release_

    def scored(self, release: Release, convnet: int, seconds: float) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            problems = verify(release.save(Path(folder) / "release"))
        assert not problems, problems
        features = from_config(release.recipe["features"], self.schema.shape)
        scores = evaluate_support(
            release.encoded, release.soft, features, release.recipe["ridge"], *self.test,
            networks=("convnet",) if convnet else (), seeds=convnet,
        )  # fmt: skip
        assert release.plan is not None
        (measured,) = release.plan.measurements
        return {
            "krr": scores.krr, "convnet": list(scores.networks.get("convnet", ())), "guarantee": str(release.guarantee),
            "seconds": seconds, "peak_GB": peak_memory(), "steps": measured.steps, "sigma": measured.sigma,
            "machine": facts(), "recipe": release.recipe,
        }  # fmt: skip


def draw(release: Release, name: str) -> None:
    """At most a hundred images, in the order of their labels, each scaled to its own range."""
    order = np.argsort(release.soft.argmax(1), kind="stable")[:: max(1, len(release) // 100)]
    PICTURES.mkdir(parents=True, exist_ok=True)
    grid(release.x[order], 10, scale=2).save(PICTURES / f"{name}.png")


def _dots(done: int, total: int) -> None:
    if done * 4 // total != (done - 1) * 4 // total:
        print(f"  {done} of {total}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", nargs="+", default=["fashion_mnist"])
    parser.add_argument("--settings", nargs="+", default=["recipe"], choices=["recipe", "features", "preset", "pixels"])
    parser.add_argument("--features", nargs="+", default=["scattering"], help="of preset and pixels")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--per-class", nargs="+", type=int, default=[1, 10, 50])
    parser.add_argument("--epochs", type=float, default=10.0, help="at most, of preset and pixels")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--convnet", type=int, default=1, help="ConvNets to train, in one repeat of each case")
    parser.add_argument("--quick", action="store_true", help="Fashion-MNIST, epsilon 1, 10 images a class, once")
    o = parser.parse_args()
    if o.quick:
        o.dataset, o.settings, o.epsilon, o.per_class, o.repeats = ["fashion_mnist"], ["recipe"], [1.0], [10], 1
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    datasets: dict[str, Dataset] = {}
    for repeat, name, settings, features, epsilon in itertools.product(
        range(o.repeats), o.dataset, o.settings, o.features, o.epsilon
    ):
        for per_class in o.per_class:
            kind = settings if settings in ("recipe", "features") else f"{settings}, at most {o.epochs:g} epochs"
            key = f"{name}, {per_class}/class, {features}, epsilon {epsilon:g}, {kind}, run {repeat}"
            if key in rows:
                continue
            if name not in datasets:
                datasets[name] = Dataset(name, o.data_dir)
            dataset = datasets[name]
            print(key, flush=True)
            begun = time.perf_counter()
            if settings == "recipe":
                release = dataset.by_recipe(per_class, epsilon)
            elif settings == "features":
                release = dataset.in_features(per_class, epsilon)
            else:
                release = dataset.by_paper(paper_settings(settings, features, name, per_class, epsilon, o.epochs))
            seconds = time.perf_counter() - begun
            if (settings, repeat) == ("recipe", 0):
                draw(release, f"{name}-{per_class}-eps{epsilon:g}")
            case = key.rsplit(",", 1)[0]
            trained = any(row["convnet"] for other, row in rows.items() if other.startswith(f"{case},"))
            rows[key] = dataset.scored(release, 0 if trained else o.convnet, seconds)
            print(f"  KRR {100 * rows[key]['krr']:.1f} in {seconds:.0f} s", flush=True)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
        if name in datasets:
            datasets[name].forget_teacher()


if __name__ == "__main__":
    main()
