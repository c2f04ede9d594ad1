"""Property 5. Empty, padded and over-full batches are ordinary: same path, noise added, padding adds exactly zero."""

from itertools import combinations

import numpy as np
import pytest

from limbeck.privacy.plan import Poisson
from limbeck.privacy.stream import Stream
from tests.guarantee.problem import FAMILIES, NOISES, C, data, query, records, total

CAP = 4
SAMPLING = Poisson(n=6, q=0.3, cap=CAP)
SIZES = (0, 1, CAP, CAP + 1)


class Chosen(Stream):
    """A stream whose coins pick these units; all else is as drawn."""

    def __init__(self, *units: int):
        super().__init__(seed=1)
        self.units = units

    def bernoulli(self, q, n):
        return np.isin(np.arange(n), self.units)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_any_size_is_the_sum_of_its_units(family, noise):
    held = records(*data(6), family)

    def drawn(*units):
        return total(held, query(family), sampling=SAMPLING, stream=Chosen(*units), noise=noise)

    each = [drawn(unit) for unit in range(6)]
    for size in SIZES:
        found = drawn(*range(size))
        kept = combinations(range(size), min(size, CAP))  # an over-full batch keeps some `cap` of its units
        assert any(np.allclose(found, sum(each[i] for i in who), atol=3e-5 * C) for who in kept), size


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("family", FAMILIES)
def test_noise_is_added_to_a_batch_of_any_size(family, noise):
    held = records(*data(6), family)
    for size in SIZES:
        quiet, loud = (
            total(held, query(family), sampling=SAMPLING, stream=Chosen(*range(size)), noise=noise, sigma=sigma)
            for sigma in (1e-9, 100.0)
        )
        z = (loud - quiet) / (100.0 * C)
        assert 0.6 < z.std() < 1.5, size  # of 64 draws


@pytest.mark.parametrize("noise", NOISES)
def test_an_empty_batch_is_noise_and_nothing_else(noise):
    """Bit for bit the same for every dataset, and however much padding the chunks ask for."""
    answers = [
        total(records(*data(6, seed)), query(), sampling=SAMPLING, stream=Chosen(), noise=noise, sigma=1.0, chunk=chunk)
        for seed in (0, 1)
        for chunk in (1, 64)
    ]
    assert len({a.tobytes() for a in answers}) == 1


def test_sums_are_divided_by_a_public_constant_and_not_by_the_batch():
    held = records(*data(6))
    first, second, both = (
        total(held, query(), sampling=SAMPLING, stream=Chosen(*units)) for units in ((0,), (1,), (0, 1))
    )
    assert np.allclose(first + second, both, atol=1e-5 * C)


def test_a_draw_is_padded_to_its_cap():
    for size in SIZES:
        batch = SAMPLING.draw(Chosen(*range(size)))
        assert len(batch) == CAP
        assert (batch >= 0).sum() == min(size, CAP)
