"""Least squares with more records than memory: the normal equations, a chunk of records at a time."""

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack


class NormalEquations:
    """Accumulates ΦᵀΦ and ΦᵀY, then solves (ΦᵀΦ + λ tr(ΦᵀΦ)/F I) W = ΦᵀY.

    In float64, since a small ridge is lost in the rounding of a float32 ΦᵀΦ; half the matrix is kept, in
    LAPACK's rectangular full packed format (the speed of full storage in half its memory: 1 GB for
    F = 15,552).
    """

    def __init__(self, F: int, classes: int):
        self._ΦTΦ = np.zeros(F * (F + 1) // 2)
        self._ΦTY = np.zeros((F, classes), order="F")

    def add(self, Φ: Float[np.ndarray, "b F"], Y: Float[np.ndarray, "b classes"]) -> None:
        """Add the records of one chunk."""
        b, F = Φ.shape
        Φ = Φ.astype(np.float64)
        # Φ.T is in Fortran's order as it stands: LAPACK takes it, and updates the sum, without a copy.
        self._ΦTΦ = lapack.dsfrk(F, b, 1.0, Φ.T, 1.0, self._ΦTΦ, uplo="L", overwrite_c=1)
        self._ΦTY += Φ.T @ Y

    def solve(self, ridge: float) -> Float[np.ndarray, "F classes"]:
        """W; the sums are used up."""
        F = len(self._ΦTY)
        diagonal = packed_diagonal(F)
        trace = self._ΦTΦ[diagonal].sum()
        # Sums of squares are positive definite but for rounding: λ = F eps is enough to keep them so.
        self._ΦTΦ[diagonal] += max(ridge, F * np.finfo(np.float64).eps) * trace / F + np.finfo(np.float64).tiny
        factor, failed = lapack.dpftrf(F, self._ΦTΦ, uplo="L", overwrite_a=1)
        if failed:
            raise FloatingPointError("ΦᵀΦ is not positive definite: the features are not finite")
        W, _ = lapack.dpftrs(F, factor, self._ΦTY, uplo="L", overwrite_b=1)
        return W


def packed_diagonal(F: int) -> Int[np.ndarray, " F"]:
    """Where the diagonal of a lower triangle is in rectangular full packed format (LAPACK Working Note 199).

    The first half of the columns stay as they are, in a rectangle of F rows (F + 1 for an even F); the rest
    fills the triangle above them, transposed.
    """
    even = 1 - F % 2
    rows = F + even
    first, second = np.arange((F + 1) // 2), np.arange(F // 2)
    return np.concatenate([first * (rows + 1) + even, second * (rows + 1) + (0 if even else rows)])
