"""`limbeck predict`: a release as a working classifier."""

import csv
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli import app
from limbeck.cli.terminal import output, progress
from limbeck.errors import RequestError


@app.command()
def predict(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    images: Annotated[Path, typer.Argument(metavar="FILE_OR_FOLDER", help="Images to classify.")],
    out: Annotated[Path, typer.Option("--out", help="The CSV to write.")],
    split: Annotated[str, typer.Option("--split", help="Which part of a file that has two.")] = "test",
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Classify raw images with the kernel ridge regression that the release was distilled for."""
    if out.exists() and not force:
        raise RequestError(f"{out} exists. Choose another --out, or replace it with --force.")
    from limbeck.data import of_images
    from limbeck.data.unlabelled import read_unlabelled
    from limbeck.release import load

    loaded = load(release)
    model = loaded.classifier()
    names, x, readable = read_unlabelled(images, of_images(loaded.schema, "predict"), split)
    with progress("predicting") as report:
        p = model.predict_proba(x.reveal(), progress=report)
    partial = out.with_name(f".{out.name}.partial")
    with partial.open("w", newline="", encoding="utf-8") as f:
        rows = csv.writer(f)
        rows.writerow(["image", "prediction", *(f"p({c})" for c in model.classes_)])
        for name, row, ok in zip(names, p, readable, strict=True):
            rows.writerow([name, model.classes_[row.argmax()] if ok else "", *(f"{v:.4f}" if ok else "" for v in row)])
    os.replace(partial, out)
    if as_json:
        print(json.dumps({"out": str(out), "images": len(names), "unreadable": int((~readable).sum())}))
        return
    output.print(f"{len(names)} predictions in {out}", highlight=False)
    if not readable.all():
        output.print(f"{int((~readable).sum())} images could not be read and have no prediction", highlight=False)
