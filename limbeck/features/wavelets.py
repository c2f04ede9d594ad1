"""Kymatio's Morlet filter bank, as the small real matrices that a scattering transform multiplies by.

A convolution with a wavelet, followed by subsampling, is linear and nearly diagonal in Fourier. For images
this small a matrix product takes about as long as XLA's FFT on a CPU, and it stays real, takes padding and
cropping for nothing, and lets the planes be the last axis; so each stage is written as real products.

Along one axis of length n, of which subsampling by k keeps m = n/k, the basis is cosines and sines in k
groups (a), each with the frequencies that fold onto 0 .. m/2 of the output:

    ω_a(b) = m ⌈a/2⌉ + (-1)^a b,      group a = (cos ω_a(0), .., cos ω_a(m/2), sin ω_a(m/2), .., sin ω_a(0))

In that order a cosine's sine is at its mirror place. A convolution takes places (b, c) and mirrors of the
input's groups to places (b, c) of the output, and mixes nothing else: the real part of a real image's
convolution keeps the parity under u -> -u (both axes mirrored, or neither), the imaginary part changes it
(one axis mirrored). Frequencies that occur twice, and sines that vanish, are rows of zeros.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int

from limbeck.errors import RequestError


class Convolution(NamedTuple):
    """Convolve with a family of L wavelets and subsample, as real matrices.

    `analysis` takes each axis into the basis above (reflection padding included), `synthesis` back from
    that of the output. In between, the coefficients of x * ψ_l at places (b, c) are

        Σ_{a, f, a'} mixing[l, part, a, f, a', b, c] X[a, b or its mirror if f; a', c or its mirror if f']

    where part is 0 for the real one, 1 for the imaginary one, and f' = f xor part.
    """

    analysis: tuple[Float[np.ndarray, "N1 H"], Float[np.ndarray, "N2 W"]]
    mixing: Float[np.ndarray, "L 2 k 2 k M1 M2"]
    synthesis: tuple[Float[np.ndarray, "m1 M1"], Float[np.ndarray, "m2 M2"]]


class Bank(NamedTuple):
    """All the linear maps of a scattering transform of order two.

    `low_pass[j]` filters a signal at resolution 2^-j with φ, subsamples to 2^-J and crops; `low_pass_0`
    does so for the image itself. `first[j1]` and `second[j1, j2]` are the wavelets of the two layers.
    """

    low_pass_0: tuple[Float[np.ndarray, "h H"], Float[np.ndarray, "w W"]]
    low_pass: tuple[tuple[Float[np.ndarray, "h m1"], Float[np.ndarray, "w m2"]], ...]
    first: tuple[Convolution, ...]
    second: dict[tuple[int, int], Convolution]


@lru_cache(maxsize=16)
def bank(H: int, W: int, J: int, L: int) -> Bank:
    """The matrices for images of H x W pixels, equal to kymatio's `ScatteringJax2D(J, (H, W), L)`."""
    from kymatio.scattering2d.filter_bank import filter_bank
    from kymatio.scattering2d.utils import compute_padding

    if J < 1 or L < 1:
        raise RequestError(f"scattering needs J >= 1 and L >= 1; J={J}, L={L} was given")
    if min(H, W) < 2**J or min(H, W) < 2:
        raise RequestError(
            f"scattering with J={J} needs images of at least {2**J} x {2**J} pixels; {H} x {W} was given: "
            "enlarge the images or take a smaller J"
        )
    size = compute_padding(H, W, J)
    filters = filter_bank(*size, J, L)
    pad = tuple(_reflection(n, padded) for n, padded in zip((H, W), size, strict=True))
    same = tuple(tuple(np.eye(n >> j) for n in size) for j in range(J))

    def psi(j: int, level: int) -> Float[np.ndarray, "L n1 n2"]:
        return np.stack([f["levels"][level] for f in filters["psi"] if f["j"] == j]).astype(np.float64)

    low_pass: list[tuple[np.ndarray, np.ndarray]] = []
    for j, level in enumerate(filters["phi"]["levels"]):
        φ = np.asarray(level, np.float64)  # separable: a Gaussian, masked and folded axis by axis
        k = 2 ** (J - j)
        low_pass.append((_low_pass(φ[:, 0], k), _low_pass(φ[0] / φ[0, 0], k)))
    return _float32(
        Bank(
            low_pass_0=tuple(P @ E for P, E in zip(low_pass[0], pad, strict=True)),
            low_pass=tuple(low_pass),
            first=tuple(_convolution(psi(j, 0), 2**j, pad) for j in range(J)),
            second={
                (j1, j2): _convolution(psi(j2, j1), 2 ** (j2 - j1), same[j1])
                for j1 in range(J)
                for j2 in range(j1 + 1, J)
            },
        )
    )


