"""Likeness of tables: distances and correlations by hand and against SciPy, on frames of every kind."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import association

from limbeck.errors import RequestError
from limbeck.evaluate.columns import Column, encoded_rows, one_hot
from limbeck.evaluate.fidelity import Fidelity, correlation_score, correlations, fidelity, histogram
from limbeck.evaluate.fidelity_plots import write_fidelity_plots

AGE = Column("age", "numerical", 0, 100)
PAY = Column("pay", "numerical", 0, 1000, missing=True)
TOWN = Column("town", "categorical", categories=("Oslo", "Łódź", "東京"))
SICK = Column("sick", "categorical", categories=("no", "yes"))
COLUMNS = (AGE, PAY, TOWN)


def people(n, seed=0):
    """Pay goes with age, town with pay, sickness with age; some pay is missing."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 90, n)
    pay = np.clip(8 * age + rng.normal(0, 80, n), 0, 1000)
    town = np.array(TOWN.categories)[np.digitize(pay + rng.normal(0, 100, n), [300, 600])]
    sick = np.where(age + rng.normal(0, 10, n) > 70, "yes", "no")
    return pd.DataFrame({"age": age, "pay": np.where(rng.random(n) < 0.1, np.nan, pay), "town": town, "sick": sick})


def shuffled(frame, seed=0):
    """Every column in an order of its own: the same marginals, no correlations."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame})


def test_one_hot_by_hand():
    frame = pd.DataFrame(
        {"age": [25, 250, -3], "pay": [500, None, "x"], "town": ["東京", "Rome", None], "sick": ["yes", "no", "?"]}
    )
    rows = encoded_rows(frame, COLUMNS, SICK)
    assert rows.X.tolist() == [
        [0.25, 0.5, 0, 0, 0, 1],
        [1.0, 0.5, 1, 0, 0, 0],
        [0.0, 0.5, 1, 0, 0, 0],
    ]
    assert rows.y.tolist() == [1, 0, -1]
    assert len(rows) == 2


def test_the_encoding_depends_on_the_declaration_alone():
    assert one_hot(people(5), COLUMNS).shape[1] == one_hot(people(500), COLUMNS).shape[1] == 6
    assert one_hot(people(0), COLUMNS).shape == (0, 6)
    flagged = Column("town", "categorical", categories=TOWN.categories, missing=True)
    assert one_hot(pd.DataFrame({"town": [None, "Oslo"]}), [flagged]).tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]


def test_categories_of_every_type():
    for categories, cells in (
        ((0, 1), [1, 0]),
        ((False, True), [True, False]),
        (("a", "b"), pd.Categorical(["b", "a"])),
    ):
        column = Column("c", "categorical", categories=categories)
        assert one_hot(pd.DataFrame({"c": cells}), [column]).tolist() == [[0, 1], [1, 0]]


def test_wrong_columns_are_named():
    with pytest.raises(RequestError, match="low < high"):
        Column("age", "numerical", 3, 3)
    with pytest.raises(RequestError, match="no categories"):
        Column("town", "categorical")
    with pytest.raises(RequestError, match="declared twice"):
        Column("town", "categorical", categories=("Oslo", "Oslo"))
    with pytest.raises(RequestError, match="no column 'pay'"):
        one_hot(pd.DataFrame({"age": [1]}), COLUMNS)


def test_histograms_by_hand():
    frame = pd.DataFrame({"age": [0, 4.99, 5, 100, 130, None], "town": ["Oslo", "Oslo", "Rome", "東京", None, "Oslo"]})
    expected = np.zeros(21)
    expected[[0, 1, 19, 20]] = np.array([2, 1, 2, 1]) / 6
    assert histogram(frame, AGE).tolist() == pytest.approx(expected.tolist())
    assert histogram(frame, TOWN).tolist() == pytest.approx([3 / 6, 0, 1 / 6, 2 / 6])


def test_marginals_and_classes_by_hand():
    real = pd.DataFrame({"town": ["Oslo", "Oslo", "Łódź", "東京"], "sick": ["no", "no", "no", "yes"]})
    release = pd.DataFrame({"town": ["Oslo", "東京"], "sick": ["yes", "yes"]})
    found = fidelity(real, release, [TOWN], SICK)
    assert found.marginals == {"town": pytest.approx(0.75)}
    assert found.class_balance == pytest.approx(0.25)
    assert found.overall == pytest.approx(np.mean([0.75, found.correlations, 0.25]))


def test_pearson_is_scipys_over_rows_that_have_both():
    frame = people(300)
    both = frame["pay"].notna()
    expected = stats.pearsonr(frame["age"][both], frame["pay"][both]).statistic
    assert correlations(frame, COLUMNS)[0, 1] == pytest.approx(expected)
    assert correlations(frame.assign(pay=1000 - frame["pay"]), COLUMNS)[0, 1] == pytest.approx(-expected)


def test_pearson_where_both_have_gaps():
    frame = people(300)
    frame = frame.assign(age=frame["age"].where(frame["age"] > 35), pay=frame["pay"].where(frame["pay"] < 600))
    both = frame["age"].notna() & frame["pay"].notna()
    expected = stats.pearsonr(frame["age"][both], frame["pay"][both]).statistic
    assert correlations(frame, COLUMNS)[0, 1] == pytest.approx(expected)


def test_cramer_is_scipys_freed_of_its_bias():
    frame, n = people(300), 300
    table = pd.crosstab(frame["town"], frame["sick"]).to_numpy()
    plain = association(table, correction=False)
    k, r = table.shape
    phi2 = plain**2 * (min(k, r) - 1) - (k - 1) * (r - 1) / (n - 1)
    free = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1)) - 1
    assert correlations(frame, [TOWN, SICK])[0, 1] == pytest.approx(np.sqrt(phi2 / free))


def test_correlation_ratio_is_an_adjusted_share_of_variance():
    frame = people(300)
    groups = [g["age"].to_numpy() for _, g in frame.groupby("town")]
    F = stats.f_oneway(*groups).statistic
    k, n = len(groups), len(frame)
    eta2 = F * (k - 1) / (F * (k - 1) + n - k)
    adjusted = 1 - (1 - eta2) * (n - 1) / (n - k)
    assert correlations(frame, [AGE, TOWN])[0, 1] == pytest.approx(np.sqrt(adjusted))
    # By hand, with two missing numbers: groups (0, 1) and (3, 4) leave 1/2 + 1/2 of 10 within them.
    small = pd.DataFrame({"pay": [0, 1, None, 3, 4, None], "sick": ["no"] * 3 + ["yes"] * 3})
    assert correlations(small, [PAY, SICK])[0, 1] == pytest.approx(np.sqrt(1 - 1 / 10 * 3 / 2))


def test_what_determines_each_other_is_fully_correlated():
    frame = pd.DataFrame({"age": [0.0, 50, 100] * 10, "pay": [0.0, 500, 1000] * 10, "town": TOWN.categories * 10})
    other = Column("other", "categorical", categories=(1, 2, 3))
    frame["other"] = [3, 1, 2] * 10
    assert correlations(frame, [AGE, PAY, TOWN, other]) == pytest.approx(np.ones((4, 4)))


def test_independent_columns_of_a_small_release_do_not_look_correlated():
    rng = np.random.default_rng(0)
    many = tuple(Column(name, "categorical", categories=tuple(range(20))) for name in "abcdef")
    frame = pd.DataFrame({column.name: rng.integers(0, 20, 100) for column in many})
    frame["age"] = rng.uniform(0, 100, 100)
    R = correlations(frame, (*many, AGE))
    plain = association(pd.crosstab(frame["a"], frame["b"]).to_numpy(), correction=False)
    pairs = np.triu_indices(7, 1)
    assert plain > 0.35
    assert R[pairs].mean() < 0.15


@pytest.mark.parametrize(
    "frame", [people(1), people(2), people(40).assign(age=50.0, town="Oslo"), people(9).assign(pay=np.nan)]
)
def test_nothing_that_varies_is_no_correlation(frame):
    R = correlations(frame, (*COLUMNS, SICK))
    assert np.isfinite(R).all()
    assert (np.abs(R) <= 1).all()
    assert np.array_equal(R, R.T)
    assert (np.diag(R) == 1).all()
    for i, column in enumerate((*COLUMNS, SICK)):
        if frame[column.name].nunique() < 2:
            assert (np.delete(R[i], i) == 0).all()


def test_a_narrow_column_of_a_wide_declaration_varies():
    wide = Column("age", "numerical", 0, 1e9)
    assert correlations(people(200), [wide, PAY])[0, 1] == pytest.approx(correlations(people(200), [AGE, PAY])[0, 1])


def test_fidelity_is_one_for_the_same_rows_and_lower_for_others():
    real = people(2000)
    same = fidelity(real, real.sample(frac=1, random_state=0), COLUMNS, SICK)
    for value in (same.marginal_mean, same.correlations, same.class_balance, same.overall):
        assert value == pytest.approx(1)
    loose = fidelity(real, shuffled(real), COLUMNS, SICK)
    assert loose.marginal_mean == pytest.approx(1)
    assert loose.class_balance == pytest.approx(1)
    assert loose.correlations < 0.7
    fresh = fidelity(real, people(2000, seed=1), COLUMNS, SICK)
    assert loose.overall < fresh.overall < 1
    other = real.assign(age=100 - real["age"], sick="yes")
    assert fidelity(real, other, COLUMNS, SICK).marginals["age"] < 0.9
    assert fidelity(real, other, COLUMNS, SICK).class_balance == pytest.approx((real["sick"] == "yes").mean())


def test_opposite_correlations_are_as_far_as_can_be():
    A = np.array([[1, 1.0], [1, 1]])
    B = np.array([[1, -1.0], [-1, 1]])
    assert correlation_score(A, B, [AGE, PAY]) == 0
    assert correlation_score(A, np.eye(2), [AGE, PAY]) == 0.5
    assert correlation_score(A, np.eye(2), [AGE, TOWN]) == 0


def test_every_score_is_between_none_and_one():
    real = people(200)
    for n in (1, 2, 5):
        found = fidelity(real, people(n, seed=3), COLUMNS, SICK)
        for value in (*found.marginals.values(), found.correlations, found.class_balance, found.overall):
            assert 0 <= value <= 1


def test_all_categorical_all_numerical_one_feature():
    real, release = people(100), people(50, seed=1)
    for columns in ([TOWN], [AGE], [AGE, PAY]):
        assert 0.5 < fidelity(real, release, columns, SICK).overall <= 1
    with pytest.raises(RequestError, match="no feature column"):
        fidelity(real, release, [], SICK)
    with pytest.raises(RequestError, match="0 of the release"):
        fidelity(real, release[:0], COLUMNS, SICK)


def test_many_columns_and_many_categories():
    rng = np.random.default_rng(0)
    columns = [Column(f"n{i}", "numerical") for i in range(1000)]
    columns += [Column(f"c{i}", "categorical", categories=(0, 1)) for i in range(1000)]
    columns += [Column("long", "categorical", categories=tuple(range(10_000)))]
    frame = pd.DataFrame(rng.integers(0, 2, (60, 2000)), columns=[column.name for column in columns[:-1]])
    frame = frame.assign(long=rng.integers(0, 10_000, 60), sick=rng.choice(["no", "yes"], 60))
    assert fidelity(frame, frame, columns, SICK).overall == pytest.approx(1)


def test_results_go_to_json_and_back():
    found = fidelity(people(100), people(20, seed=1), COLUMNS, SICK)
    stored = json.loads(found.model_dump_json())
    assert stored["overall"] == found.overall
    assert list(stored["marginals"]) == ["age", "pay", "town"]
    assert Fidelity.model_validate_json(found.model_dump_json()) == found


def test_plots_are_written(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr("limbeck.evaluate.fidelity_plots.MARGINALS", 6)
    long = Column("an uncommonly long name of a column $x$", "categorical", categories=tuple(range(40)))
    columns = (*COLUMNS, long, *(Column(f"n{i}", "numerical") for i in range(40)))
    rng = np.random.default_rng(0)
    frames = [
        people(n, seed=n).assign(**{long.name: rng.integers(0, 41, n)}, **{f"n{i}": rng.random(n) for i in range(40)})
        for n in (60, 7)
    ]
    found = fidelity(*frames, columns, SICK)
    paths = write_fidelity_plots(found, *frames, columns, SICK, tmp_path)
    assert [path.name for path in paths] == ["marginals.png", "correlations.png", "classes.png"]
    for path in paths:
        with Image.open(path) as image:
            assert len(image.convert("RGB").getcolors(maxcolors=2**24)) > 20
