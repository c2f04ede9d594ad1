"""Decant: a private teacher, and small sets poured from it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.data import ImageSchema, entry, load
from limbeck.distill import Decant, fit_signal
from limbeck.distill import pouring as pouring_module
from limbeck.distill.cost import check_memory, expected_memory, expected_seconds
from limbeck.distill.pouring import Pouring, centred, poured, roughness
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import as_large_as_onehot
from limbeck.evaluate.krr import krr_fit
from limbeck.features import Scattering, features_of
from limbeck.measure import Records, Session
from limbeck.privacy.journal import Journal
from limbeck.release import Signal, examine, load_signal

SCHEMA = entry("digits").schema
PHI = Scattering((8, 8, 1), L=2, groups=None)


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    """A sixth of the steps will do for digits."""
    monkeypatch.setattr(pouring_module, "default_steps", lambda m: 100)


@pytest.fixture(scope="module")
def digits():
    train, test = load("digits", "train"), load("digits", "test")
    return tuple(part.reveal() for part in (train.x, train.y, test.x, test.y))  # digits are public


def quick(**changes):
    return Decant(SCHEMA, **({"epsilon": 10, "delta": 1e-4, "per_class": 2, "features": PHI, "steps": 20} | changes))


@pytest.fixture(scope="module")
def signal(digits) -> Signal:
    X, y, _, _ = digits
    return quick().measure(Records(SCHEMA, X, y))


@pytest.fixture(scope="module")
def saved(signal, tmp_path_factory):
    return signal.save(tmp_path_factory.mktemp("signals") / "signal")


# The teacher


@pytest.mark.parametrize("loss", ["softmax", "quadratic"])
def test_without_noise_the_teacher_is_plain_gradient_descent(digits, loss):
    X, y, _, _ = digits
    # No record is clipped, so the sums are those of plain gradients; the noise is next to nothing.
    model = quick(clip_norm=1000.0, steps=5, learning_rate=2.0, loss=loss, seed=0)
    plan = model.plan(len(X)).scaled(1e-9)
    W = model.measure(Records(SCHEMA, X, y), plan=plan).W
    x, c = SCHEMA.encode(X, y)
    phi, Y = features_of(PHI, x), np.eye(10)[c]

    def mean_loss(W):
        f = phi @ W
        if loss == "softmax":
            return -jnp.mean(jnp.sum(Y * jax.nn.log_softmax(f), axis=1))
        return jnp.mean(jnp.sum((f - (Y - 0.1)) ** 2, axis=1)) / 2

    expected, V = np.zeros_like(W), 0
    for _ in range(5):
        V = 0.9 * V + jax.grad(mean_loss)(expected)
        expected = expected - 2.0 * V
    assert np.allclose(W, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_the_plan_is_one_measurement_and_the_one_that_runs(digits, signal):
    X, _, _, _ = digits
    planned = quick().plan(len(X))
    assert planned == signal.plan
    (measured,) = planned.measurements
    assert (measured.name, measured.steps, measured.clip) == ("weight gradient", 20, 1.0)
    assert measured.sampling.kind == "full"
    assert 9.9 <= planned.epsilon <= 10
    assert quick(batch=100).measurement(len(X)).sampling.kind == "poisson"


def test_the_noise_in_the_teacher_depends_on_rate_times_steps_alone():
    """As the documentation says: sigma grows as sqrt(steps), and the noise of the sum by as much again."""
    few, many = (quick(steps=steps).plan(1000).measurements[0].sigma for steps in (10, 40))
    assert many / few == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize(("epsilon", "n", "batch"), [(1, 5000, "full"), (10, 5000, "full"), (1, 5000, 500)])
def test_the_rate_gathers_the_noise_that_was_chosen(epsilon, n, batch):
    """Descent on noise alone, by the formula's steps and rate: its logits spread as far as was asked for."""
    model = quick(epsilon=epsilon, steps=None, batch=batch, logit_noise=0.7, momentum=0.5)
    plan = model.plan(n)
    (m,) = plan.measurements
    rng = np.random.default_rng(0)
    V = W = np.zeros(20_000)
    for _ in range(m.steps):
        V = 0.5 * V + rng.normal(0, m.sigma * m.clip / m.sampling.expected, V.shape)
        W = W - model.rate(plan) * V
    assert W.std() == pytest.approx(0.7, rel=0.05)


