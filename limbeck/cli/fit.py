"""`limbeck fit`: from a signal to a release, without data and without budget."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from limbeck.cli import app, options
from limbeck.cli.keys import signing_key
from limbeck.cli.run import done
from limbeck.cli.terminal import progress
from limbeck.data import TableSchema
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.distill.matching import Serves


@app.command()
def fit(
    signal: Annotated[Path, typer.Argument(help="A signal folder, as `limbeck measure` writes it.")],
    out: Annotated[Path, typer.Option("--out", help="The release folder to write.")],
    per_class: options.PerClass = None,
    rows: options.Rows = None,
    serves: options.Serves = None,
    ridge: options.Ridge = None,
    valid_range: options.ValidRange = None,
    smoothness: options.Smoothness = None,
    init_seed: options.InitSeed = None,
    sign: options.Sign = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a small synthetic set to SIGNAL, and write a release folder.

    Touches no data and spends nothing, any number of times: the release has the signal's guarantee, and names it.
    """
    from limbeck.release import examine, load_signal
    from limbeck.release.sealed import check_free

    given = {"ridge": ridge, "smoothness": smoothness, "valid_range": valid_range}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in settings.keys() & {"ridge", "smoothness"}:
        options.check_positive(name, settings[name])
    sizes = options.sizes_of(per_class)
    check_free(out, force)
    key = signing_key(sign) if sign else None
    measured = load_signal(signal)
    if isinstance(measured.schema, TableSchema):
        for name, value in {"for": serves, "valid-range": valid_range, "smoothness": smoothness}.items():
            if value is not None:
                raise RequestError(f"--{name} is for images; the signal is of a table.")
        serves = "rows"
    elif rows is not None or isinstance(sizes, dict):
        wrong = "--rows" if rows is not None else f"--per-class {per_class}"
        raise RequestError(f"{wrong} is for tables; the signal is of images.")
    serves = serves or ("krr" if measured.S is None else "both")
    if serves != "rows":
        options.check_serves(serves)
    if serves in ("networks", "both"):
        if valid_range is False:
            raise RequestError(f"--free-range belongs to --for krr; a set for {serves} lies within the declared range.")
        settings.pop("valid_range", None)
    with progress("verifying the signal"):
        if not examine(signal).consistent:
            raise RequestError(
                f"{signal} is not what its certificate says, so nothing that is fitted to it could be: see `limbeck "
                f"verify {signal}`."
            )

    from limbeck.distill import fit_matched, fit_signal, fit_table

    with progress("fitting") as report:
        settings |= {"init_seed": init_seed, "progress": report}
        number = sizes if isinstance(sizes, int) else 10
        if serves == "rows":
            release = fit_table(measured, rows, per_class=sizes, **settings)
        elif serves == "krr":
            release = fit_signal(measured, number, **settings)
        else:
            release = fit_matched(measured, number, serves=cast("Serves", serves), **settings)
    release.save(out, force=force, sign=key)
    if as_json:
        facts = {"out": str(out), "records": len(release), "guarantee": str(release.guarantee)}
        print(json.dumps(facts | {"derived from": release.derived_from}))
        return
    done(
        f"{len(release)} records, no further budget,",
        out,
        release.guarantee,
        f"limbeck verify {out}; limbeck evaluate {out} --test TEST",
    )
