"""The options that describe a distillation, shared by `plan`, `distill`, `measure` and `fit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.terminal import note
from limbeck.data import Schema, TableSchema, of_images
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.distill import DPKIP, Decant, PrivateDM, TableDecant

PerClassOf = int | dict[str, int] | None
Epsilon = Annotated[float, typer.Option("--epsilon", help="The privacy budget epsilon.")]
Delta = Annotated[float, typer.Option("--delta", help="The guarantee's delta; well below 1 / records.")]
PerClass = Annotated[
    str | None,
    typer.Option(
        "--per-class",
        metavar="N | CLASS=N,...",
        help="Synthetic records a class: 10 of images; of a table, for a small set, or a number for each class.",
    ),
]
Rows = Annotated[
    int | None, typer.Option("--rows", help="Synthetic rows of a table; by default, as its recipe has it.")
]
Method = Annotated[
    str, typer.Option("--method", help="auto, decant, private-dm, dpkip; or kip, dm: no privacy guarantee.")
]
Serves = Annotated[
    str | None,
    typer.Option("--for", help="What the set is to serve: krr (kernel ridge regression), networks, or both (default)."),
]
Init = Annotated[
    str | None,
    typer.Option("--init", help="What images start from (dm): random, or real: records, which the release gives away."),
]
Features = Annotated[str, typer.Option("--features", help="auto, scattering (images), table (rows), or fc-ntk.")]
ClassShares = Annotated[
    str | None,
    typer.Option(
        "--class-shares",
        help="Of a table's rows (dpkip): uniform, or counted: as the classes were counted, with a share of the budget.",
    ),
]
Preset = Annotated[
    str | None, typer.Option("--preset", help="Settings of the paper's tables, as in fashion_mnist/10/eps1.")
]
Batch = Annotated[
    str | None, typer.Option("--batch", help="Expected records a step (dm: of each class), a share of them, or full.")
]
Epochs = Annotated[float | None, typer.Option("--epochs", help="Passes over the data.")]
Project = Annotated[
    int | None, typer.Option("--project", help="Dimensions to project the features to, at random (decant).")
]
Steps = Annotated[int | None, typer.Option("--steps", help="Gradients asked for (decant), or steps of matching (dm).")]
LearningRate = Annotated[float | None, typer.Option("--learning-rate", help="Step size.")]
Clip = Annotated[
    str | None, typer.Option("--clip", help="Where gradients are clipped (dpkip): inputs (pixels) or features.")
]
ClipNorm = Annotated[float | None, typer.Option("--clip-norm", help="C: the largest norm of a contribution.")]
Ridge = Annotated[float | None, typer.Option("--ridge", help="lambda, relative to the kernel's mean diagonal.")]
Optimiser = Annotated[str | None, typer.Option("--optimiser", help="adam or sgd.")]
ValidRange = Annotated[
    bool | None,
    typer.Option("--valid-range/--free-range", help="Hold pixels within the declared range, or not (decant)."),
]
Smoothness = Annotated[
    float | None,
    typer.Option("--smoothness", help="How much neighbouring pixels are held together (decant, private-dm)."),
]
UnsafeSchema = Annotated[
    bool,
    typer.Option("--unsafe-schema", help="Take a schema that was read from the data: NO privacy guarantee then."),
]
Relation = Annotated[str, typer.Option("--relation", help="Neighbouring relation: zero-out or replace-one.")]
Noise = Annotated[
    str, typer.Option("--noise", help="normal, or discrete: integers, proof against floating-point attacks.")
]
InitSeed = Annotated[int | None, typer.Option("--init-seed", help="Public seed of the initial images.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of the noise, for tests: the release is then NOT private.")
]
Chunk = Annotated[int | None, typer.Option("--chunk", help="Records computed at a time: sets the memory.")]

Cache = Annotated[
    str,
    typer.Option(
        "--cache", help="Where features are kept: memory, disk (a file without a name), or auto, by their size."
    ),
]
Precision = Annotated[str, typer.Option("--precision", help="Of kept features: float32, or float16, half the room.")]
Ledger = Annotated[
    str | None,
    typer.Option("--ledger", help="The budget ledger: a path or postgresql://...; LIMBECK_LEDGER by default."),
]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="The dataset's name in the ledger; by default the data's own.")
]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Record nothing; the certificate says so.")]
Sign = Annotated[Path | None, typer.Option("--sign", help="Sign with this key, NAME.key of `limbeck keys new`.")]
Force = Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run; spends nothing twice.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Count = Annotated[int | None, typer.Option("--n", help="Records (or persons) in DATA: public. Not read.")]


METHODS = ("decant", "private-dm", "dpkip", "kip", "dm")
UNPROTECTED = ("kip", "dm")  # no privacy guarantee: never chosen unless asked for by name
SERVING = {"krr": "decant", "networks": "private-dm", "both": "private-dm"}
FINITE = ("scattering", "table")  # features that are a finite map
OWNERS = {  # of options that not all methods have
    "preset": ("kip", "dpkip"),
    "epochs": ("kip", "dpkip"),
    "optimiser": ("kip", "dpkip"),
    "clip": ("dpkip",),
    "class_shares": ("dpkip",),
    "steps": ("decant", "dm"),
    "init": ("dm",),
    "project": ("decant",),
    "valid_range": ("decant",),
    "smoothness": ("decant", "private-dm"),
}


def resolved_kind(
    schema: Schema,
    features: str,
    per_class: str | None,
    rows: int | None,
    method: str = "auto",
    clip: str | None = None,
    preset: str | None = None,
) -> tuple[str, PerClassOf]:
    """Features, and records a class, as the kind of data has them when they are not given."""
    sizes = sizes_of(per_class)
    if isinstance(schema, TableSchema):
        if features not in ("auto", "table", "fc-ntk"):
            raise RequestError(f"--features {features} is for images; of a table, table or fc-ntk is expected.")
        of_kernel = clip != "features" and (method in ("dpkip", "kip") or clip is not None or preset is not None)
        return ("fc-ntk" if of_kernel else "table") if features == "auto" else features, sizes
    if features == "table" or rows is not None or isinstance(sizes, dict):
        given = {"--rows": rows is not None, "--features table": features == "table", f"--per-class {per_class}": True}
        wrong = next(option for option, is_given in given.items() if is_given)
        raise RequestError(f"{wrong} is for tables; the schema declares images.")
    return "scattering" if features == "auto" else features, 10 if sizes is None else sizes


def sizes_of(per_class: str | None) -> PerClassOf:
    """`10`, or `no=30,yes=10`: a class's name is all that stands before the last equals sign."""
    if per_class is None or (text := per_class.strip()).removeprefix("-").isdecimal():
        return None if per_class is None else int(text)
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        name = name.strip()
        if not name or not number.strip().isdecimal() or name in sizes:
            raise RequestError(
                f"--per-class is {per_class!r}; a whole number is expected, or one for each class, named once, as in "
                "no=30,yes=10."
            )
        sizes[name] = int(number)
    return sizes


