"""PrivateDM: class sums and a teacher under one budget, and images that are fitted to both."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data import entry, load
from limbeck.distill import PrivateDM, fit_matched, fit_signal, matching
from limbeck.distill.cost import check_memory, expected_memory, expected_seconds
from limbeck.distill.decant import TEACHER
from limbeck.distill.matching import class_means, class_sums, made_up_support, matched, mismatch
from limbeck.distill.private_dm import SUMS
from limbeck.errors import RequestError
from limbeck.features import Embeddings, Scattering
from limbeck.measure import ClassSums, Records, Session
from limbeck.privacy.journal import Journal
from limbeck.release import examine, load_signal

SCHEMA = entry("digits").schema
PHI = Scattering((8, 8, 1), L=2, groups=None)
SMALL = Embeddings((8, 8, 1), 6, width=16, depth=2)


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    monkeypatch.setattr(matching, "default_steps", lambda m: (60, 30))


@pytest.fixture(scope="module")
def digits():
    train, test = load("digits", "train"), load("digits", "test")
    return tuple(part.reveal() for part in (train.x, train.y, test.x, test.y))  # digits are public


def quick(**changes):
    settings = {"epsilon": 10, "delta": 1e-4, "per_class": 2, "features": PHI, "networks": 6, "width": 16, "depth": 2}
    return PrivateDM(SCHEMA, **(settings | changes))


@pytest.fixture(scope="module")
def signal(digits):
    X, y, _, _ = digits
    return quick().measure(Records(SCHEMA, X, y))


def exact_sums(X, y) -> np.ndarray:
    """The sums of `SMALL` without noise, over the number of records."""
    x, c = SCHEMA.encode(X, y)
    Y = np.eye(10)[c]
    return np.concatenate([np.asarray(SMALL[k](jnp.asarray(x))).T @ Y / len(x) for k in range(len(SMALL))])


def test_the_budget_is_shared_as_asked_and_delivered_whole():
    halves, mostly = (quick(share=share).plan(5000) for share in (0.5, 0.9))
    for plan in (halves, mostly):
        assert 0.99 * 10 <= plan.epsilon <= 10
        assert [m.name for m in plan.measurements] == [TEACHER, SUMS]
    assert mostly.measurement(TEACHER).sigma < halves.measurement(TEACHER).sigma
    assert mostly.measurement(SUMS).sigma > halves.measurement(SUMS).sigma


def test_there_are_as_many_networks_as_noise_leaves_something_of():
    """By the formula, the noise of one network's class mean has norm one, unless there are enough networks already."""
    for epsilon, n in ((1, 1500), (1, 1900), (10, 600)):
        model = PrivateDM(SCHEMA, epsilon=epsilon, share=0.5)
        embeddings = model.embeddings(n)
        assert 10 <= len(embeddings) < 200
        sums = model.plan(n).measurement(SUMS)
        noise = sums.sigma * np.sqrt(embeddings.dim) / (n / 10)
        assert sums.sampling.kind == "full"
        assert noise == pytest.approx(1, rel=0.15)
    wide, narrow, many = (
        PrivateDM(SCHEMA, epsilon=e, share=0.5).embeddings(n) for e, n in ((1, 1500), (0.1, 1500), (10, 10**5))
    )
    assert (wide.width, narrow.width, len(narrow)) == (64, 16, 10)
    assert len(many) == 200
    assert len(PrivateDM(SCHEMA, networks=7).embeddings(10**5)) == 7


def test_projected_embeddings_are_matched_too(digits):
    X, y, _, _ = digits
    signal = quick(project=8).measure(Records(SCHEMA, X[:300], y[:300]))
    assert signal.S is not None
    assert signal.S.shape == (6 * 9, 10)
    assert len(fit_matched(signal, 1, steps=2, refining_steps=1)) == 10


def test_a_sample_holds_enough_of_each_class():
    assert quick().sums(10**6).sampling.expected == pytest.approx(50_000)
    assert quick().sums(10_000).sampling.expected == pytest.approx(2_000)
    assert quick().sums(1_000).sampling.kind == "full"


def test_means_of_unequal_classes_need_no_exact_counts(digits):
    X, y, _, _ = digits
    few = np.concatenate([np.flatnonzero(y == c)[: 20 + 10 * c] for c in range(10)])
    x, c = SCHEMA.encode(X[few], y[few])
    M = class_means(exact_sums(X[few], y[few]), len(SMALL))
    for k in (0, 5):
        ψ = np.asarray(SMALL[k](jnp.asarray(x)))[:, :-1]
        ψ = ψ / np.linalg.norm(ψ, axis=1, keepdims=True)
        expected = np.stack([ψ[c == one].mean(axis=0) for one in range(10)], axis=1)
        assert np.allclose(M[k], expected, atol=1e-4)


