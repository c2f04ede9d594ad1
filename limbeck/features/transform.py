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
BLOCK = 32
# Up to so many planes the backward pass keeps the forward pass's wavelet transforms, 270 kB for a plane of
# 28 x 28 pixels. Beyond, it computes them again, block by block: it takes as long, and no memory.
KEEP = 64

# x * ψ_l, its real and its imaginary parts, for all angles l2, l1 at once (those of the last layer first).
Complex = tuple[Float[Array, "..."], Float[Array, "..."]]
# The first layer's for each j1, the second's for each (j1, j2).
Wavelets = tuple[list, dict]


@lru_cache(maxsize=16)
def transform(H: int, W: int, J: int, L: int) -> Callable[[Float[Array, "n H W"]], Float[Array, "n K h w"]]:
    """The scattering transform of H x W planes.

    It may be differentiated in reverse mode, once. Where many cotangents are pulled back at one plane
    (`vmap` over the function that `vjp` returns), they go through together.
    """
    ψ = bank(H, W, J, L)

    @custom_vmap
    @jax.jit
    def scatter(x: Float[Array, "n H W"]) -> Float[Array, "n K h w"]:
        return _from_blocks(_map(lambda x: _scatter(ψ, x)[0], _to_blocks(x)), len(x))

    @scatter.def_vmap
    def _(size, batched, x):
        S = scatter(x.reshape(-1, H, W))
        return S.reshape(size, -1, *S.shape[1:]), True

    @custom_vmap
    @jax.jit
    def scatter_and_keep(x: Float[Array, "n H W"]) -> tuple[Float[Array, "n K h w"], Wavelets]:
        S, Y = _map(lambda x: _scatter(ψ, x), _to_blocks(x))
        return _from_blocks(S, len(x)), Y

    @scatter_and_keep.def_vmap
    def _(size, batched, x):
        S, Y = scatter_and_keep(x.reshape(-1, H, W))
        Y = jax.tree.map(lambda a: a.reshape(size, -1, *a.shape[1:]), _by_plane(Y, len(S)))
        Y = jax.vmap(_by_block)(Y)
        return (S.reshape(size, -1, *S.shape[1:]), Y), (True, jax.tree.map(lambda _: True, Y))

    @custom_vmap
    @jax.jit
    def pull(kept: Wavelets | Array, S: Float[Array, "t n K h w"]) -> Float[Array, "t n H W"]:
        # What is kept is the wavelet transforms, in blocks, or the planes themselves.
        t, n = S.shape[:2]

        def phases(block):
            return _phases(_scatter(ψ, block)[1] if isinstance(kept, jax.Array) else block)

        def one_at_each(block):
            return _pull(ψ, phases(block[0]), block[1])

        def many_at_each(block):
            planes = jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0)[..., None], phases(block[0]))
            return _map(many_at_one, (planes, block[1]))

        def many_at_one(plane):
            return _from_blocks(_map(lambda S: _pull(ψ, plane[0], S), _to_blocks(plane[1])), t)

        blocks = _to_blocks(kept) if isinstance(kept, jax.Array) else kept
        if t == 1:
            return _from_blocks(_map(one_at_each, (blocks, _to_blocks(S[0]))), n)[None]
        x = _map(many_at_each, (blocks, _to_blocks(jnp.moveaxis(S, 0, 1))))
        return jnp.moveaxis(_from_blocks(x, n), 0, 1)

    @pull.def_vmap
    def _(size, batched, kept, S):
        if not any(jax.tree.leaves(batched[0])):  # more cotangents at the same planes
            x = pull(kept, S.reshape(-1, *S.shape[2:]))
            return x.reshape(size, -1, *x.shape[1:]), True
        if not batched[1]:
            S = jnp.broadcast_to(S, (size, *S.shape))
        t, n = S.shape[1:3]
        if isinstance(kept, jax.Array):
            kept = kept.reshape(size * n, H, W)
        else:
            kept = jax.vmap(lambda Y: _by_plane(Y, n))(kept)
            kept = _by_block(jax.tree.map(lambda a: a.reshape(size * n, *a.shape[2:]), kept))
        x = pull(kept, jnp.moveaxis(S, 0, 1).reshape(t, size * n, *S.shape[3:]))
        return jnp.moveaxis(x.reshape(t, size, n, H, W), 1, 0), True

    phi = jax.custom_vjp(scatter)
    phi.defvjp(
        lambda x: scatter_and_keep(x) if len(x) <= KEEP else (scatter(x), x),
        lambda kept, S: (pull(kept, S[None])[0],),
    )
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
    Y_1: list[Complex] = []
    Y_2: dict[tuple[int, int], Complex] = {}
    S_0, S_1, S_2 = _separable(bank.low_pass_0, x)[None], [], []
    for j1 in range(J):
        Y_1.append(_wavelets(bank.first[j1], x))
        U_1 = _modulus(Y_1[j1])
        S_1.append(_separable(bank.low_pass[j1], U_1))
        paths = []
        for j2 in range(j1 + 1, J):
            Y_2[j1, j2] = _wavelets(bank.second[j1, j2], U_1)
            paths.append(_separable(bank.low_pass[j2], _modulus(Y_2[j1, j2])))
        if paths:
            S_2.append(jnp.stack(paths).transpose(2, 0, 1, 3, 4, 5).reshape(-1, *S_0.shape[1:]))  # l1, j2, l2
    return jnp.concatenate([S_0, *S_1, *S_2]).transpose(3, 0, 1, 2), (Y_1, Y_2)


