"""Property 13. An audit of the real mechanism finds no more than is claimed, and would have found more.

Claims from 0.5 to 4, every kind of plan and the broken mechanisms: tests/audit/test_canary.py.
"""

import pytest

from limbeck.audit import canary
from limbeck.distill.inducing import MEASUREMENT
from limbeck.privacy.plan import FullBatch, Measurement, Plan

SIGMA = 3.7307  # of one Gaussian release at (1, 1e-5), rounded up
CONFIDENCE = 1 - 2e-5  # so that a correct mechanism fails less than once in 10,000


@pytest.fixture(scope="module")
def found():
    measurement = Measurement(name=MEASUREMENT, sampling=FullBatch(n=4), steps=1, clip=1e-2, sigma=SIGMA)
    return canary(Plan(measurements=(measurement,), delta=1e-5), runs=80, confidence=CONFIDENCE)


def test_the_lower_bound_is_below_the_claim(found):
    assert not found.flagged
    assert found.found.epsilon < found.claim == pytest.approx(1.0, rel=1e-3)


def test_a_broken_mechanism_is_flagged_and_an_independent_one_is_not(found):
    assert found.controls_behaved


def test_the_audit_says_what_it_could_have_seen(found):
    facts = found.facts()
    assert facts["threshold_ceiling"] > 0
    assert facts["power"]["shift"] > 0.99
