"""Property 3 for tables, as it is seen: what cells and rows hold changes no exit code, word, file, shape or schema."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from limbeck.cli import terminal
from limbeck.privacy.ledger import Ledger
from limbeck.release import load
from tests.cli.test_tables import QUICK, SCHEMA, people

ROWS = 40
LINES = [
    b"", b",", b"1,2,3,4,5", b'"', b'"44,Ham,yes', b'44,"Ham"x"Ely",no', b"\x00,\x00,\x00",
    b"\xff\xfe,\xc3,\xed\xa0\x80",
    b"44,Ham," + b"y" * 2_000_000, b'44,Ham,"' + b"y" * 2_000_000 + b'"', b"," * 100_000, b"44\rHam\ryes", b"\x1f\x1f",
]  # fmt: skip
CELLS = [
    "1e400",
    "-1e400",
    "inf",
    "-inf",
    "nan",
    "NaN",
    "1_0",
    "0x1F",
    "old",
    "",
    "?",
    "44 years",
    "4" * 400,
    "\u0664\u0662",
]
UNIT = {"name": "who", "kind": "unit", "rows": 3}


def spoilt_lines(frame):
    lines = frame.to_csv(index=False).encode().split(b"\n")
    lines[1 : 1 + len(LINES)] = LINES
    return b"\n".join(lines)


def spoilt_cells(frame):
    odd = frame.astype(object)
    for i, cell in enumerate(CELLS):
        odd.loc[i, "age"] = cell
        odd.loc[len(CELLS) + i, "ill"] = cell
        odd.loc[i, "town"] = f"nowhere {i}"
    return odd.to_csv(index=False).encode()


KINDS = {
    "lines": spoilt_lines,
    "cells": spoilt_cells,
    "columns that are all missing": lambda frame: frame.assign(age="", town="").to_csv(index=False).encode(),
    "one class": lambda frame: frame.assign(ill="no").to_csv(index=False).encode(),
    "no declared class": lambda frame: frame.assign(ill="perhaps").to_csv(index=False).encode(),
    "copies of one row": lambda frame: frame.iloc[[0] * len(frame)].to_csv(index=False).encode(),
}


@pytest.fixture
def seen(limbeck, tmp_path, monkeypatch):
    """All that a run shows and leaves, besides the numbers it draws; by a stopped clock, for progress takes time."""
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 3)

    def run(content, place, schema=SCHEMA, name="people.csv", size=("--per-class", "2")):
        folder = tmp_path / place
        folder.mkdir()
        (folder / name).write_bytes(content)
        (folder / "schema.json").write_text(json.dumps(schema))
        data = (folder / name, "--schema", folder / "schema.json")
        done = limbeck("distill", *data, *QUICK, *size, "--dataset", place, "--out", folder / "out")
        assert done.code == 0, done.text
        release, frame = load(folder / "out"), pd.read_parquet(folder / "out" / "data.parquet")
        certificate = json.loads((folder / "out" / "certificate.json").read_text())
        facts = {name: certificate[name] for name in ("epsilon", "measurements", "unit", "units", "statement")}
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        return {
            "words": done.text.replace(str(folder), "FOLDER")
            .replace(repr(place), "DATASET")
            .replace(place, "D")
            .split(),
            "files": files,
            "schema": (folder / "out" / "schema.json").read_bytes(),
            "shape": release.x.shape,
            "columns": frame.dtypes.astype(str).to_dict(),
            "certificate": facts,
            "ledger": len(Ledger.open().history(place)),
        }

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_looks_the_same_whatever_the_cells_hold(seen, kind):
    clean = people(ROWS)
    assert seen(KINDS[kind](clean), "other") == seen(clean.to_csv(index=False).encode(), "clean")


def test_a_run_on_a_typed_file_looks_the_same_whatever_the_cells_hold(seen, tmp_path):
    clean = people(ROWS).astype({"age": float})
    odd = clean.assign(age=[float("nan"), float("inf"), -float("inf"), 1e308] * (ROWS // 4), town=None, ill="perhaps")

    def parquet(frame):
        frame.to_parquet(tmp_path / "p.parquet")
        return (tmp_path / "p.parquet").read_bytes()

    assert seen(parquet(odd), "other", name="p.parquet") == seen(parquet(clean), "clean", name="p.parquet")


def test_a_run_by_person_looks_the_same_whatever_their_rows_hold(seen):
    schema = {"columns": [*SCHEMA["columns"], UNIT]}
    clean = people(ROWS).assign(who=[f"p{i % 10}" for i in range(ROWS)])
    odd = clean.assign(age="what", town="", ill=["no", "perhaps"] * (ROWS // 2))
    plain = seen(clean.to_csv(index=False).encode(), "clean", schema)
    assert plain["certificate"]["unit"] == "person"
    assert plain["certificate"]["units"] == 10
    assert seen(odd.to_csv(index=False).encode(), "other", schema) == plain


def test_the_custodian_is_shown_them_all_and_no_value(limbeck, tmp_path):
    clean = people(ROWS)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    for content, bad in (
        (spoilt_lines(clean), set(range(len(LINES)))),
        (spoilt_cells(clean), set(range(2 * len(CELLS)))),
    ):
        (tmp_path / "people.csv").write_bytes(content)
        data = (tmp_path / "people.csv", "--schema", tmp_path / "schema.json")
        assert limbeck("check", *data).code == 0
        strict = limbeck("check", *data, "--strict", "--json")
        assert strict.code == 1
        assert {one["record"] for one in json.loads(strict.out)["bad"]} == bad
        assert not any(secret in strict.text for secret in ("nowhere", "years", "1e400", "yyyy"))
