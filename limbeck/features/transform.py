"""The scattering transform of planes (images of one channel), and its pull-back, as matrix products.

Arrays are held with the planes last: a stage is then a product of a small matrix with a long, contiguous
one, and what is between two stages is a loop over contiguous numbers. Planes, and cotangents, go through
in blocks whose intermediate results stay in the processor's cache.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from limbeck.features.wavelets import Bank, Convolution, bank

# Planes, or cotangents, that go through together.
FORWARD = 64
BACKWARD = 32

# y = x * ψ_l as its real and imaginary parts; for each j1 and l1 at the first layer, and for each (j1, j2)
# and l2 at the second, where the first axis is l1.
Complex = tuple[Float[Array, "*l m1 m2 n"], Float[Array, "*l m1 m2 n"]]
Wavelets = tuple[list[list[Complex]], dict[tuple[int, int], list[Complex]]]


@lru_cache(maxsize=16)
def transform(H: int, W: int, J: int, L: int) -> Callable[[Float[Array, "n H W"]], Float[Array, "n K h w"]]:
    """The scattering transform of H x W planes.

    It may be differentiated in reverse mode, once. The backward pass computes the wavelet transforms
    again, block by block: to keep them takes some 300 kB for a plane of 28 x 28 pixels, and no less time.
    Where many cotangents are pulled back at one plane (`vmap` over the function that `vjp` returns), they
    are computed once, and the cotangents go through together.
    """
    ψ = bank(H, W, J, L)

    @custom_vmap
    @jax.jit
    def scatter(x: Float[Array, "n H W"]) -> Float[Array, "n K h w"]:
        return _in_blocks(lambda x: _scatter(ψ, x)[0], x, size=FORWARD)

    @scatter.def_vmap
    def _(size, batched, x):
        S = scatter(x.reshape(-1, H, W))
        return S.reshape(size, -1, *S.shape[1:]), True

    @custom_vmap
    @jax.jit
    def pull(x: Float[Array, "n H W"], S: Float[Array, "t n K h w"]) -> Float[Array, "t n H W"]:
        if len(S) == 1:
            return _in_blocks(lambda x, S: _pull(ψ, _phases(ψ, x), S), x, S[0], size=BACKWARD)[None]

        def many(x: Float[Array, "n H W"], S: Float[Array, "n t K h w"]) -> Float[Array, "n t H W"]:
            phases = jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0)[..., None], _phases(ψ, x))
            return lax.map(lambda at: _in_blocks(lambda S: _pull(ψ, at[0], S), at[1], size=BACKWARD), (phases, S))

        return jnp.moveaxis(_in_blocks(many, x, jnp.moveaxis(S, 0, 1), size=BACKWARD), 0, 1)

    @pull.def_vmap
    def _(size, batched, x, S):
        if not batched[0]:  # more cotangents at the same planes
            out = pull(x, S.reshape(-1, *S.shape[2:]))
            return out.reshape(size, -1, *out.shape[1:]), True
        if not batched[1]:
            S = jnp.broadcast_to(S, (size, *S.shape))
        t, n = S.shape[1:3]
        out = pull(x.reshape(-1, H, W), jnp.moveaxis(S, 0, 1).reshape(t, size * n, *S.shape[3:]))
        return jnp.moveaxis(out.reshape(t, size, n, H, W), 1, 0), True

    phi = jax.custom_vjp(scatter)
    phi.defvjp(lambda x: (scatter(x), x), lambda x, S: (pull(x, S[None])[0],))
    return phi


def _in_blocks(f: Callable[..., Array], *args: Float[Array, "n ..."], size: int) -> Array:
    """f(*args) over blocks of at most `size` planes, of equal size (zeros fill up the last)."""
    n = len(args[0])
    blocks = -(-n // size)
    if blocks <= 1:
        return f(*args)
    size = -(-n // blocks)

    def split(a):
        a = jnp.pad(a, ((0, blocks * size - n), *((0, 0),) * (a.ndim - 1)))
        return a.reshape(blocks, size, *a.shape[1:])

    out = lax.map(lambda block: f(*block), tuple(split(a) for a in args))
    return out.reshape(blocks * size, *out.shape[2:])[:n]


def _scatter(bank: Bank, x: Float[Array, "n H W"]) -> tuple[Float[Array, "n K h w"], Wavelets]:
    J = len(bank.first)
    x = x.transpose(1, 2, 0)
    Y_1: list[list[Complex]] = []
    Y_2: dict[tuple[int, int], list[Complex]] = {}
    S_0 = _separable(bank.low_pass_0, x)
    S_1, S_2 = [], []
    for j1 in range(J):
        Y_1.append(_wavelets(bank.first[j1], _separable(bank.first[j1].analysis, x)))
        U_1 = [_modulus(y) for y in Y_1[j1]]
        S_1 += [_separable(bank.low_pass[j1], u) for u in U_1]
        paths = []
        for j2 in range(j1 + 1, J):
            ψ = bank.second[j1, j2]
            Y_2[j1, j2] = _wavelets(ψ, jnp.stack([_separable(ψ.analysis, u) for u in U_1]))
            paths += [_separable(bank.low_pass[j2], _modulus(y)) for y in Y_2[j1, j2]]
        if paths:
            S_2.append(jnp.stack(paths, axis=1).reshape(-1, *S_0.shape))  # l1, then (j2, l2)
    return jnp.concatenate([jnp.stack([S_0, *S_1]), *S_2]).transpose(3, 0, 1, 2), (Y_1, Y_2)


def _phases(bank: Bank, x: Float[Array, "n H W"]) -> Wavelets:
    """y/|y| of every wavelet transform y: the derivative of the modulus; 0 at 0, as kymatio's."""

    def phase(y: Complex) -> Complex:
        squared = y[0] ** 2 + y[1] ** 2
        zero = squared == 0
        inverse = jnp.where(zero, 0, lax.rsqrt(jnp.where(zero, 1, squared)))
        return y[0] * inverse, y[1] * inverse

    _, (Y_1, Y_2) = _scatter(bank, x)
    return [[phase(y) for y in ys] for ys in Y_1], {j: [phase(y) for y in ys] for j, ys in Y_2.items()}


