"""`limbeck evaluate`: what a release is worth."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
import typer

from limbeck.cli import app, source
from limbeck.cli.kept import KeptAccuracies
from limbeck.cli.run import work_folder
from limbeck.cli.table_evaluate import RELEASE, Settings, check_plots, judged_release, write_plots
from limbeck.cli.terminal import errors, output, progress
from limbeck.data import Images, ImageSchema, Table, TableSchema, of_images
from limbeck.errors import RequestError
from limbeck.files import private_folder, write_private

NETWORKS = "convnet,mlp,lenet,resnet"
VARIED: Literal["varied"] = "varied"


@app.command()
def evaluate(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    test: Annotated[str, typer.Option("--test", metavar="DATA", help="Real test records: a file, folder or name.")],
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="DATA", help="Real training records, for rows to compare with."),
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="Declare the test and reference records public: scores may be shared."),
    ] = False,
    networks: Annotated[
        str, typer.Option("--networks", metavar="NAMES", help="Networks to train, separated by commas, or none.")
    ] = NETWORKS,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Times each network or classifier is trained.")] = 3,
    train_on: Annotated[
        str,
        typer.Option(
            "--train-on",
            help="What networks are shown: varied, which is many variations of the images, labelled by the set's own "
            "regression; or the images alone, with soft labels or hard ones, which is sooner done.",
        ),
    ] = VARIED,
    full: Annotated[
        bool,
        typer.Option("--full", help="Train networks on all reference records too: slow, kept for later calls."),
    ] = False,
    data_dir: source.DataDir = None,
    labels: source.Labels = None,
    resize: source.Resize = False,
    protocol: Annotated[
        str,
        typer.Option("--protocol", help="Of tables: fixed settings, or the paper's, which are chosen on test rows."),
    ] = "fixed",
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive", metavar="CLASS", help="Of tables with two classes: the one to look for; else the second."
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="DIR", help="Of tables: a folder for plots beside real rows.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What a release is worth: what is trained on it, tested on real records.

    Of images, kernel ridge regression and networks; of a table, twelve classifiers, and how like real rows it is.

    The scores are computed from real records without noise, so they are private unless you declare those public.
    """
    from limbeck.release import load

    loaded = load(release)
    if isinstance(loaded.schema, TableSchema):
        of_images_only = {
            "--networks": networks != NETWORKS, "--train-on": train_on != VARIED, "--full": full,
            "--labels": labels is not None, "--resize": resize,
        }  # fmt: skip
        _refuse(of_images_only, "images, and this release is a table, which twelve classifiers are trained on")
        _evaluate_table(
            release, loaded, test, reference, data_dir, Settings(protocol, seeds, positive), plots, public, as_json
        )
        return
    of_tables_only = {
        "--protocol": protocol != "fixed",
        "--positive": positive is not None,
        "--plots": plots is not None,
    }
    _refuse(of_tables_only, "tables, and this release is of images, which networks are trained on")
    rows = _image_rows(
        release, loaded, test, reference, networks, seeds, train_on, full,
        {"data_dir": data_dir, "labels": labels, "resize": resize},
    )  # fmt: skip
    saved = save_scores(release, _facts(rows), str(loaded.guarantee), public)
    if as_json:
        print(saved.read_text())
        return
    output.print(score_table(rows, {"release": str(loaded.guarantee)}))
    _say_where(saved, public)


def _image_rows(
    release: Path,
    loaded: Any,
    test: str,
    reference: str | None,
    networks: str,
    seeds: int,
    train_on: str,
    full: bool,
    where: dict[str, Any],
) -> dict[str, Any]:
    """Scores of the release, and of real records where there are some, by name."""
    from limbeck.evaluate import evaluate_support, full_set_scores, random_subset_scores
    from limbeck.evaluate.variation import TrainOn
    from limbeck.features import from_config

    names = chosen_networks(networks)
    if train_on not in get_args(TrainOn):
        raise RequestError(f"--train-on is {train_on!r}; varied, soft or hard is expected.")
    if full and reference is None:
        raise RequestError("--full trains on the real training records, and none are given: add --reference DATA.")
    if full and not names:
        raise RequestError(f"--full trains networks, and --networks is {networks!r}: name some, or leave --full out.")
    schema = of_images(loaded.schema, "this evaluation")
    ridge = loaded.recipe["ridge"]
    features = from_config(loaded.recipe["features"], schema.shape)
    x_test, c_test = _encoded(source.records(test, schema, split="test", **where), schema)
    rows = {}
    with progress("evaluating the release") as report:
        rows["release"] = evaluate_support(
            loaded.encoded, loaded.soft, features, ridge, x_test, c_test, networks=names, seeds=seeds,
            train_on=cast(TrainOn, train_on), progress=report,
        )  # fmt: skip
    if reference is not None:
        x, c = _encoded(source.records(reference, schema, split="train", **where), schema)
        per_class, classes = loaded.recipe["per_class"], len(schema.classes)
        with progress("random real subset") as report:
            rows["random real subset"] = random_subset_scores(
                x, c, per_class, classes, features, ridge, x_test, c_test, networks=names, seeds=seeds,
                train_on=VARIED if train_on == VARIED else "hard", progress=report,
            )  # fmt: skip
        with progress("full training set") as report:
            scores = full_set_scores(x, c, classes, features, ridge, x_test, c_test, progress=report)
        kept = KeptAccuracies(release, (reference, x, c), (test, x_test, c_test))
        trained = {name: kept.found(name, classes, seeds, train=full) for name in names}
        rows["full training set"] = scores.model_copy(update={"networks": {n: a for n, a in trained.items() if a}})
    return rows


