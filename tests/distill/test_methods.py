"""KIP and DP-KIP end to end on real digits, and what must hold of every method."""

import numpy as np
import pytest

import limbeck
from limbeck.data import ImageSchema, entry, load
from limbeck.distill import DPKIP, KIP, Decant, presets
from limbeck.distill import pouring as pouring_module
from limbeck.distill.cost import check_memory, expected_memory
from limbeck.errors import RequestError
from limbeck.features import Scattering

SCHEMA = entry("digits").schema


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    """A sixth of the steps will do for digits."""
    monkeypatch.setattr(pouring_module, "default_steps", lambda m: 100)


@pytest.fixture(scope="module")
def digits():
    train, test = load("digits", "train"), load("digits", "test")
    return tuple(part.reveal() for part in (train.x, train.y, test.x, test.y))  # digits are public


def quick(**changes):
    settings = {
        "epsilon": 5, "delta": 1e-4, "per_class": 1, "features": "fc-ntk", "batch": 256, "epochs": 20,
        "learning_rate": 0.1, "clip_norm": 0.01, "ridge": 1e-3,
    }  # fmt: skip
    return DPKIP(SCHEMA, **(settings | changes))


PHI = Scattering((8, 8, 1), L=2, groups=None)
METHODS = {
    "KIP": lambda: KIP(SCHEMA, per_class=1, features="fc-ntk", batch=256, epochs=40, learning_rate=0.03),
    "DPKIP": quick,
    "DPKIP, clip in features": lambda: DPKIP(
        SCHEMA, epsilon=5, delta=1e-4, per_class=1, features=PHI, clip="features", epochs=60
    ),
    "Decant": lambda: Decant(SCHEMA, epsilon=5, delta=1e-4, per_class=1, features=PHI),
}
LEARNS_LABELS = ("DPKIP, clip in features", "Decant")  # so its classes need not be balanced


@pytest.mark.parametrize("name", METHODS)
def test_a_few_images_classify_real_digits(name, digits):
    X, y, X_test, y_test = digits
    model = METHODS[name]()
    X_s, y_s = model.fit_resample(X, y)
    assert X_s.shape == (10, 8, 8, 1)
    if name in LEARNS_LABELS:
        assert set(y_s.tolist()) <= set(range(10))
    else:
        assert sorted(y_s.tolist()) == list(range(10))
    assert model.release_.classifier().score(X_test, y_test) > (0.6 if name in LEARNS_LABELS else 0.75)
    assert str(model.guarantee_) in ("no privacy guarantee", str(model.release_.guarantee))


@pytest.mark.parametrize("name", METHODS)
def test_the_example_of_the_docs_runs(name, digits, tmp_path):
    X, y, _, _ = digits
    model = METHODS[name]()
    setattr(model, "steps" if name == "Decant" else "epochs", 1)
    model.fit_resample(X, y)
    model.release_.save(tmp_path / "release")
    assert not limbeck.verify(tmp_path / "release")
    assert limbeck.load(tmp_path / "release").classifier().predict(X[:5]).shape == (5,)


def test_learned_labels_move_and_help_the_loss(digits):
    X, y, X_test, y_test = digits
    model = KIP(SCHEMA, per_class=1, features="fc-ntk", batch=256, epochs=20, learning_rate=0.03, learn_labels=True)
    model.fit_resample(X, y)
    assert not np.allclose(np.sort(model.soft_labels_, axis=1)[:, :9], -0.1)
    assert model.release_.classifier().score(X_test, y_test) > 0.6


def test_a_large_epsilon_comes_close_to_no_noise_and_a_small_one_does_not(digits):
    """The noise is really there: at epsilon 0.01 the result is no better than a guess, give or take."""
    X, y, X_test, y_test = digits
    blind = quick(epsilon=0.01)
    blind.fit_resample(X, y)
    assert blind.release_.classifier().score(X_test, y_test) < 0.6


