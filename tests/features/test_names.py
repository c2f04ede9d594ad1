"""Features by name and by configuration, and the Gram matrix of either kind."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import RequestError
from limbeck.features import FCNTK, Scattering, from_config, gram, named

SHAPE = (8, 8, 1)


@pytest.mark.parametrize("features", [Scattering(SHAPE), Scattering(SHAPE, J=1, L=4, groups=None), FCNTK(2, 1.5, 0.0)])
def test_configuration_goes_through_json(features):
    again = from_config(json.loads(json.dumps(features.config())), SHAPE)
    assert again == features
    assert again.config() == features.config()


def test_named():
    assert named("scattering", SHAPE, unit_norm=False) == Scattering(SHAPE, unit_norm=False)
    assert named("fc-ntk", SHAPE, depth=3) == FCNTK(3)


def test_requests_that_cannot_be_met():
    with pytest.raises(RequestError, match="fc-ntk, scattering"):
        named("wavelets", SHAPE)
    with pytest.raises(RequestError, match="width"):
        named("fc-ntk", SHAPE, width=5)
    with pytest.raises(RequestError, match="three"):
        named("scattering", (64,))
    with pytest.raises(RequestError, match="shape"):
        from_config(Scattering(SHAPE).config(), (9, 9, 1))


def test_gram_of_either_kind():
    x = jnp.asarray(np.random.default_rng(0).random((5, *SHAPE)), jnp.float32)
    φ, k = Scattering(SHAPE, L=2, groups=None), FCNTK()
    np.testing.assert_allclose(gram(φ, x, x[:2]), φ(x) @ φ(x[:2]).T, rtol=1e-6)
    np.testing.assert_allclose(gram(k, x, x[:2]), k(x, x[:2]), rtol=1e-6)
