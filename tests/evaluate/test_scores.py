import json

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.evaluate import (
    Scores,
    centred_onehot,
    evaluate_support,
    full_set_scores,
    krr_fit,
    krr_predict,
    random_subset,
    random_subset_scores,
)
from limbeck.features import FCNTK, Scattering

FEATURES = Scattering((8, 8, 1))


def test_scores_of_a_support(encoded):
    x, c = encoded
    x_s, y_s, x_test, c_test = x[:50], centred_onehot(c[:50], 10), x[1000:1200], c[1000:1200].copy()
    c_test[:10] = -1
    calls = []
    scores = evaluate_support(
        x_s,
        y_s,
        FEATURES,
        1e-4,
        x_test,
        c_test,
        seeds=2,
        steps=20,
        progress=lambda *at: calls.append(at),
    )
    f = krr_predict(FEATURES, x_s, krr_fit(FEATURES, x_s, y_s, 1e-4), x_test[10:])
    assert scores.krr == pytest.approx((f.argmax(1) == c_test[10:]).mean())
    assert (scores.records, scores.test_records, scores.ridge) == (50, 190, 1e-4)
    assert scores.convnet_mean == pytest.approx(np.mean(scores.convnet))
    assert scores.convnet_sd == pytest.approx(np.std(scores.convnet, ddof=1))
    assert scores.features == FEATURES.config()
    assert calls[-1][0] == calls[-1][1]
    assert len({total for _, total in calls}) == 1


def test_scores_go_to_json_and_back(encoded):
    x, c = encoded
    scores = random_subset_scores(x, c, 2, 10, FCNTK(), 1e-4, x[:50], c[:50], convnet=False)
    assert scores.convnet_mean is scores.convnet_sd is None
    stored = json.loads(scores.model_dump_json())
    assert stored["convnet_mean"] is None
    assert Scores.model_validate(stored) == scores


def test_a_random_subset_is_balanced_and_repeatable(encoded):
    _, c = encoded
    c = c.copy()
    c[::3] = -1
    chosen = random_subset(c, 7, seed=2)
    assert np.bincount(c[chosen], minlength=10).tolist() == [7] * 10
    np.testing.assert_array_equal(chosen, random_subset(c, 7, seed=2))
    assert set(chosen) != set(random_subset(c, 7, seed=3))


def test_a_scarce_class_gives_what_it_has():
    assert sorted(random_subset(np.array([0, 0, 0, 2, -1]), 2)[-1:]) == [3]
    with pytest.raises(RequestError, match="no record"):
        random_subset(np.array([-1, -1]), 2)
    with pytest.raises(RequestError, match="per_class"):
        random_subset(np.array([0, 1]), 0)


def test_more_real_records_score_higher_and_all_of_them_highest(encoded):
    x, c = encoded
    test = (x[1000:], c[1000:])
    one, ten = (
        random_subset_scores(x[:1000], c[:1000], per_class, 10, FEATURES, 1e-4, *test, convnet=False)
        for per_class in (1, 10)
    )
    full = full_set_scores(x[:1000], c[:1000], 10, FEATURES, 1e-4, *test)
    assert one.krr < ten.krr < full.krr
    assert (one.records, ten.records, full.records) == (10, 100, 1000)
    assert one.available == full.available == 1000