def test_fresh_noise_makes_runs_differ_and_a_seed_repeats_them(digits):
    X, y, _, _ = digits
    runs = [quick(epochs=1, init_seed=1).fit_resample(X, y)[0] for _ in range(2)]
    assert not np.array_equal(*runs)
    seeded = [quick(epochs=1, init_seed=1, seed=5) for _ in range(2)]
    images = [model.fit_resample(X, y)[0] for model in seeded]
    assert np.array_equal(*images)
    assert {str(model.guarantee_) for model in seeded} == {"not private: seeded"}


def test_the_plan_is_made_without_data_and_is_the_one_that_runs(digits):
    X, y, _, _ = digits
    model = quick(epochs=1)
    planned = model.plan(len(X))
    model.fit_resample(X, y)
    assert model.plan_ == planned == model.release_.plan
    assert 4.95 <= planned.epsilon <= 5


def test_the_full_batch_is_a_plan_too(digits):
    X, y, _, _ = digits
    model = quick(batch="full", epochs=3)
    model.fit_resample(X, y)
    assert model.plan_.measurements[0].sampling.kind == "full"
    assert model.plan_.measurements[0].steps == 3


def test_persons_are_units(digits):
    X, y, _, _ = digits
    schema = ImageSchema(**SCHEMA.model_dump() | {"unit": "person", "rows_per_unit": 3})
    model = quick(epochs=1, batch=100)
    model.schema = schema
    model.fit_resample(X, y, units=np.arange(len(X)) // 3)
    assert model.plan_.n == len(X) // 3
    assert "per person" in str(model.guarantee_)


def test_scattering_goes_through_the_same_door(digits):
    X, y, _, _ = digits
    model = quick(features=Scattering((8, 8, 1), L=2, groups=3), epochs=0.5, batch=64)
    X_s, _ = model.fit_resample(X[:200], y[:200])
    assert np.isfinite(X_s).all()
    assert model.release_.recipe["features"]["name"] == "scattering"


def test_divergence_is_an_error_and_not_a_release(digits):
    X, y, _, _ = digits
    with pytest.raises(RequestError, match="diverged"):
        quick(epochs=2, learning_rate=1e38, optimiser="sgd", clip_norm=1e9).fit_resample(X, y)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"per_class": 0}, "images a class"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"batch": 0}, "batch"),
    ],
)
def test_wrong_settings_are_refused(changes, said):
    with pytest.raises(RequestError, match=said):
        quick(**changes).plan(1000)


def test_memory_is_flat_in_the_batch_and_refused_when_absurd():
    assert expected_memory(quick(batch=10), 1000) == expected_memory(quick(batch=1000), 1000)
    assert expected_memory(quick(chunk=8, per_class=50), 1000) < expected_memory(quick(chunk=64, per_class=50), 1000)
    with pytest.raises(RequestError, match="GiB"):
        check_memory(quick(per_class=10**6), 1000)


def test_presets_are_the_papers_tables():
    tables = 8  # table 15, which has one setting a table
    assert len(presets.dpkip("scattering")) == len(presets.dpkip("fc-ntk")) - tables == 30
    assert all(len(presets.kip(f)) == 15 for f in ("e-ntk", "perceptual", "scattering"))
    assert presets.settings("dpkip", "scattering", "fashion_mnist/10/eps1") == {
        "per_class": 10, "epsilon": 1.0, "epochs": 40, "batch": 1000, "learning_rate": 1e-2,
        "clip_norm": pytest.approx(1e-3), "ridge": 1e-3,
    }  # fmt: skip
    assert presets.settings("kip", "scattering", "cifar10/50")["batch"] == 5000
    with pytest.raises(RequestError, match="no preset"):
        presets.settings("kip", "scattering", "nowhere/1")
    with pytest.raises(RequestError, match="no presets"):
        presets.settings("dpkip", "e-ntk", "mnist/1/eps1")
