"""DM: images whose embeddings have the means of real ones; and that it promises nothing, wherever one looks."""

import json
import stat

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.data import ImageSchema, entry, load
from limbeck.distill import DM
from limbeck.distill.cost import check_memory, expected_memory
from limbeck.distill.dm import class_means
from limbeck.distill.matching import made_up_support, mismatch
from limbeck.errors import RequestError
from limbeck.features import Embeddings, Pixels
from limbeck.measure import ClassSums, Records, Session, Unprotected
from limbeck.release import examine

SCHEMA = entry("digits").schema
UNSEEN = Embeddings((8, 8, 1), 2, width=16, depth=2, seed=99)[1]


@pytest.fixture(scope="module")
def digits():
    train, test = load("digits", "train"), load("digits", "test")
    return tuple(part.reveal() for part in (train.x, train.y, test.x, test.y))  # digits are public


def quick(**changes) -> DM:
    settings = {
        "per_class": 2, "steps": 80, "batch": 32, "learning_rate": 0.1, "width": 16, "depth": 2, "features": "fc-ntk",
        "init_seed": 1,
    }  # fmt: skip
    return DM(SCHEMA, **(settings | changes))


@pytest.fixture(scope="module")
def fitted(digits):
    X, y, _, _ = digits
    models = {init: quick(init=init) for init in ("random", "real")}
    for model in models.values():
        model.fit_resample(X, y)
    return models


_seen = eqx.filter_jit(lambda x: UNSEEN(x))
_loss = eqx.filter_jit(lambda M, x: mismatch(UNSEEN, M, x))


def directions(x) -> np.ndarray:
    """What UNSEEN sees of encoded images: unit vectors."""
    ψ = np.asarray(_seen(jnp.asarray(x)))[:, :-1]
    return ψ / np.linalg.norm(ψ, axis=1, keepdims=True)


def means_of_loop(x, c, classes=range(10)) -> np.ndarray:
    ψ = directions(x)
    return np.stack([ψ[c == one].mean(axis=0) for one in classes])


def test_the_means_of_a_session_are_those_of_a_loop(digits):
    X, y, _, _ = digits
    X, y = X[:200], np.where(y[:200] == 3, 4, y[:200])
    records = Records(SCHEMA, X, y)
    records.prepare(Pixels((8, 8, 1)))
    M, found = class_means(Session(records, Unprotected(200, 200)).class_sums(lambda: ClassSums(UNSEEN, (8, 8, 1))))
    others = [c for c in range(10) if c != 3]
    assert np.flatnonzero(found).tolist() == others
    assert np.allclose(M[others], means_of_loop(*SCHEMA.encode(X, y), others), atol=1e-4)
    assert not M[3].any()


@pytest.mark.parametrize("init", ["random", "real"])
def test_matching_comes_nearer_to_the_means_of_a_new_network(digits, fitted, init):
    """The loss of equation 6 falls, by a network and an augmentation that no step has seen."""
    X, y, _, _ = digits
    M = jnp.asarray(means_of_loop(*SCHEMA.encode(X, y)))
    start = made_up_support(SCHEMA, 2, 1)[0] if init == "random" else jnp.asarray(_first(digits))
    before, after = (float(_loss(M, x)) for x in (start, jnp.asarray(fitted[init].release_.encoded)))
    assert after < (0.6 if init == "random" else 0.9) * before


def _first(digits) -> np.ndarray:
    """What a run with real images starts from: one with a rate of nearly nothing ends there."""
    X, y, _, _ = digits
    model = quick(init="real", steps=1, learning_rate=1e-9)
    model.fit_resample(X, y)
    return model.release_.encoded


def test_a_real_start_is_records_of_each_class_and_a_random_one_is_not(digits):
    X, y, _, _ = digits
    x, c = SCHEMA.encode(X, y)
    for image, label in zip(_first(digits), np.repeat(np.arange(10), 2), strict=True):
        assert np.abs(x[c == label] - image).max(axis=(1, 2, 3)).min() < 1e-5
    model = quick(steps=1, learning_rate=1e-9)
    model.fit_resample(X, y)
    assert np.allclose(model.release_.encoded, made_up_support(SCHEMA, 2, 1)[0], atol=1 / 16 + 1e-5)  # whole numbers


@pytest.mark.parametrize("init", ["random", "real"])
def test_a_set_is_balanced_within_range_and_of_use(digits, fitted, init):
    """Of use: by its class means, a network that no step has seen tells new digits apart as by those of all records."""
    X, y, X_test, y_test = digits
    release = fitted[init].release_
    assert release.labels.tolist() == np.repeat(np.arange(10), 2).tolist()
    assert np.allclose(release.soft, np.repeat(np.eye(10), 2, axis=0) - 0.1)
    assert release.x.dtype == np.uint8
    assert release.x.max() <= SCHEMA.high
    new = directions(SCHEMA.encode(X_test, y_test)[0])
    of_all, of_set, of_start = (
        np.mean((new @ means_of_loop(x, c).T).argmax(axis=1) == y_test)
        for x, c in (
            SCHEMA.encode(X, y),
            (release.encoded, np.repeat(np.arange(10), 2)),
            (made_up_support(SCHEMA, 2, 1)[0], np.repeat(np.arange(10), 2)),
        )
    )
    assert of_set > of_all - 0.1
    assert of_start < of_all - 0.3
    assert release.classifier().predict(X_test[:5]).shape == (5,)