def _phases(Y: Wavelets) -> Wavelets:
    """y/|y| of every wavelet transform y: the derivative of the modulus; 0 at 0, as kymatio's."""

    def phase(y: Complex) -> Complex:
        squared = y[0] ** 2 + y[1] ** 2
        zero = squared == 0
        inverse = jnp.where(zero, 0, lax.rsqrt(jnp.where(zero, 1, squared)))
        return y[0] * inverse, y[1] * inverse

    Y_1, Y_2 = Y
    return [phase(y) for y in Y_1], {j: phase(y) for j, y in Y_2.items()}


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
        paths = paths.reshape(L, -1, L, *S.shape[1:]).transpose(1, 2, 0, 3, 4, 5)
        for j2 in range(j1 + 1, J):
            U_2 = _transposed(bank.low_pass[j2], paths[j2 - j1 - 1])
            re, im = phases[1][j1, j2]
            U_1 = U_1 + _wavelets_transposed(bank.second[j1, j2], (re * U_2, im * U_2))
        re, im = phases[0][j1]
        x = x + _wavelets_transposed(bank.first[j1], (re * U_1, im * U_1))
    return x.transpose(2, 0, 1)


def _wavelets(ψ: Convolution, x: Float[Array, "*l1 H W n"]) -> Complex:
    """x * ψ_l, subsampled, for each angle l."""
    X = _separable(ψ.analysis, x)
    k, M1, M2 = ψ.mixing.shape[-3:]

    def part(odd: int) -> Float[Array, "L *l1 m1 m2 n"]:
        # A sum of a few terms, written out: XLA makes one pass over memory of it.
        y: Array | float = 0.0
        for a, f, a2 in np.ndindex(k, 2, k):
            m = ψ.mixing[:, odd, a, f, a2, ..., None]
            m = m.reshape(len(m), *(1,) * (X.ndim - 3), M1, M2, 1)
            y = y + m * _mirrored(X[..., a * M1 : (a + 1) * M1, a2 * M2 : (a2 + 1) * M2, :], f, f ^ odd)
        return _separable(ψ.synthesis, jnp.asarray(y))

    return part(0), part(1)


def _wavelets_transposed(ψ: Convolution, Y: Complex) -> Float[Array, "*l1 H W n"]:
    Z = [_transposed(ψ.synthesis, part) for part in Y]
    L, _, k = ψ.mixing.shape[:3]

    def group(a: int, a2: int) -> Float[Array, "*l1 M1 M2 n"]:
        x: Array | float = 0.0
        for l, odd, f in np.ndindex(L, 2, 2):
            m = ψ.mixing[l, odd, a, f, a2, ..., None]
            x = x + _mirrored(m, f, f ^ odd) * _mirrored(Z[odd][l], f, f ^ odd)
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
