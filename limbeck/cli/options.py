"""The options that describe a distillation, shared by `plan` and `distill`."""

from typing import Annotated, Any

import typer

from limbeck.errors import RequestError

Epsilon = Annotated[float, typer.Option("--epsilon", help="The privacy budget epsilon.")]
Delta = Annotated[float, typer.Option("--delta", help="The guarantee's delta; well below 1 / records.")]
PerClass = Annotated[int, typer.Option("--per-class", help="Synthetic images a class.")]
Method = Annotated[str, typer.Option("--method", help="dpkip, or kip, which has no privacy guarantee.")]
Features = Annotated[str, typer.Option("--features", help="scattering or fc-ntk.")]
Preset = Annotated[
    str | None, typer.Option("--preset", help="Settings of the paper's tables, as in fashion_mnist/10/eps1.")
]
Batch = Annotated[str | None, typer.Option("--batch", help="Expected records a step, or full.")]
Epochs = Annotated[float | None, typer.Option("--epochs", help="Passes over the data.")]
LearningRate = Annotated[float | None, typer.Option("--learning-rate", help="Step size.")]
ClipNorm = Annotated[float | None, typer.Option("--clip-norm", help="C: the largest norm of a contribution.")]
Ridge = Annotated[float | None, typer.Option("--ridge", help="lambda, relative to the kernel's mean diagonal.")]
Optimiser = Annotated[str | None, typer.Option("--optimiser", help="adam or sgd.")]
Relation = Annotated[str, typer.Option("--relation", help="Neighbouring relation: zero-out or replace-one.")]
Noise = Annotated[
    str, typer.Option("--noise", help="normal, or discrete: integers, proof against floating-point attacks.")
]
InitSeed = Annotated[int | None, typer.Option("--init-seed", help="Public seed of the initial images.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of the noise, for tests: the release is then NOT private.")
]
Chunk = Annotated[int | None, typer.Option("--chunk", help="Records computed at a time: sets the memory.")]

Ledger = Annotated[
    str | None,
    typer.Option("--ledger", help="The budget ledger: a path or postgresql://...; LIMBECK_LEDGER by default."),
]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="The dataset's name in the ledger; by default the data's own.")
]
Count = Annotated[int | None, typer.Option("--n", help="Records (or persons) in DATA: public. Not read.")]


def method_settings(method: str, features: str, per_class: int, preset: str | None, **given: Any) -> dict[str, Any]:
    """Constructor arguments: the preset's, overridden by what was given on the command line."""
    from limbeck.distill import presets

    settings = presets.settings(method, features, preset) if preset else {}
    settings |= {"features": features, "per_class": per_class}
    settings |= {name: value for name, value in given.items() if value is not None}
    if isinstance(settings.get("batch"), str) and settings["batch"] != "full":
        try:
            settings["batch"] = int(settings["batch"])
        except ValueError:
            raise RequestError(f"--batch is {settings['batch']!r}; a whole number or full is expected.") from None
    if settings.get("optimiser", "adam") not in ("adam", "sgd"):
        raise RequestError(f"--optimiser is {settings['optimiser']!r}; adam or sgd is expected.")
    for name in ("epochs", "learning_rate", "clip_norm", "ridge", "chunk"):
        if name in settings and not 0 < settings[name] < float("inf"):
            raise RequestError(f"--{name.replace('_', '-')} is {settings[name]}; a positive number is expected.")
    return settings


def check_noise(noise: str) -> None:
    if noise not in ("normal", "discrete"):
        raise RequestError(f"--noise is {noise!r}; normal or discrete is expected.")


def check_relation(relation: str) -> None:
    if relation not in ("zero-out", "replace-one"):
        raise RequestError(f"--relation is {relation!r}; zero-out or replace-one is expected.")
