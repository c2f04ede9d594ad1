"""Write docs/results.md from benchmarks/results/*.json: published and measured side by side, losses included.

python benchmarks/report.py
"""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

from report_networks import limits, transfer, variations

HERE = Path(__file__).parent

# KRR test accuracy of DP-KIP as published (Vinaroz & Park 2024, table 2), for 1, 10 and 50 images a class.
PUBLISHED = {
    ("mnist", "scattering"): {1: (94.7, 96.3, 97.2), 10: (96.1, 97.4, 98.1)},
    ("fashion_mnist", "scattering"): {1: (77.5, 83.3, 84.7), 10: (82.1, 86.2, 87.6)},
    ("cifar10", "scattering"): {1: (46.6, 48.6, 49.7), 10: (50.4, 54.4, 58.7)},
    ("fashion_mnist", "fc-ntk"): {1: (76.9, 77.7, None), 10: (78.3, 78.7, None)},
}
# What we set out to reach: at epsilon 1 what was published at 10, and more at 10.
AIM = {
    ("mnist", 10): (97.0, 98.3, 98.6),
    ("fashion_mnist", 10): (86.0, 88.5, 89.5),
    ("cifar10", 10): (55.0, 62.0, 64.0),
}
SIZES = (1, 10, 50)

HEAD = """# Results

Written by `python benchmarks/report.py` from the JSON files in `benchmarks/results/`, each made by the command that
heads its section. Times are ratios against a named rival in the same run; accuracies are on the official test split.
"""

RECIPE = """
## Kernel ridge regression on a release: Decant

    python benchmarks/utility.py --data-dir DATA --dataset fashion_mnist mnist cifar10 --repeats {repeats}

What `limbeck distill --for krr` does, one recipe for all datasets, under the honest protocol; it was chosen on a split
of Fashion-MNIST's training set, then frozen. delta 1e-5, PLD accounting, images of whole numbers within the declared
range, {cpu}, {cores} cores, {dates}. Kernel ridge regression on the release, test split, mean and standard deviation
over repeats, each with a signal and noise of its own that serve its three sizes. A ConvNet is trained on one repeat's
release; the support is made for kernel ridge regression, and networks do not learn from it. The published figures were
tuned on test data for every dataset, size and epsilon. Bold: at or above the aim, at epsilon 1 what was published at
10. Seconds are of the fit, and in the first size of the signal and (in a dataset's first run) of the features too.

| dataset | images a class | epsilon | published | aim | measured | runs | ConvNet | seconds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

CHOSEN = """
### How the recipe was chosen

    python benchmarks/recipe.py --data-dir DATA

On Fashion-MNIST's training set alone: 50,000 records, scored on the other 10,000, one run a row, {cpu}, {cores} cores,
{date}. Each row is the default recipe with one change; runs of the same recipe differ by a few tenths.

"""

UTILITY = """
## DP-KIP, clip in pixels: the paper's method under the honest protocol

    python benchmarks/utility.py --data-dir DATA --settings preset pixels --features fc-ntk --per-class 1 --epochs 10
    python benchmarks/utility.py --data-dir DATA --settings preset --per-class 1 --epochs 10
    python benchmarks/utility.py --data-dir DATA --settings pixels --per-class 1 --epochs 2

The published figures used settings tuned per dataset, epsilon and size on test data, normalisation by the data's own
mean and deviation, shuffled batches accounted as Poisson samples, and up to 50 epochs on a GPU, averaged over five
runs. Ours: the declared range only, Poisson batches, PLD accounting of the truncated event, delta 1e-5, one run a row,
from the raw file to a verified release on {cpu}, {cores} cores. "preset" has the paper's settings (with the clipping
norm brought to our loss) but for the number of epochs; "pixels" has Limbeck's. Times were taken on a machine that was
doing other work too.

| setting | epochs | steps | sigma | published | measured KRR | ConvNet | time | peak memory |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def case_of(key: str) -> tuple[str, int, str, int, str]:
    dataset, per_class, features, epsilon, kind, *_ = key.split(", ")
    return dataset, int(per_class.split("/")[0]), features, int(float(epsilon.split()[1])), kind


def published(dataset: str, per_class: int, features: str, epsilon: int) -> float | None:
    figures = PUBLISHED.get((dataset, features), {}).get(epsilon)
    return figures[SIZES.index(per_class)] if figures and per_class in SIZES else None


def aim(dataset: str, per_class: int, epsilon: int) -> float | None:
    if epsilon == 1:
        return published(dataset, per_class, "scattering", 10)
    return AIM[dataset, epsilon][SIZES.index(per_class)] if (dataset, epsilon) in AIM and per_class in SIZES else None