def resolved_method(
    method: str, features: str, *, learn_labels: bool = False, serves: str | None = None, **given: Any
) -> tuple[str, str | None]:
    """The method, and where dpkip clips. auto is chosen by what is asked for, and why is told on stderr.

    `given` are the options that not all methods have, by their parameters' names.
    """
    given = {name: value for name, value in given.items() if value is not None}
    clip = given.get("clip")
    if serves is not None:
        check_serves(serves)
        if method not in ("auto", SERVING[serves]):
            raise RequestError(f"--for {serves} is what {SERVING[serves]} does; the method is {method}.")
        method = SERVING[serves]
    if method == "auto":
        method, clip, why = _chosen(features, given)
        note(f"method {method}: {why}")
    if method not in METHODS:
        raise RequestError(f"--method is {method!r}; auto, {', '.join(METHODS)} is expected.")
    if learn_labels and method != "kip":
        said = {"dpkip": "keeps the labels fixed, or learns them at no cost", "dm": "keeps the labels fixed"}
        raise RequestError(f"--learn-labels belongs to kip: {method} {said.get(method, 'labels by its teacher')}.")
    for name in given:
        if method not in OWNERS.get(name, METHODS):
            owners = " and ".join(OWNERS[name])
            raise RequestError(f"--{name.replace('_', '-')} belongs to {owners}; the method is {method}.")
    return method, clip


def _chosen(features: str, given: dict[str, Any]) -> tuple[str, str | None, str]:
    for name, owners in {"clip_norm": ("dpkip",), **OWNERS}.items():
        if name in given and "private-dm" not in owners and not set(owners) <= set(UNPROTECTED):
            owner = "decant" if "decant" in owners else "dpkip"
            return owner, given.get("clip"), f"--{name.replace('_', '-')} was given"
    if features not in FINITE:
        return "dpkip", None, f"{features} is no finite feature map, which a teacher needs"
    if features == "table":
        return "decant", None, "a teacher and the marginals of a table, measured once, serve sets of every size"
    if "learning_rate" in given or given.get("batch") == "full":
        return "decant", None, "--learning-rate or --batch full was given"
    return "private-dm", None, "its set serves networks and regression; --for krr is made sooner, for regression alone"


