"""`limbeck evaluate` for a table: twelve classifiers, and how like real rows the released ones are."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from limbeck.cli import source
from limbeck.cli.table_scores import classifier_table, fidelity_table, table_score_facts, table_score_table
from limbeck.cli.terminal import output, progress
from limbeck.data import Table, TableSchema, read_table
from limbeck.data.tables.catalogue import TABLES
from limbeck.data.tables.typed import released_form, typed_frame
from limbeck.errors import RequestError
from limbeck.files import write_private

if TYPE_CHECKING:
    import pandas as pd

    from limbeck.evaluate.fidelity import Fidelity
    from limbeck.evaluate.tables import Protocol, TableScores
    from limbeck.evaluate.trial import Rows

RELEASE, SUBSET = "release", "random real subset"
MAJORITY = {"majority class": "one class, always"}


@dataclass(frozen=True)
class Settings:
    """How a table is judged. `positive`: the class, of two, that is looked for; the second when None."""

    protocol: str = "fixed"
    seeds: int = 3
    positive: str | None = None

    def check(self, schema: TableSchema) -> None:
        """Before anything is read."""
        if self.protocol not in ("fixed", "paper"):
            raise RequestError(f"--protocol is {self.protocol!r}; fixed or paper is expected.")
        names = [str(label) for label in schema.classes]
        if self.positive is not None and len(names) != 2:
            raise RequestError(f"--positive is for two classes, and {len(names)} are declared: leave it out.")
        if self.positive is not None and self.positive not in names:
            raise RequestError(f"--positive is {self.positive!r}; {names[0]} or {names[1]} is expected.")

    def options(self, schema: TableSchema) -> dict[str, Any]:
        """As `limbeck.evaluate.evaluate_table` takes them."""
        names = [str(label) for label in schema.classes]
        positive = 1 if self.positive is None else names.index(self.positive)
        return {"protocol": cast("Protocol", self.protocol), "seeds": self.seeds, "positive": positive}


@dataclass(frozen=True)
class Judged:
    """What a table was found to be worth, and the frames that it was found from."""

    rows: "dict[str, TableScores]"
    fidelities: "dict[str, Fidelity]"
    frames: "dict[str, pd.DataFrame]"

    @property
    def facts(self) -> dict[str, Any]:
        return table_score_facts(self.rows, self.fidelities)

    def show(self, guarantees: dict[str, str]) -> None:
        """Three tables: sets, classifiers, fidelity."""
        output.print(table_score_table(self.rows, guarantees | MAJORITY))
        output.print(classifier_table(self.rows))
        output.print(fidelity_table(self.fidelities))


def judge(
    schema: TableSchema,
    released: "dict[str, pd.DataFrame]",
    test: "pd.DataFrame",
    real: "pd.DataFrame | None",
    settings: Settings,
) -> Judged:
    """Classifiers trained on released tables, by their names, and on real rows where there are some.

    The random real rows are as many as the first table has, class by class, and left out where that is all of them.
    """
    from limbeck.evaluate import evaluate_table, reference_scores
    from limbeck.evaluate.columns import encoded_rows
    from limbeck.evaluate.declared import declared_columns
    from limbeck.evaluate.fidelity import fidelity
    from limbeck.evaluate.tables import majority_scores

    columns, target = declared_columns(schema)

    def encoded(frame: "pd.DataFrame") -> "Rows":
        return encoded_rows(frame, columns, target)

    tested, options, classes = encoded(test), settings.options(schema), len(schema.classes)
    first = encoded(next(iter(released.values())))
    frames, rows = dict(released), {}
    for name, frame in released.items():
        with progress(f"classifiers on {name}") as report:
            rows[name] = evaluate_table(encoded(frame), tested, classes, progress=report, **options)
    if real is None:
        rows["majority class"] = majority_scores(first, tested, classes, positive=options["positive"])
    else:
        with progress("classifiers on real rows") as report:
            rows |= reference_scores(encoded(real), first.y, tested, classes, progress=report, **options)
        if SUBSET in rows:
            frames[SUBSET] = real.sample(rows[SUBSET].records, random_state=0)
        frames["all real rows"] = real
    found = {name: fidelity(test, frame, columns, target) for name, frame in frames.items()}
    return Judged(rows, found, frames)


def judged_release(
    release: Path, schema: TableSchema, test: str, reference: str | None, data_dir: Path | None, settings: Settings
) -> tuple[Judged, "pd.DataFrame"]:
    """A release folder's data.csv against real rows from files or known tables; the test rows come along."""
    settings.check(schema)
    _check_apart(schema, test, reference)
    form = released_form(schema)
    made = _frame(form, read_table(release / "data.csv", form))
    tested = real_frame(schema, test, "test", data_dir)
    real = None if reference is None else real_frame(schema, reference, "train", data_dir)
    return judge(schema, {RELEASE: made}, tested, real, settings), tested


def real_frame(schema: TableSchema, data: str, split: str, data_dir: Path | None) -> "pd.DataFrame":
    """Real rows as they are: what is computed from them stays with the custodian, unless they are public."""
    real = source.records(data, schema, split=split, data_dir=data_dir)
    assert isinstance(real, Table)
    frame = _frame(schema, real)
    if frame.empty:
        raise RequestError(f"{data} has no {split} row that fits the release's schema: is it another table's?")
    return frame


def _frame(schema: TableSchema, table: Table) -> "pd.DataFrame":
    return typed_frame(schema, table.x.reveal())


def _check_apart(schema: TableSchema, test: str, reference: str | None) -> None:
    """Rows that a set was made from say little of what it is worth: only a split tells them from others."""
    if test in TABLES and not Path(test).exists() and not TABLES[test].records:
        raise RequestError(
            f"{test} has no test rows of its own, and these would be the rows that were distilled. Keep some of its "
            "rows apart in a file, distil the others, and test on that file."
        )
    both_files = reference is not None and Path(test).exists() and Path(reference).exists()
    if both_files and Path(test).samefile(str(reference)) and schema.split_column is None:
        raise RequestError(
            "--test and --reference are one file, and the schema has no split column to tell its rows apart: give "
            "the test rows in a file of their own."
        )


def check_plots(plots: Path, release: Path) -> None:
    """Before anything is computed: a folder, there or to be made, and not part of what goes out."""
    if plots.exists() and not plots.is_dir():
        raise RequestError(f"--plots is {plots}, which is a file: name a folder.")
    if plots.resolve().is_relative_to(release.resolve()):
        raise RequestError(f"--plots is in {release}, which goes out as it was certified: name another folder.")


def write_plots(
    judged: Judged, name: str, test: "pd.DataFrame", schema: TableSchema, plots: Path, *, public: bool
) -> list[Path]:
    """The three plots of one set, each whole or not at all; closed to others and named so unless they are public."""
    from limbeck.evaluate.declared import declared_columns
    from limbeck.evaluate.fidelity_plots import write_fidelity_plots

    columns, target = declared_columns(schema)
    plots.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{plots.name}.", dir=plots.parent) as drawn:
        found = write_fidelity_plots(judged.fidelities[name], test, judged.frames[name], columns, target, Path(drawn))
        if not plots.exists():
            plots.mkdir(mode=0o755 if public else 0o700)
        return [_moved(plot, plots, public) for plot in found]


def _moved(plot: Path, folder: Path, public: bool) -> Path:
    final = folder / (plot.name if public else f"{plot.stem}.private{plot.suffix}")
    write_private(final, plot.read_bytes())
    if public:
        final.chmod(0o644)
    return final
