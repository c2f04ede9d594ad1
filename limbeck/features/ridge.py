"""The linear system of kernel ridge regression."""

import numpy as np
import scipy.linalg
from jaxtyping import Float


def solve_ridge(K: Float[np.ndarray, "m m"], Y: Float[np.ndarray, "m C"], ridge: float) -> Float[np.ndarray, "m C"]:
    """(K + ridge I)⁻¹ Y for a positive semi-definite K that rounding may have made slightly indefinite."""
    if ridge > 0:
        try:
            A = K.copy()
            A.flat[:: len(A) + 1] += ridge
            return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, lower=True, overwrite_a=True), Y)
        except scipy.linalg.LinAlgError:
            pass
    values, vectors = scipy.linalg.eigh(K)
    # K comes from float32: eigenvalues below its rounding say nothing, and their directions are left out.
    rounding = np.finfo(np.float32).eps * len(K) * max(values[-1], 0)
    kept = values > rounding
    inverse = np.where(kept, 1 / np.where(kept, values + ridge, 1), 0)
    return vectors @ (inverse[:, None] * (vectors.T @ Y))
