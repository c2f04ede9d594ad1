"""The scattering transform against kymatio's JAX frontend, in one process.

    python benchmarks/scattering.py [--quick] [--n 10000] [--chunk 500] [--json FILE]

Three things are timed on uniform random images of 28 x 28 x 1 and 32 x 32 x 3: the transform, the transform
with the gradient of its sum of squares, and the pull-back of many cotangents at one image (what one step of
DP-KIP does for each image of the support). Both sides are jitted and take the same chunks, in turn.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.features import Scattering

SHAPES = [(28, 28, 1), (32, 32, 3)]
SIDES = ("kymatio", "limbeck")


def side(name, shape):
    """φ without normalisation, by either library."""
    if name == "limbeck":
        return Scattering(shape, groups=None, unit_norm=False)
    from kymatio.scattering2d.frontend.jax_frontend import ScatteringJax2D

    S = ScatteringJax2D(2, shape[:2])
    return lambda x: S(jnp.moveaxis(x, -1, 1)).reshape(len(x), -1)


def works(φ):
    """The three things, each a jitted function of (images, cotangents)."""

    def pull_back(x, c):
        _, pull = jax.vjp(lambda x: φ(x[None])[0], x[0])
        return jax.vmap(lambda c: pull(c)[0])(c)

    return {
        "forward": jax.jit(lambda x, c: φ(x)),
        "forward + backward": jax.jit(lambda x, c: jax.grad(lambda x: jnp.sum(φ(x) ** 2))(x)),
        "pull-back": jax.jit(pull_back),
    }


def measure(shape, n, chunk, cotangents):
    """Milliseconds for each image (or cotangent), by both, chunk by chunk in turn."""
    r = np.random.default_rng(0)
    x = jnp.asarray(r.random((chunk, *shape)), jnp.float32)
    dim = Scattering(shape, groups=None, unit_norm=False).dim
    c = jnp.asarray(r.standard_normal((cotangents, dim)), jnp.float32)
    sides = {name: works(side(name, shape)) for name in SIDES}
    for work in sides["limbeck"]:
        size = cotangents if work == "pull-back" else chunk
        outputs = {name: np.asarray(fs[work](x, c)) for name, fs in sides.items()}  # compiles, too
        difference = np.abs(outputs["limbeck"] - outputs["kymatio"]).max()
        scale = np.abs(outputs["kymatio"]).max()
        seconds: dict[str, list[float]] = {name: [] for name in SIDES}
        for _ in range(max(3, n // size)):
            for name, fs in sides.items():
                start = time.perf_counter()
                jax.block_until_ready(fs[work](x, c))
                seconds[name].append(time.perf_counter() - start)
        ms = {name: 1000 * statistics.mean(s) / size for name, s in seconds.items()}
        yield {
            "shape": list(shape),
            "work": work,
            "chunk": size,
            "images": max(3, n // size) * size,
            "kymatio_ms": ms["kymatio"],
            "limbeck_ms": ms["limbeck"],
            "ratio": ms["kymatio"] / ms["limbeck"],
            "ratio_of_medians": statistics.median(seconds["kymatio"]) / statistics.median(seconds["limbeck"]),
            "max_abs_difference": float(difference),
            "max_abs_value": float(scale),
        }


def peak_megabytes(name, shape, work, chunk, cotangents):
    """Peak memory that this one thing adds to a process of its own; None where it cannot be told."""
    if not Path("/proc/self/status").exists():
        return None
    code = (
        "import runpy, jax.numpy as jnp\n"
        f"b = runpy.run_path({str(Path(__file__).resolve())!r}, run_name='benchmark')\n"
        f"φ = b['side']({name!r}, {shape!r})\n"
        f"x = jnp.zeros(({chunk}, *{shape!r}))\n"
        f"c = jnp.zeros(({cotangents}, b['Scattering']({shape!r}, groups=None).dim))\n"
        "before = b['high_water']()\n"
        f"b['works'](φ)[{work!r}](x, c).block_until_ready()\n"
        "print(b['high_water']() - before)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout.split()[-1])


def high_water():
    """The most memory that this process has held, in MB (a child's `ru_maxrss` starts at its parent's)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def machine():
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
        cpu = models[0].split(":")[1].strip() if models else cpu
    packages = ("limbeck", "jax", "jaxlib", "kymatio", "numpy")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000, help="images timed (default 10000)")
    parser.add_argument("--chunk", type=int, default=500, help="images a call, on both sides (default 500)")
    parser.add_argument("--cotangents", type=int, default=64, help="cotangents at one image (default 64)")
    parser.add_argument("--quick", action="store_true", help="a few hundred images, no memory figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    if options.quick:
        options.n, options.chunk = 400, 100

    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load_average']:.1f}; {about['versions']}\n")
    print(f"{'images':>12}  {'work':<18} {'kymatio':>11} {'limbeck':>11} {'ratio':>6} {'difference':>10}  peak memory")
    rows = []
    for shape in SHAPES:
        for row in measure(shape, options.n, options.chunk, options.cotangents):
            memory = ""
            if not options.quick:
                for name in SIDES:
                    row[f"{name}_peak_mb"] = peak_megabytes(name, shape, row["work"], options.chunk, options.cotangents)
                if row["limbeck_peak_mb"] is not None:
                    memory = f"{row['kymatio_peak_mb']:.0f} -> {row['limbeck_peak_mb']:.0f} MB"
            rows.append(row)
            print(
                f"{'x'.join(map(str, shape)):>12}  {row['work']:<18} {row['kymatio_ms']:>8.3f} ms "
                f"{row['limbeck_ms']:>8.3f} ms {row['ratio']:>6.2f} {row['max_abs_difference']:>10.1e}  {memory}",
                flush=True,
            )
    print("\nms for each image (for each cotangent in pull-back); memory is what a process adds for one call")
    if options.json:
        options.json.write_text(
            json.dumps({**about, "options": vars(options) | {"json": None}, "rows": rows}, indent=2)
        )


if __name__ == "__main__":
    main()
