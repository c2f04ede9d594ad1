"""Real records for the evaluation tests: scikit-learn's handwritten digits, which need no download."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from limbeck.data import ImageSchema


@pytest.fixture(scope="session")
def digits():
    """Raw uint8 images (n, 8, 8) in 0..16, and labels, in a fixed random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    return data.images[order].astype(np.uint8), data.target[order]


@pytest.fixture(scope="session")
def schema():
    return ImageSchema(shape=(8, 8, 1), classes=range(10), low=0, high=16)


@pytest.fixture(scope="session")
def encoded(digits, schema):
    """The same, encoded: x float32 (n, 8, 8, 1) and class indices."""
    return schema.encode(*digits)
