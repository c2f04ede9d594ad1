"""`limbeck distill`: from records to a release."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli import app, options, source
from limbeck.cli.plan import summary, warn_delta
from limbeck.cli.terminal import errors, output, progress
from limbeck.errors import RequestError


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
    init_seed: options.InitSeed = None,
    seed: options.Seed = None,
    chunk: options.Chunk = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run; spends nothing twice.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Distil DATA into a small synthetic set under differential privacy, and write a release folder."""
    options.check_relation(relation)
    common: dict[str, Any] = {
        "batch": batch, "epochs": epochs, "learning_rate": learning_rate, "ridge": ridge,
        "optimiser": optimiser, "init_seed": init_seed,
    }  # fmt: skip
    if method == "kip":
        if seed is not None or clip_norm is not None:
            raise RequestError("--seed and --clip-norm belong to private methods; kip has no noise and no clipping.")
        common |= {"learn_labels": learn_labels}
    elif method == "dpkip":
        if learn_labels:
            raise RequestError("--learn-labels belongs to kip: dpkip keeps the labels fixed, which costs no budget.")
        common |= {
            "epsilon": epsilon, "delta": delta, "clip_norm": clip_norm, "relation": relation, "seed": seed,
            "chunk": chunk,
        }  # fmt: skip
    else:
        raise RequestError(f"--method is {method!r}; dpkip or kip is expected.")
    settings = options.method_settings(method, features, per_class, preset, **common)

    from limbeck.privacy.plan import check_privacy
    from limbeck.release.folder import check_free

    check_privacy(epsilon, delta)
    check_free(out, force)
    declared = source.declared(data, schema, tell=not as_json)
    with progress(f"reading {data}"):
        images = source.records(data, declared, data_dir=data_dir, labels=labels, resize=resize)

    run = _kip if method == "kip" else _dpkip
    release = run(declared, images, settings, out, force, resume, as_json)
    if as_json:
        print(json.dumps({"out": str(out), "records": len(release), "guarantee": str(release.guarantee)}))
        return
    colour = {"private": "green", "seeded": "bold red", "none": "bold red"}[release.guarantee.status]
    output.print(f"{len(release)} records in {out}: [{colour}]{release.guarantee}[/]", highlight=False)
    output.print(f"next: limbeck verify {out}; limbeck evaluate {out} --test TEST", highlight=False)


def _kip(schema, images, settings: dict, out: Path, force: bool, resume: bool, quiet: bool):
    from limbeck.distill import KIP
    from limbeck.measure import Records

    if resume:
        raise RequestError("--resume belongs to private methods: kip spends nothing, so start it again.")
    if settings.get("batch") == "full":
        settings["batch"] = len(images)
    errors.print("[bold red]kip gives no privacy guarantee[/]: treat its output as the data itself.")
    model = KIP(schema, **settings)
    with progress("distilling") as report:
        model.fit(Records(schema, images.x, images.y, images.units), progress=report)
    model.release_.save(out, force=force)
    return model.release_


def _dpkip(schema, images, settings: dict, out: Path, force: bool, resume: bool, quiet: bool):
    from limbeck.distill import DPKIP
    from limbeck.distill.cost import check_memory
    from limbeck.measure import Records
    from limbeck.privacy.journal import Journal

    if settings.get("seed") is not None:
        errors.print("[bold red]not private: seeded.[/] Whoever knows the seed can subtract the noise.")
    model = DPKIP(schema, **settings)
    records = Records(schema, images.x, images.y, images.units)
    check_memory(model, records.n)
    warn_delta(model.delta, records.n)
    with progress("planning"):
        plan = model.plan(records.n)
    if not quiet:
        output.print(summary(plan))
    work = work_folder(out)
    request = {"plan": plan.model_dump(mode="json"), "schema": schema.model_dump(mode="json")}
    request |= {k: v for k, v in model.recipe(plan).items() if k != "init_seed"} | {"data": images.source}
    journal = Journal.resume(work / "run", request) if resume else Journal.start(work / "run", request)
    try:
        model.init_seed = journal.remember("init_seed", model.init_seed)
        with progress("features") as report:
            records.prepare(model.resolved_features(), progress=report)
        with progress("distilling") as report:
            model.fit(records, plan=plan, journal=journal, progress=report)
        model.release_.save(out, force=force)
        journal.finish()
        if not os.listdir(work):
            work.rmdir()
    except BaseException as error:
        journal.close()
        if isinstance(error, KeyboardInterrupt):
            errors.print(
                f"\nstopped; what has been measured is kept in {work}. Continue, without spending again, with the "
                "same command and --resume.",
                highlight=False,
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
        raise
    return model.release_


def work_folder(out: Path) -> Path:
    """What stays with the custodian: checkpoints, and scores that were computed on private records."""
    return out.with_name(out.name + ".work")
