"""Random embeddings: of norm one, made again from their seed, and of each image alone."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import Embeddings, Pixels, dead_leaves
from limbeck.features.embedding import CONSTANT

SHAPE = (8, 8, 3)
SOME = Embeddings(SHAPE, 3, width=4, depth=2, seed=5)
x = jnp.asarray(dead_leaves(6, SHAPE, 9))


def test_embeddings_have_norm_one_and_a_constant_coordinate():
    ψ = np.asarray(SOME[0](x))
    assert ψ.shape == (6, SOME.dim)
    assert np.allclose(np.linalg.norm(ψ, axis=1), 1, atol=1e-5)
    assert np.allclose(ψ[:, -1], CONSTANT)


def test_an_image_is_embedded_alone():
    assert np.allclose(SOME[1](x)[2:3], SOME[1](x[2:3]), atol=1e-5)


def test_a_seed_makes_them_again_and_each_differs():
    again = Embeddings.from_config(SOME.config(), SHAPE)
    assert again == SOME
    assert np.array_equal(again[2](x), SOME[2](x))
    assert np.array_equal(SOME.made(2)(x), SOME[2](x))
    assert not np.allclose(SOME[0](x), SOME[1](x), atol=1e-2)
    assert not np.allclose(Embeddings(SHAPE, 3, width=4, depth=2, seed=6)[0](x), SOME[0](x), atol=1e-2)


def test_public_images_are_what_they_are_centred_by():
    """Without the centring, embeddings of different images point almost the same way."""
    raw = np.asarray(SOME[0].raw(x))
    raw = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    ψ = np.asarray(SOME[0](x))
    assert (ψ @ ψ.T).mean() < (raw @ raw.T).mean() - 0.2


@pytest.mark.parametrize("change", [{"name": "other"}, {"shape": [4, 4, 1]}, {"kinds": None}, {"extra": 1}])
def test_a_recipe_that_is_none_is_refused(change):
    with pytest.raises(RequestError, match="verify"):
        Embeddings.from_config(SOME.config() | change, SHAPE)


def test_pixels_are_the_image():
    assert np.array_equal(Pixels(SHAPE)(x), np.asarray(x).reshape(6, -1))


def test_projected_embeddings_are_those_seen_along_orthonormal_directions():
    few = Embeddings(SHAPE, 3, width=4, depth=2, seed=5, project=5)
    assert few.dim == 6
    V = np.asarray(few[0].directions)
    assert np.allclose(V.T @ V, np.eye(5), atol=1e-5)
    whole, ψ = np.asarray(SOME[0](x)), np.asarray(few[0](x))
    assert np.allclose(ψ[:, :-1], whole[:, :-1] @ V, atol=1e-5)
    assert np.linalg.norm(ψ, axis=1).max() <= 1 + 1e-6
    assert Embeddings.from_config(few.config(), SHAPE) == few


def test_main_directions_hold_more_than_others():
    few = Embeddings(SHAPE, 1, width=16, depth=2, project=8)
    ψ = np.asarray(replace(few, project=None)[0](jnp.asarray(dead_leaves(40, SHAPE, 3))))[:, :-1]
    kept = np.asarray(few[0].directions)
    others = np.linalg.qr(np.random.default_rng(0).normal(size=kept.shape))[0]
    assert np.linalg.norm(ψ @ kept) > 2 * np.linalg.norm(ψ @ others)


@pytest.mark.parametrize("directions", [0, 17, 200])
def test_a_projection_that_cannot_be_is_refused(directions):
    with pytest.raises(RequestError, match="1 to 16 is possible"):
        Embeddings(SHAPE, 3, width=4, depth=2, project=directions)
