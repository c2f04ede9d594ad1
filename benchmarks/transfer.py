"""Networks trained on a private release, under the honest protocol: PrivateDM, and what it is held against.

    python benchmarks/transfer.py --data-dir DATA [--dataset fashion_mnist] [--epsilon 1] [--per-class 10]
        [--serves networks both] [--networks convnet mlp lenet resnet] [--seeds 1] [--runs 0 1 2]
        [--labels varied soft hard] [--share 0.8] [--held-out 0] [--keep FOLDER] [--dm] [--quick]

Each run measures one signal, which serves every size and purpose, and fits a set to it. Networks are trained by the
fixed recipe of `limbeck evaluate` and scored on the test split, as are those trained on as many random real images. All
networks learn from variations of the set, the first of them from its images alone too. A row that is in
`benchmarks/results/transfer.json` is not run again; networks that it lacks are added to it where its release was kept
(`--keep`). A set's images are drawn in `docs/images/` where they are not yet.
"""

import argparse
import itertools
import json
import re
import tempfile
import time
from pathlib import Path

from machine import facts, peak_memory
from utility import DELTA, PICTURES, draw

from limbeck.data import entry, load
from limbeck.distill import DM, PrivateDM, fit_matched
from limbeck.evaluate import evaluate_support, random_subset_scores
from limbeck.evaluate.variation import TrainOn
from limbeck.features import Whitened, from_config, named
from limbeck.measure import Records
from limbeck.release import Release, verify
from limbeck.release import load as load_release

RESULTS = Path(__file__).parent / "results" / "transfer.json"


