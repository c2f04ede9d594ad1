import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.evaluate import KRRClassifier, centred_onehot, krr_fit, krr_predict, probabilities
from limbeck.features import FCNTK, Scattering

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="module")
def named():
    return ImageSchema(shape=(8, 8, 1), classes=NAMES, low=0, high=16)


@pytest.fixture(scope="module")
def classifier(encoded, named):
    x, c = encoded
    return KRRClassifier.from_support(
        x[:200], centred_onehot(c[:200], 10), features=Scattering((8, 8, 1)), schema=named, ridge=1e-2
    )


def test_predicts_declared_classes_of_raw_images(classifier, digits):
    X, y = digits[0][200:400], np.array(NAMES)[digits[1][200:400]]
    predicted = classifier.predict(X)
    assert set(predicted) <= set(NAMES)
    assert accuracy_score(y, predicted) > 0.9
    assert classifier.score(X, y) == pytest.approx(accuracy_score(y, predicted))
    assert classifier.classes_.tolist() == list(NAMES)
    np.testing.assert_array_equal(predicted, classifier.predict(X.reshape(200, 8, 8, 1)))


def test_probabilities_are_probabilities(classifier, digits):
    p = classifier.predict_proba(digits[0][200:300])
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(classifier.classes_[p.argmax(1)], classifier.predict(digits[0][200:300]))


def test_probabilities_with_nothing_left_are_uniform():
    p = probabilities(np.array([[-1.0, -2.0], [0.5, -0.5]]))
    np.testing.assert_allclose(p, [[0.5, 0.5], [1, 0]])


@pytest.mark.parametrize("features", [Scattering((8, 8, 1)), FCNTK()], ids=["scattering", "fc-ntk"])
def test_decides_as_kernel_ridge_regression_does(features, digits, encoded, schema):
    x, c = encoded
    y_s = centred_onehot(c[:20], 10) + np.random.default_rng(0).normal(0, 0.1, (20, 10)).astype(np.float32)
    classifier = KRRClassifier.from_support(x[:20], y_s, features=features, schema=schema, ridge=1e-3)
    expected = krr_predict(features, x[:20], krr_fit(features, x[:20], y_s, 1e-3), x[50:60])
    np.testing.assert_allclose(classifier.decision_function(digits[0][50:60]), expected)


def test_fits_raw_images_too_and_leaves_null_records_out(digits, encoded, schema):
    X, y = digits[0][:60].astype(float), digits[1][:60].copy()
    X[3, 0, 0], y[5] = np.nan, 77
    fitted = KRRClassifier(FCNTK(), schema, ridge=1e-3).fit(X, y)
    kept = np.delete(np.arange(60), [3, 5])
    x, c = encoded
    same = KRRClassifier.from_support(x[kept], centred_onehot(c[kept], 10), features=FCNTK(), schema=schema, ridge=1e-3)
    np.testing.assert_allclose(fitted.decision_function(X[40:]), same.decision_function(X[40:]))
    assert fitted.predict(X).dtype.kind == "i"


def test_null_records_do_not_count_and_say_nothing(classifier, digits):
    X, y = digits[0][200:260].astype(float), np.array(NAMES, object)[digits[1][200:260]]
    expected = classifier.score(X[2:], y[2:])
    X[0], y[1] = np.nan, "ten"
    assert classifier.score(X, y) == pytest.approx(expected)
    np.testing.assert_allclose(classifier.predict_proba(X)[0], 0.1)
    weight = np.r_[5.0, 5.0, np.ones(58)]
    assert classifier.score(X, y, weight) == pytest.approx(expected)


@pytest.mark.parametrize("X", [np.zeros((3, 9, 9)), np.zeros((3, 8, 8, 3)), np.zeros(64), "images.png"])
def test_refuses_images_of_another_shape(classifier, X):
    for method in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        with pytest.raises(RequestError):
            method(X)


def test_refuses_a_support_that_the_schema_does_not_describe(encoded, named):
    x, c = encoded
    with pytest.raises(RequestError, match="declares"):
        KRRClassifier.from_support(x[:5], centred_onehot(c[:5], 11), features=FCNTK(), schema=named, ridge=1e-3)


def test_is_a_scikit_learn_estimator(classifier, digits):
    fresh = clone(classifier)
    assert fresh.get_params()["ridge"] == 1e-2
    with pytest.raises(NotFittedError):
        fresh.predict(digits[0][:2])
    with pytest.raises(RequestError, match="no record"):
        classifier.score(digits[0][:2], ["ten", "eleven"])
    assert "KRRClassifier" in repr(classifier)