def _evaluate_table(
    release: Path,
    loaded: Any,
    test: str,
    reference: str | None,
    data_dir: Path | None,
    settings: Settings,
    plots: Path | None,
    public: bool,
    as_json: bool,
) -> None:
    """Everything is computed before anything is written."""
    if plots is not None:
        check_plots(plots, release)
    judged, tested = judged_release(release, loaded.schema, test, reference, data_dir, settings)
    if plots is not None:
        write_plots(judged, RELEASE, tested, loaded.schema, plots, public=public)
    saved = save_scores(release, judged.facts, str(loaded.guarantee), public)
    if as_json:
        print(saved.read_text())
        return
    judged.show({RELEASE: str(loaded.guarantee)})
    if plots is not None:
        output.print(f"plots are in {plots}{'' if public else ', as private as the scores'}", highlight=False)
    _say_where(saved, public)


def _refuse(given: dict[str, bool], why: str) -> None:
    """Options of the other kind of release, all of them at once."""
    wrong = [name for name, stated in given.items() if stated]
    if wrong:
        verb = "is" if len(wrong) == 1 else "are"
        raise RequestError(f"{', '.join(wrong)} {verb} for {why}: leave {'it' if len(wrong) == 1 else 'them'} out.")


def _say_where(saved: Path, public: bool) -> None:
    if public:
        output.print(f"scores are in {saved}", highlight=False, soft_wrap=True)
    else:
        errors.print(
            f"[yellow]private:[/] these scores were computed on real records without noise and are outside the "
            f"guarantee. They are in {saved}, mode 0600; declare the records public with --public if they are.",
            highlight=False,
            soft_wrap=True,
        )


def _encoded(real: Images | Table, schema: ImageSchema) -> tuple[np.ndarray, np.ndarray]:
    """Real records as they are: what is computed from them stays with the custodian, unless they are public."""
    assert isinstance(real, Images)
    return schema.encode(real.x.reveal(), real.y.reveal())


def chosen_networks(text: str) -> tuple[str, ...]:
    """Names of networks, separated by commas; none of them for "none"."""
    from limbeck.networks import NETWORKS

    if text == "none":
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not set(names) <= set(NETWORKS):
        raise RequestError(f"--networks is {text!r}; some of {','.join(NETWORKS)}, or none, is expected.")
    return names


def _facts(rows: dict) -> dict[str, Any]:
    return {"rows": {name: scores.model_dump(mode="json") for name, scores in rows.items()}}


def save_scores(release: Path, found: dict[str, Any], guarantee: str, public: bool) -> Path:
    """Into the work folder beside the release, never into it: private unless declared public."""
    path = private_folder(work_folder(release.resolve())) / ("scores.json" if public else "scores.private.json")
    facts = {"guarantee of the release": guarantee, "public": public, **found}
    write_private(path, json.dumps(facts, indent=1).encode())
    return path


def score_table(rows: dict, guarantees: dict[str, str]):
    """Scores as a table: a row a set, a column a network."""
    from rich.table import Table

    from limbeck.networks import NETWORKS

    trained = [name for name in NETWORKS if any(name in scores.networks for scores in rows.values())]
    headings = [f"{NETWORKS[name].__name__} accuracy" for name in trained]
    table = Table("set", "records", "KRR accuracy", *headings, "guarantee")
    for name, scores in rows.items():
        size = (
            f"{scores.records}"
            if scores.records == scores.available or "full" not in name
            else (f"{scores.records} of {scores.available}")
        )
        found = [_mean_and_spread(scores, network) for network in trained]
        table.add_row(name, size, f"{100 * scores.krr:.1f}", *found, guarantees.get(name, "real records"))
    return table


def _mean_and_spread(scores: Any, network: str) -> str:
    if network not in scores.networks:
        return "-"
    spread = scores.network_sd[network]
    return f"{100 * scores.network_mean[network]:.1f}" + (f" ± {100 * spread:.1f}" if spread is not None else "")
