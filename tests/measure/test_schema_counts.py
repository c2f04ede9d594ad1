"""Buying a schema: what a unit can move, what passes, what it costs, and bounds near the quantiles."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from limbeck.data.tables.blanks import Blanks
from limbeck.measure import Records
from limbeck.measure.public_cells import CELLS, EDGES, bounds, cell_of
from limbeck.measure.schema_counts import NAME, Purchase, _votes, buy
from limbeck.privacy.plan import Measurement, Selection

COLUMNS = [
    {"name": "age", "kind": "numerical", "integer": True},
    {"name": "pay", "kind": "numerical", "low": 0},
    {"name": "town", "kind": "categorical"},
    {"name": "ill", "kind": "target"},
]
UNIT = {"name": "who", "kind": "unit", "rows": 3}


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(45, 12, n).round(),
            "pay": np.exp(rng.normal(9, 1, n)),
            "town": rng.choice(["Ham", "Ely", "Rye"], n, p=[0.5, 0.3, 0.2]),
            "ill": rng.choice(["no", "yes"], n),
        }
    ).astype(object)


def opened(frame, columns=COLUMNS):
    blanks = Blanks.of({"kind": "table", "columns": columns})
    return Records(blanks.stand_in, frame), Purchase(blanks.parts, blanks.stand_in.rows_per_unit)


def all_votes(frame, columns=COLUMNS):
    """Every vote under its column and cell or value: what noise is added to."""
    cells, values = _votes(*opened(frame, columns))
    found = {(name, i): v for name, counts in cells.items() for i, v in enumerate(counts) if v}
    return found | {(name, value): v for name, held in values.items() for value, v in held.items()}


def moved(one, other):
    return math.sqrt(sum((one.get(key, 0.0) - other.get(key, 0.0)) ** 2 for key in one.keys() | other.keys()))


STRANGE = [math.nan, math.inf, -1e308, 1e-320, -0.0, "word", "", None, "1_0", "\n", "a\rb", "ſecret", 2**80, True]


@pytest.mark.parametrize("cell", STRANGE, ids=repr)
def test_zeroing_a_record_out_moves_all_votes_by_at_most_the_clip(cell):
    frame = people(20)
    frame.iloc[7] = [cell] * 4
    without = frame.copy()
    without.iloc[7] = [None] * 4
    _, purchase = opened(frame)
    assert purchase.sensitivity == 2.0
    assert moved(all_votes(frame), all_votes(without)) <= purchase.sensitivity


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize("alike", [True, False])
def test_all_rows_of_a_person_together_move_the_votes_by_at_most_the_clip(rows, alike):
    columns = [*COLUMNS, UNIT]
    others = people(20).assign(who=range(20))
    mine = people(rows, seed=1).assign(who="me", town="Ham" if alike else [f"my {i}" for i in range(rows)])
    frame = pd.concat([others, mine if not alike else mine.assign(age=40, pay=5, ill="no")], ignore_index=True)
    without = frame.copy()
    without.loc[frame["who"] == "me", ["age", "pay", "town", "ill"]] = None
    _, purchase = opened(frame, columns)
    change = moved(all_votes(frame, columns), all_votes(without, columns))
    assert change <= purchase.sensitivity
    if alike:
        assert change > 0.999 * purchase.sensitivity  # the bound is used, not merely kept
    kept = {value for _, value in all_votes(frame, columns) if str(value).startswith("my")}
    assert len(kept) == (0 if alike else min(rows, 3))


@pytest.mark.parametrize("rows", [1, 5])
def test_the_threshold_is_passed_alone_with_the_stated_chance(rows):
    """By the law of the noise: `rows` values in each of two listed columns, each with a vote of one."""
    purchase = Purchase(Blanks.of({"columns": COLUMNS}).parts, rows)
    plan = purchase.plan(1000, 1.0, 1e-5, "record")
    measured = plan.measurement(NAME)
    assert isinstance(measured, Selection)
    deviation = measured.sigma * math.sqrt(4)
    chance = 2 * rows * norm.sf((purchase.threshold(plan) - 1) / deviation)
    assert chance == pytest.approx(measured.failure, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_noise_and_threshold_together_cost_what_was_asked(epsilon):
    """Against the closed form of the Gaussian mechanism (Balle & Wang 2018), with the failure added to its delta."""
    plan = Purchase(Blanks.of({"columns": COLUMNS}).parts).plan(1000, epsilon, 1e-5, "record")
    measured = plan.measurement(NAME)
    mu = 1 / measured.sigma
    gaussian = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert 0.9e-5 <= gaussian + measured.failure <= 1e-5
    assert 0.99 * epsilon <= plan.epsilon <= epsilon


def test_bounds_alone_are_no_selection():
    columns = [*COLUMNS[:2], COLUMNS[3] | {"classes": ["no", "yes"]}]
    plan = Purchase(Blanks.of({"columns": columns}).parts).plan(10, 1.0, 1e-5, "record")
    assert type(plan.measurement(NAME)) is Measurement


def test_a_value_that_one_unit_alone_holds_is_not_named():
    frame = people(3000)
    alone = [f"secret {i}" for i in range(40)]
    frame.loc[:39, "town"], frame.loc[:39, "ill"] = alone, alone
    found = buy(*opened(frame), opened(frame)[1].plan(3000, 1.0, 1e-5, "record"))
    assert found["town"]["categories"] == ["Ely", "Ham", "Rye"]
    assert found["ill"]["classes"] == ["no", "yes"]


def test_values_at_the_threshold_pass_half_of_the_time():
    """So noise is added to each, with a deviation that leaves some on either side."""
    columns = [COLUMNS[2], COLUMNS[3] | {"classes": ["no", "yes"]}]
    _, purchase = opened(people(3), columns)
    plan = purchase.plan(1, 5.0, 1e-5, "record")
    each = round(purchase.threshold(plan))
    frame = pd.DataFrame({"town": [f"t{i}" for i in range(400) for _ in range(each)], "ill": "no"})
    records, _ = opened(frame, columns)
    found = buy(records, purchase, purchase.plan(records.n, 5.0, 1e-5, "record"))
    assert 50 < len(found["town"]["categories"]) < 350


def test_bounds_lie_outside_the_quantiles_and_not_far():
    n = 20_000
    frame = people(n)
    frame.loc[0, "age"] = 1e9  # somebody's: it must not be a bound
    records, purchase = opened(frame)
    found = buy(records, purchase, purchase.plan(n, 1.0, 1e-5, "record"))
    low, high = np.quantile(frame["age"].astype(float), [0.02, 0.98])
    assert low / 2 <= found["age"]["low"] <= low
    assert high <= found["age"]["high"] <= 1.5 * high
    assert isinstance(found["age"]["low"], int)
    assert "low" not in found["pay"]  # it was stated
    assert np.quantile(frame["pay"].astype(float), 0.98) <= found["pay"]["high"] <= 400_000


def test_a_column_in_which_nothing_stands_out_is_left_blank():
    records, purchase = opened(people(30))
    assert buy(records, purchase, purchase.plan(30, 0.1, 1e-5, "record")) == {}


def test_cells_of_the_grid_hold_their_numbers_and_bounds_are_edges():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-5, 14, 1000)
    cells = cell_of(values)
    assert np.all((EDGES[cells] <= values) & (values < EDGES[cells + 1]))
    assert cell_of(np.array([np.nan, 1e300, -1e300, 0.0])).tolist() == [-1, CELLS - 1, 0, CELLS // 2]
    counts = np.bincount(cells, minlength=CELLS).astype(float)
    low, high = bounds(1e6 * counts, 1.0)
    assert low <= np.quantile(values, 0.005)
    assert high >= np.quantile(values, 0.995)
    assert {low, high} <= set(EDGES)


@pytest.mark.parametrize("level", [-1.0, 0.0, 1.0])
def test_noise_alone_has_no_bounds(level):
    assert bounds(np.full(CELLS, level), 1.0) is None
