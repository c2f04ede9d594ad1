"""Decant for tables: what is measured, what is drawn from it, and rows that fit the schema."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data import TableSchema
from limbeck.distill import Decant, TableDecant, fit_signal, fit_table
from limbeck.distill.cost import check_memory, expected_memory, expected_seconds
from limbeck.distill.marginal_rows import ClassMarginals, marginals_for, on_simplex, uniform_marginals
from limbeck.distill.relaxed import Relaxed
from limbeck.distill.table_fit import LEAST, apportioned, class_marginals, with_shares
from limbeck.errors import RequestError
from limbeck.features import TableFeatures
from limbeck.measure import Records
from limbeck.privacy.journal import Journal
from limbeck.release import Signal, examine, load, load_signal

SCHEMA = TableSchema(
    columns=[
        {"name": "height", "kind": "numerical", "low": 0, "high": 10, "missing": "indicator"},
        {"name": "count", "kind": "numerical", "low": 0, "high": 100, "integer": True},
        {"name": "colour", "kind": "categorical", "categories": ["red", "green", "blue"], "missing": "indicator"},
        {"name": "size", "kind": "ordinal", "levels": ["small", "middle", "large"]},
        {"name": "wet", "kind": "boolean"},
        {"name": "id", "kind": "dropped"},
        {"name": "ripe", "kind": "target", "classes": ["no", "yes"]},
    ]
)
PHI = TableFeatures.of(SCHEMA.shape[0], 5, SCHEMA.layout.scalars.tolist(), width=32)


def fruit(n=2000, seed=0):
    """Ripe is mostly what is red and large; a tenth of the heights are missing."""
    rng = np.random.default_rng(seed)
    colour, size = rng.choice(["red", "green", "blue"], n), rng.choice(["small", "middle", "large"], n)
    ripe = (colour == "red") ^ (size == "large") ^ (rng.random(n) < 0.1)
    height = np.where(rng.random(n) < 0.1, np.nan, np.clip(rng.normal(3 + 3 * ripe, 1), 0, 10))
    return pd.DataFrame(
        {
            "height": height, "count": rng.integers(0, 101, n), "colour": colour, "size": size,
            "wet": rng.random(n) < 0.2, "ripe": np.where(ripe, "yes", "no"),
        }
    )  # fmt: skip


def quick(**changes):
    return TableDecant(
        SCHEMA, **({"epsilon": 4, "delta": 1e-4, "features": PHI, "rows": 400, "init_seed": 1} | changes)
    )


@pytest.fixture(scope="module")
def model():
    return quick().fit(Records(SCHEMA, fruit()))


def test_the_plan_is_what_was_asked_and_both_measurements_share_it(model):
    plan = model.plan_
    assert 0.99 * 4 <= plan.epsilon <= 4
    steps = {"weight gradient": 40, "class marginals": 1, "spread of numbers": 1}
    assert {m.name: m.steps for m in plan.measurements} == steps
    assert quick(share=0.9).plan(2000).measurement("class marginals").sigma > plan.measurement("class marginals").sigma
    assert model.guarantee_.status == "private"
    with pytest.raises(RequestError, match="share"):
        quick(share=1.0).plan(2000)


def test_rows_fit_the_schema_and_tell_the_classes_apart(model):
    table = model.release_.frame
    assert list(table.columns) == list(SCHEMA.released_names)
    assert len(table) == 400
    _, c = SCHEMA.encode(table)
    assert (c >= 0).all()
    ripe = table["ripe"] == "yes"
    assert table["height"][ripe].mean() > table["height"][~ripe].mean() + 1
    assert 0.02 < table["height"].isna().mean() < 0.2
    assert abs(ripe.mean() - (fruit()["ripe"] == "yes").mean()) < 0.1


def test_counts_are_those_of_the_records_but_for_noise():
    frame = fruit()
    plan = quick().plan(2000).scaled(1e-6)
    signal = quick(seed=0).measure(Records(SCHEMA, frame), plan=plan)
    found = class_marginals(signal)
    assert np.allclose(found.counts, frame["ripe"].value_counts()[["no", "yes"]], rtol=2e-3)
    colours = pd.crosstab(frame["colour"], frame["ripe"], normalize="columns").loc[["red", "green", "blue"]]
    assert np.allclose(found.shares[2][:3], colours, atol=3e-3)
    assert np.allclose(found.shares[0][-1], frame["height"].isna().groupby(frame["ripe"]).mean(), atol=3e-3)


def test_numbers_are_cut_where_their_rows_are():
    """Heights of one thousandth of the declared range: cut evenly, they would all be one cell."""
    frame = fruit()
    frame["height"] = np.where(frame["ripe"] == "yes", 0.006, 0.002) + np.random.default_rng(0).uniform(0, 0.004, 2000)
    model = quick(epsilon=20).fit(Records(SCHEMA, frame))
    made = model.release_.frame
    ripe = made["ripe"] == "yes"
    assert made["height"].quantile(0.9) < 0.3
    assert made["height"][ripe].median() < 0.3


def test_a_table_without_numbers_is_looked_at_once():
    schema = TableSchema(columns=[c.model_dump() for c in SCHEMA.columns if c.name not in ("height", "count")])
    model = TableDecant(schema, epsilon=4, delta=1e-4, rows=40, steps=3).fit(Records(schema, fruit(200)))
    assert [m.name for m in model.plan_.measurements] == ["weight gradient", "class marginals"]
    assert "spread" not in model.signal_.recipe
    assert len(model.release_) == 40


def test_the_same_seed_and_signal_give_the_same_rows(model):
    again = fit_table(model.signal_, 400, init_seed=1, features=PHI)
    assert again.frame.equals(model.release_.frame)
    assert not fit_table(model.signal_, 400, init_seed=2, features=PHI).frame.equals(again.frame)


@pytest.mark.parametrize("per_class", [1, 5])
def test_few_rows_are_poured(model, per_class, monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 20)
    release = fit_table(model.signal_, per_class=per_class, features=PHI)
    assert len(release) == 2 * per_class
    _, c = SCHEMA.encode(release.frame)
    assert (c >= 0).all()
    assert release.recipe["per_class"] == per_class


def test_without_marginals_the_teacher_alone_is_poured(monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_fit.default_steps", lambda m: 5)
    model = Decant(SCHEMA, epsilon=4, delta=1e-4, per_class=3, features=PHI).fit(Records(SCHEMA, fruit(500)))
    assert len(model.release_) == 6
    assert model.recipe(model.plan_).keys() == model.release_.recipe.keys()
    assert len(fit_table(model.signal_, 50, features=PHI)) == 50


def test_a_release_and_a_signal_go_through_their_folders(model, tmp_path):
    signal = load_signal(model.signal_.save(tmp_path / "signal"))
    assert np.array_equal(signal.S, model.signal_.S)
    assert examine(tmp_path / "signal").consistent
    recipe = signal.recipe | {"features": PHI.config()}
    release = fit_table(Signal(**(vars(signal) | {"recipe": recipe})), 50)
    release.save(tmp_path / "release")
    assert examine(tmp_path / "release").consistent, examine(tmp_path / "release").problems
    read = load(tmp_path / "release")
    assert read.frame.equals(release.frame)
    assert read.derived_from == signal.digest
    csv = pd.read_csv(tmp_path / "release" / "data.csv")
    assert list(csv.columns) == list(SCHEMA.released_names)
    assert csv["count"].dtype == np.int64
    assert csv["wet"].dtype == bool
    assert np.allclose(SCHEMA.encode(csv)[0], release.encoded, atol=1e-6)
    with pytest.raises(RequestError, match=r"data.csv"):
        read.classifier()


@pytest.mark.parametrize("change", ["column", "rows", "broken", "missing"])
@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_verify_finds_another_table_in_the_folder(model, tmp_path, name, change):
    model.release_.save(tmp_path / "r")
    table, path = model.release_.frame, tmp_path / "r" / name
    table = table.rename(columns={"count": "number"}) if change == "column" else table.iloc[1:]
    if change in ("column", "rows"):
        table.to_csv(path, index=False) if name == "data.csv" else table.to_parquet(path)
    else:
        path.write_bytes(b"\xff\xff") if change == "broken" else path.unlink()
    assert name in {problem.field for problem in examine(tmp_path / "r").problems}


def test_an_interrupted_run_is_continued_without_spending_again(tmp_path):
    frame, plan = fruit(500), quick(seed=0).plan(500)
    whole = quick(seed=0).measure(Records(SCHEMA, frame), plan=plan)
    request = {"a": 1}
    journal = Journal.start(tmp_path / "run", request)

    class Stop(Exception):
        pass

    def stop(done, total):
        if done == 15:
            raise Stop

    with pytest.raises(Stop):
        quick(seed=0).measure(Records(SCHEMA, frame), plan=plan, journal=journal, progress=stop)
    journal.close()
    journal = Journal.resume(tmp_path / "run", request)
    resumed = quick().measure(Records(SCHEMA, frame), plan=plan, journal=journal)
    journal.finish()
    assert resumed.S.shape == whole.S.shape
    assert np.isfinite(resumed.W).all()


def test_persons_are_the_unit_where_the_schema_says_so():
    columns = [c.model_dump() for c in SCHEMA.columns if c.kind != "dropped"]
    schema = TableSchema(columns=[*columns, {"name": "who", "kind": "unit", "rows": 3}])
    frame = fruit(600).assign(who=np.arange(600) // 4)
    model = TableDecant(schema, epsilon=4, delta=1e-3, features=PHI, rows=60, steps=5).fit(Records(schema, frame))
    assert model.plan_.n == 150
    assert model.guarantee_.unit == "person"
    assert "who" not in model.release_.frame.columns


def test_what_it_will_cost_is_told_before_any_data_is_read():
    model = quick()
    plan = model.plan(5000)
    assert expected_memory(model, 5000) > 0
    assert expected_seconds(model, plan) > 0
    assert expected_seconds(quick(rows=None, per_class=2), plan) > 0
    check_memory(model, 5000)
    assert quick(rows=None).recipe(plan)["rows"] == 10_000


def test_requests_that_cannot_be_met(model):
    with pytest.raises(RequestError, match="at least 20"):
        quick(rows=5).plan(1000)
    with pytest.raises(RequestError, match="at least 1"):
        quick(rows=None, per_class=0).plan(1000)
    with pytest.raises(RequestError, match="one of them"):
        quick(per_class=3).plan(1000)
    with pytest.raises(RequestError, match="fit_table"):
        fit_signal(model.signal_)


def test_features_that_are_computed_at_every_step_are_the_same(monkeypatch):
    frame, plan = fruit(500), quick(steps=4).plan(500)
    kept = quick(seed=0, steps=4).measure(Records(SCHEMA, frame), plan=plan)
    monkeypatch.setattr("limbeck.distill.table_decant.ROOM", 0)
    assert quick().kept_features(500).dim == SCHEMA.shape[0]
    computed = quick(seed=0, steps=4).measure(Records(SCHEMA, frame), plan=plan)
    assert np.allclose(kept.W, computed.W, atol=1e-4 * np.abs(kept.W).max())
    assert np.array_equal(kept.S, computed.S)
    assert expected_seconds(quick(steps=4), plan) > 0


def test_large_tables_are_learned_from_in_samples(monkeypatch):
    monkeypatch.setattr("limbeck.distill.table_decant.BATCH", 100)
    sampled = {n: quick().teacher(n).measurement(n).sampling.q for n in (200, 500)}
    assert sampled == {200: 1, 500: 0.2}
    assert quick(batch="full").teacher(500).measurement(500).sampling.q == 1
    assert quick().counts(500).sampling.q == 1


def test_null_rows_carry_nothing_whatever_they_hold():
    """With every row a null record and the same noise, signals are the same bit for bit."""
    one = fruit(200).assign(ripe="nobody knows")
    other = fruit(200, seed=1).assign(count="many")
    signals = [quick(seed=0, steps=3).measure(Records(SCHEMA, frame)) for frame in (one, other)]
    assert np.array_equal(signals[0].W, signals[1].W)
    assert np.array_equal(signals[0].S, signals[1].S)


# Post-processing, by its mathematics


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_the_nearest_shares_are_shares(values):
    v = np.array(values)
    p = on_simplex(v)
    assert p.min() >= 0
    assert np.isclose(p.sum(), 1)
    assert np.allclose(on_simplex(p), p)
    other = np.full(len(v), 1 / len(v))
    assert np.linalg.norm(p - v) <= np.linalg.norm(other - v) + 1e-9


@settings(deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5))
def test_each_class_has_the_rows_that_it_should(seed, C):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(300, C)) + rng.normal(0, 2, C)
    wanted = apportioned(rng.uniform(0, 1, C) ** 4 + 1e-9, 300, LEAST)
    assert wanted.sum() == 300
    assert wanted.min() >= LEAST
    found = np.bincount(with_shares(f, wanted), minlength=C)
    assert np.array_equal(found, wanted)
    if C == 2:  # a threshold: no row of the second class is less like it than one of the first
        c = with_shares(f, wanted)
        margin = f[:, 1] - f[:, 0]
        assert margin[c == 1].min() >= margin[c == 0].max() - 1e-9


def test_drawn_rows_have_the_marginals_they_are_drawn_from():
    cells = marginals_for(SCHEMA, bins=4)
    drawn = uniform_marginals(cells, 2)
    x = drawn.draw(np.zeros(20_000, int), np.random.default_rng(0))
    shares = np.asarray(cells(jnp.asarray(x))).mean(axis=0) * np.sqrt(5)
    assert np.allclose(shares, np.concatenate([part[:, 0] for part in drawn.shares]), atol=0.02)


def test_some_rows_lie_between_the_classes_and_all_together_have_the_marginals():
    cells = marginals_for(SCHEMA, bins=2)
    apart = tuple(np.eye(column.number, 2) for column in cells.columns)  # each class has cells of its own
    drawn = ClassMarginals(cells, np.array([1.0, 1.0]), apart)
    x = drawn.draw(np.repeat([0, 1], 5000), np.random.default_rng(0))
    second = np.asarray(cells(jnp.asarray(x)))[:, np.cumsum([0, *(c.number for c in cells.columns)])[:-1] + 1] > 0
    assert abs(second.mean() - 0.5) < 0.02
    others = second[:5000].sum(axis=1)  # columns of the other class: from none to all five, as often, in a row of both
    assert abs((others > 0).mean() - 5 / 24) < 0.02  # half of the rows are mixed, half of those with another class
    assert abs(((others > 0) & (others < 5)).mean() - 4 / 24) < 0.02


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31))
def test_relaxed_rows_are_rows_and_gradients_reach_them(seed):
    row = Relaxed.of(SCHEMA)
    z = jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, (64, *SCHEMA.shape)), jnp.float32)
    x = np.asarray(row(z))
    again = SCHEMA.encoded(SCHEMA.decode(x))
    stays = np.setdiff1d(np.arange(SCHEMA.shape[0]), [0, 2])  # numbers are rounded, and hidden where missing
    assert np.allclose(x[:, stays], again[:, stays], atol=1e-5)
    slope = np.asarray(jax.grad(lambda z: (PHI(row(z)) @ jnp.arange(PHI.dim)).sum())(z))
    assert np.isfinite(slope).all()
    assert (np.abs(slope).sum(axis=0) > 0).all()
    soft = np.asarray(Relaxed.of(SCHEMA, straight=False)(z))
    for start, stop in SCHEMA.layout.groups:
        assert np.allclose(soft[:, start:stop].sum(axis=1), 1, atol=1e-5)


def test_a_row_is_its_own_inverse():
    x, _ = SCHEMA.encode(fruit(50))
    row = Relaxed.of(SCHEMA)
    assert np.allclose(row(row.inverse(x)), x, atol=1e-6)
