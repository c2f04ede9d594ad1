"""`limbeck plan`: what will be spent on what, before any data is read."""

import json
from typing import Annotated

import typer

from limbeck.cli import app, options, source
from limbeck.cli.terminal import errors, output
from limbeck.errors import RequestError


@app.command()
def plan(
    data: source.Data,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    per_class: options.PerClass = None,
    rows: options.Rows = None,
    class_shares: options.ClassShares = None,
    features: options.Features = "auto",
    method: options.Method = "auto",
    serves: options.Serves = None,
    n: options.Count = None,
    schema: source.Schema = None,
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
    relation: options.Relation = "zero-out",
    noise: options.Noise = "normal",
    chunk: options.Chunk = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Dry run: what will be spent on what, the noise, the time and the memory. Reads no data."""
    options.check_relation(relation)
    options.check_noise(noise)
    declared = source.declared(data, schema, tell=not as_json)
    features, sizes = options.resolved_kind(declared, features, per_class, rows, method, clip, preset)
    method, clip = options.resolved_method(
        method, features, preset=preset, epochs=epochs, optimiser=optimiser, clip=clip, clip_norm=clip_norm,
        steps=steps, project=project, serves=serves, learning_rate=learning_rate, batch=batch,
        class_shares=class_shares,
    )  # fmt: skip
    if method in options.UNPROTECTED:
        raise RequestError(f"{method} measures nothing under a plan; --method decant, private-dm or dpkip is expected.")
    settings = options.method_settings(
        method, features, sizes, preset, epsilon=epsilon, delta=delta, batch=batch, epochs=epochs, steps=steps,
        project=project, learning_rate=learning_rate, clip=clip, clip_norm=clip_norm, ridge=ridge, optimiser=optimiser,
        chunk=chunk, relation=relation, noise=noise, rows=rows, labels=class_shares,
    )  # fmt: skip
    n = n or source.public_count(data)
    if n is None:
        raise RequestError(f"how many records {data} holds is not known without reading it: say it with --n.")

    from limbeck.distill.cost import check_memory, expected_memory, expected_seconds

    model = options.private_model(method, declared, settings, serves)
    check_memory(model, n)
    planned = model.plan(n)
    warn_delta(delta, n)
    seconds = expected_seconds(model, planned)
    if as_json:
        facts = {
            "plan": planned.model_dump(mode="json"),
            "epsilon": planned.epsilon,
            "curve": planned.curve,
            "recipe": model.recipe(planned),
            "memory_bytes": expected_memory(model, n),
            "seconds": seconds,
        }
        print(json.dumps(facts, indent=1))
        return
    output.print(summary(planned))
    output.print(
        f"expected memory {expected_memory(model, n) / 2**30:.2f} GiB, time {seconds / 60:.1f} min "
        "(rehearsed on noise); nothing was read and nothing is spent"
    )


def warn_delta(delta: float, n: int) -> None:
    if delta > 1 / n:
        errors.print(
            f"[yellow]warning:[/] delta {delta:g} is above 1/n = {1 / n:.2g}: publishing a few records outright "
            "would satisfy it. Choose a smaller delta.",
            highlight=False,
            soft_wrap=True,
        )


def summary(planned) -> "object":
    """The plan as a table."""
    from rich.table import Table

    table = Table(
        title=f"plan: epsilon {planned.epsilon:.4g} at delta {planned.delta:g}, per {planned.unit}, "
        f"{planned.relation}, {planned.n} units",
        title_justify="left",
    )
    for name in ("measurement", "answers", "batch", "cap", "q", "clip C", "sigma", "noise / answer"):
        table.add_column(name, justify="left" if name == "measurement" else "right")
    for m in planned.measurements:
        s = m.sampling
        table.add_row(
            m.name, str(m.steps), f"{s.expected:.0f}", str(s.cap), f"{s.q:.4g}", f"{m.clip:g}", f"{m.sigma:.4f}",
            f"{m.sigma * m.clip / s.expected:.3g}",
        )  # fmt: skip
    return table
