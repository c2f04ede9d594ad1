"""Randomness that keeps the promise: a cryptographic stream, and normal draws with honest tails."""

import secrets

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from jaxtyping import Bool, Float64, UInt64
from scipy.special import ndtri

NONCE_BYTES = 2**38  # what ChaCha20's 32-bit block counter can number; then the stream goes on under the next nonce


class Stream:
    """A secret stream of random bits: ChaCha20 under a 256-bit key from the operating system.

    Noise and sampling are drawn from it and from nothing else (GUARANTEE, property 7). The key is never
    stored, logged or returned, and a resumed run makes a new stream.

    **Parameters**

    - `seed`: for tests only. A stream with a seed is predictable, so `seeded` is True and whatever is made
      with it is marked "not private: seeded".
    """

    def __init__(self, seed: int | None = None):
        self.seeded = seed is not None
        self._key = secrets.token_bytes(32) if seed is None else seed.to_bytes(32, "little")
        self._nonce, self._left = -1, 0

    def __repr__(self) -> str:
        return f"Stream({'seeded' if self.seeded else 'secret'})"

    def __reduce__(self):
        raise TypeError("a Stream is secret and is never pickled or copied")

    def bits(self, n: int) -> UInt64[np.ndarray, "n"]:
        """`n` words of 64 random bits."""
        if self._left < 8 * n:
            self._nonce, self._left = self._nonce + 1, NONCE_BYTES
            cipher = algorithms.ChaCha20(self._key, bytes(4) + self._nonce.to_bytes(12, "little"))
            self._encryptor = Cipher(cipher, mode=None).encryptor()
        self._left -= 8 * n
        return np.frombuffer(self._encryptor.update(bytes(8 * n)), dtype="<u8")

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        """Independent N(0, 1) draws in float64, by the inverse normal CDF.

        One sign bit and a 53-bit integer k a draw, u = (k + 1/2) / 2^54 in the lower half interval, so that
        no u rounds to 0 or 1 and the tails reach 8.2 sigma, where a float32 sampler stops at about 5.4.
        """
        words = self.bits(int(np.prod(shape)))
        z = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-54)
        return np.where(words & np.uint64(1), -z, z).reshape(shape)

    def bernoulli(self, q: float, n: int) -> Bool[np.ndarray, "n"]:
        """`n` independent coins, each heads with probability q, rounded down to a multiple of 2^-64."""
        if q >= 1:
            return np.ones(n, bool)
        return self.bits(n) < np.uint64(int(q * 2.0**64))

    def subset(self, items: np.ndarray, size: int) -> np.ndarray:
        """A uniformly random subset of `size` of the items, in their order."""
        chosen = np.argsort(self.bits(len(items)), kind="stable")[:size]
        return items[np.sort(chosen)]
