"""One private step, clip in pixels and clip in features: ours against the published form, in one process.

    python benchmarks/step.py [--quick] [--m 100] [--batch 500] [--json FILE]

Ours is the step that `DPKIP` runs: per-target gradients through the structure of kernel ridge regression, clipped and
summed in chunks. The rival is frozen: `vmap(grad)` of each target's loss with respect to the support, through the
solve and through kymatio's JAX frontend (ScatterNet) or the closed-form kernel (FC-NTK); it is given the memory that it
asks for in blocks of targets, and its time is measured on `--rival-targets` of them and scaled to the batch, in which
it is linear. Both compute the same gradients; the relative difference is printed. Clip in features, for finite maps,
is another mechanism with the same guarantee: the gradient in the weights, clipped, summed and pulled back.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from machine import peak_memory, write

from limbeck.distill.inducing import AtWeights
from limbeck.features import FeatureMap, gram, named
from limbeck.features.parallel import in_parallel
from limbeck.measure.clipping import clipped_sum
from limbeck.measure.gradients import SupportGradient
from limbeck.measure.session import CHUNK, _clipped_chunk

SHAPE, CLASSES, RIDGE, CLIP = (28, 28, 1), 10, 1e-3, 1e-2


def timed(f, repeats: int) -> float:
    """Seconds a call, the best of some, after one to compile."""
    jax.block_until_ready(f())
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        jax.block_until_ready(f())
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def kymatio_features():
    """phi as the published code has it: kymatio's frontend, group norm, unit norm."""
    from kymatio.scattering2d.frontend.jax_frontend import ScatteringJax2D

    scattering = ScatteringJax2D(J=2, shape=SHAPE[:2], L=8)

    def phi(x):
        S = scattering(x[..., 0])
        G = S.reshape(len(x), 27, -1)
        G = (G - G.mean(2, keepdims=True)) / jnp.sqrt(G.var(2, keepdims=True) + 1e-5)
        F = G.reshape(len(x), -1)
        return F / jnp.linalg.norm(F, axis=1, keepdims=True)

    return phi


def published_gradients(kernel_of_targets, kernel_of_support, y_s):
    """g_t = dL_t/dX_s for a block of targets, by vmap(grad) through everything."""

    def loss(x_s, target, y):
        K, m = kernel_of_support(x_s), len(x_s)
        A = K + RIDGE * jnp.trace(K) / m * jnp.eye(m)
        f = kernel_of_targets(target, x_s) @ jax.scipy.linalg.solve(A, y_s, assume_a="pos")
        return 0.5 * jnp.sum((f - y) ** 2)

    return jax.vmap(jax.grad(loss), (None, 0, 0))


def compare(name: str, m: int, batch: int, rival_targets: int, repeats: int) -> dict:
    rng = np.random.default_rng(0)
    features = named(name, SHAPE)
    x_s = jnp.asarray(rng.normal(size=(m, *SHAPE)), jnp.float32)
    x_t = rng.uniform(-1, 1, size=(batch, *SHAPE)).astype(np.float32)
    one_hot = np.eye(CLASSES, dtype=np.float32) - 1 / CLASSES
    y_s, y_t = jnp.asarray(one_hot[np.arange(m) % CLASSES]), one_hot[np.arange(batch) % CLASSES]
    finite = isinstance(features, FeatureMap)
    inputs = np.asarray(features(jnp.asarray(x_t))) if finite else x_t.reshape(batch, -1)

    chunks = [slice(i, i + CHUNK) for i in range(0, batch - batch % CHUNK, CHUNK)] or [slice(0, batch)]
    counted = sum(c.stop - c.start for c in chunks)

    def ours():
        query = SupportGradient.at(features, x_s, y_s, RIDGE)
        return sum(
            in_parallel(lambda c: np.asarray(_clipped_chunk(query, inputs[c, None], y_t[c, None], CLIP)), chunks)
        )

    our_seconds = timed(ours, repeats) * batch / counted
    our_memory = peak_memory()

    def in_features():
        look = AtWeights(features, RIDGE, "softmax")
        G = _clipped_chunk(look.query(x_s, y_s), inputs[:, None], y_t[:, None], 1.0)
        return look.gradients(x_s, y_s, G)

    features_seconds = timed(in_features, 5 * repeats) if finite else None

    if finite:
        phi = kymatio_features()
        published = published_gradients(lambda t, x: t @ phi(x).T, lambda x: phi(x) @ phi(x).T, y_s)
        targets = np.asarray(jax.jit(phi)(jnp.asarray(x_t[:rival_targets])))
    else:

        def support_kernel(x):  # off the cusp: the diagonal has a closed form
            return gram(features, x, x) * (1 - jnp.eye(len(x))) + jnp.diag(features.diagonal(x)[0])

        published = published_gradients(lambda t, x: gram(features, t[None], x)[0], support_kernel, y_s)
        targets = x_t[:rival_targets]
    rival = jax.jit(lambda s, t, y: clipped_sum(published(s, t, y), CLIP))
    rival_seconds = timed(lambda: rival(x_s, targets, y_t[:rival_targets]), repeats) * batch / rival_targets

    with jax.enable_x64(True):  # the rival in double precision is what both should give
        double = [jnp.asarray(np.asarray(v, np.float64)) for v in (x_s, targets[:2], y_t[:2])]
        expected = np.asarray(jax.jit(published)(*double))
    query = SupportGradient.at(features, x_s, y_s, RIDGE)
    found = np.stack([query.mean(inputs[t, None, None], y_t[t, None, None])[0] for t in range(2)])
    difference = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    figures = {
        "features": name, "m": m, "batch": batch, "ours_s": our_seconds, "rival_s": rival_seconds,
        "ratio": rival_seconds / our_seconds, "ours_peak_GB": our_memory, "rival_peak_GB": peak_memory(),
        "rival_targets": rival_targets, "relative_difference": difference, "features_s": features_seconds,
        "features_ratio": rival_seconds / features_seconds if features_seconds else None,
    }  # fmt: skip
    print(
        f"{name:10s} m={m} B={batch}: ours {our_seconds:7.3f} s, vmap(grad) {rival_seconds:7.3f} s, "
        f"ratio {figures['ratio']:5.1f}x; peak {our_memory:.2f} GB, then {figures['rival_peak_GB']:.2f} GB with the "
        f"rival; relative difference {difference:.1e}",
        flush=True,
    )
    if features_seconds:
        print(
            f"{'':10s} clip in features {features_seconds:7.4f} s, ratio {figures['features_ratio']:5.0f}x", flush=True
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=100)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--rival-targets", type=int, default=20, help="targets the rival is timed on")
    parser.add_argument("--quick", action="store_true", help="m=10, B=64")
    parser.add_argument("--features", nargs="+", default=["fc-ntk", "scattering"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    m, batch, repeats = (10, 64, 1) if options.quick else (options.m, options.batch, 2)
    rows = [compare(name, m, batch, min(batch, options.rival_targets), repeats) for name in options.features]
    write(options.json, {"benchmark": "step", "rows": rows})


if __name__ == "__main__":
    main()
