"""`limbeck demo`: the main job on embedded data, ending with a table and a folder to look at."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from limbeck.cli import app
from limbeck.cli.evaluate import score_table
from limbeck.cli.table_demo import table_demo
from limbeck.cli.terminal import errors, output, progress
from limbeck.release.sealed import check_free

PER_CLASS = 10
EPSILONS = (10.0, 1.0)
DELTA = 1e-4  # below 1 / 1437, the number of records
RIDGE = 1e-2  # of the sets that no teacher is poured into
EPOCHS = 30  # of KIP
SEEDS = 2  # ConvNets a row


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")] = Path("demo"),
    table: Annotated[bool, typer.Option("--table", help="A table in place of images: breast cancer data.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Distil scikit-learn's handwritten digits, with and without privacy, and compare. A minute or two.

    With --table, distil its breast cancer data at two epsilons and train twelve classifiers. Under a minute.
    """
    check_free(out, force)
    if table:
        table_demo(out, force=force, as_json=as_json)
        return
    from limbeck.data import entry, load
    from limbeck.distill import KIP, Decant
    from limbeck.evaluate import evaluate_support, random_subset_scores

    schema = entry("digits").schema
    train, test = load("digits", "train"), load("digits", "test")
    # The digits are public, so they and their scores may be shown; private records and theirs may not.
    x_test, c_test = schema.encode(test.x.reveal(), test.y.reveal())
    x, c = schema.encode(train.x.reveal(), train.y.reveal())
    private = {f"Decant, epsilon {e:g}": Decant(schema, epsilon=e, delta=DELTA, per_class=PER_CLASS) for e in EPSILONS}
    features = next(iter(private.values())).resolved_features()
    kip = KIP(schema, per_class=PER_CLASS, features=features, batch=256, ridge=RIDGE, epochs=EPOCHS, learning_rate=0.03)

    rows, guarantees, releases = {}, {}, {}
    with progress("random real subset") as report:
        rows["random real subset"] = random_subset_scores(
            x, c, PER_CLASS, len(schema.classes), features, RIDGE, x_test, c_test, seeds=SEEDS, progress=report
        )
    guarantees["random real subset"] = "none: these are real records"
    models: dict[str, KIP | Decant] = {"KIP": kip, **private}
    for name, model in models.items():
        with progress(name) as report:
            model.fit_resample(train.x, train.y, progress=report)
        release = model.release_
        with progress(f"evaluating {name}") as report:
            rows[name] = evaluate_support(
                release.encoded,
                release.soft,
                features,
                release.recipe["ridge"],
                x_test,
                c_test,
                seeds=SEEDS,
                progress=report,
            )
        guarantees[name], releases[name] = str(release.guarantee), release

    out.mkdir(parents=True, exist_ok=True)
    for release in releases.values():
        if release.guarantee.status == "private":
            release.save(out / f"release-eps{release.recipe['epsilon']:g}", force=force)
    chosen = np.concatenate([np.flatnonzero(c == k)[:PER_CLASS] for k in range(len(schema.classes))])
    _pictures(out / "digits.png", {"real": schema.decode(x[chosen]), **{n: r.x for n, r in releases.items()}})
    _plot(out / "accuracy.png", rows)
    facts = {n: {**s.model_dump(mode="json"), "guarantee": guarantees[n]} for n, s in rows.items()}
    (out / "scores.json").write_text(json.dumps(facts, indent=1) + "\n")
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    output.print(score_table(rows, guarantees))
    output.print(f"look at {out}: digits.png, accuracy.png, and a release per private row", highlight=False)
    errors.print(f"next: limbeck verify {out}/release-eps1", highlight=False)


def _pictures(path: Path, sets: dict[str, np.ndarray]) -> None:
    """One panel a set: ten digits a class, real and distilled side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from limbeck.release.pictures import grid

    figure, axes = plt.subplots(1, len(sets), figsize=(4 * len(sets), 4.4))
    for axis, (name, x) in zip(axes, sets.items(), strict=True):
        axis.imshow(np.asarray(grid(x, PER_CLASS, scale=4)))
        axis.set_title(name)
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _plot(path: Path, rows: dict) -> None:
    """Accuracy against epsilon, with the sets that have none as lines to compare with."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4))
    epsilons = sorted(EPSILONS)
    private = [rows[f"Decant, epsilon {e:g}"] for e in epsilons]
    axis.plot(epsilons, [100 * s.krr for s in private], "o-", label="Decant, KRR")
    axis.errorbar(
        epsilons, [100 * s.network_mean["convnet"] for s in private], [100 * s.network_sd["convnet"] for s in private],
        fmt="s--", capsize=3, label="Decant, ConvNet",
    )  # fmt: skip
    axis.axhline(100 * rows["KIP"].krr, color="tab:red", label="KIP, KRR (no privacy)")
    axis.axhline(100 * rows["random real subset"].krr, color="grey", label="random real subset, KRR")
    axis.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="test accuracy (%)",
        title=f"digits, {PER_CLASS} images a class",
    )
    axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