def test_the_sums_that_are_asked_for_are_those_of_every_network(digits):
    X, y, _, _ = digits
    asked: list[ClassSums] = []
    answers = class_sums(lambda query: asked.append(query()) or np.full((3, 10), float(len(asked))), SMALL)
    assert np.array_equal(answers[::3, 0], np.arange(1, 7))
    x = jnp.asarray(SCHEMA.encode(X[:4], y[:4])[0])
    for k, query in enumerate(asked):
        assert np.array_equal(query.embedding(x), SMALL[k](x))


def test_matching_comes_nearer_to_the_means_of_new_networks(digits):
    """Real digits' means, without noise: what is fitted to four networks is nearer in a fifth too."""
    X, y, _, _ = digits
    M = class_means(exact_sums(X, y), len(SMALL))
    x_0, _ = made_up_support(SCHEMA, 2, 0)
    x_s = matched(replace(SMALL, number=4), M[:4], x_0, steps=60, seed=0)
    assert float(jnp.abs(x_s).max()) <= 1
    for k in (0, 5):
        before, after = (float(mismatch(SMALL[k], jnp.asarray(M[k].T), x)) for x in (x_0, x_s))
        assert after < 0.6 * before


@pytest.mark.parametrize("serves", ["networks", "both"])
def test_a_set_is_within_range_and_its_teacher_sees_the_classes_it_was_made_for(signal, digits, serves):
    _, _, X_test, y_test = digits
    release = fit_matched(signal, 2, serves=serves, refining_steps=120, init_seed=1)
    assert np.mean(release.labels == np.repeat(np.arange(10), 2)) > 0.9
    assert release.x.min() >= SCHEMA.low
    assert release.x.max() <= SCHEMA.high
    assert release.guarantee == signal.guarantee
    assert release.soft.max(axis=1).mean() == pytest.approx(0.9, abs=1e-4)  # in the scale of one-hot labels
    if serves == "both":
        assert release.classifier().score(X_test, y_test) > 0.6


def test_a_signal_is_stored_verified_and_serves_all(signal, tmp_path):
    folder = signal.save(tmp_path / "signal")
    found = examine(folder)
    assert found.consistent, found.problems
    (shown,) = (check.shows for check in found.checks if check.name == "signal.npz")
    assert f"class sums of {6 * SMALL.dim} coordinates" in shown
    read = load_signal(folder)
    assert np.array_equal(read.S, signal.S)
    for release in (fit_signal(read, 1, steps=3), fit_matched(read, 1), fit_matched(read, 2, serves="networks")):
        out = release.save(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        assert examine(out).consistent
        assert release.derived_from == read.digest


def test_the_same_seed_fits_the_same_set(signal):
    once, again, other = (fit_matched(signal, 1, steps=5, refining_steps=2, init_seed=s).x for s in (3, 3, 4))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)


def test_an_interrupted_measurement_goes_on_from_its_answers(digits, tmp_path, monkeypatch):
    X, y, _, _ = digits
    records, model = Records(SCHEMA, X[:300], y[:300]), quick()
    plan, asked, real = model.plan(300), [], Session._noisy_mean
    taught = plan.measurement(TEACHER).steps

    def answer(self, *a):
        if len(asked) == taught + 2:
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
    S = model.measure(records, plan=plan, journal=journal).S
    journal.close()
    assert len(asked) == taught + 6
    assert np.array_equal(S, np.concatenate(asked[taught:]))


def test_what_cannot_be_is_refused(signal):
    with pytest.raises(RequestError, match="share"):
        quick(share=1.0).plan(1000)
    with pytest.raises(RequestError, match="networks"):
        quick(networks=0).plan(1000)
    with pytest.raises(RequestError, match=r"at most [0-9]+ networks"):
        quick(networks=10**6).plan(1000)
    with pytest.raises(RequestError, match="no class sums"):
        fit_matched(type(signal)(signal.schema, signal.W, signal.guarantee, signal.recipe, signal.plan))
    with pytest.raises(RequestError, match="not what it says"):
        fit_matched(
            type(signal)(signal.schema, signal.W, signal.guarantee, signal.recipe, signal.plan, S=signal.S[:-3])
        )


def test_what_it_costs_is_known_beforehand():
    model = quick()
    assert expected_memory(model, 10_000) < expected_memory(quick(per_class=50), 10_000)
    assert expected_seconds(model, model.plan(1000)) > 0
    with pytest.raises(RequestError, match="GiB"):
        check_memory(quick(per_class=10**6), 1000)
