"""The known tables as the benchmark splits them, and what the papers did to them before they measured.

Splits are public and repeatable: the table's own column where it has one, else a random fifth of the rows, or of the
recordings where rows share one, by the seed of the split.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from limbeck.data import TableSchema
from limbeck.data.tables.catalogue import find_table, known_table
from limbeck.data.tables.table import rows_of
from limbeck.data.tables.typed import released_form, typed_frame
from limbeck.evaluate.columns import encoded_rows
from limbeck.evaluate.declared import declared_columns
from limbeck.evaluate.trial import Rows

TEST_SHARE = 0.2
# What a classifier is trained on, at most: rows, and cells of their encoding. "paper" tries four times the settings.
ROWS, CELLS = {"fixed": 10_000, "paper": 2_500}, {"fixed": 1_200_000, "paper": 400_000}
TEST_ROWS = 20_000

TABLES = ("adult", "cervical", "cervical_papers", "epileptic", "isolet", "intrusion", "census", "covtype", "credit")
BY_RECORDING = {"epileptic": "id"}
SPLITS = {"cervical": 20, "cervical_papers": 20}  # others: one
POSITIVE = {"epileptic": 0}  # the class that is looked for, where it is not the second declared one
# Of the class with most rows the papers' code keeps this share, before it splits off the test rows.
THINNED = {
    "adult": ("<=50K", 0.4), "cervical_papers": ("0", 0.5), "intrusion": ("dos", 0.3), "census": ("- 50000.", 0.4),
    "covtype": ("2", 0.3), "credit": ("0", 0.01),
}  # fmt: skip
# The papers' cervical table has three other tests of the same cells among its features, which tell the fourth.
OTHER_TESTS = ("Hinselmann", "Schiller", "Cytology")


@dataclass(frozen=True)
class Split:
    """One table's training rows, as read from the file, and test rows, as classifiers see them."""

    name: str
    schema: TableSchema
    train: pd.DataFrame
    test: Rows

    @property
    def positive(self) -> int:
        return POSITIVE.get(self.name, 1)

    @property
    def classes(self) -> int:
        return len(self.schema.classes)

    def typed(self, frame: pd.DataFrame, *, released: bool = True) -> pd.DataFrame:
        """Rows as a person would hold them; of a release, classes have their own names."""
        form = released_form(self.schema) if released else self.schema
        return typed_frame(form, rows_of(form, frame))

    def encoded(self, typed: pd.DataFrame) -> Rows:
        return encoded_rows(typed, *declared_columns(self.schema))

    def for_protocol(self, rows: Rows, protocol: str, seed: int = 0) -> Rows:
        """Thinned as the papers do, under their protocol, and no more rows than classifiers are given of any set."""
        rng = np.random.default_rng(seed)
        rows = self.thinned(rows, rng) if protocol == "paper" else rows
        return some(rows, min(ROWS[protocol], CELLS[protocol] // rows.X.shape[1], len(self.train)), rng)

    def tested(self, protocol: str) -> Rows:
        return self.thinned(self.test, np.random.default_rng(1)) if protocol == "paper" else self.test

    def thinned(self, rows: Rows, rng: np.random.Generator) -> Rows:
        if self.name not in THINNED:
            return rows
        label, share = THINNED[self.name]
        c = [str(one) for one in self.schema.classes].index(label)
        keep = (rows.y != c) | (rng.random(len(rows.y)) < share)
        return Rows(rows.X[keep], rows.y[keep])


def some(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """At random, at most so many."""
    if len(rows.y) <= most:
        return rows
    keep = np.sort(rng.permutation(len(rows.y))[:most])
    return Rows(rows.X[keep], rows.y[keep])


def schema_of(name: str) -> TableSchema:
    if name != "cervical_papers":
        return known_table(name).schema
    columns = [column.model_dump(by_alias=True) for column in known_table("cervical").schema.columns]
    flag = {"kind": "boolean", "true": 1, "false": 0}
    return TableSchema(columns=[{"name": c["name"], **flag} if c["name"] in OTHER_TESTS else c for c in columns])


def whole(name: str, folder: Path) -> pd.DataFrame | None:
    """Every row of the file as text, or None where the file is not there."""
    path = find_table(known_table(name.removesuffix("_papers")), folder)
    if path is None:
        return None
    if path.suffix in (".parquet", ".feather"):
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_feather(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def split_of(name: str, frame: pd.DataFrame, seed: int = 0) -> Split:
    """The split with this seed; tables with a split column have but one."""
    schema = schema_of(name)
    for_test = test_rows(name, schema, frame, seed)
    split = Split(name, schema, frame[~for_test].reset_index(drop=True), Rows(np.zeros((0, 1)), np.zeros(0, int)))
    test = split.encoded(split.typed(frame[for_test], released=False))
    return Split(name, schema, split.train, some(test, TEST_ROWS, np.random.default_rng(seed)))


def test_rows(name: str, schema: TableSchema, frame: pd.DataFrame, seed: int) -> np.ndarray:
    """Which rows are for testing."""
    if schema.split_column is not None:
        return (frame[schema.split_column.name].str.strip() == "test").to_numpy()
    rng = np.random.default_rng(seed)
    if name in BY_RECORDING:
        recording = frame[BY_RECORDING[name]].to_numpy()
        known = np.unique(recording)
        return np.isin(recording, known[rng.random(len(known)) < TEST_SHARE])
    return rng.random(len(frame)) < TEST_SHARE
