"""`limbeck distill`: from records to a release."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli import app, options, source
from limbeck.cli.charge import Charge
from limbeck.cli.keys import signing_key
from limbeck.cli.run import Destination, done, private_run
from limbeck.cli.terminal import errors, progress
from limbeck.data import Images, ImageSchema
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from limbeck.distill import DPKIP, Decant, PrivateDM
    from limbeck.measure import Records
    from limbeck.privacy.journal import Journal
    from limbeck.privacy.plan import Plan
    from limbeck.release import Release


@app.command()
def distill(
    data: source.Data,
    out: Annotated[Path, typer.Option("--out", help="The release folder to write.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    per_class: options.PerClass = 10,
    features: options.Features = "scattering",
    method: options.Method = "auto",
    serves: options.Serves = None,
    schema: source.Schema = None,
    data_dir: source.DataDir = None,
    labels: source.Labels = None,
    resize: source.Resize = False,
    preset: options.Preset = None,
    batch: options.Batch = None,
    epochs: options.Epochs = None,
    steps: options.Steps = None,
    project: options.Project = None,
    learning_rate: options.LearningRate = None,
    clip: options.Clip = None,
    clip_norm: options.ClipNorm = None,
    ridge: options.Ridge = None,
    optimiser: options.Optimiser = None,
    learn_labels: Annotated[bool, typer.Option("--learn-labels", help="Learn the labels too (kip).")] = False,
    valid_range: options.ValidRange = None,
    smoothness: options.Smoothness = None,
    relation: options.Relation = "zero-out",
    noise: options.Noise = "normal",
    init_seed: options.InitSeed = None,
    seed: options.Seed = None,
    chunk: options.Chunk = None,
    cache: options.Cache = "auto",
    precision: options.Precision = "float32",
    dataset: options.Dataset = None,
    ledger: options.Ledger = None,
    no_ledger: options.NoLedger = False,
    n: options.Count = None,
    sign: options.Sign = None,
    force: options.Force = False,
    resume: options.Resume = False,
    as_json: options.AsJson = False,
) -> None:
    """Distil DATA into a small synthetic set under differential privacy, and write a release folder.

    The method is chosen by what is asked for, unless it is given, and the choice is told.
    """
    options.check_relation(relation)
    options.check_noise(noise)
    method, clip = options.resolved_method(
        method, features, preset=preset, epochs=epochs, optimiser=optimiser, clip=clip, clip_norm=clip_norm,
        steps=steps, project=project, valid_range=valid_range, smoothness=smoothness, learn_labels=learn_labels,
        serves=serves,
    )  # fmt: skip
    common: dict[str, Any] = {
        "batch": batch, "learning_rate": learning_rate, "ridge": ridge, "init_seed": init_seed,
    }  # fmt: skip
    private = {
        "epsilon": epsilon, "delta": delta, "clip_norm": clip_norm, "relation": relation, "noise": noise, "seed": seed,
        "chunk": chunk,
    }  # fmt: skip
    match method:
        case "kip":
            if seed is not None or clip_norm is not None:
                raise RequestError(
                    "--seed and --clip-norm belong to private methods; kip has no noise and no clipping."
                )
            if dataset is not None or ledger is not None:
                raise RequestError(
                    "--dataset and --ledger belong to private methods; kip spends no budget: it keeps none."
                )
            common |= {"learn_labels": learn_labels, "epochs": epochs, "optimiser": optimiser}
        case "dpkip":
            common |= private | {"epochs": epochs, "optimiser": optimiser, "clip": clip}
        case "decant":
            common |= private | {
                "steps": steps,
                "project": project,
                "valid_range": valid_range,
                "smoothness": smoothness,
            }
        case "private-dm":
            common |= private | {"smoothness": smoothness}
    settings = options.method_settings(method, features, per_class, preset, **common)

    from limbeck.measure.store import check_choice
    from limbeck.privacy.plan import check_privacy
    from limbeck.release.sealed import check_free

    check_privacy(epsilon, delta)
    keeping = check_choice(cache, precision)
    check_free(out, force)
    key = signing_key(sign) if sign else None
    declared = source.declared(data, schema, tell=not as_json)

    def read() -> Images:
        with progress(f"reading {data}"):
            return source.records(data, declared, data_dir=data_dir, labels=labels, resize=resize)

    if method == "kip":
        release = _kip(declared, read, settings, out, force, resume, key)
    else:
        charge = Charge.of(data, dataset, ledger, no_ledger)
        to = Destination(out, force, resume, as_json, key, keeping)
        model = options.private_model(method, declared, settings, serves)
        release = _private(model, read, charge, n or source.public_count(data), to)
    if as_json:
        print(json.dumps({"out": str(out), "records": len(release), "guarantee": str(release.guarantee)}))
        return
    done(f"{len(release)} records", out, release.guarantee, f"limbeck verify {out}; limbeck evaluate {out} --test TEST")


def _kip(
    schema: ImageSchema,
    read: Callable[[], Images],
    settings: dict,
    out: Path,
    force: bool,
    resume: bool,
    key: "Ed25519PrivateKey | None",
):
    from limbeck.distill import KIP
    from limbeck.measure import Records

    if resume:
        raise RequestError("--resume belongs to private methods: kip spends nothing, so start it again.")
    images = read()
    if settings.get("batch") == "full":
        settings["batch"] = len(images)
    errors.print("[bold red]kip gives no privacy guarantee[/]: treat its output as the data itself.")
    model = KIP(schema, **settings)
    with progress("distilling") as report:
        model.fit(Records(schema, images.x, images.y, images.units), progress=report)
    model.release_.save(out, force=force, sign=key)
    return model.release_


def _private(
    model: "DPKIP | Decant | PrivateDM",
    read: Callable[[], Images],
    charge: Charge,
    n: int | None,
    to: Destination,
) -> "Release":
    def produce(records: "Records", plan: "Plan", journal: "Journal") -> "Release":
        with progress("distilling") as report:
            return model.fit(records, plan=plan, journal=journal, progress=report).release_

    return private_run(model, read, charge, n, to, recipe=model.recipe, produce=produce)
