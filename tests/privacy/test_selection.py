"""What is shown rarely: its price, in a plan and in the ledger's filter."""

import pytest
from dp_accounting import dp_event

from limbeck.errors import RequestError
from limbeck.privacy.accounting import epsilon_of
from limbeck.privacy.events import RareDpEvent, event_of, event_tree, truncation_of
from limbeck.privacy.ledger import filter as privacy_filter
from limbeck.privacy.ledger.grant import Grant
from limbeck.privacy.plan import FullBatch, Plan, Selection


def selection(failure, relation="zero-out"):
    one = Selection(name="s", sampling=FullBatch(n=9), steps=1, clip=1.0, sigma=4.0, failure=failure)
    return Plan(measurements=(one,), delta=1e-5, relation=relation)


def test_a_rare_part_takes_its_chance_from_delta():
    gaussian = dp_event.ComposedDpEvent((dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(4.0), 1),))
    assert selection(4e-6).epsilon == epsilon_of(gaussian, 6e-6, "zero-out") > epsilon_of(gaussian, 1e-5, "zero-out")
    assert selection(1e-5).epsilon == float("inf")


def test_it_is_written_and_read_back():
    plan = selection(1e-13)
    assert Plan.model_validate(plan.model_dump(mode="json")) == plan
    assert event_of(event_tree(plan.event)) == plan.event
    assert truncation_of(plan.event) == 1e-13


def test_selection_is_not_priced_against_replacement():
    with pytest.raises(ValueError, match="zero-out only"):
        selection(1e-13, "replace-one")


def test_the_filter_counts_the_chance_of_every_run():
    grant = Grant.of("d", 3.0, 1e-5, "record", "zero-out", "rdp")
    runs = [dp_event.ComposedDpEvent((dp_event.GaussianDpEvent(40.0), RareDpEvent(2e-9)))]
    assert privacy_filter.admits(grant, runs, runs[0], None)
    assert not privacy_filter.admits(grant, runs * 2, runs[0], None)  # (1 + e^3) 6e-9 is above 0.01 delta
    gdp = Grant.of("d", 3.0, 1e-5, "record", "zero-out", "gdp")
    with pytest.raises(RequestError, match="selects values"):
        privacy_filter.admits(gdp, [], runs[0], None)
