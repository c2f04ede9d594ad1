"""`limbeck audit`: try to refute a privacy claim."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli import app, options, source
from limbeck.cli.terminal import errors, output, progress
from limbeck.data import Images, of_images
from limbeck.errors import RequestError

audit = typer.Typer(no_args_is_help=True, help="Try to refute a privacy claim. An audit never proves one.")
app.add_typer(audit, name="audit")

Confidence = Annotated[float, typer.Option("--confidence", help="Of each lower bound, one-sided.")]
Out = Annotated[Path | None, typer.Option("--out", help="A folder for audit.json and the plots.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@audit.command()
def canary(
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Answers a run asks for.")] = 10,
    batch: Annotated[str, typer.Option("--batch", help="Expected records a step, or full.")] = "full",
    n: Annotated[int | None, typer.Option("--n", min=2, help="Records: 4, or ten batches, by default.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=50, help="Runs in each of the two arms.")] = 5000,
    features: options.Features = "fc-ntk",
    relation: options.Relation = "zero-out",
    noise: options.Noise = "normal",
    clip_norm: options.ClipNorm = None,
    ridge: options.Ridge = None,
    learning_rate: options.LearningRate = None,
    confidence: Confidence = 0.95,
    paired: Annotated[
        bool, typer.Option("--paired/--independent", help="One fresh key for both arms of a run, or one for each.")
    ] = True,
    sigma_factor: Annotated[
        float, typer.Option("--sigma-factor", help="Share of the claimed noise really added, to see a fault flagged.")
    ] = 1.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Plant a worst-case record in the real mechanism, run it many times, and bound epsilon from below.

    Needs no data: the records are public noise. Exit code 1 if the claim is refuted or a control misbehaves.
    """
    options.check_relation(relation)
    options.check_noise(noise)
    settings = options.method_settings(
        "dpkip", features, 1, None, epsilon=epsilon, delta=delta, batch=batch, relation=relation, clip_norm=clip_norm,
        ridge=ridge, learning_rate=learning_rate, noise=noise,
    )  # fmt: skip
    size = settings["batch"]
    n = n or (4 if size == "full" else 10 * size)
    settings["epochs"] = steps if size == "full" else steps * min(size, n) / n
    _check_out(out)

    from limbeck.audit import canary as audit_canary
    from limbeck.audit.runs import default_model

    with progress("auditing") as report:
        found = audit_canary(
            default_model(**settings), n=n, runs=runs, confidence=confidence, paired=paired,
            sigma_factor=sigma_factor, progress=report,
        )  # fmt: skip
    facts = found.facts()
    if out is not None:
        from limbeck.audit.plots import write_plots

        out.mkdir(parents=True, exist_ok=True)
        write_plots(found, out)
        (out / "audit.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        _show(found)
        if out is not None:
            output.print(f"plots and audit.json are in {out}", highlight=False, soft_wrap=True)
    if found.flagged or not found.controls_behaved:
        raise typer.Exit(1)


@audit.command(name="one-run")
def one_run(
    data: source.Data,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    per_class: options.PerClass = "10",
    features: options.Features = "scattering",
    public: Annotated[bool, typer.Option("--public", help="Declare the records public.")] = False,
    canaries: Annotated[int, typer.Option("--canaries", min=10, help="Canaries, each in by a fair coin.")] = 1000,
    guesses: Annotated[int | None, typer.Option("--guesses", min=1, help="Coins guessed; a fifth by default.")] = None,
    confidence: Confidence = 0.95,
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
    as_json: Json = False,
) -> None:
    """Distil DATA once with canaries planted by fair coins, and guess the coins from the release.

    The release made for it is thrown away: it holds planted records and is not for publication. DATA must be public:
    an audit of private records would spend their budget on nothing that can be used.
    """
    if not public:
        raise RequestError(
            "a one-run audit is for public data of the kind and size of yours: on private records it would spend a "
            "budget that no ledger has charged. Declare DATA public with --public if it is."
        )
    settings = options.method_settings(
        "dpkip", features, options.sizes_of(per_class), preset, epsilon=epsilon, delta=delta, batch=batch,
        epochs=epochs, learning_rate=learning_rate, clip_norm=clip_norm, ridge=ridge,
    )  # fmt: skip
    declared = of_images(source.declared(data, schema, tell=not as_json), "this audit")
    with progress(f"reading {data}"):
        images = source.records(data, declared, data_dir=data_dir, labels=labels, resize=resize)
    assert isinstance(images, Images)

    from limbeck.audit import audit_one_run
    from limbeck.distill import DPKIP

    with progress("distilling") as report:
        found = audit_one_run(
            DPKIP(declared, **settings), images.x.reveal(), images.y.reveal(), canaries=canaries, guesses=guesses,
            confidence=confidence, progress=report,
        )  # fmt: skip
    note = "the audited release held planted canaries, was thrown away and is not for publication"
    if as_json:
        print(json.dumps(found.facts() | {"note": note}, indent=1))
    else:
        from rich.table import Table

        table = Table("claim", "epsilon at least", "ceiling", "confidence", "right guesses", "canaries")
        table.add_row(
            f"{found.claim:.4g}", f"{found.epsilon:.3f}", f"{found.ceiling:.2f}", f"{found.confidence:g}",
            f"{found.right} of {found.guesses}", str(found.canaries),
        )  # fmt: skip
        output.print(table)
        _say(found.verdict, found.flagged)
        output.print(
            f"An adversary who sees the release only guessed; with every guess right the bound would have been "
            f"{found.ceiling:.2f}. A failed attack is no proof of privacy. {note.capitalize()}.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    if found.flagged:
        raise typer.Exit(1)


def _show(found: Any) -> None:
    """The audit as a table: bounds beside what they could have been."""
    from rich.table import Table

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    table = Table(
        title=f"claim: epsilon {found.claim:.4g} at delta {found.delta:g} (mu {found.claimed_shift:.4f}), "
        f"{found.plan.relation}; {'paired' if found.paired else 'independent'} arms, confidence {found.confidence:g}, "
        f"{found.seconds:.0f} s",
        title_justify="left",
    )
    columns = ("test", "runs an arm", "epsilon at least", "mu at least", "ceiling", "if used up", "power*", "flagged")
    for name in columns:
        table.add_column(name, justify="left" if name == "test" else "right")
    real, power, runs = found.found, found.power, str(found.found.runs)
    table.add_row(
        "threshold, by counting", runs, number(real.threshold), "", number(found.threshold_ceiling), "",
        f"{power.threshold:.2f}", _yes(real.threshold > found.claim),
    )  # fmt: skip
    table.add_row(
        "mean shift, Gaussian", runs, number(real.epsilon), f"{real.shift_lower:.4f}", "none", number(found.expected),
        f"{power.shift:.2f}", _yes(real.shift_lower > found.claimed_shift),
    )  # fmt: skip
    for (name, control), must in zip(found.controls.items(), ("must be flagged", "must not be"), strict=True):
        table.add_row(
            f"control, {name}: {must}", str(control.runs), number(control.epsilon), f"{control.shift_lower:.4f}",
            "", "", "", _yes(control.flagged),
        )  # fmt: skip
    output.print(table)
    _say(found.verdict, found.flagged or not found.controls_behaved)
    seen = max(power.threshold, power.shift)
    output.print(
        f"* share of audits that flag a mechanism with half the noise, simulated; {100 * seen:.0f}% by the better one. "
        "Other faults may pass unseen (docs/audit.md lists them), and a failed attack is no proof of privacy.",
        highlight=False,
        soft_wrap=True,
    )
    if real.epsilon is None:
        output.print(
            "Poisson batches: the mean shift is not the best test and gives no epsilon; it is held against the plan's "
            "own shift. The threshold test uses the likelihood ratio.",
            highlight=False,
            soft_wrap=True,
        )


def _yes(flagged: bool) -> str:
    return "[bold red]yes[/]" if flagged else "no"


def _say(verdict: str, bad: bool) -> None:
    output.print(f"[{'bold red' if bad else 'green'}]{verdict}[/]", highlight=False)


def _check_out(out: Path | None) -> None:
    """Before the runs: a folder that cannot be written is known in a second, not in minutes."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"--out {out} cannot be made a folder: {error.strerror}.") from None
    if (out / "audit.json").exists():
        errors.print(f"[yellow]note:[/] the audit in {out} will be replaced.", highlight=False, soft_wrap=True)
