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
from limbeck.data import Images, Schema, Table, of_images
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.distill import DPKIP, Decant, PrivateDM, TableDecant
    from limbeck.measure import Records
    from limbeck.measure.store import Keeping
    from limbeck.privacy.journal import Journal
    from limbeck.privacy.plan import Plan
    from limbeck.release import Release


@app.command()
def distill(
    data: source.Data,
    out: Annotated[Path, typer.Option("--out", help="The release folder to write.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    per_class: options.PerClass = None,
    rows: options.Rows = None,
    class_shares: options.ClassShares = None,
    features: options.Features = "auto",
    method: options.Method = "auto",
    init: options.Init = None,
    serves: options.Serves = None,
    schema: source.Schema = None,
    unsafe_schema: options.UnsafeSchema = False,
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
    declared = source.declared(data, schema, tell=not as_json)
    options.check_schema(declared, unsafe_schema)
    features, sizes = options.resolved_kind(declared, features, per_class, rows, method, clip, preset)
    method, clip = options.resolved_method(
        method, features, preset=preset, epochs=epochs, optimiser=optimiser, clip=clip, clip_norm=clip_norm,
        steps=steps, project=project, valid_range=valid_range, smoothness=smoothness, learn_labels=learn_labels,
        serves=serves, learning_rate=learning_rate, batch=batch, init=init, class_shares=class_shares,
    )  # fmt: skip
    common: dict[str, Any] = {
        "batch": batch, "learning_rate": learning_rate, "ridge": ridge, "init_seed": init_seed, "rows": rows,
    }  # fmt: skip
    private = {
        "epsilon": epsilon, "delta": delta, "clip_norm": clip_norm, "relation": relation, "noise": noise, "seed": seed,
        "chunk": chunk,
    }  # fmt: skip
    if method in options.UNPROTECTED:
        if seed is not None or clip_norm is not None:
            raise RequestError(
                f"--seed and --clip-norm belong to private methods; {method} has no noise and no clipping."
            )
        if dataset is not None or ledger is not None:
            raise RequestError(
                f"--dataset and --ledger belong to private methods; {method} spends no budget: it keeps none."
            )
        if resume:
            raise RequestError(f"--resume belongs to private methods: {method} spends nothing, so start it again.")
    match method:
        case "kip":
            common |= {"learn_labels": learn_labels, "epochs": epochs, "optimiser": optimiser}
        case "dm":
            common |= {"init": init, "steps": steps}
        case "dpkip":
            common |= private | {"epochs": epochs, "optimiser": optimiser, "clip": clip, "labels": class_shares}
        case "decant":
            common |= private | {
                "steps": steps,
                "project": project,
                "valid_range": valid_range,
                "smoothness": smoothness,
            }
        case "private-dm":
            common |= private | {"smoothness": smoothness}
    settings = options.method_settings(method, features, sizes, preset, **common)

    from limbeck.measure.store import check_choice
    from limbeck.privacy.plan import check_privacy
    from limbeck.release.sealed import check_free

    check_privacy(epsilon, delta)
    keeping = check_choice(cache, precision)
    check_free(out, force)
    key = signing_key(sign) if sign else None

    def read() -> Images | Table:
        with progress(f"reading {data}"):
            return source.records(data, declared, data_dir=data_dir, labels=labels, resize=resize)

    if method in options.UNPROTECTED:
        release = _unprotected(method, declared, read, settings, keeping)
        release.save(out, force=force, sign=key)
    else:
        charge = Charge.of(data, dataset, ledger, no_ledger, unsafe=unsafe_schema)
        to = Destination(out, force, resume, as_json, key, keeping)
        model = options.private_model(method, declared, settings, serves)
        release = _private(model, read, charge, n or source.public_count(data), to)
    if as_json:
        print(json.dumps({"out": str(out), "records": len(release), "guarantee": str(release.guarantee)}))
        return
    done(f"{len(release)} records", out, release.guarantee, f"limbeck verify {out}; limbeck evaluate {out} --test TEST")


def _unprotected(
    method: str, schema: Schema, read: Callable[[], Images | Table], settings: dict[str, Any], keeping: "Keeping"
) -> "Release":
    """By a method that promises nothing, and that says so before it begins."""
    from limbeck.distill import DM, KIP
    from limbeck.distill.cost import check_memory
    from limbeck.measure import Records

    if full := settings.get("batch") == "full":
        del settings["batch"]
    if "rows" in settings:
        raise RequestError(f"--rows belongs to decant: {method} makes few rows, of which --per-class says how many.")
    if settings.get("per_class", 1) is None:
        del settings["per_class"]
    model = KIP(schema, **settings) if method == "kip" else DM(of_images(schema, "--method dm"), **settings)
    if isinstance(model, DM):
        model.check()
    images = read()
    errors.print(f"[bold red]{method} gives no privacy guarantee[/]: treat its output as the data itself.")
    if full:
        model.batch = len(images)
    if isinstance(model, DM):
        check_memory(model, len(images), **keeping)
        if model.init == "real":
            errors.print("[bold red]its images start as real records[/]: the release gives those away.")
    with progress("distilling") as report:
        records = Records(schema, images.x, images.y, images.units, **keeping)
        return model.fit(records, progress=report).release_


def _private(
    model: "DPKIP | Decant | PrivateDM | TableDecant",
    read: Callable[[], Images | Table],
    charge: Charge,
    n: int | None,
    to: Destination,
) -> "Release":
    def produce(records: "Records", plan: "Plan", journal: "Journal") -> "Release":
        with progress("distilling") as report:
            return model.fit(records, plan=plan, journal=journal, progress=report).release_

    return private_run(model, read, charge, n, to, recipe=model.recipe, produce=produce)