class Dataset:
    """Records and test images; one signal of each run and epsilon."""

    def __init__(self, name: str, data_dir: Path | None, held_out: int = 0):
        self.schema = entry(name).schema
        train, test = load(name, "train", data_dir), load(name, "test", data_dir)
        X, y = train.x.reveal(), train.y.reveal()  # a public dataset
        kept = len(y) - held_out
        self.train = self.schema.encode(X[:kept], y[:kept])
        self.records = Records(self.schema, X[:kept], y[:kept])
        self.test = self.schema.encode(*((X[kept:], y[kept:]) if held_out else (test.x.reveal(), test.y.reveal())))
        self._measured: tuple[tuple, PrivateDM, float] | None = None

    def measured(self, epsilon: float, run: int, **settings) -> tuple[PrivateDM, float]:
        """The model of this run with its signal, and the seconds that it took."""
        key = (epsilon, run, *settings.items())
        if self._measured is None or self._measured[0] != key:
            model = PrivateDM(self.schema, epsilon=epsilon, delta=DELTA, network_seed=run, **settings)
            begun = time.perf_counter()
            model.measure(self.records)
            self.records.forget()  # their features: a fit reads none, and needs the memory
            self._measured = (key, model, time.perf_counter() - begun)
        return self._measured[1], self._measured[2]

    def scored(self, release: Release, networks: tuple[str, ...], seeds: int, kinds: list[TrainOn]) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            problems = verify(release.save(Path(folder) / "release"))
        assert not problems, problems
        return self._trained(release, networks, seeds, kinds)

    def _trained(self, release: Release, networks: tuple[str, ...], seeds: int, kinds: list[TrainOn]) -> dict:
        features = from_config(release.recipe["features"], self.schema.shape)
        row = {}
        for train_on in kinds:
            trained = networks if train_on == "varied" else networks[:1]
            scores = evaluate_support(
                release.encoded, release.soft, features, release.recipe["ridge"], *self.test, networks=trained,
                seeds=seeds, train_on=train_on,
            )  # fmt: skip
            row |= {"krr": scores.krr, train_on: {name: list(found) for name, found in scores.networks.items()}}
        return row

    def unprotected(self, per_class: int, networks: tuple[str, ...], seeds: int) -> dict:
        model = DM(self.schema, per_class=per_class, init_seed=0)
        begun = time.perf_counter()
        release = model.fit(self.records).release_
        seconds = time.perf_counter() - begun
        return {"fit_s": seconds} | self._trained(release, networks, seeds, ["varied", "hard"])

    def real(self, per_class: int, networks: tuple[str, ...], seeds: int, kinds: list[TrainOn]) -> dict:
        features = Whitened.of(named("scattering", self.schema.shape))
        row: dict = {}
        for train_on in ("varied", "hard") if "varied" in kinds else ("hard",):
            scores = random_subset_scores(
                *self.train, per_class, len(self.schema.classes), features, 1e-3, *self.test, seeds=seeds,
                networks=networks[:1] if train_on == "varied" else networks, train_on=train_on,
            )  # fmt: skip
            row |= {"krr": scores.krr, train_on: {name: list(found) for name, found in scores.networks.items()}}
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", nargs="+", default=["fashion_mnist"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--per-class", nargs="+", type=int, default=[10])
    parser.add_argument("--serves", nargs="+", default=["networks", "both"], choices=["networks", "both"])
    parser.add_argument("--networks", nargs="+", default=["convnet", "mlp", "lenet", "resnet"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--runs", nargs="+", type=int, default=[0])
    parser.add_argument("--labels", nargs="+", default=["varied", "soft"], choices=["varied", "soft", "hard"])
    parser.add_argument(
        "--share", nargs="+", type=float, default=[PrivateDM.share], help="of the budget, to the teacher"
    )
    parser.add_argument("--held-out", type=int, default=0, help="score on the last so many training records: to choose")
    parser.add_argument("--keep", type=Path, help="where releases are kept, and found again when others score them")
    parser.add_argument("--dm", action="store_true", help="DM too, which has no privacy")
    parser.add_argument("--quick", action="store_true", help="few networks and steps, ConvNet alone, nothing kept")
    o = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() and not o.quick else {}
    networks = ("convnet",) if o.quick else tuple(o.networks)
    measuring = {"networks": 10} if o.quick else {}
    fitting = {"steps": 50, "refining_steps": 20} if o.quick else {}
    datasets: dict[str, Dataset] = {}

    def add(key: str, row: dict) -> None:
        if RESULTS.exists() and not o.quick:  # what another process has added meanwhile stays
            rows.update(json.loads(RESULTS.read_text()))
        rows[key] = row | {"machine": facts(), "peak_GB": peak_memory()}
        print(
            key, {name: row.get(name) for name in ("krr", "varied", "soft", "hard", "fit_s", "measure_s")}, flush=True
        )
        if not o.quick:
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")

    for run, name in itertools.product(o.runs, o.dataset):
        if name not in datasets:
            datasets[name] = Dataset(name, o.data_dir, o.held_out)
        dataset, shown = datasets[name], f"{name} split" if o.held_out else name
        for per_class in o.per_class:
            if (key := f"{shown}, {per_class}/class, real subset, run 0") not in rows:
                add(key, dataset.real(per_class, networks, o.seeds, o.labels))
            if o.dm and (key := f"{shown}, {per_class}/class, DM, no privacy") not in rows:
                add(key, dataset.unprotected(per_class, networks[:1], o.seeds))
        for epsilon, share, per_class, serves in itertools.product(o.epsilon, o.share, o.per_class, o.serves):
            other = "" if share == PrivateDM.share and not o.held_out else f", share {share:g}"
            key = f"{shown}, {per_class}/class, epsilon {epsilon:g}{other}, for {serves}, run {run}"
            kept = o.keep and o.keep / re.sub(r"\W+", "-", key)
            if key in rows:
                more = [name for name in networks if name not in rows[key].get("varied", {})]
                if more and kept and kept.exists():
                    scores = dataset.scored(load_release(kept), tuple(more), o.seeds, ["varied"])
                    add(key, rows[key] | {"varied": rows[key].get("varied", {}) | scores["varied"]})
                continue
            if kept and kept.exists():
                release, times = load_release(kept), {}
            else:
                model, seconds = dataset.measured(epsilon, run, share=share, **measuring)
                begun = time.perf_counter()
                release = fit_matched(model.signal_, per_class, serves=serves, **fitting)
                times = {"measure_s": seconds, "fit_s": time.perf_counter() - begun}
                if kept:
                    release.save(kept)
            picture = f"{name}-{per_class}-eps{epsilon:g}-{serves}"
            if not (other or o.quick or (PICTURES / f"{picture}.png").exists()):
                draw(release, picture)
            row = {"recipe": release.recipe, "guarantee": str(release.guarantee)}
            add(key, dataset.scored(release, networks, o.seeds, o.labels) | times | row)


if __name__ == "__main__":
    main()