def test_the_same_seed_makes_the_same_set_and_another_another(digits):
    X, y, _, _ = digits
    once, again, other, fresh = (
        quick(steps=3, init=init, init_seed=seed).fit_resample(X, y)[0]
        for init, seed in (("real", 3), ("real", 3), ("real", 4), ("real", None))
    )
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
    assert not np.array_equal(once, fresh)


def test_every_step_has_a_network_an_augmentation_and_real_images_of_its_own(digits, monkeypatch):
    X, y, _, _ = digits
    asked, answers, real = [], [], Session.class_sums

    def class_sums(self, query):
        asked.append(query().embedding)
        answers.append(real(self, query))
        return answers[-1]

    monkeypatch.setattr(Session, "class_sums", class_sums)
    quick(steps=3).fit_resample(X, y)
    assert len(asked) == 3
    assert len({float(one.change.angle) for one in asked}) == 3
    assert len({one.blocks[0].normed.kernel.tobytes() for one in asked}) == 3
    counts = np.stack(answers)[:, np.arange(10), -1, np.arange(10)] / 0.1
    assert np.allclose(counts, 32, atol=1e-3)


@pytest.mark.parametrize("init", ["random", "real"])
def test_it_promises_nothing_and_says_so_everywhere(fitted, init, tmp_path):
    model = fitted[init]
    folder = model.release_.save(tmp_path / "release")
    assert str(model.guarantee_) == str(model.release_.guarantee) == "no privacy guarantee"
    assert "No privacy guarantee" in (DM.__doc__ or "")
    card, certificate = (folder / "README.md").read_text(), json.loads((folder / "certificate.json").read_text())
    assert "**No privacy guarantee.**" in card
    assert "- no-privacy-guarantee" in card
    assert (certificate["statement"], certificate["status"]) == ("no privacy guarantee", "none")
    assert certificate["epsilon"] is certificate["delta"] is None
    assert certificate["origin"]["everything"] == "the data itself"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = examine(folder)
    assert found.consistent, found.problems
    assert found.guarantee == "no privacy guarantee"
    leaks = init == "real"
    assert ("Started from real records" in card) == leaks
    assert ("initial images" in certificate["origin"]) == leaks
    assert model.release_.recipe["init"] == ("real records" if leaks else "dead leaves")


def test_a_real_start_cannot_be_hidden(fitted, tmp_path):
    """The certificate's words follow from the recipe: whoever edits one is told of the other."""
    folder = fitted["real"].release_.save(tmp_path / "release")
    recipe = json.loads((folder / "recipe.json").read_text())
    (folder / "recipe.json").write_text(json.dumps(recipe | {"init": "dead leaves"}))
    assert {"origin", "public_inputs.recipe"} <= {problem.field for problem in limbeck.verify(folder)}


def test_a_class_without_enough_records_keeps_what_it_started_with(digits):
    X, y, _, _ = digits
    few = np.concatenate([np.flatnonzero(y == 0)[:40], np.flatnonzero(y == 1)[:1]])
    start = made_up_support(SCHEMA, 2, 1)[0]
    model = quick(steps=2, init="real")
    model.fit_resample(X[few], y[few])
    ended = model.release_.encoded
    assert np.allclose(ended[4:], start[4:], atol=1 / 16 + 1e-5)
    assert not np.allclose(ended[:4], start[:4], atol=0.2)


def test_persons_bring_their_records(digits):
    X, y, _, _ = digits
    schema = ImageSchema(**SCHEMA.model_dump() | {"unit": "person", "rows_per_unit": 3})
    model = quick(steps=2, init="real")
    model.schema = schema
    X_s, _ = model.fit_resample(X[:300], y[:300], units=np.arange(300) // 3)
    assert X_s.shape == (20, 8, 8, 1)
    assert str(model.guarantee_) == "no privacy guarantee"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"per_class": 0}, "images a class"),
        ({"init": "noise"}, "random or real"),
        ({"steps": 0}, "steps"),
        ({"batch": 0}, "batch"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"learning_rate": float("nan")}, "learning rate"),
        ({"init_seed": -1}, "init_seed"),
        ({"features": "magic"}, "magic"),
    ],
)
def test_wrong_settings_are_refused(digits, changes, said):
    X, y, _, _ = digits
    model = quick()
    for name, value in changes.items():
        setattr(model, name, value)  # past the run-time types of tests
    with pytest.raises(RequestError, match=said):
        model.fit_resample(X[:20], y[:20])


def test_what_it_takes_is_known_beforehand():
    pixels = 28 * 28
    model = DM(ImageSchema(shape=(28, 28, 1), classes=range(10), low=0, high=255))
    assert expected_memory(model, 3000) - expected_memory(model, 1000) == 2000 * (1 + 4) * pixels
    model.per_class = 10**6
    with pytest.raises(RequestError, match="GiB"):
        check_memory(model, 1000)
