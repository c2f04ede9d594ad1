"""Tables of every shape go from a file to a release that verifies, in the columns, order and types of the file."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

from limbeck.data import TableSchema
from tests.cli.test_tables import QUICK

N = 60
RNG = np.random.default_rng(0)
Y = {"name": "y", "kind": "target", "classes": ["a", "b"]}
LABELS = np.array(["a", "b"] * (N // 2))


def number(name, **more):
    return {"name": name, "kind": "numerical", "low": 0, "high": 10} | more


def category(name, values, **more):
    return {"name": name, "kind": "categorical", "categories": list(values)} | more


def words(values):
    return RNG.choice(np.array(list(values), object), N)


NUMBERS = RNG.uniform(0, 10, N)
TOWNS, ANSWERS = ["\u6771\u4eac", "Z\u00fcrich, CH", 'the "Hague"'], ["\u306f\u3044", "\u3044\u3044\u3048"]
MANY = [f"code {i}" for i in range(10_000)]
TABLES = {
    "all categorical": ([category("p", "uvw"), category("q", [1, 2]), Y], {"p": words("uvw"), "q": words([1, 2])}),
    "all numerical": ([number("p"), number("q", integer=True), Y], {"p": NUMBERS, "q": RNG.integers(0, 9, N)}),
    "one feature": ([number("p"), Y], {"p": RNG.uniform(0, 10, N)}),
    "one feature of one category": ([category("p", "u"), Y], {"p": words("u")}),
    "2,000 columns": (
        [*(number(f"c{i}") for i in range(1000)), *(category(f"d{i}", "uv") for i in range(1000)), Y],
        {f"c{i}": RNG.uniform(0, 10, N) for i in range(1000)} | {f"d{i}": words("uv") for i in range(1000)},
    ),
    "10,000 categories": ([category("p", MANY), Y], {"p": words(MANY)}),
    "an empty class": ([number("p"), Y | {"classes": ["a", "b", "c"]}], {"p": RNG.uniform(0, 10, N)}),
    "30 classes": ([number("p"), Y | {"classes": list(range(30))}], {"p": NUMBERS, "y": np.arange(N) % 30}),
    "one row again and again": ([number("p"), Y], {"p": [3.0] * N, "y": ["a"] * N}),
    "two rows": ([number("p"), Y], {"p": [3.0, 4.0]}),
    "names of other languages": (
        [number("Gr\u00f6\u00dfe"), category("\u57ce\u5e02", TOWNS), Y | {"name": "\u75c5 ?", "classes": ANSWERS}],
        {"Gr\u00f6\u00dfe": NUMBERS, "\u57ce\u5e02": words(TOWNS), "\u75c5 ?": words(ANSWERS)},
    ),
}  # fmt: skip


SIZES = (("--rows", 300), ("--per-class", 1))


@pytest.fixture
def short_fits(monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 2)
    jax.config.update("jax_disable_most_optimizations", False)  # wide tables take longer to compute than to compile


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_any_shape_becomes_releases_that_verify(limbeck, tmp_path, short_fits, kind):
    columns, cells = TABLES[kind]
    frame = pd.DataFrame({"y": LABELS[: len(next(iter(cells.values())))]} | cells)
    frame = frame[[column["name"] for column in columns]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    data = (tmp_path / "t.csv", "--schema", tmp_path / "s.json")
    measured = limbeck("measure", *data, *QUICK, "--no-ledger", "--out", tmp_path / "m")
    assert measured.code == 0, measured.text
    schema = TableSchema(columns=columns)
    for size, number in SIZES[:1] if len(columns) > 1000 else SIZES:
        fitted = limbeck("fit", tmp_path / "m", size, number, "--out", tmp_path / size)
        assert fitted.code == 0, fitted.text
        assert limbeck("verify", tmp_path / size).code == 0
        released, typed = pd.read_csv(tmp_path / size / "data.csv"), pd.read_parquet(tmp_path / size / "data.parquet")
        assert len(released) == len(typed) == (number if size == "--rows" else len(schema.classes))
        for one in (released, typed):
            assert list(one.columns) == list(frame.columns)
            assert (schema.encode(one)[1] >= 0).all()  # bounds hold, categories are members
            for name in frame.columns:
                assert (one[name].dtype.kind in "iuf") == (frame[name].infer_objects().dtype.kind in "iuf"), name


def test_a_persons_own_code_runs_on_a_release_unchanged(limbeck, tmp_path, short_fits):
    """The same columns, order and types as the file; unit, split and dropped columns are not released."""
    columns = [
        {"name": "part", "kind": "split"},
        number("age", integer=True),
        number("income", missing="indicator", scale="log", high=100_000),
        number("cars", missing="indicator", integer=True),
        {"name": "name", "kind": "dropped"},
        category("town", ["Ham", "Ely"], missing="indicator"),
        {"name": "ill", "kind": "target", "classes": [0, 1]},
        {"name": "grade", "kind": "ordinal", "levels": ["low", "high"], "missing": "sentinel", "fill": "low"},
        {"name": "member", "kind": "boolean"},
        {"name": "who", "kind": "unit", "rows": 2},
    ]
    frame = pd.DataFrame(
        {
            "part": ["train", "test"] * (N // 2), "age": RNG.integers(0, 11, N), "income": RNG.uniform(0, 1e5, N),
            "cars": RNG.choice([0, 1, np.nan], N), "name": "Jo", "town": RNG.choice(["Ham", "Ely", None], N),
            "ill": RNG.integers(0, 2, N), "grade": RNG.choice(["low", "high", ""], N), "member": RNG.random(N) < 0.5,
            "who": np.arange(N) // 3,
        }
    )  # fmt: skip
    frame.loc[::5, "income"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    data = (tmp_path / "t.csv", "--schema", tmp_path / "s.json")
    made = limbeck("distill", *data, *QUICK, "--rows", "400", "--no-ledger", "--out", tmp_path / "r")
    assert made.code == 0, made.text
    assert "per person" in made.text.replace("\n", " ")
    given, released = pd.read_csv(tmp_path / "t.csv"), pd.read_csv(tmp_path / "r" / "data.csv")
    typed = pd.read_parquet(tmp_path / "r" / "data.parquet")
    expected = ["age", "income", "cars", "town", "ill", "grade", "member"]
    assert list(released.columns) == list(typed.columns) == expected
    for name in expected:
        assert released[name].dtype == given[name].dtype, name
    assert released["age"].between(0, 10).all()
    assert (released["cars"].dropna() % 1 == 0).all()
    assert released.drop(columns=["income", "cars", "town"]).notna().all().all()  # missing only where it may be
    for name in expected:
        same = [None if pd.isna(cell) else cell for cell in released[name]]
        assert same == [None if pd.isna(cell) else cell for cell in typed[name]], name
