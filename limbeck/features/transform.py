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

BLOCK = 32  # planes, or cotangents, that go through together

# y = x * ψ_l as its real and imaginary parts; for each j1 and l1 at the first layer, and for each (j1, j2)
# and l2 at the second, where the first axis is l1.
Complex = tuple[Float[Array, "*l m1 m2 n"], Float[Array, "*l m1 m2 n"]]
Wavelets = tuple[list[list[Complex]], dict[tuple[int, int], list[Complex]]]


@lru_cache(maxsize=16)
def transform(H: int, W: int, J: int, L: int) -> Callable[[Float[Array, "n H W"]], Float[Array, "n K h w"]]:
    """The scattering transform of H x W planes.

    It may be differentiated in reverse mode, once. The backward pass keeps the wavelet transforms of both
    layers, some 300 kB for a plane of 28 x 28 pixels. Where many cotangents are pulled back at one plane
    (`vmap` over the function that `vjp` returns) they go through together, in one linear pass.
    """
    ψ = bank(H, W, J, L)

    @custom_vmap
    def scatter(x: Float[Array, "n H W"]) -> Float[Array, "n K h w"]:
        return _from_blocks(_map(lambda x: _scatter(ψ, x)[0], _to_blocks(x)), len(x))

    @scatter.def_vmap
    def _(size, batched, x):
        S = scatter(x.reshape(-1, H, W))
        return S.reshape(size, -1, *S.shape[1:]), True

    @custom_vmap
    def forward(x: Float[Array, "n H W"]) -> tuple[Float[Array, "n K h w"], Wavelets]:
        S, Y = _map(lambda x: _scatter(ψ, x), _to_blocks(x))
        return _from_blocks(S, len(x)), Y

    @forward.def_vmap
    def _(size, batched, x):
        S, Y = forward(x.reshape(-1, H, W))
        Y = jax.tree.map(lambda a: a.reshape(size, -1, *a.shape[1:]), _by_plane(Y, len(S)))
        Y = jax.vmap(_by_block)(Y)
        return (S.reshape(size, -1, *S.shape[1:]), Y), (True, jax.tree.map(lambda _: True, Y))

    @custom_vmap
    def pull(Y: Wavelets, S: Float[Array, "t n K h w"]) -> Float[Array, "t n H W"]:
        t, n = S.shape[:2]
        if t == 1:
            x = _map(lambda block: _pull(ψ, _phases(block[0]), block[1]), (Y, _to_blocks(S[0])))
            return _from_blocks(x, n)[None]

        def at_one(plane):
            phases, S = plane
            return _from_blocks(_map(lambda S: _pull(ψ, phases, S), _to_blocks(S)), t)

        phases = jax.tree.map(lambda a: a[..., None], _by_plane(_phases(Y), n))
        return jnp.moveaxis(_map(at_one, (phases, jnp.moveaxis(S, 0, 1))), 0, 1)

    @pull.def_vmap
    def _(size, batched, Y, S):
        if not any(jax.tree.leaves(batched[0])):  # more cotangents at the same planes
            x = pull(Y, S.reshape(-1, *S.shape[2:]))
            return x.reshape(size, -1, *x.shape[1:]), True
        if not batched[1]:
            S = jnp.broadcast_to(S, (size, *S.shape))
        t, n = S.shape[1:3]
        Y = jax.vmap(lambda Y: _by_plane(Y, n))(Y)
        Y = _by_block(jax.tree.map(lambda a: a.reshape(size * n, *a.shape[2:]), Y))
        x = pull(Y, jnp.moveaxis(S, 0, 1).reshape(t, size * n, *S.shape[3:]))
        return jnp.moveaxis(x.reshape(t, size, n, H, W), 1, 0), True

    phi = jax.custom_vjp(scatter)
    phi.defvjp(forward, lambda Y, S: (pull(Y, S[None])[0],))
    return phi


def _to_blocks(x: Float[Array, "n ..."]) -> Float[Array, "blocks size ..."]:
    """As few blocks of equal size as may be, filled up with zeros."""
    n = len(x)
    blocks = max(1, -(-n // BLOCK))
    size = -(-n // blocks)
    x = jnp.pad(x, ((0, blocks * size - n), *((0, 0),) * (x.ndim - 1)))
    return x.reshape(blocks, size, *x.shape[1:])


def _from_blocks(x: Float[Array, "blocks size ..."], n: int) -> Float[Array, "n ..."]:
    return x.reshape(-1, *x.shape[2:])[:n]


def _by_plane(Y: Wavelets, n: int) -> Wavelets:
    """From blocks, whose planes are the last axis, to planes on the first."""
    return jax.tree.map(lambda a: _from_blocks(jnp.moveaxis(a, -1, 1), n), Y)


def _by_block(Y: Wavelets) -> Wavelets:
    return jax.tree.map(lambda a: jnp.moveaxis(_to_blocks(a), 1, -1), Y)


def _map(f: Callable, blocks):
    """`lax.map`, without the loop where there is one block."""
    if len(jax.tree.leaves(blocks)[0]) == 1:
        return jax.tree.map(lambda a: a[None], f(jax.tree.map(lambda a: a[0], blocks)))
    return lax.map(f, blocks)


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


def _phases(Y: Wavelets) -> Wavelets:
    """y/|y|, the derivative of the modulus; 0 at 0, as kymatio's."""

    def phase(y: Complex) -> Complex:
        squared = y[0] ** 2 + y[1] ** 2
        zero = squared == 0
        inverse = jnp.where(zero, 0, lax.rsqrt(jnp.where(zero, 1, squared)))
        return y[0] * inverse, y[1] * inverse

    Y_1, Y_2 = Y
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
