"""Numbers stretched by density: onto, in order, and back."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.features import Pixels, Warp, Warped

SHARES = st.lists(st.floats(0, 1), min_size=8, max_size=8)


@settings(deadline=None, max_examples=20)
@given(SHARES, st.integers(0, 2**31))
def test_a_warp_keeps_order_and_ends_and_has_an_inverse(shares, seed):
    warp = Warp.of((1,), np.array([shares]))
    t = np.sort(np.random.default_rng(seed).uniform(-1, 1, 50))
    x = jnp.asarray(np.stack([t, np.concatenate([[-1], t[1:-1], [1]])], axis=1), jnp.float32)
    y = warp(x)
    assert np.array_equal(y[:, 0], x[:, 0])  # no number of the warp's
    assert np.allclose(y[[0, -1], 1], [-1, 1], atol=1e-6)
    assert (np.diff(np.asarray(y[:, 1])) >= 0).all()
    assert np.allclose(warp.inverse(y), x, atol=1e-4)


def test_dense_pieces_are_stretched_and_empty_ones_are_still_there():
    warp = Warp.of((0,), np.array([[0.0, 1.0, 0.0, 0.0]]))
    widths = np.diff(np.asarray(warp(jnp.linspace(-1, 1, 5)[:, None])[:, 0]))
    assert np.allclose(widths / 2, [1 / 16, 13 / 16, 1 / 16, 1 / 16], atol=1e-6)


def test_rows_drawn_from_the_shares_lie_evenly_but_for_what_is_kept_for_empty_pieces():
    rng, shares = np.random.default_rng(0), np.array([0.7, 0.2, 0.1, 0.0])
    t = (rng.choice(4, 40_000, p=shares) + rng.random(40_000)) / 2 - 1
    found = np.asarray(Warp.of((0,), shares[None])(jnp.asarray(t, jnp.float32)[:, None]))[:, 0]
    counts = np.histogram(found, bins=10, range=(-1, 1))[0] / 40_000
    assert counts[:8].max() < 0.13  # of the declared range, 0.28 of rows lie in a tenth


def test_where_nothing_was_counted_nothing_is_moved():
    x = jnp.linspace(-1, 1, 7)[:, None]
    assert np.allclose(Warp.of((0,), np.zeros((1, 5)))(x), x, atol=1e-6)
    assert Warp.plain()(x) is x
    assert Warped(Pixels((1,)), Warp.plain()).config() == Pixels((1,)).config()
