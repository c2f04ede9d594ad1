"""What tables are worth: metrics by hand and against scikit-learn, and every odd table that must not stop a run."""

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.preprocessing import minmax_scale

from limbeck.errors import RequestError
from limbeck.evaluate.classifiers import CLASSIFIERS
from limbeck.evaluate.tables import (
    ClassifierScores,
    TableScores,
    evaluate_table,
    majority_scores,
    random_rows,
    reference_scores,
)
from limbeck.evaluate.trial import Rows, constant_metrics, metric_names, scores

QUICK = ("logistic regression", "Gaussian naive Bayes", "decision tree", "XGBoost")
SLOW = {"AdaBoost": "a thousand stumps", "MLP": "two hundred passes"}


def _split(data, train=200):
    order = np.random.default_rng(0).permutation(len(data.target))
    X, y = minmax_scale(data.data)[order], data.target[order]
    return Rows(X[:train], y[:train]), Rows(X[train:], y[train:])


@pytest.fixture(scope="module")
def cancer():
    return _split(load_breast_cancer())


@pytest.fixture(scope="module")
def wine():
    return _split(load_wine(), train=90)


def _steps(score, y):
    """Training rows that a one-feature logistic regression ranks like the feature, and the test rows given."""
    X = np.array(score, float)[:, None]
    return np.array([[0.0], [1.0]]), np.array([0, 1]), X, np.array(y)