def utility(rows: dict) -> str:
    by_recipe: dict[tuple, list[dict]] = {}
    lines = []
    for key, row in rows.items():
        *case, kind = case_of(key)
        if kind == "recipe":
            by_recipe.setdefault((case[0], case[1], case[3]), []).append(row)
            continue
        dataset, per_class, features, epsilon = case
        lines.append(
            f"| {dataset}, {per_class}/class, {features}, epsilon {epsilon}, {kind} | {row['recipe']['epochs']:g} | "
            f"{row['steps']} | {row['sigma']:.3f} | {published(*case) or '-'} | {100 * row['krr']:.1f} | "
            f"{convnet(row)} | {row['seconds'] / 60:.1f} min | {row['peak_GB']:.1f} GB |"
        )
    machine = next(iter(rows.values()))["machine"]
    about = {"cpu": machine["cpu"], "cores": machine["cores"]}
    text = ""
    if by_recipe:
        dates = sorted({run["machine"]["date"] for runs in by_recipe.values() for run in runs})
        days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        text = RECIPE.format(**about, dates=days, repeats=max(map(len, by_recipe.values())))
        text += "".join(
            map(recipe_row, sorted(by_recipe.items(), key=lambda item: (item[0][0], item[0][2], item[0][1])))
        )
        text += pictures(by_recipe)
    return text + UTILITY.format(**about) + "\n".join(lines) + "\n"


def recipe_row(item: tuple[tuple, list[dict]]) -> str:
    (dataset, per_class, epsilon), runs = item
    krr = [100 * run["krr"] for run in runs]
    spread = f" ± {statistics.stdev(krr):.1f}" if len(krr) > 1 else ""
    mean, goal = statistics.mean(krr), aim(dataset, per_class, epsilon)
    reached = f"**{mean:.1f}**" if goal and mean >= goal else f"{mean:.1f}"
    seconds = statistics.mean(run["seconds"] for run in runs)
    network = convnet(max(runs, key=lambda run: len(run["convnet"])))
    name = f"{dataset} (recipe chosen here)" if dataset == "fashion_mnist" else dataset
    return (
        f"| {name} | {per_class} | {epsilon} | {published(dataset, per_class, 'scattering', epsilon) or '-'} | "
        f"{goal or '-'} | {reached}{spread} | {len(krr)} | {network} | {seconds:.0f} |\n"
    )


def pictures(cases: Iterable[tuple]) -> str:
    """Ten images a class of each dataset at each epsilon, where they were drawn."""
    text = ""
    for dataset, per_class, epsilon in sorted(cases):
        name = f"images/{dataset}-{per_class}-eps{epsilon}.png"
        if per_class == 10 and (HERE.parent / "docs" / name).exists():
            text += f"\n![{dataset}, 10 images a class, epsilon {epsilon}]({name})\n"
    return (
        f"\nTen images a class at epsilon 1 and 10, in the order of their labels, each scaled to its range:\n{text}"
        if text
        else ""
    )


def recipe(result: dict) -> str:
    machine = result["machine"]
    text = CHOSEN.format(cpu=machine["cpu"], cores=machine["cores"], date=machine["date"])
    teachers: dict[str, dict] = {}
    fits: dict[str, dict] = {}
    for key, row in result["rows"].items():
        case, name = key.split(": ", 1)
        (teachers if case.startswith("teacher") else fits).setdefault(name, {})[case] = row
    text += "| the teacher | epsilon 1 | steps | epsilon 10 | steps |\n| --- | --- | --- | --- | --- |\n"
    for name, cells in teachers.items():
        found = [cells.get(f"teacher, epsilon {e}") for e in (1, 10)]
        text += (
            f"| {name} | " + " | ".join(f"{r['teacher']:.1f} | {r['steps']}" if r else "- | -" for r in found) + " |\n"
        )
    columns = [(per_class, e) for e in (1, 10) for per_class in (1, 10)]
    text += "\n| the fit | " + " | ".join(f"{k}/class, epsilon {e}" for k, e in columns) + " |\n"
    text += "| --- " * (1 + len(columns)) + "|\n"
    for name, cells in fits.items():
        found = [cells.get(f"fit, {k}/class, epsilon {e}") for k, e in columns]
        text += f"| {name} | " + " | ".join(f"{r['krr']:.1f}" if r else "-" for r in found) + " |\n"
    return text


