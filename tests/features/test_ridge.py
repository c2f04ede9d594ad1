"""The solve is finite whatever the support does, and right where it is well posed."""

import numpy as np
import pytest

from limbeck.features.ridge import solve_ridge


@pytest.mark.parametrize("K", [np.zeros((3, 3)), np.ones((4, 4)), np.diag([1.0, 1e-20]), -1e-6 * np.eye(2)])
@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1e-3])
def test_always_finite(K, ridge):
    assert np.isfinite(solve_ridge(K, np.eye(len(K)), ridge)).all()


def test_solves_the_system():
    a = np.random.default_rng(0).normal(size=(5, 7))
    K, Y = a @ a.T, np.arange(10.0).reshape(5, 2)
    assert np.allclose((K + 0.3 * np.eye(5)) @ solve_ridge(K, Y, 0.3), Y)
