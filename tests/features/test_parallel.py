"""Side by side, and as one after another: results in order, items made by the caller, few at a time."""

import threading
import time

import pytest

from limbeck.features.parallel import AHEAD, in_parallel


def test_results_come_in_order_whoever_is_first():
    def slowly(i):
        time.sleep(0.01 * (i % 3 == 1))
        return i

    assert list(in_parallel(slowly, range(25))) == list(range(25))
    assert list(in_parallel(slowly, [])) == []


def test_items_are_made_by_the_caller_and_few_before_their_turn():
    """They may be blocks of what would not fit in memory."""
    makers, made = set(), []

    def items():
        for i in range(100):
            makers.add(threading.get_ident())
            made.append(i)
            yield i

    for i in in_parallel(lambda i: i, items()):
        assert len(made) <= i + 1 + AHEAD
    assert len(made) == 100
    assert makers == {threading.get_ident()}


def test_an_error_ends_it():
    done = []

    def f(i):
        done.append(i)
        if i == 3:
            raise ValueError("three")
        return i

    with pytest.raises(ValueError, match="three"):
        list(in_parallel(f, range(10_000)))
    assert len(done) <= 4 + AHEAD