def scale(result: dict) -> str:
    machine, rows = result["machine"], result["rows"]
    groups: dict[str, list[dict]] = {}
    for row in rows.values():
        groups.setdefault(row["group"], []).append(row)
    sums = groups.pop("networks", [])
    groups.pop("whole run", None)
    dates = sorted({row.get("date", machine["date"]) for row in rows.values()})
    text = f"""
## Growth

    python benchmarks/scale.py --data-dir DATA

{machine["cpu"]}, {machine["cores"]} cores, JAX {machine["jax"]}, {dates[0]} to {dates[-1]}. Images of 28 x 28 random
bytes, Decant's features, each row in a process of its own. A private step is a full batch but where a batch
is given; features of 300,000 records and more are kept in a file, as float16. Peak memory has pages of mapped files in
it. "Matching" is of PrivateDM, and its private step one network's class sums. "Large pages" are what the command line
asks for by itself (`limbeck/__main__.py`); the other rows do without.

![time and memory against records, images, classes and batch](images/scale.png)

| | records | batch | classes | images | features | private step | step of the fit | peak memory |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
    for row in (row for of_group in groups.values() for row in of_group):
        seconds = [f"{row[k]:.2f} s" if k in row else "-" for k in ("features_s", "step_s", "fit_step_s")]
        text += f"| {row['group']} | {row['n']:,} | {row['batch']} | {row['classes']} | {row['m']} | "
        text += " | ".join(seconds) + f" | {row['peak_GB']:.2f} GB |\n"
    if sums:
        text += """
PrivateDM's class sums: time goes with networks and with the sample, beside what each network costs by itself, and not
with the records. The fit reads none. These rows and the run for both had one core, beside other work.

| networks | sample | records | one network's sums | all | a network and record | peak memory |
| --- | --- | --- | --- | --- | --- | --- |
"""
    for row in sums:
        text += (
            f"| {row['networks']} | {row['batch']:,} | {row['n']:,} | {row['step_s']:.2f} s | "
            f"{row['step_s'] * row['networks']:.0f} s | {1e3 * row['step_s'] / row['batch']:.3f} ms | "
            f"{row['peak_GB']:.2f} GB |\n"
        )
    whole = {key.removeprefix("whole run, for "): row for key, row in rows.items() if row["group"] == "whole run"}
    if whole:
        runs = (f"`--for {k}` {row['seconds']:.0f} s and {row['peak_GB']:.1f} GB" for k, row in whole.items())
        text += (
            "\nThe whole run, `limbeck distill fashion_mnist --epsilon 1 --per-class 10`, from the `.npz` file to the "
        )
        text += f"release:\n{', '.join(runs)}.\n"
    return text


def convnet(row: dict) -> str:
    scores = row["convnet"]
    return f"{100 * sum(scores) / len(scores):.1f}" if scores else "-"


def step(result: dict) -> str:
    machine = result["machine"]
    text = f"""
## One private step

    python benchmarks/step.py --json benchmarks/results/step.json

{machine["cpu"]}, {machine["cores"]} cores, JAX {machine["jax"]}, {machine["date"]}. The rival is `vmap(grad)` through
the solve, with kymatio's JAX frontend for ScatterNet, 28 x 28 pixels. The difference is against it in float64.

| features | clip in | m | B | ours | vmap(grad) | ratio | peak memory, ours | relative difference |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
    for r in result["rows"]:
        case, rival = f"{r['m']} | {r['batch']}", f"{r['rival_s']:.2f} s"
        text += (
            f"| {r['features']} | pixels | {case} | {r['ours_s']:.3f} s | {rival} | "
            f"**{r['ratio']:.1f}x** | {r['ours_peak_GB']:.2f} GB | {r['relative_difference']:.0e} |\n"
        )
        if r["features_s"]:
            text += (
                f"| {r['features']} | features | {case} | {r['features_s']:.4f} s | {rival} | "
                f"**{r['features_ratio']:.0f}x** | no more | another mechanism |\n"
            )
    return text


def main() -> None:
    text = HEAD
    sections = {
        "utility": utility,
        "recipe": recipe,
        "transfer": transfer,
        "variations": variations,
        "limits": limits,
        "step": step,
        "scale": scale,
        "scattering": scattering,
    }
    for name, section in sections.items():
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            text += section(json.loads(path.read_text()))
    (HERE.parent / "docs" / "results.md").write_text(text)


def scattering(result: dict) -> str:
    machine, options = result["machine"], result["options"]
    command = f"--n {options['n']} --chunks {' '.join(map(str, options['chunks']))}"
    text = f"""
## Scattering transform

    python benchmarks/scattering.py {command} --json benchmarks/results/scattering.json

{machine["cpu"]}, {machine["cores"]} cores, JAX {machine["jax"]}, {machine["date"]}. Against kymatio's JAX frontend,
both jitted, each with the chunk that is best for it; milliseconds for each image (for each of {options["cotangents"]}
cotangents at one image in pull-back). The aim is 3x; what is below it is a miss.

| images | work | calls | kymatio | ours | ratio | kymatio, processor | ours, processor | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
    for r in result["rows"]:
        shape = "x".join(map(str, r["shape"]))
        text += (
            f"| {shape} | {r['work']} | {r['manner']} | {r['kymatio_ms']:.3f} | {r['limbeck_ms']:.3f} | "
            f"**{r['ratio']:.1f}x** | {r['kymatio_cpu_ms']:.3f} | {r['limbeck_cpu_ms']:.3f} | {r['cpu_ratio']:.1f}x |\n"
        )
    return text


if __name__ == "__main__":
    main()