def test_where_noise_is_small_there_are_more_steps():
    few, many = (quick(epsilon=epsilon, steps=None).measurement(60_000).steps for epsilon in (1, 10))
    assert few == 40 < many <= 200
    assert quick(steps=None).rate(quick(epsilon=10, steps=None).plan(10**6)) <= 64
    assert quick(steps=7, learning_rate=3.0).rate(quick().plan(1000)) == 3.0


def test_discrete_noise_and_persons_go_through_the_same_door(digits):
    X, y, _, _ = digits
    schema = ImageSchema(**SCHEMA.model_dump() | {"unit": "person", "rows_per_unit": 3})
    model = Decant(schema, epsilon=10, delta=1e-3, features=PHI, steps=2, noise="discrete")
    signal = model.measure(Records(schema, X[:300], y[:300], np.arange(300) // 3))
    assert signal.plan.n == 100
    assert np.isfinite(signal.W).all()
    assert "per person" in str(signal.guarantee)


def test_a_seed_repeats_and_is_marked(digits):
    X, y, _, _ = digits
    records = Records(SCHEMA, X[:200], y[:200])
    once, again = (quick(steps=2, seed=4).measure(records) for _ in range(2))
    assert np.array_equal(once.W, again.W)
    assert once.guarantee.status == "seeded"
    assert not np.array_equal(*(quick(steps=2).measure(records).W for _ in range(2)))


def test_an_interrupted_measurement_goes_on_from_its_answers(digits, tmp_path, monkeypatch):
    X, y, _, _ = digits
    records, model = Records(SCHEMA, X[:300], y[:300]), quick(steps=6)
    plan, asked = model.plan(300), []

    real = Session._noisy_mean

    def answer(self, *a):
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.append(real(self, *a))
        return asked[-1]

    monkeypatch.setattr(Session, "_noisy_mean", answer)
    journal = Journal.start(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        model.measure(records, plan=plan, journal=journal)
    journal.close()
    monkeypatch.setattr(Session, "_noisy_mean", lambda *a: asked.append(real(*a)) or asked[-1])
    journal = Journal.resume(tmp_path / "run", {})
    W = model.measure(records, plan=plan, journal=journal).W
    journal.close()
    assert len(asked) == 6
    V, expected = 0, 0
    for G in asked:
        V = 0.9 * V + G
        expected = expected - model.rate(plan) * V
    assert np.allclose(W, expected, rtol=1e-4, atol=1e-4)


# The fit


@pytest.fixture(scope="module")
def pouring(signal) -> Pouring:
    return Pouring.towards(PHI, signal.W, (8, 8, 1))


def test_regression_on_the_teachers_labels_is_its_projection(pouring):
    """W(X_s) is the point of the span of phi(X_s) that is nearest to W*, but for the ridge."""
    x_s = np.random.default_rng(0).normal(size=(6, 8, 8, 1)).astype(np.float32)
    near = eqx.tree_at(lambda p: p.ridge, pouring, 1e-5)
    W, P = (np.asarray(v, np.float64) for v in (near.W_star, near.weights(jnp.asarray(x_s), jnp.zeros((6, 10)))))
    phi = features_of(PHI, x_s).astype(np.float64)
    nearest = phi.T @ np.linalg.lstsq(phi.T, W, rcond=None)[0]
    assert np.allclose(P, nearest, atol=2e-2 * np.abs(W).max())
    assert np.linalg.norm(W - P) <= 1.001 * np.linalg.norm(W - 0.9 * P)


def test_the_loss_is_the_divergence_of_predictions_and_the_distance_of_weights(pouring):
    rng = np.random.default_rng(1)
    x_s, U = rng.normal(size=(4, 8, 8, 1)).astype(np.float32), rng.normal(size=(4, 10)).astype(np.float32)
    smooth = eqx.tree_at(lambda p: p.smoothness, pouring, 0.5)
    W, W_star = (np.asarray(v, np.float64) for v in (smooth.weights(jnp.asarray(x_s), jnp.asarray(U)), smooth.W_star))

    def softened(V):
        e = np.exp(np.asarray(smooth.Phi_p, np.float64) @ V / smooth.temperature)
        return e / e.sum(1, keepdims=True)

    p, q = softened(W_star), softened(W)
    expected = smooth.temperature**2 * np.mean(np.sum(p * np.log(p / q), axis=1))
    expected += smooth.nearness * np.sum((W - W_star) ** 2) / np.sum(W_star**2)
    expected += 0.5 * (np.mean(np.diff(x_s, axis=1) ** 2) + np.mean(np.diff(x_s, axis=2) ** 2))
    assert float(smooth.loss((jnp.asarray(x_s), jnp.asarray(U)))) == pytest.approx(expected, rel=1e-3)


def test_the_support_that_is_the_teacher_has_no_loss(pouring):
    """Weights in the span of the support come back as they are."""
    x_s = jax.random.normal(jax.random.key(3), (12, 8, 8, 1))
    within = PHI(x_s).T @ jax.random.normal(jax.random.key(4), (12, 10))
    exact = eqx.tree_at(lambda p: (p.W_star, p.ridge), pouring, (within, 1e-7))
    assert float(exact.loss((x_s, jnp.zeros((12, 10))))) < 1e-3 < float(pouring.loss((x_s, jnp.zeros((12, 10)))))


@pytest.mark.parametrize("valid_range", [True, False])
def test_the_release_is_the_regression_that_was_fitted(signal, valid_range):
    """What a reader fits to the release's images and labels predicts as the poured weights, up to their scale."""
    release = fit_signal(signal, 1, steps=20, init_seed=1, valid_range=valid_range)
    pouring = Pouring.towards(PHI, signal.W, SCHEMA.shape)
    x_s = jax.random.normal(jax.random.key(1), (10, 8, 8, 1))
    x_s, U = poured(pouring, x_s, steps=20, valid_range=valid_range)
    if valid_range:
        assert release.x.dtype == np.uint8
        assert np.abs(release.encoded - x_s).max() <= 1.01 / (SCHEMA.high - SCHEMA.low)
    W = pouring.weights(jnp.asarray(release.encoded), U)
    alpha = krr_fit(PHI, release.encoded, release.soft, release.recipe["ridge"])
    found = features_of(PHI, release.encoded).T @ alpha
    W = np.asarray(centred(W))
    scale = np.sum(found * W) / np.sum(W**2)
    assert scale > 0
    assert np.allclose(found, scale * W, atol=1e-2 * np.abs(found).max())
    assert np.allclose(release.soft.sum(axis=1), 0, atol=1e-4)
    assert release.soft.max(axis=1).mean() == pytest.approx(0.9, rel=1e-3)


def test_labels_keep_their_order_whatever_their_scale():
    Y = jax.random.normal(jax.random.key(0), (5, 4)) + 3
    assert np.array_equal(as_large_as_onehot(Y).argsort(axis=1), Y.argsort(axis=1))
    assert np.isfinite(as_large_as_onehot(jnp.zeros((2, 3)))).all()


def test_fitting_comes_closer_to_the_teacher(pouring):
    x = jax.random.normal(jax.random.key(0), (10, 8, 8, 1))
    before, after = (float(pouring.loss(poured(pouring, x, steps=steps))) for steps in (0, 100))
    assert after < 0.7 * before


def test_a_smooth_fit_is_smoother(signal):
    rough, smooth = (fit_signal(signal, 1, steps=30, init_seed=2, smoothness=s).encoded for s in (0.0, 100.0))
    assert roughness(jnp.asarray(smooth)) < 0.5 * roughness(jnp.asarray(rough))


def test_fitting_needs_the_signal_alone(signal, monkeypatch):
    """No session answers, and the release repeats from the signal and a public seed."""
    monkeypatch.setattr(Session, "__init__", lambda *_, **__: pytest.fail("a session was opened"))
    monkeypatch.setattr(Records, "__init__", lambda *_, **__: pytest.fail("records were opened"))
    once, again = (fit_signal(signal, 1, steps=3, init_seed=5) for _ in range(2))
    assert np.array_equal(once.x, again.x)
    assert once.plan == signal.plan
    assert once.guarantee == signal.guarantee


def test_valid_range_holds_the_pixels(signal):
    within = fit_signal(signal, 1, steps=10)
    assert within.x.min() >= SCHEMA.low
    assert within.x.max() <= SCHEMA.high
    assert fit_signal(signal, 1, steps=10, valid_range=False).x.max() > SCHEMA.high


def test_real_digits_are_classified(digits):
    X, y, X_test, y_test = digits
    model = quick(steps=40)
    X_s, y_s = model.fit_resample(X, y)
    assert X_s.shape == (20, 8, 8, 1)
    assert y_s.shape == (20,)
    assert model.release_.classifier().score(X_test, y_test) > 0.6
    assert model.release_.guarantee == model.guarantee_


def test_one_signal_serves_several_sizes(digits, saved, tmp_path):
    _, _, X_test, _ = digits
    signal = load_signal(saved)
    assert examine(saved).consistent
    for per_class in (1, 3):
        folder = fit_signal(signal, per_class, steps=5).save(tmp_path / f"{per_class}")
        found = examine(folder)
        assert found.consistent, found.problems
        assert found.derived_from == signal.digest
        assert found.guarantee == str(signal.guarantee)
        release = limbeck.load(folder)
        assert release.derived_from == signal.digest
        assert len(release) == 10 * per_class
        assert release.classifier().predict(X_test[:4]).shape == (4,)


def test_whitened_scattering_is_the_default(digits, tmp_path):
    X, y, X_test, y_test = digits
    model = quick(features="scattering", per_class=1)
    signal = model.measure(Records(SCHEMA, X[:400], y[:400]))
    folder = fit_signal(signal, 1, steps=5).save(tmp_path / "release")
    assert limbeck.load(folder).recipe["features"]["name"] == "whitened"
    assert not limbeck.verify(folder)
    assert 0 <= limbeck.load(folder).classifier().score(X_test, y_test) <= 1


# Wrong requests, and what it costs


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"per_class": 0}, "images a class"),
        ({"epsilon": 0}, "epsilon"),
        ({"batch": 0}, "batch"),
        ({"steps": 0}, "steps"),
    ],
)
def test_wrong_settings_are_refused(changes, said):
    with pytest.raises(RequestError, match=said):
        quick(**changes).plan(1000)


def test_a_kernel_without_a_finite_map_is_refused(digits):
    X, y, _, _ = digits
    with pytest.raises(RequestError, match="finite map"):
        quick(features="fc-ntk").fit_resample(X[:50], y[:50])


def test_divergence_is_an_error_and_not_a_signal(digits):
    X, y, _, _ = digits
    with pytest.raises(RequestError, match="diverged"):
        quick(learning_rate=1e37, momentum=3.0).measure(Records(SCHEMA, X[:100], y[:100]))


def test_cost_is_known_beforehand():
    assert expected_memory(quick(batch=10), 1000) == expected_memory(quick(), 1000)
    assert expected_seconds(quick(chunk=64), quick().plan(1000)) > 0
    with pytest.raises(RequestError, match="GiB"):
        check_memory(quick(per_class=10**6), 1000)