def _pull(bank: Bank, phases: Wavelets, S: Float[Array, "n K h w"]) -> Float[Array, "n H W"]:
    """`_scatter` transposed, at planes with these phases (n of them, or one for all)."""
    J, L = len(bank.first), len(bank.first[0].mixing)
    S = S.transpose(1, 2, 3, 0)
    S_1 = S[1 : 1 + J * L].reshape(J, L, *S.shape[1:])
    S_2 = S[1 + J * L :]
    x = _transposed(bank.low_pass_0, S[0])
    for j1 in range(J):
        U_1 = _transposed(bank.low_pass[j1], S_1[j1])
        paths, S_2 = S_2[: (J - 1 - j1) * L**2], S_2[(J - 1 - j1) * L**2 :]
        paths = paths.reshape(L, -1, L, *S.shape[1:])
        for j2 in range(j1 + 1, J):
            U_2 = [_transposed(bank.low_pass[j2], paths[:, j2 - j1 - 1, l]) for l in range(L)]
            Y_2 = [(re * u, im * u) for (re, im), u in zip(phases[1][j1, j2], U_2, strict=True)]
            U_1 = U_1 + _wavelets_transposed(bank.second[j1, j2], Y_2)
        Y_1 = [(re * u, im * u) for (re, im), u in zip(phases[0][j1], U_1, strict=True)]
        x = x + _wavelets_transposed(bank.first[j1], Y_1)
    return x.transpose(2, 0, 1)


def _wavelets(ψ: Convolution, X: Float[Array, "*l N1 N2 n"]) -> list[Complex]:
    """x * ψ_l, subsampled, for each angle l, from the analysis of x."""
    k, M1, M2 = ψ.mixing.shape[-3:]

    def part(m: Float[np.ndarray, "k 2 k M1 M2"], odd: int) -> Float[Array, "*l m1 m2 n"]:
        # A sum of a few terms, written out: XLA makes one pass over memory of it.
        y: Array | float = 0.0
        for a, f, a2 in np.ndindex(k, 2, k):
            group = X[..., a * M1 : (a + 1) * M1, a2 * M2 : (a2 + 1) * M2, :]
            y = y + m[a, f, a2, ..., None] * _mirrored(group, f, f ^ odd)
        return _separable(ψ.synthesis, jnp.asarray(y))

    return [(part(re, 0), part(im, 1)) for re, im in ψ.mixing]


def _wavelets_transposed(ψ: Convolution, Y: list[Complex]) -> Float[Array, "*l H W n"]:
    Z = [[_transposed(ψ.synthesis, part) for part in y] for y in Y]
    L, _, k = ψ.mixing.shape[:3]

    def group(a: int, a2: int) -> Float[Array, "*l M1 M2 n"]:
        x: Array | float = 0.0
        for l, odd, f in np.ndindex(L, 2, 2):
            m = ψ.mixing[l, odd, a, f, a2, ..., None]
            x = x + _mirrored(m, f, f ^ odd) * _mirrored(Z[l][odd], f, f ^ odd)
        return jnp.asarray(x)

    X = [jnp.concatenate([group(a, a2) for a2 in range(k)], axis=-2) for a in range(k)]
    return _transposed(ψ.analysis, jnp.concatenate(X, axis=-3))


def _mirrored(x, f: int, f2: int):
    axes = (*((-3,) if f else ()), *((-2,) if f2 else ()))
    if not axes:
        return x
    return np.flip(x, axes) if isinstance(x, np.ndarray) else jnp.flip(x, axes)


def _modulus(y: Complex) -> Float[Array, "*l m1 m2 n"]:
    return jnp.sqrt(y[0] ** 2 + y[1] ** 2)


def _separable(A: tuple[np.ndarray, np.ndarray], x: Float[Array, "*l u v n"]) -> Float[Array, "*l r s n"]:
    """A_1 x A_2ᵀ for every plane."""
    return _along(A[0], _along(A[1], x, x.ndim - 2), x.ndim - 3)


def _transposed(A: tuple[np.ndarray, np.ndarray], y: Float[Array, "*l r s n"]) -> Float[Array, "*l u v n"]:
    """A_1ᵀ y A_2 for every plane."""
    return _separable((A[0].T, A[1].T), y)


def _along(A: Float[np.ndarray, "r u"], x: Array, axis: int) -> Array:
    # The axes before are the product's batch, so that x is read where it lies; the same A for each.
    A = np.ascontiguousarray(np.broadcast_to(A, (*x.shape[:axis], *A.shape)))
    batch = tuple(range(axis))
    return lax.dot_general(A, x, (((axis + 1,), (axis,)), (batch, batch)))
