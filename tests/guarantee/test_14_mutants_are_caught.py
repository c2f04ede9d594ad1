"""Property 14. Every broken mechanism that we know of is caught by a named test."""

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.runner import verdict

NAMED = {
    "no clip", "batch level clip", "half sigma", "noise divided by B", "noise once per epoch", "shuffled batches",
    "private initialisation", "private mean and deviation", "nan passes through", "exact labels",
    "forgotten composition", "empty batch skipped",
}  # fmt: skip


def test_the_twelve_of_the_guarantee_are_there():
    assert {mutant.name for mutant in MUTANTS} >= NAMED


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant):
    assert verdict(mutant) == "caught"
