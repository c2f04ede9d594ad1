"""Kernel ridge regression on a support set: the model that kernel-inducing points are distilled for."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from limbeck.data.encoding import centred_onehot
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import Progress
from limbeck.evaluate.normal_equations import NormalEquations
from limbeck.features import FeatureMap, Kernel, features_of, gram
from limbeck.features.ridge import solve_ridge

CHUNK = 512
KERNEL_LIMIT = 5_000  # records of a full regression with an infinite kernel: its matrix is n x n


class Regression(NamedTuple):
    """f(x) = φ(x)ᵀ W where the features are finite, k(x, X) α where they are not.

    - `coefficients`: W, one row a feature, or α, one row a point of X.
    - `points`: X, for an infinite kernel only.
    """

    features: FeatureMap | Kernel
    coefficients: Float[np.ndarray, "rows classes"]
    points: Float[np.ndarray, "m ..."] | None = None

    def predict(
        self, x: Float[np.ndarray, "n ..."], *, chunk: int = CHUNK, progress: Progress | None = None
    ) -> Float[np.ndarray, "n classes"]:
        """f of every example, in float64, with the memory of one chunk."""
        f = np.empty((len(x), self.coefficients.shape[1]))
        for part, rows in self._rows(x, chunk):
            f[part] = rows.astype(np.float64) @ self.coefficients
            if progress is not None:
                progress(part.stop, len(x))
        return f

    def _rows(self, x: np.ndarray, chunk: int) -> Iterator[tuple[slice, np.ndarray]]:
        if isinstance(self.features, Kernel):
            assert self.points is not None
            yield from _kernel_rows(self.features, x, self.points, chunk)
            return
        for part in _parts(len(x), chunk):
            yield part, features_of(self.features, x[part])


def krr_fit(
    features: FeatureMap | Kernel,
    x_s: Float[np.ndarray, "m ..."],
    y_s: Float[np.ndarray, "m classes"],
    ridge: float,
) -> Float[np.ndarray, "m classes"]:
    r"""The dual coefficients of kernel ridge regression on a support set, in float64.

    $$\alpha = (K + \lambda \tfrac{\mathrm{tr} K}{m} I)^{-1} Y_s, \qquad K = k(X_s, X_s)$$

    The ridge is relative to the kernel's scale, as in KIP (Nguyen et al. 2021), so λ means the same for every
    kernel. Finite for coincident points too: where K is singular and λ is zero, or below rounding, α is the
    solution of least norm.

    **Arguments:**

    - `x_s`, `y_s`: encoded examples and their centred, hard or learned, labels.
    - `ridge`: λ, not negative.
    """
    _check_ridge(ridge)
    if len(x_s) != len(y_s) or not len(x_s):
        raise RequestError(f"{len(x_s)} examples with {len(y_s)} labels; one label an example is expected")
    if not (np.isfinite(x_s).all() and np.isfinite(y_s).all()):
        raise RequestError("the support has values that are not finite; distil it again")
    if isinstance(features, Kernel):
        K = np.concatenate([rows for _, rows in _kernel_rows(features, x_s, x_s, CHUNK)]).astype(np.float64)
        K = (K + K.T) / 2
    else:
        Φ = features_of(features, x_s).astype(np.float64)
        K = Φ @ Φ.T
    return solve_ridge(K, y_s.astype(np.float64), ridge * np.trace(K) / len(K))


def krr_predict(
    features: FeatureMap | Kernel,
    x_s: Float[np.ndarray, "m ..."],
    alpha: Float[np.ndarray, "m classes"],
    x: Float[np.ndarray, "n ..."],
    *,
    chunk: int = CHUNK,
    progress: Progress | None = None,
) -> Float[np.ndarray, "n classes"]:
    """f(x) = k(x, X_s) α, `chunk` examples at a time; `progress` is called with (done, total)."""
    return krr_regression(features, x_s, alpha).predict(x, chunk=chunk, progress=progress)


def krr_regression(
    features: FeatureMap | Kernel, x_s: Float[np.ndarray, "m ..."], alpha: Float[np.ndarray, "m classes"]
) -> Regression:
    """The regression with these dual coefficients, ready to predict: for finite features W = Φ_sᵀ α."""
    if isinstance(features, Kernel):
        return Regression(features, alpha, x_s)
    return Regression(features, features_of(features, x_s).astype(np.float64).T @ alpha)


class FullKRR(NamedTuple):
    """Ridge regression on a whole training set, the reference that a distilled set is held against.

    - `regression`: what predicts.
    - `records`: how many records it was fitted on.
    - `available`: how many there were, null records left out: more than `records` for a random subset.
    """

    regression: Regression
    records: int
    available: int


def krr_full(
    features: FeatureMap | Kernel,
    x: Float[np.ndarray, "n ..."],
    c: Int[np.ndarray, " n"],
    classes: int,
    ridge: float,
    *,
    limit: int = KERNEL_LIMIT,
    seed: int = 0,
    chunk: int = CHUNK,
    progress: Progress | None = None,
) -> FullKRR:
    r"""Ridge regression on all the records of a training set.

    Finite features are solved in primal form, in F (F + 1) / 2 numbers of memory whatever n:

    $$W = (\Phi^\top \Phi + \lambda \tfrac{\mathrm{tr}(\Phi^\top \Phi)}{F} I)^{-1} \Phi^\top Y$$

    An infinite kernel has no primal form: `krr_fit` on a random subset of at most `limit` records stands in,
    and the result says so.

    **Arguments:**

    - `x`, `c`: encoded examples and class indices; null records (-1) are left out.
    - `ridge`: λ, relative to the trace.
    - `seed`: a public seed for the subset.
    - `progress`: called with (records done, records).
    """
    _check_ridge(ridge)
    valid = np.flatnonzero(c >= 0)
    if not len(valid):
        raise RequestError("there is no record with a declared class to fit on")
    if isinstance(features, Kernel):
        chosen = valid
        if len(valid) > limit:
            chosen = np.sort(np.random.default_rng(seed).choice(valid, limit, replace=False))
        y = centred_onehot(c[chosen], classes)
        regression = Regression(features, krr_fit(features, x[chosen], y, ridge), x[chosen])
        if progress is not None:
            progress(len(chosen), len(chosen))
        return FullKRR(regression, len(chosen), len(valid))
    equations = NormalEquations(features.dim, classes)
    for part in _parts(len(valid), chunk):
        rows = valid[part]
        equations.add(features_of(features, x[rows]), centred_onehot(c[rows], classes))
        if progress is not None:
            progress(part.stop, len(valid))
    return FullKRR(Regression(features, equations.solve(ridge)), len(valid), len(valid))


def _kernel_rows(
    k: Kernel, x: np.ndarray, z: np.ndarray, chunk: int
) -> Iterator[tuple[slice, Float[np.ndarray, "a m"]]]:
    """k(x, z) in slices of rows, each padded to one shape so that k is compiled once."""
    chunk = min(chunk, max(len(x), 1))
    points = jnp.asarray(z.reshape(len(z), -1))
    for part in _parts(len(x), chunk):
        rows = x[part].reshape(part.stop - part.start, -1)
        padded = np.pad(rows, ((0, chunk - len(rows)), (0, 0)))
        yield part, np.asarray(_gram(k, jnp.asarray(padded), points))[: len(rows)]


_gram = eqx.filter_jit(gram)


def _parts(n: int, chunk: int) -> Iterator[slice]:
    for start in range(0, n, chunk):
        yield slice(start, min(start + chunk, n))


def _check_ridge(ridge: float) -> None:
    if not (np.isfinite(ridge) and ridge >= 0):
        raise RequestError(f"ridge must be a finite number, 0 or more; {ridge} was given")
