"""Choosing among settings is paid for: every candidate and every score is in the plan of the release."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.distill import tune
from limbeck.distill.tuning import tuning_plan
from limbeck.errors import RequestError
from limbeck.measure import CorrectPredictions, Records, Session, SupportGradient
from limbeck.privacy.events import leaves
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.release import load, verify
from tests.guarantee.problem import QUIET, SCHEMA, data, features, person_schema, query, tiny

N = 40


def candidates(**changes):
    """One that learns from its gradients and one that hardly moves."""
    return [tiny(learning_rate=rate, epochs=3, per_class=1, **changes) for rate in (0.5, 1e-6)]


@pytest.fixture(scope="module")
def held():
    X, y = data(N)
    X[1::2] = X[1::2] / 2 + 0.5
    return Records(SCHEMA, X / 2, y)


@pytest.mark.parametrize("noise", ["normal", "discrete"])
def test_the_release_pays_for_every_candidate_and_every_score(held, tmp_path, noise):
    tuned = tune(candidates(noise=noise), held, epsilon=3.0)
    plan = tuned.release.plan
    assert len(plan.measurements) == 4
    assert sum(count for _, count in leaves(plan.event)) == 2 * 3 + 2
    assert 0.99 * 3 <= plan.epsilon == tuned.release.guarantee.epsilon <= 3
    folder = tuned.release.save(tmp_path / "tuned")
    assert not verify(folder)
    assert load(folder).plan == plan
    recipe = json.loads((folder / "recipe.json").read_text())
    assert recipe["tuned"]["scores"] == list(tuned.scores)
    assert recipe["learning_rate"] == candidates()[tuned.best].learning_rate
    assert tuned.best == np.argmax(tuned.scores)


def test_the_scores_cost_little_beside_the_gradients():
    plan = tuning_plan(candidates(), N, 1.0)
    scores = Plan(measurements=plan.measurements[2:], delta=plan.delta)
    gradients = Plan(measurements=plan.measurements[:2], delta=plan.delta)
    assert scores.epsilon < 0.11
    assert 0.9 < gradients.epsilon < 1


def test_a_single_candidate_costs_more_noise_than_no_choice_at_all():
    alone = tiny(epsilon=1.0).plan(N).measurements[0].sigma
    assert tuning_plan([tiny()], N, 1.0).measurements[0].sigma > alone


@pytest.mark.parametrize("family", ["fc-ntk", "scattering"])
def test_a_score_is_the_accuracy_of_the_candidates_own_classifier(family):
    X, y = data(N)
    labels = [*y[:-2], "no such class", None]
    made = Records(SCHEMA, X, labels)
    made.prepare(features(family))
    measurement = Measurement(name="s", sampling=FullBatch(n=N), steps=1, clip=1.0, sigma=QUIET)
    session = Session(made, Plan(measurements=(measurement,), delta=1e-5), chunk=16)
    gradient: SupportGradient = query(family)
    (score,) = session.ask("s", lambda: CorrectPredictions(gradient))
    inputs, targets = made.batch(np.arange(N - 2))
    right = np.asarray(gradient.predicted(jnp.asarray(inputs))).argmax(-1) == targets.argmax(-1)
    assert score == pytest.approx(right.sum() / N, rel=2e-3)


def test_a_person_counts_once():
    X, y = data(6)
    made = Records(person_schema(3), X, y, list("pppqqq"))
    made.prepare(features("fc-ntk"))
    inputs, targets = made.batch(np.array([0, 1, -1]))
    shares = np.asarray(CorrectPredictions(query()).contributions(jnp.asarray(inputs), jnp.asarray(targets)))
    assert shares.shape == (3, 1)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert shares[2] == 0


def test_candidates_must_share_what_one_plan_has_once():
    with pytest.raises(RequestError, match="no candidates"):
        tuning_plan([], N, 1.0)
    with pytest.raises(RequestError, match="delta"):
        tuning_plan([tiny(), tiny(delta=1e-6)], N, 1.0)
    with pytest.raises(RequestError, match="epsilon"):
        tuning_plan([tiny()], N, 0.0)


def test_a_seed_marks_the_tuned_release(held):
    assert tune([tiny(seed=3)], held, epsilon=1.0).release.guarantee.status == "seeded"
