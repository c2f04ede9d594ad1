"""Private tables under the honest protocol: ours, DP-KIP as in the paper, marginal-based synthesisers, and real rows.

    python benchmarks/tables.py --data-dir DATA --rival-python RIVAL/bin/python
        [--tables adult cervical epileptic isolet intrusion ...]
        [--sets ours dpkip dpkip_own mst aim real subset majority] [--epsilon 1 10]
        [--protocols fixed paper] [--splits 20] [--repeats 1] [--timeout 900] [--quick]
    python benchmarks/tables.py --stream [--quick]

One default recipe for all tables. Splits are those of `table_splits.py`, the same for every set, and so is the rule for
how many rows classifiers see of each. "paper" thins the largest class of every set and of the test rows as the papers'
code does, and takes the best of their settings on the test rows, from predicted classes: optimistic, for comparison
with published figures alone. "cervical_papers" is cervical with three other tests among its features, as they have it.
Rivals run in an environment of their own (`marginal_rival.py` says how to make it), on the same training rows, and are
stopped after `--timeout` seconds, which the row then says.

Each row is added to `benchmarks/results/tables.json` at once, and a score that is there is not computed again.
`--stream` distils generated tables of two sizes, each in a process of its own, and keeps their peak memory.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from machine import facts, peak_memory
from table_splits import SPLITS, TABLES, Split, split_of, whole

from limbeck.data.tables.columns import Numerical
from limbeck.data.tables.typed import written
from limbeck.distill import DPKIP, TableDecant, presets
from limbeck.evaluate import evaluate_table
from limbeck.evaluate.tables import TableScores, majority_scores
from limbeck.measure import Records

RESULTS = Path(__file__).parent / "results" / "tables.json"
DELTA = 1e-5
PRIVATE = ("ours", "dpkip", "dpkip_own", "mst", "aim")
REFERENCES = ("real", "subset", "majority")


class Unfinished(Exception):
    """A rival took longer than it may, or failed."""


def ours(split: Split, epsilon: float, quick: bool) -> tuple[pd.DataFrame, dict]:
    model = TableDecant(split.schema, epsilon=epsilon, delta=DELTA, rows=500 if quick else None)
    model.fit(Records(split.schema, split.train))
    return model.release_.frame, {"guarantee": str(model.guarantee_), "recipe": _brief(model.release_.recipe)}


def dpkip(split: Split, epsilon: float, quick: bool) -> tuple[pd.DataFrame, dict]:
    """The paper's settings for this table, 10 rows a class: table 15, which is for epsilon 1."""
    name = split.name.removesuffix("_papers")
    settings = presets.settings("dpkip", "fc-ntk", f"{name}/10/eps1") | {"epsilon": epsilon}
    return _dpkip(split, settings, quick)


def dpkip_own(split: Split, epsilon: float, quick: bool) -> tuple[pd.DataFrame, dict]:
    """The same method, 10 rows a class, with Limbeck's settings."""
    return _dpkip(split, {"epsilon": epsilon, "per_class": 10}, quick)


def _dpkip(split: Split, settings: dict, quick: bool) -> tuple[pd.DataFrame, dict]:
    quickly = {"epochs": 1} if quick else {}
    settings = {"features": "fc-ntk", "clip": "inputs", "delta": DELTA} | settings | quickly
    model = DPKIP(split.schema, **settings)
    model.fit(Records(split.schema, split.train))
    return model.release_.frame, {"guarantee": str(model.guarantee_), "recipe": _brief(model.release_.recipe)}


OWN = {"ours": ours, "dpkip": dpkip, "dpkip_own": dpkip_own}


def rival(
    split: Split, method: str, epsilon: float, python: Path | None, timeout: float, rows: int
) -> tuple[pd.DataFrame, dict]:
    """MST or AIM, through files."""
    if python is None:
        raise SystemExit(f"{method} needs --rival-python: see benchmarks/marginal_rival.py")
    with tempfile.TemporaryDirectory() as folder:
        train, domain, out = (Path(folder) / name for name in ("train.csv", "domain.json", "out.csv"))
        split.typed(split.train, released=False).to_csv(train, index=False)
        domain.write_text(json.dumps(declared_domain(split)))
        script = Path(__file__).parent / "marginal_rival.py"
        command = [python, script, method, f"{epsilon}", f"{DELTA}", f"{rows}", train, domain, out]
        try:
            subprocess.run([str(part) for part in command], check=True, timeout=timeout, capture_output=True)
        except subprocess.TimeoutExpired:
            raise Unfinished(f"not finished after {timeout:.0f} s") from None
        except subprocess.CalledProcessError as error:
            last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise Unfinished(f"failed: {last[0] if last else 'no message'}") from None
        return pd.read_csv(out, dtype=str, keep_default_na=False), {"guarantee": "as its authors state it"}


def declared_domain(split: Split) -> dict:
    """Bounds and categories as dpmm takes them."""
    domain = {}
    for column in (*split.schema.features, split.schema.target):
        if isinstance(column, Numerical):
            domain[column.name] = {"lower": column.low, "upper": column.high}
        else:
            domain[column.name] = {"categories": list(written(column))}
    return domain


def _brief(recipe: dict) -> dict:
    """Without what is as long as the table is wide."""
    return {name: value for name, value in recipe.items() if name not in ("features", "embeddings")}


