"""Property 10. With contributions zeroed and the same randomness, the output is the same bits for every dataset."""

import numpy as np
import pytest

from limbeck.distill.inducing import random_support
from limbeck.measure import Records
from limbeck.measure import session as session_module
from tests.guarantee.problem import NULL, SCHEMA, N, data, features, tiny


def datasets():
    X, y = data()
    yield X, y
    yield np.zeros_like(X), y
    yield np.full_like(X, np.nan), y
    yield X * 1e38, y
    yield X, ["a"] * N
    yield X, [NULL] * N
    yield data(seed=5)[0], y[::-1]


@pytest.fixture
def _contributions_zeroed(monkeypatch):
    for name in ("_clipped_chunk", "_rounded_chunk"):
        real = getattr(session_module, name)
        monkeypatch.setattr(session_module, name, lambda *a, real=real: np.zeros_like(np.asarray(real(*a))))


@pytest.mark.usefixtures("_contributions_zeroed")
@pytest.mark.parametrize(
    ("family", "noise", "batch"),
    [("fc-ntk", "normal", "full"), ("fc-ntk", "discrete", 3), ("scattering", "normal", "full")],
)
def test_the_output_is_the_same_bits_for_every_dataset(family, noise, batch):
    settings = {"features": features(family), "noise": noise, "batch": batch, "delta": 1e-2, "init_seed": 1, "seed": 5}
    plan = tiny(**settings).plan(N)
    released = set()
    for X, y in datasets():
        release = tiny(**settings).fit(Records(SCHEMA, X, y), plan=plan).release_
        released.add((release.x.tobytes(), release.soft.tobytes(), tuple(release.labels), str(release.recipe)))
    assert len(released) == 1


def test_the_plan_is_made_without_data():
    for X, y in datasets():
        model = tiny()
        model.fit_resample(X, y)
        assert model.plan_ == model.release_.plan == tiny().plan(N)


def test_initial_images_are_a_function_of_the_public_seed():
    a, b, c = (random_support(SCHEMA, 2, seed) for seed in (1, 1, 2))
    assert np.array_equal(a[0], b[0])
    assert not np.array_equal(a[0], c[0])
    assert np.array_equal(a[1], c[1])  # labels are balanced, whatever the seed
