"""Made-up images with the statistics of real ones: public, and drawn from a public seed."""

import numpy as np
from jaxtyping import Float

MOST = 30  # leaves in an image


def dead_leaves(n: int, shape: tuple[int, int, int], seed: int) -> Float[np.ndarray, "n H W C"]:
    """Images in [-1, 1] of opaque shapes that fall on each other, from one to `MOST` of them.

    Leaves of all sizes, that hide one another, give edges, corners, flat parts and a spectrum of 1/f^2, as photographs
    and drawings have (Lee, Mumford & Huang, *Occlusion models for natural images*, 2001). Ours are superellipses, from
    diamonds to near rectangles, shaded, in colours that vary more or less together, on a plain ground that is often
    black or white; some images are blurred and all are a little noisy.

    No data was looked at to make them, so whatever is learned from them costs no privacy.
    """
    H, W, C = shape
    rng = np.random.default_rng(seed)
    half = max(H, W) / 2
    y = ((np.arange(H) - (H - 1) / 2) / half)[:, None]
    x = (np.arange(W) - (W - 1) / 2) / half
    leaves = np.exp(rng.uniform(0, np.log(MOST), n)).astype(int)
    ground = rng.uniform(-1, 1, (n, 1, 1, C))
    plain = rng.uniform(size=n) < 0.5
    ground[plain] = np.sign(ground[plain, :, :, :1])
    grey = rng.uniform(0, 1, (n, 1, 1, 1))
    images = np.broadcast_to(ground, (n, H, W, C)).copy()
    for leaf in range(leaves.max()):
        on = np.flatnonzero(leaves > leaf)

        def each(low: float, high: float) -> np.ndarray:
            return rng.uniform(low, high, (len(on), 1, 1))  # noqa: B023

        dx, dy, angle = x - each(-1, 1), y - each(-1, 1), each(0, np.pi)
        along = dx * np.cos(angle) + dy * np.sin(angle)
        across = dy * np.cos(angle) - dx * np.sin(angle)
        size, aspect, power = np.exp(each(np.log(0.08), np.log(0.9))), np.exp(each(-1.2, 1.2)), np.exp(each(-0.35, 2))
        inside = np.abs(along / (size * aspect)) ** power + np.abs(across * aspect / size) ** power < 1
        colour = grey[on] * each(-1, 1)[..., None] + (1 - grey[on]) * rng.uniform(-1, 1, (len(on), 1, 1, C))
        shade = along * each(-0.6, 0.6) + across * each(-0.6, 0.6)
        images[on] = np.where(inside[..., None], colour + shade[..., None], images[on])
    images = blurred(images, np.where(rng.uniform(size=n) < 0.3, 0, rng.uniform(0.3, 1.2, n)))
    images += rng.uniform(0, 0.15, (n, 1, 1, 1)) * rng.standard_normal(images.shape)
    return np.clip(images, -1, 1).astype(np.float32)


def blurred(images: Float[np.ndarray, "n H W C"], radius: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n H W C"]:
    """Each image convolved with a Gaussian of `radius` pixels, around the edges."""
    H, W = images.shape[1:3]
    f2 = np.fft.fftfreq(H)[:, None] ** 2 + np.fft.rfftfreq(W) ** 2
    spectrum = np.fft.rfft2(images, axes=(1, 2))
    spectrum *= np.exp(-2 * np.pi**2 * radius[:, None, None] ** 2 * f2)[..., None]
    return np.fft.irfft2(spectrum, s=(H, W), axes=(1, 2))