def test_two_classes_by_hand():
    # Scores .1 .4 .35 .8 of classes 0 0 1 1: three of four pairs are in order; precision is 1 at recall 1/2, and 2/3
    # at recall 1.
    found = scores("logistic regression", *_steps([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 2, 0)
    assert not found.constant
    assert found.metrics == {"roc": pytest.approx(0.75), "prc": pytest.approx(0.5 * 1 + 0.5 * 2 / 3)}


def test_the_other_class_may_be_the_positive_one():
    # Class 0 from the top by -score: .1 (0), .35 (1), .4 (0), .8 (1).
    found = scores("logistic regression", *_steps([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 2, 0, positive=0)
    assert found.metrics == {"roc": pytest.approx(0.75), "prc": pytest.approx(0.5 * 1 + 0.5 * 2 / 3)}
    unequal = scores("logistic regression", *_steps([0.9, 0.4, 0.35, 0.8], [0, 0, 1, 0]), 2, 0, positive=0)
    assert unequal.metrics["prc"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)


def test_hard_labels_by_hand():
    # Predicted 0 0 0 1: true positive rate 1/2 at false positive rate 0; precision 1 at recall 1/2, then the base rate.
    found = scores("logistic regression", *_steps([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 2, 0, hard=True)
    assert found.metrics == {"roc": pytest.approx(0.75), "prc": pytest.approx(0.5 * 1 + 0.5 * 0.5)}
    # One false alarm above: scores rank the pairs 2/4 in order, labels (0 1 0 1) the same, but ties are halves.
    steps = _steps([0.1, 0.9, 0.35, 0.8], [0, 0, 1, 1])
    assert scores("logistic regression", *steps, 2, 0).metrics["roc"] == pytest.approx(0.5)
    assert scores("logistic regression", *steps, 2, 0, hard=True).metrics["roc"] == pytest.approx(0.5)


def test_more_classes_by_hand():
    # A tree that has seen 0, .5 and 1 predicts 0 1 1 2 for the classes 0 0 1 2.
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 2])
    found = scores("decision tree", X, y, np.array([[0.0], [0.5], [0.6], [1.0]]), np.array([0, 0, 1, 2]), 3, 0)
    each = np.array([2 / 3, 2 / 3, 1])
    assert found.metrics == {
        "f1_macro": pytest.approx(each.mean()),
        "f1_weighted": pytest.approx(each @ [0.5, 0.25, 0.25]),
    }


def test_a_class_without_test_rows_does_not_count():
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 2])
    found = scores("decision tree", X, y, np.array([[0.0], [0.5]]), np.array([0, 1]), 3, 0)
    assert found.metrics == {"f1_macro": 1.0, "f1_weighted": 1.0}
    # Predicting it is an error of the class that the row has, and no class of its own: F1 is 1 and 2/3.
    found = scores("decision tree", X, y, X, np.array([0, 1, 1]), 3, 0)
    assert found.metrics == {"f1_macro": pytest.approx(5 / 6), "f1_weighted": pytest.approx((1 + 2 * 2 / 3) / 3)}


def test_scores_are_those_of_scikit_learn(cancer, wine):
    train, test = cancer
    model = LogisticRegression(max_iter=5000).fit(train.X, train.y)
    share = model.predict_proba(test.X)[:, 1]
    found = scores("logistic regression", train.X, train.y, test.X, test.y, 2, 0).metrics
    assert found["roc"] == pytest.approx(roc_auc_score(test.y, share), abs=1e-9)
    assert found["prc"] == pytest.approx(average_precision_score(test.y, share), abs=1e-9)
    train, test = wine
    predicted = LogisticRegression(max_iter=5000).fit(train.X, train.y).predict(test.X)
    found = scores("logistic regression", train.X, train.y, test.X, test.y, 3, 0).metrics
    for how in ("macro", "weighted"):
        assert found[f"f1_{how}"] == pytest.approx(f1_score(test.y, predicted, average=how))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_learns_two_classes_and_three(name, cancer, wine):
    # Chance is .5 and .63 for two classes, below .4 for three; a single tree is the weakest.
    for (train, test), classes, least in ((cancer, 2, 0.8), (wine, 3, 0.5)):
        found = scores(name, train.X, train.y, test.X, test.y, classes, 0)
        assert not found.constant
        assert min(found.metrics.values()) > least
        again = scores(name, train.X, train.y, test.X, test.y, classes, 0)
        assert again.metrics == found.metrics


def test_the_twelve_of_table_16():
    assert len(CLASSIFIERS) == 12
    adaboost, xgb = CLASSIFIERS["AdaBoost"](7, 2), CLASSIFIERS["XGBoost"](7, 3)
    assert (adaboost.n_estimators, adaboost.learning_rate, adaboost.random_state) == (1000, 0.7, 7)
    assert (xgb.n_estimators, xgb.colsample_bytree, xgb.max_depth, xgb.n_jobs) == (50, 0.1, 3, 1)
    assert CLASSIFIERS["linear SVM"](0, 2).get_params()["loss"] == "hinge"
    assert CLASSIFIERS["Bernoulli naive Bayes"](0, 2).binarize == 0.5
    assert CLASSIFIERS["LDA"](0, 2).shrinkage == 0.5


@pytest.mark.parametrize("classes", [2, 3])
def test_every_setting_of_the_papers_can_be_fitted(classes, cancer, wine):
    train, test = cancer if classes == 2 else wine
    for name, recipe in CLASSIFIERS.items():
        settings = recipe.settings(classes)
        assert settings[0] == recipe.fixed
        assert len({json.dumps(dict(setting), sort_keys=True) for setting in settings}) == len(settings), name
        for setting in settings:
            if setting.get("n_estimators", 0) >= 1000 or setting.get("max_iter", 0) > 10000 or name == "MLP":
                recipe(0, classes, setting)  # made, not fitted: for time
                continue
            found = scores(name, train.X, train.y, test.X, test.y, classes, 0, setting=setting, hard=True)
            # Rates of 4 and more diverge: they are the papers', and no harm to a maximum.
            assert not found.constant or setting.get("learning_rate", 0) >= 4, (name, setting)


ODD_TWO = {
    "one row": (np.array([[0.2, 0.4]]), [1]),
    "one class": (np.array([[0.2, 0.4], [0.1, 0.9], [0.3, 0.3]]), [0, 0, 0]),
    "one row a class": (np.array([[0.2, 0.4], [0.9, 0.1]]), [0, 1]),
    "one row of a class": (np.linspace(0, 1, 12).reshape(6, 2), [0, 0, 0, 0, 0, 1]),
    "constant features": (np.ones((6, 2)), [0, 1, 0, 1, 0, 1]),
    "a constant feature": (np.column_stack([np.linspace(0, 1, 6), np.ones(6)]), [0, 0, 0, 1, 1, 1]),
    "the same row twice": (np.full((2, 2), 0.3), [0, 1]),
}


@pytest.mark.parametrize("odd", ODD_TWO)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_odd_tables_of_two_classes(name, odd):
    X, y = ODD_TWO[odd]
    X_test, y_test = np.random.default_rng(0).random((20, 2)), np.arange(20) % 4 // 3
    setting = {"n_estimators": 20} if name == "AdaBoost" else None
    found = scores(name, X, np.array(y), X_test, y_test, 2, 0, setting=setting)
    assert all(0 <= value <= 1 for value in found.metrics.values())
    if len(set(y)) == 1:
        assert found.constant
    if found.constant:
        assert found.metrics == {"roc": 0.5, "prc": 0.25}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_table_that_lacks_a_class_never_predicts_it(name, wine):
    train, test = wine
    setting = {"n_estimators": 50} if name == "AdaBoost" else None
    for kept in ((0, 2), (1, 2)):  # neither leaves codes that are the classes themselves
        rows = np.isin(train.y, kept)
        found = scores(name, train.X[rows], train.y[rows], test.X, test.y, 3, 0, setting=setting)
        assert not found.constant
        missing = np.mean(test.y == ({0, 1, 2} - set(kept)).pop())
        assert 0.4 < found.metrics["f1_macro"] <= 2 / 3
        assert found.metrics["f1_weighted"] < 1 - missing + 1e-9


def test_what_is_constant_for_more_classes():
    y = np.array([0, 1, 1, 2])
    assert constant_metrics(np.array([1, 1, 0]), y, 3) == {
        "f1_macro": pytest.approx(2 / 9),
        "f1_weighted": pytest.approx(1 / 3),
    }
    X = np.zeros((1, 1))
    found = scores("LDA", X, np.array([1]), np.zeros((4, 1)), y, 3, 0)
    assert found.constant
    assert found.metrics["f1_weighted"] == pytest.approx(1 / 3)


def test_rows_of_no_class_are_left_out(cancer):
    train, test = cancer
    y, y_test = train.y.copy(), test.y.copy()
    y[::5], y_test[::7] = -1, -1
    with_null = evaluate_table(Rows(train.X, y), Rows(test.X, y_test), 2, classifiers=QUICK, seeds=1)
    without = evaluate_table(
        Rows(train.X[y >= 0], y[y >= 0]), Rows(test.X[y_test >= 0], y_test[y_test >= 0]), 2, classifiers=QUICK, seeds=1
    )
    assert with_null.mean == without.mean
    assert (with_null.records, with_null.test_records) == (int((y >= 0).sum()), int((y_test >= 0).sum()))


def test_unconverged_classifiers_are_silent_and_filters_come_back(cancer):
    train, test = cancer
    before = list(warnings.filters)
    found = evaluate_table(train, test, 2, classifiers=("MLP", "linear SVM"), seeds=2, jobs=2)
    assert warnings.filters == before
    assert found.classifiers["MLP"].constant == 0


def test_parallel_is_serial(wine):
    train, test = wine
    names = tuple(name for name in CLASSIFIERS if name not in SLOW)
    together, apart = (evaluate_table(train, test, 3, classifiers=names, seeds=2, jobs=jobs) for jobs in (3, 1))
    for name in names:
        assert together.classifiers[name].metrics == apart.classifiers[name].metrics
    assert list(together.classifiers) == list(names)
    assert together.mean == apart.mean


def test_mean_and_spread_over_classifiers_and_seeds(cancer):
    train, test = cancer
    calls = []
    found = evaluate_table(train, test, 2, classifiers=QUICK, seeds=3, jobs=2, progress=lambda *at: calls.append(at))
    values = np.array([found.classifiers[name].metrics["roc"] for name in QUICK])
    assert values.shape == (4, 3)
    assert found.mean["roc"] == pytest.approx(values.mean())
    assert found.sd["roc"] == pytest.approx(values.mean(0).std(ddof=1))
    assert found.classifiers["decision tree"].sd["roc"] == pytest.approx(values[2].std(ddof=1))
    assert values[2].std() > 0
    # Gaussian naive Bayes draws nothing: one fit stands for three seeds.
    fits = 3 * 3 + 1
    assert calls == [(done, fits) for done in range(1, fits + 1)]
    single = evaluate_table(train, test, 2, classifiers=QUICK[:2], seeds=1)
    assert single.sd["roc"] is None
    for seed in range(3):
        alone = scores("decision tree", train.X, train.y, test.X, test.y, 2, seed)
        assert alone.metrics["roc"] == values[2, seed]


def test_one_table_a_seed(cancer):
    train, test = cancer
    halves = [Rows(train.X[i::2], train.y[i::2]) for i in range(2)]
    found = evaluate_table(halves, test, 2, classifiers=QUICK)
    for seed, half in enumerate(halves):
        alone = scores("Gaussian naive Bayes", half.X, half.y, test.X, test.y, 2, seed)
        assert found.classifiers["Gaussian naive Bayes"].metrics["prc"][seed] == alone.metrics["prc"]
    assert found.records == 100


def test_the_papers_protocol_takes_the_best_setting_on_the_test_rows(cancer):
    train, test = cancer
    names = ("Bernoulli naive Bayes", "decision tree")
    paper = evaluate_table(train, test, 2, classifiers=names, seeds=2, protocol="paper")
    assert paper.optimistic
    assert not evaluate_table(train, test, 2, classifiers=names, seeds=1).optimistic
    for name in names:
        each = [
            [
                scores(name, train.X, train.y, test.X, test.y, 2, seed, setting=setting, hard=True).metrics
                for setting in CLASSIFIERS[name].settings(2)
            ]
            for seed in range(2)
        ]
        for metric in metric_names(2):
            best = tuple(max(one[metric] for one in of_seed) for of_seed in each)
            assert paper.classifiers[name].metrics[metric] == best
    worst = min(one["roc"] for of_seed in each for one in of_seed)
    assert paper.classifiers["decision tree"].metrics["roc"][0] > worst


def test_random_rows_are_as_many_of_every_class():
    real = Rows(np.arange(30.0)[:, None], np.repeat([0, 1, 2, -1], [12, 12, 3, 3]))
    like = np.array([0, 0, 0, 1, 2, 2, 2, 2, 2, -1])
    chosen = random_rows(real, like, 3, seed=0)
    assert np.bincount(chosen.y).tolist() == [3, 1, 3]  # there are only three of the last class
    assert (real.y[chosen.X[:, 0].astype(int)] == chosen.y).all()
    assert len(np.unique(chosen.X)) == 7
    assert random_rows(real, like, 3, seed=1).X.tolist() != chosen.X.tolist()
    with pytest.raises(RequestError, match="none of the classes"):
        random_rows(Rows(real.X[:12], real.y[:12]), np.array([1, 2]), 3, seed=0)


def test_reference_rows(cancer):
    train, test = cancer
    calls = []
    found = reference_scores(
        train, np.array([0, 1] * 5), test, 2, seeds=2, classifiers=QUICK, progress=lambda *at: calls.append(at)
    )
    assert list(found) == ["random real subset", "all real rows", "majority class"]
    subset, whole, majority = found.values()
    assert (subset.records, subset.available, whole.records) == (10, 200, 200)
    assert whole.mean["roc"] > subset.mean["roc"] > majority.mean["roc"] == 0.5
    assert majority.mean["prc"] == pytest.approx(test.y.mean())
    assert majority_scores(train, test, 2, positive=0).mean["prc"] == pytest.approx(1 - test.y.mean())
    roc = subset.classifiers["Gaussian naive Bayes"].metrics["roc"]
    assert roc[0] != roc[1]  # other rows for every seed
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]
    every = reference_scores(train, np.repeat([0, 1], 200), test, 2, seeds=2, classifiers=QUICK[:1])
    assert list(every) == ["all real rows", "majority class"]  # a subset of all of them says nothing more


def test_results_go_to_json_and_back(cancer):
    train, test = cancer
    found = evaluate_table(train, test, 2, classifiers=QUICK[:2], seeds=2, protocol="paper")
    stored = json.loads(found.model_dump_json())
    assert stored["optimistic"] is True
    assert stored["mean"]["roc"] == found.mean["roc"]
    assert stored["classifiers"]["Gaussian naive Bayes"]["sd"]["roc"] == 0
    assert TableScores.model_validate_json(found.model_dump_json()) == found
    assert ClassifierScores(metrics={"roc": (0.5,)}).sd == {"roc": None}


def test_what_cannot_be_evaluated_is_said(cancer):
    train, test = cancer
    with pytest.raises(RequestError, match="all of one class"):
        evaluate_table(train, Rows(test.X, np.zeros(len(test.y), int)), 2)
    with pytest.raises(RequestError, match="no training row"):
        evaluate_table(Rows(train.X, np.full(200, -1)), test, 2)
    with pytest.raises(RequestError, match="30 columns and the test rows 29"):
        evaluate_table(train, Rows(test.X[:, 1:], test.y), 2)
    with pytest.raises(RequestError, match="not finite"):
        evaluate_table(Rows(np.full_like(train.X, np.nan), train.y), test, 2)
    with pytest.raises(RequestError, match="classifiers are oracle"):
        evaluate_table(train, test, 2, classifiers=("oracle",))
    with pytest.raises(RequestError, match="above 1"):
        evaluate_table(Rows(train.X, train.y + 1), test, 2)
    with pytest.raises(RequestError, match="seeds must be"):
        evaluate_table(train, test, 2, seeds=0)
