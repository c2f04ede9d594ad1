"""A distilled set as a working model: kernel ridge regression in scikit-learn's clothes."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from limbeck.data import ImageSchema
from limbeck.data.encoding import as_rows, centred_onehot
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress, accuracy, probabilities
from limbeck.evaluate.krr import CHUNK, krr_fit, krr_regression
from limbeck.features import FeatureMap, Kernel


class KRRClassifier(ClassifierMixin, BaseEstimator):
    """Kernel ridge regression as a scikit-learn classifier of raw images.

    `fit` takes raw images and labels; `from_support` takes a distilled set as it is (encoded images, learned
    labels) and returns the classifier that the set was distilled for.

    Parameters
    ----------
    features : FeatureMap or Kernel
        What the kernel sees.
    schema : ImageSchema
        How raw images are encoded, and the classes in the order of their indices.
    ridge : float
        λ, relative to the kernel's scale.
    chunk : int
        Images predicted at a time: bounds the memory.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The declared classes.
    regression_ : Regression
        The fitted regression.

    Examples
    --------
    >>> from limbeck.features import FCNTK
    >>> schema = ImageSchema(shape=(2, 2, 1), classes=("dark", "light"), low=0, high=255)
    >>> X = np.array([[[0, 9], [5, 0]], [[250, 255], [255, 240]]], np.uint8)
    >>> KRRClassifier(FCNTK(), schema).fit(X, ["dark", "light"]).predict(X).tolist()
    ['dark', 'light']
    """

    def __init__(self, features: FeatureMap | Kernel, schema: ImageSchema, ridge: float = 1e-6, chunk: int = CHUNK):
        self.features = features
        self.schema = schema
        self.ridge = ridge
        self.chunk = chunk

    @classmethod
    def from_support(
        cls,
        x_s: Float[np.ndarray, "m H W C"],
        y_s: Float[np.ndarray, "m classes"],
        *,
        features: FeatureMap | Kernel,
        schema: ImageSchema,
        ridge: float,
        chunk: int = CHUNK,
    ) -> "KRRClassifier":
        """The classifier fitted on encoded images and centred (hard or learned) labels."""
        expected = (*schema.shape, len(schema.classes))
        if (*x_s.shape[1:], y_s.shape[1]) != expected:
            raise RequestError(
                f"the support has images of shape {x_s.shape[1:]} and {y_s.shape[1]} label columns; "
                f"the schema declares {schema.shape} and {len(schema.classes)} classes"
            )
        return cls(features, schema, ridge, chunk)._fit_encoded(x_s, y_s)

    def fit(self, X: Any, y: Any) -> "KRRClassifier":
        """Fit on raw images and labels; null records are left out."""
        x, c = self.schema.encode(X, y)
        return self._fit_encoded(x[c >= 0], centred_onehot(c[c >= 0], len(self.schema.classes)))

    def _fit_encoded(self, x: np.ndarray, y: np.ndarray) -> "KRRClassifier":
        alpha = krr_fit(self.features, x, y, self.ridge)
        self.regression_ = krr_regression(self.features, x, alpha)
        self.classes_ = self.schema.labels(np.arange(len(self.schema.classes)))
        return self

    def decision_function(self, X: Any, *, progress: Progress | None = None) -> Float[np.ndarray, "n classes"]:
        """The regression's value for every raw image and class; zero for an image that cannot be encoded.

        One column a class, for two classes too: `argmax` is the prediction.
        """
        check_is_fitted(self)
        rows = as_rows(X, self.schema.shape)
        # Any declared class will do for a label: what comes back as null is then the image's own doing.
        x, c = self.schema.encode(rows, [self.schema.classes[0]] * len(rows))
        f = self.regression_.predict(x, chunk=self.chunk, progress=progress)
        f[c < 0] = 0
        return f

    def predict(self, X: Any, *, progress: Progress | None = None) -> np.ndarray:
        """The declared class of every raw image."""
        predicted = self.decision_function(X, progress=progress).argmax(1)
        return self.classes_[predicted]

    def predict_proba(self, X: Any, *, progress: Progress | None = None) -> Float[np.ndarray, "n classes"]:
        """The regression with its centring undone, negative values dropped, rows made to sum to one."""
        return probabilities(self.decision_function(X, progress=progress))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on raw images and labels; null records are left out."""
        check_is_fitted(self)
        x, c = self.schema.encode(X, y)
        f = self.regression_.predict(x, chunk=self.chunk)
        return accuracy(f.argmax(1), c, sample_weight)
