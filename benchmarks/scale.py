"""How time and memory grow with records, batch, images and classes, on made-up data; and one whole run on real data.

    python benchmarks/scale.py [--quick] [--data-dir DATA] [--json benchmarks/results/scale.json]

Each case runs in a process of its own, so that its peak memory is its own: the largest resident size, pages of mapped
files included. Images are random bytes, 28 x 28, in a memory-mapped `.npy` file; features are Decant's,
which a store keeps as it would by itself, except for the largest case, where it is told to keep float16 in a file. A
measurement's step is a full batch but in the rows about batches; in those about networks it is `PrivateDM`'s, one
network's class sums of a sample of so many. "Matching" has steps of its fit; with "large pages" a case has the
allocator's setting that the command line asks for. A row that is in the JSON file is not run again; the plot is
`docs/images/scale.png`. With `--data-dir`, Fashion-MNIST goes from its file to a release by `limbeck distill`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import facts, peak_memory, write

from limbeck.__main__ import LARGE, TUNABLES

RESULTS = Path(__file__).parent / "results" / "scale.json"
PLOT = Path(__file__).parent.parent / "docs" / "images" / "scale.png"
SHAPE = (28, 28, 1)
STEPS = 4  # measured ones; the first compiles and does not count
USUAL = {"n": 10_000, "classes": 10, "per_class": 1, "batch": "full", "networks": 0, "fit": False, "cache": "auto"}
LARGE_PAGES = {TUNABLES: LARGE}
CASES = {
    "records": [
        {"n": 10_000},
        {"n": 30_000},
        {"n": 100_000},
        {"n": 300_000, "cache": "disk"},
        {"n": 1_000_000, "cache": "disk"},
    ],
    "batch": [{"n": 100_000, "batch": b} for b in (100, 1_000, 10_000)],
    "images": [{"per_class": k, "fit": True} for k in (1, 3, 10, 30, 100)],
    "classes": [{"classes": k} for k in (10, 30, 100)],
    "networks": [
        *({"n": 100_000, "batch": 5_000, "networks": k} for k in (10, 30, 100)),
        *({"n": 100_000, "batch": b, "networks": 10} for b in (1_500, 15_000)),
        {"n": 1_000_000, "batch": 5_000, "networks": 10, "cache": "disk"},
    ],
    "large pages": [{"per_class": k, "fit": True} for k in (10, 100)],
    "matching": [{"per_class": k, "networks": 2, "batch": 500, "fit": True} for k in (10, 50)],
    "matching, large pages": [{"per_class": k, "networks": 2, "batch": 500, "fit": True} for k in (10, 50)],
}
QUICK = {
    "records": [{"n": 5_000}, {"n": 10_000}],
    "batch": [{"batch": b} for b in (100, 1_000)],
    "images": [{"per_class": k, "fit": True} for k in (1, 10)],
    "classes": [{"classes": k} for k in (10, 30)],
    "networks": [{"batch": 500, "networks": k} for k in (2, 4)],
}


def run_case(case: dict, path: Path) -> dict:
    """In a process of its own: seconds of features, of a private step and of a step of the fit; peak memory."""
    import jax.numpy as jnp

    from limbeck.data import ImageSchema
    from limbeck.distill import Decant, PrivateDM, fit_signal
    from limbeck.measure import Records

    schema = ImageSchema(shape=SHAPE, classes=range(case["classes"]), low=0, high=255)
    precision = "float16" if case["cache"] == "disk" else "float32"
    X = np.load(path, mmap_mode="r")[: case["n"]]
    records = Records(schema, X, np.arange(len(X)) % case["classes"], cache=case["cache"], precision=precision)
    if case["networks"]:
        model = PrivateDM(schema, batch=case["batch"], networks=case["networks"], per_class=case["per_class"])
        return sums_case(model, records, case["fit"])
    model = Decant(schema, batch=case["batch"], per_class=case["per_class"], steps=STEPS, learning_rate=1.0)
    features = model.resolved_features()
    jnp.zeros(1).block_until_ready()
    begun = time.perf_counter()
    records.prepare(features)
    row = {"features_s": time.perf_counter() - begun}
    ends: list[float] = []
    signal = model.measure(records, progress=lambda done, total: ends.append(time.perf_counter()))
    row["step_s"] = (ends[-1] - ends[0]) / (STEPS - 1)
    if case["fit"]:
        ends.clear()
        records.forget()
        fit_signal(signal, case["per_class"], steps=STEPS, progress=lambda *_: ends.append(time.perf_counter()))
        row["fit_step_s"] = (ends[-1] - ends[0]) / (STEPS - 1)
    return row | {"peak_GB": peak_memory()}


def sums_case(model, records, fit: bool) -> dict:
    """Seconds of all class sums but the first, which compiles, and of one; of a step of matching them."""
    from limbeck.distill.matching import class_means, class_sums, made_up_support, matched
    from limbeck.distill.private_dm import SUMS
    from limbeck.features import Pixels
    from limbeck.measure import Session

    records.prepare(Pixels(SHAPE))
    session = Session(records, model.plan(records.n), chunk=model.units_at_a_time)
    ends: list[float] = []
    embeddings = model.embeddings(records.n)
    S = class_sums(lambda query: session.ask(SUMS, query), embeddings, lambda *_: ends.append(time.perf_counter()))
    took = ends[-1] - ends[0]
    row = {"sums_s": took, "step_s": took / (len(ends) - 1)}
    if fit:
        M, ends = class_means(S, len(embeddings)), []
        x_s, _ = made_up_support(model.schema, model.per_class, 0)
        matched(embeddings, M, x_s, steps=3 * STEPS, seed=0, progress=lambda *_: ends.append(time.perf_counter()))
        row["fit_step_s"] = (ends[-1] - ends[STEPS]) / (2 * STEPS - 1)
    return row | {"peak_GB": peak_memory()}


def whole_run(data_dir: Path, serves: str) -> dict:
    """`limbeck distill fashion_mnist` at epsilon 1, 10 images a class: seconds from the command to the release."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "limbeck", "distill", "fashion_mnist", "--data-dir", str(data_dir)]
        command += ["--for", serves, "--epsilon", "1", "--per-class", "10", "--no-ledger", "--out", f"{folder}/release"]
        begun = time.perf_counter()
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit("the whole run failed")
        return {"seconds": time.perf_counter() - begun, "peak_GB": usage.ru_maxrss / 1e6}