def check_serves(serves: str) -> None:
    if serves not in SERVING:
        raise RequestError(f"--for is {serves!r}; {', '.join(SERVING)} is expected.")


def private_model(
    method: str, schema: Schema, settings: dict[str, Any], serves: str | None = None
) -> "DPKIP | Decant | PrivateDM | TableDecant":
    from limbeck.distill import DPKIP, Decant, PrivateDM, TableDecant
    from limbeck.distill.inducing import check_table

    if method == "dpkip":
        if settings.get("labels") is not None:
            check_table(schema, "--class-shares")
        if settings.pop("rows", None) is not None:
            raise RequestError("--rows belongs to decant: dpkip makes few rows, of which --per-class says how many.")
        if settings.get("per_class", 1) is None:
            del settings["per_class"]
        return DPKIP(schema, **settings)
    if isinstance(schema, TableSchema) and method == "decant":
        for name in ("valid_range", "smoothness"):
            if name in settings:
                raise RequestError(f"--{name.replace('_', '-')} is for images; the schema declares a table.")
        return TableDecant(schema, **settings)
    schema = of_images(schema, f"--method {method}")
    if method == "decant":
        return Decant(schema, **settings)
    for name in ("clip_norm", "learning_rate"):
        if name in settings:
            raise RequestError(f"--{name.replace('_', '-')} does not belong to private-dm, whose sums have norm one.")
    if settings.get("batch") == "full":
        raise RequestError("--batch full does not belong to private-dm, which samples: a whole number is expected.")
    chosen: dict[str, Any] = {} if serves is None else {"serves": serves}
    return PrivateDM(schema, **settings, **chosen)


def method_settings(
    method: str, features: str, per_class: PerClassOf, preset: str | None, **given: Any
) -> dict[str, Any]:
    """Constructor arguments: the preset's, overridden by what was given on the command line."""
    from limbeck.distill import presets

    settings = presets.settings(method, features, preset) if preset else {}
    settings |= {"features": features} | ({} if preset and per_class is None else {"per_class": per_class})
    settings |= {name: value for name, value in given.items() if value is not None}
    if isinstance(settings.get("batch"), str) and settings["batch"] != "full":
        settings["batch"] = _batch(settings["batch"])
    if settings.get("optimiser", "adam") not in ("adam", "sgd"):
        raise RequestError(f"--optimiser is {settings['optimiser']!r}; adam or sgd is expected.")
    if settings.get("init", "random") not in ("random", "real"):
        raise RequestError(f"--init is {settings['init']!r}; random or real is expected.")
    if settings.get("clip", "inputs") not in ("inputs", "pixels", "features"):
        raise RequestError(f"--clip is {settings['clip']!r}; inputs (pixels, of images) or features is expected.")
    if settings.get("labels", "uniform") not in ("uniform", "counted"):
        raise RequestError(f"--class-shares is {settings['labels']!r}; uniform or counted is expected.")
    for name in ("epochs", "steps", "learning_rate", "clip_norm", "ridge", "smoothness", "chunk"):
        if name in settings:
            check_positive(name, settings[name])
    return settings


def _batch(text: str) -> int | float:
    try:
        batch = float(text)
    except ValueError:
        batch = float("nan")
    if 0 < batch < 1:
        return batch
    if not batch.is_integer():
        raise RequestError(f"--batch is {text!r}; a whole number, a share below 1, or full is expected.")
    return int(batch)


def check_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise RequestError(f"--{name.replace('_', '-')} is {value}; a positive number is expected.")


def check_schema(schema: Schema, unsafe: bool) -> None:
    """A schema that was read from the data is used only where that is asked for by name."""
    read = isinstance(schema, TableSchema) and schema.unsafe
    if read and not unsafe:
        raise RequestError(
            "parts of the schema were read from the data (provenance: unsafe), so nothing that is made with it is "
            "private. Declare them, or buy them with `limbeck schema init --spend`; or, for data that is public, say "
            "--unsafe-schema: the result then says that it has no privacy guarantee."
        )
    if unsafe and not read:
        raise RequestError("--unsafe-schema is for a schema that was read from the data, and this one was not.")


def check_noise(noise: str) -> None:
    if noise not in ("normal", "discrete"):
        raise RequestError(f"--noise is {noise!r}; normal or discrete is expected.")


def check_relation(relation: str) -> None:
    if relation not in ("zero-out", "replace-one"):
        raise RequestError(f"--relation is {relation!r}; zero-out or replace-one is expected.")
