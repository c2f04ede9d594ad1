"""`limbeck distill`: from records to a release."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli import app, options, source
from limbeck.cli.charge import Charge
from limbeck.cli.keys import signing_key
from limbeck.cli.plan import summary, warn_delta
from limbeck.cli.terminal import errors, output, progress
from limbeck.data import Images, ImageSchema
from limbeck.errors import RequestError
from limbeck.files import private_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from limbeck.distill import DPKIP
    from limbeck.privacy.plan import Plan


@app.command()
def distill(
    data: source.Data,
    out: Annotated[Path, typer.Option("--out", help="The release folder to write.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    per_class: options.PerClass = 10,
    features: options.Features = "scattering",
    method: options.Method = "dpkip",
    schema: source.Schema = None,
    data_dir: source.DataDir = None,
    labels: source.Labels = None,
    resize: source.Resize = False,
    preset: options.Preset = None,
    batch: options.Batch = None,
    epochs: options.Epochs = None,
    learning_rate: options.LearningRate = None,
    clip_norm: options.ClipNorm = None,
    ridge: options.Ridge = None,
    optimiser: options.Optimiser = None,
    learn_labels: Annotated[bool, typer.Option("--learn-labels", help="Learn the labels too (kip).")] = False,
    relation: options.Relation = "zero-out",
    noise: options.Noise = "normal",
    init_seed: options.InitSeed = None,
    seed: options.Seed = None,
    chunk: options.Chunk = None,
    dataset: options.Dataset = None,
    ledger: options.Ledger = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Record nothing; the certificate says so.")] = False,
    n: options.Count = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign with this key, NAME.key of `limbeck keys new`.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run; spends nothing twice.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Distil DATA into a small synthetic set under differential privacy, and write a release folder."""
    options.check_relation(relation)
    options.check_noise(noise)
    common: dict[str, Any] = {
        "batch": batch, "epochs": epochs, "learning_rate": learning_rate, "ridge": ridge,
        "optimiser": optimiser, "init_seed": init_seed,
    }  # fmt: skip
    if method == "kip":
        if seed is not None or clip_norm is not None:
            raise RequestError("--seed and --clip-norm belong to private methods; kip has no noise and no clipping.")
        if dataset is not None or ledger is not None:
            raise RequestError("--dataset and --ledger belong to private methods; kip spends no budget: it keeps none.")
        common |= {"learn_labels": learn_labels}
    elif method == "dpkip":
        if learn_labels:
            raise RequestError("--learn-labels belongs to kip: dpkip keeps the labels fixed, which costs no budget.")
        common |= {
            "epsilon": epsilon, "delta": delta, "clip_norm": clip_norm, "relation": relation, "noise": noise,
            "seed": seed, "chunk": chunk,
        }  # fmt: skip
    else:
        raise RequestError(f"--method is {method!r}; dpkip or kip is expected.")
    settings = options.method_settings(method, features, per_class, preset, **common)

    from limbeck.privacy.plan import check_privacy
    from limbeck.release.folder import check_free

    check_privacy(epsilon, delta)
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
        n = n or source.public_count(data)
        release = _dpkip(declared, read, settings, charge, n, out, force, resume, as_json, key)
    if as_json:
        print(json.dumps({"out": str(out), "records": len(release), "guarantee": str(release.guarantee)}))
        return
    colour = {"private": "green", "seeded": "bold red", "none": "bold red"}[release.guarantee.status]
    output.print(f"{len(release)} records in {out}: [{colour}]{release.guarantee}[/]", highlight=False)
    output.print(f"next: limbeck verify {out}; limbeck evaluate {out} --test TEST", highlight=False)


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


def _dpkip(
    schema: ImageSchema,
    read: Callable[[], Images],
    settings: dict,
    charge: Charge,
    n: int | None,
    out: Path,
    force: bool,
    resume: bool,
    quiet: bool,
    key: "Ed25519PrivateKey | None",
):
    """Checked against the ledger before the data is read where n is public, charged before it is measured."""
    from limbeck.distill import DPKIP
    from limbeck.measure import Records
    from limbeck.privacy.journal import Journal

    if settings.get("seed") is not None:
        errors.print("[bold red]not private: seeded.[/] Whoever knows the seed can subtract the noise.")
    model = DPKIP(schema, **settings)
    fresh = None if resume else charge  # a run that is resumed has been charged
    if fresh:
        fresh.check_request(settings, schema.unit)
    plan = _planned(model, n, fresh, quiet) if n else None
    images = read()
    records = Records(schema, images.x, images.y, images.units)
    if plan is None:
        plan = _planned(model, records.n, fresh, quiet)
    if records.n != plan.n:
        raise RequestError(
            f"the data holds {records.n} {schema.unit}s, and the plan is for {plan.n}: noise and sampling depend on "
            "that number. Give it with --n, or leave --n out."
        )
    work = work_folder(out)
    request: dict[str, Any] = {"plan": plan.model_dump(mode="json"), "schema": schema.model_dump(mode="json")}
    request |= {k: v for k, v in model.recipe(plan).items() if k != "init_seed"}
    request |= {"data": images.source, "ledger": charge.request}
    journal = Journal.resume(work / "run", request) if resume else Journal.start(private_folder(work) / "run", request)
    recorded: dict[str, Any] | None = None
    try:
        model.init_seed = journal.remember("init_seed", model.init_seed)
        with progress("features") as report:
            records.prepare(model.resolved_features(), progress=report)
        # From here on the run is charged; a crash before leaves a folder that nothing was measured in, and resuming
        # it comes by here.
        recorded = charge.reserve(journal.run, plan, records, out)
        with progress("distilling") as report:
            model.fit(records, plan=plan, journal=journal, progress=report)
        release = replace(model.release_, ledger=recorded)
        release.save(out, force=force, sign=key)
    except BaseException as error:
        journal.close()
        if recorded is None and not resume:
            _discard(work)
        if isinstance(error, KeyboardInterrupt) and recorded is not None:
            errors.print(
                f"\nstopped; what has been measured is kept in {work}. Continue, without spending again, with the "
                "same command and --resume.",
                highlight=False,
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
        raise
    journal.finish()
    charge.complete(journal.run)
    _remove_if_empty(work)
    return release


def _planned(model: "DPKIP", n: int, charge: Charge | None, quiet: bool) -> "Plan":
    from limbeck.distill.cost import check_memory

    check_memory(model, n)
    warn_delta(model.delta, n)
    with progress("planning"):
        plan = model.plan(n)
    if not quiet:
        output.print(summary(plan))
    if charge:
        charge.check(plan)
    return plan


def _discard(work: Path) -> None:
    """Drop the folder of a run that was not charged, so that nothing was measured in it."""
    shutil.rmtree(work / "run")
    _remove_if_empty(work)


def _remove_if_empty(folder: Path) -> None:
    if not os.listdir(folder):
        folder.rmdir()


def work_folder(out: Path) -> Path:
    """What stays with the custodian: checkpoints, and scores that were computed on private records."""
    return out.with_name(out.name + ".work")