def as_row(scores: TableScores) -> dict:
    names = scores.classifiers.items()
    return {
        "records": scores.records,
        "test_records": scores.test_records,
        "mean": scores.mean,
        "classifiers": {name: row.mean for name, row in names},
    }


def scored(split: Split, typed: pd.DataFrame, protocol: str, kind: str) -> dict:
    """One set under one protocol, one seed a classifier."""
    rows, test = split.for_protocol(split.encoded(typed), protocol), split.tested(protocol)
    options = {"positive": split.positive}
    if kind == "majority":
        return as_row(majority_scores(rows, test, split.classes, **options))
    begun = time.perf_counter()
    scores = evaluate_table(rows, test, split.classes, protocol=protocol, seeds=1, **options)
    return as_row(scores) | {"evaluation_s": time.perf_counter() - begun}


class Results:
    """Rows by name, written as they come."""

    def __init__(self, keep: bool):
        self.keep = keep
        self.rows = json.loads(RESULTS.read_text()) if keep and RESULTS.exists() else {}

    def update(self, key: str, row: dict, **measured: object) -> None:
        if self.keep and RESULTS.exists():  # what another process has added meanwhile stays
            self.rows = json.loads(RESULTS.read_text())
        self.rows[key] = row | {"machine": facts(), "peak_GB": peak_memory()} | measured
        if self.keep:
            RESULTS.write_text(json.dumps(self.rows, indent=1) + "\n")

    def lacking(self, key: str, protocols: list[str]) -> list[str]:
        row = self.rows.get(key, {})
        return [] if "unfinished" in row else [name for name in protocols if name not in row.get("scores", {})]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--sets", nargs="+", default=[*REFERENCES, "ours", "dpkip", "mst"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--protocols", nargs="+", default=["fixed", "paper"], choices=["fixed", "paper"])
    parser.add_argument("--splits", type=int, help="at most so many of a table's splits")
    parser.add_argument("--repeats", type=int, default=1, help="of private sets")
    parser.add_argument("--rival-python", type=Path)
    parser.add_argument("--timeout", type=float, default=900, help="seconds that a rival may take")
    parser.add_argument("--stream", action="store_true", help="generated tables of two sizes, and nothing else")
    parser.add_argument("--quick", action="store_true", help="small sets, one split, nothing kept")
    o = parser.parse_args()
    results = Results(keep=not o.quick)
    if o.stream:
        from table_stream import stream

        stream(results, quick=o.quick)
        return
    if o.data_dir is None:
        sys.exit("--data-dir is needed: the folder that the tables are in")
    for name in o.tables:
        frame = whole(name, o.data_dir)
        if frame is None:
            print(f"{name}: not in {o.data_dir}, left out", flush=True)
            continue
        most = 1 if o.quick else min(o.splits or 20, SPLITS.get(name, 1))
        for seed in range(most):
            one_split(results, split_of(name, frame, seed), seed, o)


def one_split(results: Results, split: Split, seed: int, o: argparse.Namespace) -> None:
    cases = [(kind, None, 0) for kind in REFERENCES if kind in o.sets]
    cases += [
        (kind, epsilon, repeat)
        for repeat, epsilon, kind in itertools.product(range(o.repeats), o.epsilon, PRIVATE)
        if kind in o.sets
    ]
    for kind, epsilon, repeat in cases:
        key = f"{split.name}, split {seed}, {kind}"
        key += "" if epsilon is None else f", epsilon {epsilon:g}, run {repeat}"
        if not (protocols := results.lacking(key, o.protocols)):
            continue
        begun = time.perf_counter()
        try:
            typed, row = made(split, kind, epsilon, o)
        except Unfinished as reason:
            row = {"unfinished": str(reason), "seconds": time.perf_counter() - begun}
            results.update(key, row)
            print(key, row, flush=True)
            continue
        row |= {"seconds": time.perf_counter() - begun, "rows": len(typed)}
        row["scores"] = dict(results.rows.get(key, {}).get("scores", {}))
        for protocol in protocols:
            row["scores"][protocol] = scored(split, typed, protocol, kind)
            results.update(key, row)
            shown = {metric: round(value, 3) for metric, value in row["scores"][protocol]["mean"].items()}
            print(key, protocol, shown, f"{row['seconds']:.0f} s", flush=True)


def made(split: Split, kind: str, epsilon: float | None, o: argparse.Namespace) -> tuple[pd.DataFrame, dict]:
    """One set, as a person would hold it."""
    if epsilon is None:
        real = split.typed(split.train, released=False)
        if kind != "subset":
            return real, {}
        return real.iloc[random_subset(split, real)], {}
    if kind in OWN:
        frame, row = OWN[kind](split, epsilon, o.quick)
    else:
        frame, row = rival(split, kind, epsilon, o.rival_python, o.timeout, min(10_000, len(split.train)))
    return split.typed(frame), row


def random_subset(split: Split, real: pd.DataFrame) -> np.ndarray:
    """Ten real rows a class, as many as DP-KIP distils: every other set has as many rows as classifiers are given."""
    y, rng = split.encoded(real).y, np.random.default_rng(0)
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == c))[:10] for c in range(split.classes)]))


if __name__ == "__main__":
    main()
