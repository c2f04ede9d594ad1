"""Kymatio's Morlet filter bank, as the small real matrices that a scattering transform multiplies by.

A convolution with a wavelet, followed by subsampling, is linear and nearly diagonal in Fourier. For images
this small a matrix product takes less time than XLA's FFT on a CPU, and it stays real, takes padding and
cropping for nothing, and lets the planes be the last axis; so each stage is written as real products.

**Mirrored pixels.** An axis of n points (n is even) has a centre c, and its pixels are held in pairs c ± v:
a sign and an offset v. The sum and the difference of a pair (a butterfly) are the even and the odd part of the
signal about c. Cosines about c see the even part only, sines the odd one: a product by n x n is two products by
about n/2 x n/2. If c lies between two pixels, v = 1/2, 3/2, .., (n-1)/2. If c is a pixel, v = 0, 1, .., n/2, and
c and c + n/2, their own mirrors, are held twice with half a weight each. The centre of the coarsest grid that
wavelets are subsampled to is -1/2; those of the finer ones are the same point of the image.

**Slots.** Where subsampling by k keeps m = n/k points, the basis is cosines and sines in k groups (a), each with
the frequencies that fold onto b = 0 .. m/2 of the output:

    ω_a(b) = m ⌈a/2⌉ + (-1)^a b,      group a, parity q = 0: cos ω_a(b) (u - c),   q = 1: sin ω_a(b) (u - c)

A convolution takes slots (b, b') of the input's groups to slots (b, b') of the output, and mixes nothing else:
the real part of a real image's convolution keeps the parity under u -> 2c - u (both axes change theirs, or
neither), the imaginary part changes it (one axis does). Frequencies that occur twice, and cosines or sines that
vanish, are zeros.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int

from limbeck.errors import RequestError

# Along either axis: a matrix for each block of the axis (its parities), or one for the whole axis.
Matrices = tuple[Float[np.ndarray, "p r1 c1"], Float[np.ndarray, "p r2 c2"]]


class Grid(NamedTuple):
    """The points of an axis, as pairs about a centre."""

    n: int
    c: float

    @property
    def v(self) -> Float[np.ndarray, " V"]:
        return np.arange(self.n // 2) + 0.5 if self.c % 1 else np.arange(self.n // 2 + 1.0)

    @property
    def pixels(self) -> Int[np.ndarray, "2 V"]:
        """Where c + v and c - v are."""
        return np.rint(self.c + np.stack([self.v, -self.v])).astype(int) % self.n

    @property
    def weight(self) -> Float[np.ndarray, " V"]:
        plus, minus = self.pixels
        return np.where(plus == minus, 0.5, 1)

    @property
    def slots(self) -> Int[np.ndarray, "2 B"]:
        """The frequencies whose cosines (0), and sines (1), are the basis of this grid."""
        b = np.arange(len(self.v))
        return np.stack([b, b + 1]) if self.c % 1 else np.stack([b, b])


class Convolution(NamedTuple):
    """Convolve with a family of L wavelets and subsample, as real matrices.

    `analysis` takes the even and odd parts of each axis (or the image, reflection padding included) into the
    basis above; `synthesis` takes parities o, o' of the output's basis to even and odd parts. In between, the
    coefficients of x * ψ_l are, at each of the slots (b, b') that parities o, o' have in the output,

        Σ_{f, a, a'} mixing[l, part, f, a, a', o, b, o', b'] X[q, a, b, q', a', b'],   q = o ^ f, q' = o' ^ f ^ part

    where part is 0 for the real one, 1 for the imaginary one.
    """

    analysis: Matrices
    mixing: Float[np.ndarray, "L 2 2 k k 2 B1 2 B2"]
    synthesis: Matrices


class Bank(NamedTuple):
    """All the linear maps of a scattering transform of order two.

    `low_pass[j]` filters a signal at resolution 2^-j with φ, subsamples to 2^-J and crops; `low_pass_0`
    does so for the image itself. `first[j1]` and `second[j1, j2]` are the wavelets of the two layers.
    """

    low_pass_0: Matrices
    low_pass: tuple[Matrices, ...]
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
    grids = [tuple(Grid(n >> j, -(2.0 ** (J - 2 - j))) for n in size) for j in range(J)]

    def psi(j: int, level: int) -> Float[np.ndarray, "L n1 n2"]:
        return np.stack([f["levels"][level] for f in filters["psi"] if f["j"] == j]).astype(np.float64)

    def separate(φ: Float[np.ndarray, "n1 n2"]) -> tuple[Float[np.ndarray, " n1"], Float[np.ndarray, " n2"]]:
        return φ[:, 0], φ[0] / φ[0, 0]  # a Gaussian, masked and folded axis by axis

    low_pass = [
        tuple(_low_pass(φ, 2 ** (J - j)) for φ in separate(np.asarray(level, np.float64)))
        for j, level in enumerate(filters["phi"]["levels"])
    ]
    return _float32(
        Bank(
            low_pass_0=tuple((P @ E)[None] for P, E in zip(low_pass[0], pad, strict=True)),
            low_pass=tuple(
                (_on_pairs(P1, grid1)[None], _on_pairs(P2, grid2)[None])
                for (P1, P2), (grid1, grid2) in zip(low_pass, grids, strict=False)
            ),
            first=tuple(_convolution(psi(j, 0), grids[0], grids[j], pad) for j in range(J)),
            second={
                (j1, j2): _convolution(psi(j2, j1), grids[j1], grids[j2]) for j1 in range(J) for j2 in range(j1 + 1, J)
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


def _on_pairs(A: Float[np.ndarray, "r n"], grid: Grid) -> Float[np.ndarray, "r pairs"]:
    """A matrix that multiplies pixels, as one that multiplies pairs of them."""
    return (A[:, grid.pixels] * grid.weight).reshape(len(A), -1)


def _frequencies(n: int, k: int) -> Int[np.ndarray, "k S"]:
    m = n // k
    a, b = np.ogrid[:k, : m // 2 + 1]
    return (a + 1) // 2 * m + (-1) ** a * b


def _basis(grid: Grid, k: int) -> Float[np.ndarray, "k 2 S n"]:
    """Cosines and sines by group, parity and b, orthonormal but for rows of zeros."""
    n, c = grid
    ω = _frequencies(n, k)
    angle = 2 * np.pi / n * ω[..., None] * (np.arange(n) - c)
    R = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    norm = np.linalg.norm(R, axis=-1)
    again = np.array([[ω[a, b] in ω[:a, b] for b in range(ω.shape[1])] for a in range(k)])
    zero = (norm < 1e-6) | again[:, None]
    return np.where(zero[..., None], 0, R / np.where(zero, 1, norm)[..., None])


def _convolution(
    ψ_hat: Float[np.ndarray, "L n1 n2"],
    grids: tuple[Grid, ...],
    grids_out: tuple[Grid, ...],
    pad: tuple[np.ndarray, ...] | None = None,
) -> Convolution:
    k = grids[0].n // grids_out[0].n
    analysis, synthesis, before, after, frequencies = [], [], [], [], []
    for axis, (grid, out) in enumerate(zip(grids, grids_out, strict=True)):
        R, R_out = _basis(grid, k), _basis(out, 1)[0]
        by_parity = R.swapaxes(0, 1).reshape(2, -1, grid.n)
        if pad is None:
            analysis.append(by_parity[..., grid.pixels[0]] * grid.weight)
        else:
            analysis.append(by_parity.reshape(1, -1, grid.n) @ pad[axis])
        synthesis.append(np.stack([R_out[o, b][:, out.pixels[0]].T for o, b in enumerate(out.slots)]))
        # The 2k frequencies ±ω_a(b) that fold onto ±b, and how often each occurs among them.
        ω = np.concatenate([_frequencies(grid.n, k), -_frequencies(grid.n, k)]) % grid.n
        weight = 1 / (ω[:, None] == ω[None]).sum(axis=1)
        before.append(_fourier(R, ω))
        after.append(_fourier(R_out[None], ω)[0].conj() * weight / grid.n)
        frequencies.append(ω)
    ω1, ω2 = frequencies
    ψ = ψ_hat[:, ω1[:, None, :, None], ω2[None, :, None, :]]  # l x y b c
    # Along each axis: into Fourier (before), times ψ, folded into the output's basis (after). Letters:
    # group i, parity q of the input, parity o of the output; j, r, p on the second axis.
    half = np.einsum("lxybc,oxb,iqxb->lybcoiq", ψ, after[0], before[0], optimize=True)
    full = np.einsum("lybcoiq,pyc,jryc->lijoqprbc", half, after[1], before[1], optimize=True)
    slots = [out.slots for out in grids_out]
    mixing = np.empty((len(ψ), 2, 2, k, k, 2, slots[0].shape[1], 2, slots[1].shape[1]))
    for part, f, o, p in np.ndindex(2, 2, 2, 2):
        M = (full.real, full.imag)[part][:, :, :, o, o ^ f, p, p ^ f ^ part]
        mixing[:, part, f, :, :, o, :, p] = M[..., slots[0][o][:, None], slots[1][p]]
    return Convolution((analysis[0], analysis[1]), mixing, (synthesis[0], synthesis[1]))


def _fourier(R: Float[np.ndarray, "k 2 S n"], ω: Int[np.ndarray, "x S"]) -> Complex[np.ndarray, "k 2 x S"]:
    """Fourier coefficients of the functions of each b at that b's frequencies."""
    n = R.shape[-1]
    return np.einsum("iqbu,xbu->iqxb", R, np.exp(-2j * np.pi / n * ω[..., None] * np.arange(n)))
