import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.networks import MLP, NETWORKS, ConvNet, LeNet, ResNet

SHAPES = [(28, 28, 1), (9, 12, 3), (5, 4, 2), (2, 2, 1)]


def made(name, shape, classes=10, seed=0):
    return NETWORKS[name](shape, classes, rng=np.random.default_rng(seed))


def images(n, shape):
    return jnp.asarray(np.random.default_rng(1).normal(size=(n, *shape)).astype(np.float32))


def size(net):
    return sum(a.size for a in jax.tree.leaves(net))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_takes_images_of_any_size(name, shape):
    scores = made(name, shape, 7)(images(4, shape))
    assert scores.shape == (4, 7)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_an_images_scores_are_its_own_and_differ(name):
    net, x = made(name, (8, 8, 1)), images(3, (8, 8, 1))
    together = net(x)
    np.testing.assert_allclose(together[1:2], net(x[1:2]), atol=1e-5)
    assert np.ptp(np.asarray(together), axis=0).min() > 1e-4


@pytest.mark.parametrize("name", NETWORKS)
def test_constant_images_have_finite_scores_and_gradients(name):
    net = made(name, (8, 8, 1))
    x = jnp.stack([jnp.zeros((8, 8, 1)), jnp.ones((8, 8, 1)), jnp.full((8, 8, 1), -1e3)])
    assert np.isfinite(net(x)).all()
    for gradient in jax.tree.leaves(jax.jit(jax.grad(lambda net: (net(x) ** 2).mean()))(net)):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_is_of_use(name):
    """A weight whose gradient is zero whatever the images is left out of the network by mistake."""
    net, x = made(name, (8, 8, 1)), images(6, (8, 8, 1))
    towards = np.random.default_rng(2).normal(size=(6, 10)).astype(np.float32)
    for gradient in jax.tree.leaves(jax.jit(jax.grad(lambda net: (net(x) * towards).sum()))(net)):
        assert np.abs(gradient).max() > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_the_generator_is_all_that_the_weights_depend_on(name):
    x = images(2, (8, 8, 1))
    one, same, other = (np.asarray(made(name, (8, 8, 1), seed=seed)(x)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


@pytest.mark.parametrize(
    ("shape", "flat", "blocks"),
    [((8, 8, 1), 1, 3), ((28, 28, 1), 9, 3), ((32, 32, 3), 16, 3), ((5, 4, 2), 1, 2), ((2, 9, 1), 4, 1)],
)
def test_a_convnet_has_fewer_blocks_on_small_images(shape, flat, blocks):
    net = ConvNet(shape, 10, width=4, rng=np.random.default_rng(0))
    assert len(net.blocks) == blocks
    assert net.readout.weights.shape == (flat * 4, 10)


@pytest.mark.parametrize(("shape", "stages", "flat"), [((28, 28, 1), 2, 784), ((5, 4, 3), 2, 16), ((3, 9, 1), 1, 24)])
def test_a_lenet_has_fewer_stages_on_small_images(shape, stages, flat):
    net = LeNet(shape, 10, rng=np.random.default_rng(0))
    assert len(net.stages) == stages
    assert net.hidden[0].weights.shape == (flat, 120)


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        # the literature's, with the biases that the norms make idle left out
        (ConvNet, 9 * 128 + 2 * 9 * 128 * 128 + 3 * 2 * 128 + 1152 * 10 + 10),
        (MLP, 784 * 128 + 128 * 128 + 128 * 10 + 128 + 128 + 10),
        # LeCun's 5x5 convolutions, padded: 7 x 7 x 16 numbers are left
        (LeNet, 25 * 6 + 6 + 25 * 6 * 16 + 16 + 784 * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10),
        (
            ResNet,
            9 * 32 + 2 * 32
            + 2 * (9 * 32 * 32 + 2 * 32)
            + 9 * 32 * 64 + 9 * 64 * 64 + 2 * 2 * 64 + 32 * 64
            + 9 * 64 * 128 + 9 * 128 * 128 + 2 * 2 * 128 + 64 * 128
            + 128 * 10 + 10,
        ),
    ],
)  # fmt: skip
def test_sizes(net, expected):
    assert size(net((28, 28, 1), 10, rng=np.random.default_rng(0))) == expected


def test_a_residual_block_without_its_convolutions_is_the_identity():
    """Of what is not negative, for a ReLU comes last."""
    block = ResNet((8, 8, 1), 10, widths=(4,), rng=np.random.default_rng(0)).blocks[0]
    nothing = jax.tree.map(jnp.zeros_like, block)
    x = jnp.abs(images(2, (8, 8, 4)))
    np.testing.assert_array_equal(nothing(x), x)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "mlp"])
def test_refuses_images_of_one_pixel(name):
    with pytest.raises(RequestError, match="2 x 2 pixels, and these are 1 x 7"):
        made(name, (1, 7, 1))