def _float32(tree):
    import jax

    return jax.tree.map(lambda a: np.ascontiguousarray(a, np.float32), tree)


def _reflection(n: int, padded: int) -> Float[np.ndarray, "padded n"]:
    """The matrix that pads by reflection on both sides, the odd pixel at the end."""
    before = (padded - n) // 2
    return np.eye(n)[np.pad(np.arange(n), (before, padded - n - before), mode="reflect")]


def _low_pass(φ_hat: Float[np.ndarray, " n"], k: int) -> Float[np.ndarray, "h n"]:
    """Filter along an axis, keep every k-th sample, crop the padding (one sample on each side)."""
    kernel = np.fft.ifft(φ_hat).real
    n = len(kernel)
    u = np.arange(0, n, k)[1:-1]
    return kernel[(u[:, None] - np.arange(n)) % n]


def _frequencies(n: int, k: int) -> Int[np.ndarray, "k B"]:
    m = n // k
    a, b = np.ogrid[:k, : m // 2 + 1]
    return (a + 1) // 2 * m + (-1) ** a * b


def _basis(n: int, k: int) -> Float[np.ndarray, "k 2 B n"]:
    """Cosines and sines by group, parity and b, orthonormal but for rows of zeros."""
    ω = _frequencies(n, k)
    angle = 2 * np.pi / n * ω[..., None] * np.arange(n)
    edge = (ω == 0) | (2 * ω == n)
    again = np.array([[ω[a, b] in ω[:a, b] for b in range(ω.shape[1])] for a in range(k)])
    cos = np.cos(angle) * np.where(again, 0, np.sqrt(np.where(edge, 1, 2) / n))[..., None]
    sin = np.sin(angle) * np.where(again | edge, 0, np.sqrt(2 / n))[..., None]
    return np.stack([cos, sin], axis=1)


def _in_order(R: Float[np.ndarray, "k 2 B n"]) -> Float[np.ndarray, "M n"]:
    return np.concatenate([R[:, 0], R[:, 1, ::-1]], axis=1).reshape(-1, R.shape[-1])


def _convolution(ψ_hat: Float[np.ndarray, "L n1 n2"], k: int, pad: tuple[np.ndarray, ...]) -> Convolution:
    analysis, synthesis, before, after, frequencies = [], [], [], [], []
    for n, E in zip(ψ_hat.shape[1:], pad, strict=True):
        R, R_out = _basis(n, k), _basis(n // k, 1)
        analysis.append(_in_order(R) @ E)
        synthesis.append(_in_order(R_out).T)
        # The 2k frequencies ±ω_a(b) that fold onto ±b, and how often each occurs among them.
        ω = np.concatenate([_frequencies(n, k), -_frequencies(n, k)]) % n
        weight = 1 / (ω[:, None] == ω[None]).sum(axis=1)
        before.append(_fourier(R, ω))
        after.append(_fourier(R_out, ω)[0].conj() * weight / n)
        frequencies.append(ω)
    ω1, ω2 = frequencies
    ψ = ψ_hat[:, ω1[:, None, :, None], ω2[None, :, None, :]]  # l x y b c
    # Along each axis: into Fourier (before), times ψ, folded into the output's basis (after). Letters:
    # group i, parity q of the input, parity o of the output; j, r, p on the second axis.
    half = np.einsum("lxybc,oxb,iqxb->lybcoiq", ψ, after[0], before[0], optimize=True)
    full = np.einsum("lybcoiq,pyc,jryc->lijoqprbc", half, after[1], before[1], optimize=True)
    mixing = np.empty((len(ψ), 2, k, 2, k, *(len(A) // k for A in analysis)))
    for part, f, o, p in np.ndindex(2, 2, 2, 2):
        M = (full.real, full.imag)[part][:, :, :, o, o ^ f, p, p ^ f ^ part]
        B, C = M.shape[-2:]
        rows, columns = (slice(0, B), slice(2 * B - 1, B - 1, -1))[o], (slice(0, C), slice(2 * C - 1, C - 1, -1))[p]
        mixing[:, part, :, f, :, rows, columns] = M
    return Convolution((analysis[0], analysis[1]), mixing, (synthesis[0], synthesis[1]))


def _fourier(R: Float[np.ndarray, "k 2 B n"], ω: Int[np.ndarray, "x B"]) -> Complex[np.ndarray, "k 2 x B"]:
    """Fourier coefficients of the functions of each b at that b's frequencies."""
    n = R.shape[-1]
    return np.einsum("iqbu,xbu->iqxb", R, np.exp(-2j * np.pi / n * ω[..., None] * np.arange(n)))
