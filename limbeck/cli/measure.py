"""`limbeck measure`: from records to a signal, where the data lives."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli import app, options, source
from limbeck.cli.charge import Charge
from limbeck.cli.keys import signing_key
from limbeck.cli.run import Destination, done, private_run
from limbeck.cli.terminal import progress
from limbeck.data import Images, Table, TableSchema

if TYPE_CHECKING:
    from limbeck.measure import Records
    from limbeck.privacy.journal import Journal
    from limbeck.privacy.plan import Plan
    from limbeck.release import Signal


@app.command()
def measure(
    data: source.Data,
    out: Annotated[Path, typer.Option("--out", help="The signal folder to write.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    features: options.Features = "auto",
    serves: options.Serves = None,
    schema: source.Schema = None,
    unsafe_schema: options.UnsafeSchema = False,
    data_dir: source.DataDir = None,
    labels: source.Labels = None,
    resize: source.Resize = False,
    batch: options.Batch = None,
    steps: options.Steps = None,
    project: options.Project = None,
    learning_rate: options.LearningRate = None,
    clip_norm: options.ClipNorm = None,
    relation: options.Relation = "zero-out",
    noise: options.Noise = "normal",
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
    """Measure DATA once, under differential privacy, and write a signal folder.

    `limbeck fit` makes datasets of any size of it, without the data and without spending again.
    """
    options.check_relation(relation)
    options.check_noise(noise)
    declared = source.declared(data, schema, tell=not as_json)
    options.check_schema(declared, unsafe_schema)
    features, _ = options.resolved_kind(declared, features, None, None)
    table = isinstance(declared, TableSchema)
    if serves is None and not table:  # what is of the teacher alone is asked for where a teacher is all that is wanted
        of_teacher = (steps, project, learning_rate, clip_norm, "full" if batch == "full" else None)
        serves = "both" if all(value is None for value in of_teacher) else "krr"
    method, _ = options.resolved_method("auto", features, serves=serves, steps=steps, project=project)
    settings = options.method_settings(
        method, features, None if table else 1, None, epsilon=epsilon, delta=delta, batch=batch, steps=steps,
        project=project, learning_rate=learning_rate, clip_norm=clip_norm, relation=relation, noise=noise, seed=seed,
        chunk=chunk,
    )  # fmt: skip

    from limbeck.distill import DPKIP
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

    model = options.private_model(method, declared, settings, serves)
    assert not isinstance(model, DPKIP)

    def produce(records: "Records", plan: "Plan", journal: "Journal") -> "Signal":
        with progress("measuring") as report:
            return model.measure(records, plan=plan, journal=journal, progress=report)

    charge = Charge.of(data, dataset, ledger, no_ledger, unsafe=unsafe_schema)
    signal = private_run(
        model,
        read,
        charge,
        n or source.public_count(data),
        Destination(out, force, resume, as_json, key, keeping),
        recipe=model.signal_recipe,
        produce=produce,
    )
    if as_json:
        print(json.dumps({"out": str(out), "guarantee": str(signal.guarantee)}))
        return
    done("a signal", out, signal.guarantee, f"limbeck verify {out}; limbeck fit {out} --out RELEASE")
