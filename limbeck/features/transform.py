"""The scattering transform of planes (images of one channel), and its pull-back, as matrix products.

Arrays are held as (p, v, p', v', .., planes): along each axis of an image, the sign or the parity p of a pair of
pixels and its offset v (see `wavelets`), then angles, then the planes. A stage is a product of small matrices, one for
each parity, with long, contiguous ones; between two stages is a loop over contiguous numbers. From even and odd parts
to pixels and back is a butterfly, in which the modulus is taken. Planes, and cotangents, go through in blocks whose
intermediate results stay in the processor's cache.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from limbeck.features.wavelets import Bank, Convolution, Matrices, bank

# Planes, and cotangents at one plane, that go through together.
BLOCK = 16
COTANGENTS = 32
# Up to so many planes the backward pass keeps the forward pass's wavelet transforms, 420 kB for a plane of
# 28 x 28 pixels. Beyond, it computes them again, block by block: no slower, and no memory.
KEEP = 64

# The even and odd parts of y = x * ψ_l, their real and imaginary parts, and 1/|y|.
Layer = tuple[Float[Array, "2 V1 2 V2 2 L *l1 planes"], Float[Array, "2 V1 2 V2 L *l1 planes"]]
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

        def wavelets(block):
            return _scatter(ψ, block)[1] if isinstance(kept, jax.Array) else block

        def one_at_each(block):
            return _pull(ψ, wavelets(block[0]), block[1])

        def many_at_each(block):
            planes = jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0)[..., None], wavelets(block[0]))
            return _map(many_at_one, (planes, block[1]))

        def many_at_one(plane):
            return _from_blocks(_map(lambda S: _pull(ψ, plane[0], S), _to_blocks(plane[1], COTANGENTS)), t)

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


def _to_blocks(x: Float[Array, "n ..."], most: int = BLOCK) -> Float[Array, "blocks size ..."]:
    """As few blocks of equal size as may be, filled up with zeros."""
    n = len(x)
    blocks = max(1, -(-n // most))
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
    J, L, n = len(bank.first), len(bank.first[0].mixing), len(x)
    x = x.transpose(1, 2, 0)[None, :, None]
    at_1: list[Layer] = []
    at_2: dict[tuple[int, int], Layer] = {}
    S_0, S_1, S_2 = _products(bank.low_pass_0, x), [], []
    h, w = S_0.shape[1], S_0.shape[3]
    for j1 in range(J):
        y = _wavelets(bank.first[j1], _products(bank.first[j1].analysis, x))
        U_1 = _modulus(y)
        at_1.append((y, _inverse(U_1)))
        S_1.append(_low_pass(bank.low_pass[j1], U_1).reshape(h, w, L, n))
        paths = []
        for j2 in range(j1 + 1, J):
            ψ = bank.second[j1, j2]
            y = _wavelets(ψ, _products(ψ.analysis, _butterfly(U_1.reshape(*U_1.shape[:4], L * n))))
            U_2 = _modulus(y)
            at_2[j1, j2] = y.reshape(*y.shape[:6], L, n), _inverse(U_2).reshape(*U_2.shape[:5], L, n)
            paths.append(_low_pass(bank.low_pass[j2], U_2).reshape(h, w, L, L, n))
        if paths:
            S_2.append(jnp.stack(paths).transpose(5, 4, 0, 3, 1, 2).reshape(n, -1, h, w))  # l1, j2, l2
    S_1 = [S.transpose(3, 2, 0, 1) for S in S_1]
    return jnp.concatenate([S_0.reshape(h, w, 1, n).transpose(3, 2, 0, 1), *S_1, *S_2], axis=1), (at_1, at_2)


def _pull(bank: Bank, at: Wavelets, S: Float[Array, "n K h w"]) -> Float[Array, "n H W"]:
    """`_scatter` transposed, at planes with these wavelet transforms (n of them, or one for all)."""
    J, L = len(bank.first), len(bank.first[0].mixing)
    n, _, h, w = S.shape
    at_1, at_2 = at
    S = S.transpose(1, 2, 3, 0)
    S_0, S_1, S_2 = S[0], S[1 : 1 + J * L], S[1 + J * L :]
    x = _transposed(bank.low_pass_0, S_0[None, :, None])
    for j1 in range(J):
        U_1 = _low_pass_transposed(bank.low_pass[j1], S_1[j1 * L : (j1 + 1) * L].transpose(1, 2, 0, 3))
        paths, S_2 = S_2[: (J - 1 - j1) * L**2], S_2[(J - 1 - j1) * L**2 :]
        paths = paths.reshape(L, -1, L, h, w, n).transpose(1, 3, 4, 2, 0, 5)
        for j2 in range(j1 + 1, J):
            ψ = bank.second[j1, j2]
            U_2 = _low_pass_transposed(bank.low_pass[j2], paths[j2 - j1 - 1])
            y = _modulus_transposed(at_2[j1, j2], U_2)
            X = _wavelets_transposed(ψ, y.reshape(*y.shape[:6], L * n))
            U_1 = U_1 + _butterfly(_transposed(ψ.analysis, X)).reshape(U_1.shape)
        X = _wavelets_transposed(bank.first[j1], _modulus_transposed(at_1[j1], U_1))
        x = x + _transposed(bank.first[j1].analysis, X.reshape(1, 2 * X.shape[1], 1, -1, n))
    return x[0, :, 0].transpose(2, 0, 1)


def _wavelets(ψ: Convolution, X: Float[Array, "p r1 q r2 N"]) -> Float[Array, "2 V1 2 V2 2 L N"]:
    """The even and odd parts of x * ψ_l, subsampled, for each angle l; X is the analysis of x."""
    k, (S1, S2), (slots1, slots2) = _slots(ψ)
    X = X.reshape(2, k, S1, 2, k, S2, -1)

    def part(i: int, o1: int, o2: int) -> Float[Array, "B1 B2 L N"]:
        # A sum of a few terms, written out: XLA makes one pass over memory of it.
        y: Array | float = 0.0
        for f, a1, a2 in np.ndindex(2, k, k):
            m = ψ.mixing[:, i, f, a1, a2, o1, :, o2].transpose(1, 2, 0)[..., None]
            y = y + X[o1 ^ f, a1, slots1[o1], o2 ^ f ^ i, a2, slots2[o2], None] * m
        return jnp.asarray(y)

    return _products(ψ.synthesis, _stack(lambda o1, o2: jnp.stack([part(i, o1, o2) for i in (0, 1)], axis=2)))


def _wavelets_transposed(ψ: Convolution, y: Float[Array, "2 V1 2 V2 2 L N"]) -> Float[Array, "2 r1 2 r2 N"]:
    k, (S1, S2), (slots1, slots2) = _slots(ψ)
    Y = _transposed(ψ.synthesis, y)
    # At each slot, and for each part, the sum over angles: what goes to f, a, a' of the input.
    M = ψ.mixing.transpose(5, 6, 7, 8, 1, 2, 3, 4, 0)
    batch = tuple(range(5))
    Z = lax.dot_general(M.reshape(*Y.shape[:5], 2 * k * k, -1), Y, (((6,), (5,)), (batch, batch)))
    Z = Z.reshape(*Y.shape[:5], 2, k, k, -1)

    def quarter(q1: int, q2: int) -> Float[Array, "r1 r2 N"]:
        x: Array | float = 0.0
        for i, f in np.ndindex(2, 2):
            o1, o2 = q1 ^ f, q2 ^ f ^ i
            z = Z[o1, :, o2, :, i, f].transpose(2, 0, 3, 1, 4)
            around = [(s.start, S - s.stop) for S, s in ((S1, slots1[o1]), (S2, slots2[o2]))]
            x = x + jnp.pad(z, ((0, 0), around[0], (0, 0), around[1], (0, 0)))
        return jnp.asarray(x).reshape(k * S1, k * S2, -1)

    return _stack(quarter)


def _slots(ψ: Convolution) -> tuple[int, list[int], list[tuple[slice, slice]]]:
    """Groups; along each axis, slots of a group in the input, and which of them the output's cosines and sines have."""
    k = ψ.mixing.shape[3]
    S = [A.shape[0] * A.shape[1] // (2 * k) for A in ψ.analysis]
    return k, S, [(slice(0, B), slice(S - B, S)) for S, B in zip(S, ψ.mixing.shape[6:9:2], strict=True)]


def _stack(f: Callable[[int, int], Array]) -> Array:
    """Blocks f(p, p') (V1, V2, ..) as one array (2, V1, 2, V2, ..)."""
    return jnp.stack([jnp.stack([f(p1, p2) for p2 in (0, 1)], 1) for p1 in (0, 1)])


def _combined(x: Float[Array, "2 V1 2 V2 ..."], s1: int, s2: int) -> Float[Array, "V1 V2 ..."]:
    """Σ ± x[p, p'], with a minus for p = 1 if s1, and for p' = 1 if s2."""
    a, b = (x[p, :, 0] - x[p, :, 1] if s2 else x[p, :, 0] + x[p, :, 1] for p in (0, 1))
    return a - b if s1 else a + b


def _butterfly(x: Float[Array, "2 V1 2 V2 ..."]) -> Float[Array, "2 V1 2 V2 ..."]:
    """Pixels c + v and c - v from even and odd parts, or sums and differences of pixels; its own transpose."""
    return _stack(lambda s1, s2: _combined(x, s1, s2))


def _modulus(y: Float[Array, "2 V1 2 V2 2 L N"]) -> Float[Array, "2 V1 2 V2 L N"]:
    """|y| at the pixels, from the even and odd parts of y."""

    def quarter(s1: int, s2: int) -> Float[Array, "V1 V2 L N"]:
        z = _combined(y, s1, s2)
        return jnp.sqrt(z[:, :, 0] ** 2 + z[:, :, 1] ** 2)

    return _stack(quarter)


def _inverse(U: Float[Array, "..."]) -> Float[Array, "..."]:
    """1/U, and 0 at 0: there the modulus has derivative 0, as kymatio's."""
    zero = U == 0
    return jnp.where(zero, 0, 1 / jnp.where(zero, 1, U))


def _modulus_transposed(at: Layer, U: Float[Array, "2 V1 2 V2 L *l1 n"]) -> Float[Array, "2 V1 2 V2 2 L *l1 n"]:
    """The derivative y/|y| of the modulus, times a cotangent of U, taken back to even and odd parts.

    That is a butterfly of (a butterfly of y) G, G = U/|y|: of fewer passes over memory if written as a convolution
    in the parities of y with the butterfly of G. Where y is one plane's for all cotangents, its phase comes first.
    """
    y, inverse = at
    if y.shape[-1] != U.shape[-1]:
        return _butterfly(_butterfly(y) * inverse[:, :, :, :, None] * U[:, :, :, :, None])
    G = _butterfly(U * inverse)

    def quarter(o1: int, o2: int) -> Float[Array, "V1 V2 2 L *l1 n"]:
        terms = [y[p1, :, p2] * G[o1 ^ p1, :, o2 ^ p2, :, None] for p1, p2 in np.ndindex(2, 2)]
        return terms[0] + terms[1] + terms[2] + terms[3]

    return _stack(quarter)


def _low_pass(P: Matrices, U: Float[Array, "2 V1 2 V2 ..."]) -> Float[Array, "h w ..."]:
    U = U.reshape(1, 2 * U.shape[1], 1, 2 * U.shape[3], *U.shape[4:])
    return _products(P, U)[0, :, 0]


def _low_pass_transposed(P: Matrices, S: Float[Array, "h w ..."]) -> Float[Array, "2 V1 2 V2 ..."]:
    U = _transposed(P, S[None, :, None])
    return U.reshape(2, U.shape[1] // 2, 2, U.shape[3] // 2, *U.shape[4:])


def _products(A: Matrices, x: Float[Array, "p u q v ..."]) -> Float[Array, "p r q s ..."]:
    """Each block (p, q) of each plane, multiplied by A_1[p] from the left and by A_2[q]ᵀ from the right."""
    p, u, q, v, *planes = x.shape
    r, s = A[0].shape[1], A[1].shape[1]
    x = lax.dot_general(A[0], x.reshape(p, u, -1), (((2,), (1,)), ((0,), (0,))))
    # The axes before are the product's batch, so that x is read where it lies.
    A_2 = np.ascontiguousarray(np.broadcast_to(A[1], (p, r, q, s, v)))
    x = lax.dot_general(A_2, x.reshape(p, r, q, v, -1), (((4,), (3,)), ((0, 1, 2), (0, 1, 2))))
    return x.reshape(p, r, q, s, *planes)


def _transposed(A: Matrices, y: Float[Array, "p r q s ..."]) -> Float[Array, "p u q v ..."]:
    return _products((A[0].swapaxes(1, 2), A[1].swapaxes(1, 2)), y)