def plot(rows: dict[str, dict]) -> None:
    """Seconds and memory against each size, on logarithmic axes, with a line of slope one to compare with."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = {
        "records": ("n", "features_s", "step_s"),
        "images": ("m", "fit_step_s"),
        "classes": ("classes", "step_s"),
        "batch": ("batch", "step_s"),
    }
    names = {"features_s": "features, s", "step_s": "private step, s", "fit_step_s": "step of the fit, s"}
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.8))
    for axis, (group, (size, *times)) in zip(axes, panels.items(), strict=True):
        of_group = sorted((r for r in rows.values() if r["group"] == group), key=lambda r: r[size])
        at = [r[size] for r in of_group]
        for name in times:
            axis.loglog(at, [r[name] for r in of_group], "o-", label=names[name])
        axis.loglog(at, [r["peak_GB"] for r in of_group], "s--", color="grey", label="peak memory, GB")
        start = of_group[0][times[0]]
        axis.loglog(at, [start * a / at[0] for a in at], ":", color="black", label="linear")
        axis.set(xlabel={"n": "records", "m": "images in the set"}.get(size, size))
        axis.legend(fontsize=8)
    figure.tight_layout()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing kept: a few minutes")
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("LIMBECK_DATA"))
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--images", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.case:
        print(json.dumps(run_case(json.loads(o.case), o.images)))
        return
    cases = QUICK if o.quick else CASES
    rows = json.loads(o.json.read_text())["rows"] if o.json.exists() and not o.quick else {}
    for serves in ("krr", "both") if o.data_dir and not o.quick else ():
        if (key := f"whole run, for {serves}") not in rows:
            rows[key] = {"group": "whole run", **whole_run(Path(o.data_dir), serves), "date": facts()["date"]}
            print(key, rows[key], flush=True)
            write(o.json, {"rows": rows})
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images.npy"
        largest = max(case.get("n", USUAL["n"]) for group in cases.values() for case in group)
        made = np.lib.format.open_memmap(images, "w+", np.uint8, (largest, *SHAPE))
        for start in range(0, largest, 10_000):
            made[start : start + 10_000] = np.random.default_rng(start).integers(0, 256, (min(10_000, largest), *SHAPE))
        made.flush()
        del made
        for group, changes in cases.items():
            for change in changes:
                case = USUAL | change
                key = ", ".join([group, *(f"{k} {v}" for k, v in change.items())])
                if key in rows:
                    continue
                command = [sys.executable, __file__, "--case", json.dumps(case), "--images", str(images)]
                environment = os.environ | (LARGE_PAGES if group.endswith("large pages") else {})
                out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
                row = {"group": group, **case, "m": case["per_class"] * case["classes"], **json.loads(out)}
                rows[key] = row | {name: facts()[name] for name in ("date", "load_average")}
                print(key, {k: round(v, 3) for k, v in row.items() if isinstance(v, float)}, flush=True)
                if not o.quick:
                    write(o.json, {"rows": rows})
    if not o.quick:
        plot(rows)


if __name__ == "__main__":
    main()
