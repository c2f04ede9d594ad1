import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.networks import KINDS, augmented, augmented_each, drawn

GEOMETRIC = ("crop", "flip", "scale", "rotate", "cutout")


def images(n=3, shape=(7, 6, 3), seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, *shape)).astype(np.float32))


def one(seed=0, kinds=KINDS, **changed):
    """One change, without a first axis."""
    return jax.tree.map(lambda part: part[0], drawn(np.random.default_rng(seed), 1, kinds))._replace(**changed)


def test_no_kind_is_no_change():
    x = images()
    np.testing.assert_allclose(augmented(x, one(kinds=())), x, atol=1e-6)
    np.testing.assert_allclose(augmented_each(x, drawn(np.random.default_rng(0), 3, ())), x, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_changes_images(kind):
    x = images(20)
    assert not np.allclose(augmented_each(x, drawn(np.random.default_rng(0), 20, (kind,))), x, atol=1e-2)


def test_siamese_is_the_same_change_of_every_image():
    x, change = images(), one()
    together = augmented(x, change)
    for i in range(len(x)):
        np.testing.assert_allclose(together[i], augmented(x[i : i + 1], change)[0], atol=1e-6)
    same = augmented(jnp.stack([x[0], x[0]]), change)
    np.testing.assert_array_equal(same[0], same[1])


def test_each_has_a_change_of_its_own():
    x, changes = images(), drawn(np.random.default_rng(3), 3)
    alike = augmented_each(jnp.stack([x[0]] * 3), changes)
    assert np.abs(alike[0] - alike[1]).max() > 0.1
    for i, found in enumerate(augmented_each(x, changes)):
        change = jax.tree.map(lambda part, i=i: part[i], changes)
        np.testing.assert_allclose(found, augmented(x[i : i + 1], change)[0], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_not_colour_is_linear_and_autodiff_agrees(seed):
    x, v, change = images(), images(seed=1), one(seed, GEOMETRIC)

    def change_of(x):
        return augmented(x, change)

    found, derivative = jax.jvp(change_of, (x,), (v,))
    np.testing.assert_allclose(derivative, change_of(v), atol=1e-5)
    np.testing.assert_allclose(change_of(2 * x - 3 * v), 2 * found - 3 * change_of(v), atol=1e-4)


def test_gradient_is_finite_differences():
    """Of all kinds at once: affine in x, so that a long step is exact but for rounding."""
    x, v, w, change = images(), images(seed=1), images(seed=2), one(5)

    def f(x):
        return (augmented(x, change) * w).sum()

    np.testing.assert_allclose(jnp.vdot(jax.grad(f)(x), v), (f(x + v) - f(x - v)) / 2, rtol=1e-3, atol=1e-3)


def test_a_flip_mirrors():
    """To the rounding of what is done to colours afterwards, which here is nothing."""
    x = images()
    mirrored = augmented(x, one(kinds=(), mirror=jnp.float32(-1)))
    np.testing.assert_allclose(mirrored, x[:, :, ::-1], atol=1e-6)
    changes = drawn(np.random.default_rng(0), 30, ("flip",))
    assert 5 < (changes.mirror == -1).sum() < 25
    flips = augmented_each(jnp.stack([x[0]] * 30), changes)
    for mirror, found in zip(changes.mirror, flips, strict=True):
        np.testing.assert_allclose(found, x[0, :, :: int(mirror)], atol=1e-6)


def test_a_shift_of_whole_pixels_moves_them():
    x = images(shape=(8, 8, 1))
    moved = augmented(x, one(kinds=(), shift=jnp.array([2 / 8, 1 / 8], jnp.float32)))
    np.testing.assert_allclose(moved[:, 2:, 1:], x[:, :-2, :-1], atol=1e-5)
    np.testing.assert_allclose(moved[:, 0, 1:], x[:, 0, :-1], atol=1e-5)  # the border is repeated


def test_a_quarter_turn_turns():
    x = images(shape=(6, 6, 2))
    turned = np.asarray(augmented(x, one(kinds=(), angle=jnp.float32(np.pi / 2))))
    directions = [np.rot90(x, k, axes=(1, 2)) for k in (1, -1)]
    assert any(np.allclose(turned, direction, atol=1e-4) for direction in directions)


def test_constant_images_stay_constant_but_for_their_brightness():
    found = np.asarray(augmented(jnp.full((2, 7, 6, 3), 0.3), one(2)))
    assert np.ptp(found) < 1e-5


def test_the_generator_is_all_that_changes_depend_on():
    for again, same in ((0, True), (1, False)):
        a, b = drawn(np.random.default_rng(0), 4), drawn(np.random.default_rng(again), 4)
        assert same == all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


def test_leaving_a_kind_out_leaves_the_others_as_they_were():
    whole = drawn(np.random.default_rng(0), 4)
    without = drawn(np.random.default_rng(0), 4, ("colour", "rotate"))
    for part in ("angle", "brightness", "contrast", "saturation"):
        np.testing.assert_array_equal(getattr(whole, part), getattr(without, part))
    assert not without.shift.any()
    assert (without.scale == 1).all()
    assert (without.mirror == 1).all()


def test_strength_scales_how_much():
    whole, half = (drawn(np.random.default_rng(0), 4, strength=s) for s in (1.0, 0.5))
    np.testing.assert_allclose(half.shift, whole.shift / 2, rtol=1e-6)
    np.testing.assert_allclose(half.angle, whole.angle / 2, rtol=1e-6)
    np.testing.assert_allclose(jnp.log(half.scale), jnp.log(whole.scale) / 2, atol=1e-6)
    np.testing.assert_array_equal(half.mirror, whole.mirror)
