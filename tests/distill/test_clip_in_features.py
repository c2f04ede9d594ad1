"""DP-KIP with clipping in features: the same loss seen from W, pulled back to images and labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.distill import DPKIP
from limbeck.distill.inducing import AtWeights, pulled_back, random_support, weights_of
from limbeck.errors import RequestError
from limbeck.features import Scattering
from limbeck.measure import WeightGradient
from tests.distill.test_methods import SCHEMA, digits  # noqa: F401

FEATURES = Scattering((8, 8, 1), L=2, groups=3)


def test_the_pull_back_is_the_gradient_of_the_loss_in_images_and_labels():
    x_s, y_s = random_support(SCHEMA, 1, seed=0)
    rng = np.random.default_rng(0)
    phi = FEATURES(jnp.asarray(rng.uniform(-1, 1, (20, 8, 8, 1)), jnp.float32))
    y = jnp.asarray(np.eye(10)[rng.integers(10, size=20)] - 0.1, jnp.float32)

    def loss(x_s, y_s):
        f = phi @ weights_of(FEATURES, x_s, y_s, 1e-2)
        return -jnp.sum(jax.nn.log_softmax(f) * (y + 0.1)) / 20

    G = WeightGradient(weights_of(FEATURES, x_s, y_s, 1e-2), "softmax").mean(phi[:, None], y[:, None])
    for ours, autodiff in zip(pulled_back(FEATURES, x_s, y_s, 1e-2, G), jax.grad(loss, (0, 1))(x_s, y_s), strict=True):
        np.testing.assert_allclose(ours, autodiff, atol=1e-4 * float(jnp.abs(autodiff).max()))


def test_gradients_are_a_function_of_the_answer_and_the_support_alone():
    look = AtWeights(FEATURES, 1e-3, "softmax")
    x_s, y_s = random_support(SCHEMA, 1, seed=0)
    G = np.random.default_rng(1).normal(size=(FEATURES.dim, 10)).astype(np.float32)
    once, again = look.gradients(x_s, y_s, G), look.gradients(x_s, y_s, G)
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(once[0], look.gradients(x_s, y_s, 2 * G)[0])
    np.testing.assert_array_equal(look.gradients(x_s, y_s, 0 * G)[0], 0)  # nothing seen, nothing learned


@pytest.mark.parametrize("batch", ["full", 300])
def test_a_few_images_classify_real_digits(digits, batch, tmp_path):  # noqa: F811
    X, y, X_test, y_test = digits
    steps = {"full": 40, 300: 10}[batch]
    model = DPKIP(SCHEMA, epsilon=10, delta=1e-4, per_class=1, clip="features", features=FEATURES, batch=batch,
                  epochs=steps)  # fmt: skip
    X_s, _ = model.fit_resample(X, y)
    assert X_s.shape == (10, 8, 8, 1)
    assert model.release_.classifier().score(X_test, y_test) > 0.6  # fresh noise: 0.76 ± 0.02 of 300, chance is 0.1
    assert not limbeck.verify(model.release_.save(tmp_path / "release"))


def test_a_kernel_without_features_is_refused():
    with pytest.raises(RequestError, match="finite feature map"):
        DPKIP(SCHEMA, clip="features", features="fc-ntk").resolved_features()
