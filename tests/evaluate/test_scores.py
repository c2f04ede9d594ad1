import json

import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.evaluate import (
    Scores,
    centred_onehot,
    evaluate_support,
    full_network_accuracies,
    full_set_scores,
    krr_fit,
    krr_predict,
    network_accuracies,
    random_subset,
    random_subset_scores,
)
from limbeck.evaluate.scores import full_steps
from limbeck.evaluate.training import training_steps
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
        networks=("convnet", "mlp"),
        seeds=2,
        steps=20,
        progress=lambda *at: calls.append(at),
    )
    f = krr_predict(FEATURES, x_s, krr_fit(FEATURES, x_s, y_s, 1e-4), x_test[10:])
    assert scores.krr == pytest.approx((f.argmax(1) == c_test[10:]).mean())
    assert (scores.records, scores.test_records, scores.ridge) == (50, 190, 1e-4)
    assert list(scores.networks) == ["convnet", "mlp"]
    for name, found in scores.networks.items():
        assert found == network_accuracies(name, x_s, y_s, x_test, c_test, seeds=2, steps=20)
        assert scores.network_mean[name] == pytest.approx(np.mean(found))
        assert scores.network_sd[name] == pytest.approx(np.std(found, ddof=1))
    assert scores.features == FEATURES.config()
    assert calls[-1][0] == calls[-1][1]
    assert len({total for _, total in calls}) == 1


def test_scores_go_to_json_and_back(encoded):
    x, c = encoded
    options = {"networks": ("mlp",), "seeds": 1, "steps": 5}
    scores = random_subset_scores(x, c, 2, 10, FCNTK(), 1e-4, x[:50], c[:50], **options)
    stored = json.loads(scores.model_dump_json())
    assert stored["networks"] == {"mlp": [stored["network_mean"]["mlp"]]}
    assert stored["network_sd"] == {"mlp": None}
    assert Scores.model_validate(stored) == scores


def test_no_networks_are_trained_where_none_is_asked_for(encoded, monkeypatch):
    x, c = encoded
    monkeypatch.setattr("limbeck.evaluate.scores.network_accuracies", None)
    scores = random_subset_scores(x, c, 2, 10, FCNTK(), 1e-4, x[:50], c[:50], networks=())
    assert scores.networks == scores.network_mean == scores.network_sd == {}


def test_networks_on_the_whole_set_leave_null_records_out(encoded):
    x, c = encoded[0][:200], encoded[1][:200].copy()
    c[:20] = -1
    x_test, c_test = encoded[0][1000:], encoded[1][1000:].copy()
    c_test[:20] = -1
    found = full_network_accuracies("mlp", x, c, 10, x_test, c_test, seeds=2)
    assert found == full_network_accuracies("mlp", x[20:], c[20:], 10, x_test[20:], c_test[20:], seeds=2)
    assert 0.8 < min(found) < max(found) < 1  # of two seeds, so that other records would have given others


def test_steps_on_the_whole_set_grow_with_it_to_a_limit():
    assert [full_steps(n) for n in (100, 6400, 60_000)] == [300, 1000, 2000]
    assert [training_steps(m) for m in (1, 100, 200, 500, 10_000)] == [300, 300, 400, 1000, 1000]


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
        random_subset_scores(x[:1000], c[:1000], per_class, 10, FEATURES, 1e-4, *test, networks=())
        for per_class in (1, 10)
    )
    full = full_set_scores(x[:1000], c[:1000], 10, FEATURES, 1e-4, *test)
    assert one.krr < ten.krr < full.krr
    assert (one.records, ten.records, full.records) == (10, 100, 1000)
    assert one.available == full.available == 1000
