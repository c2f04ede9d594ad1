"""The scattering transform against kymatio's JAX frontend, in one process.

    python benchmarks/scattering.py [--quick] [--n 10000] [--chunks 128 500] [--json FILE]

Three things are timed on uniform random images of 28 x 28 x 1 and 32 x 32 x 3: the transform, the transform
with the gradient of its sum of squares, and the pull-back of many cotangents at one image (what one step of
DP-KIP does for each image of the support). Each is done in calls one at a time, and in calls on all cores, as
`features_of` does. Both sides are jitted and run in turn, each with the chunk that is best for it. Time on the
clock and time of the processor are given: the second does not depend on what else the machine does.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from machine import facts, write

from limbeck.features import Scattering
from limbeck.features.parallel import in_parallel

SHAPES = [(28, 28, 1), (32, 32, 3)]
SIDES = ("kymatio", "limbeck")
ROUNDS = 4  # the sides take turns so many times


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


def one_at_a_time(f, calls):
    for _ in range(calls):
        jax.block_until_ready(f())


def on_all_cores(f, calls):
    for _ in in_parallel(lambda _: jax.block_until_ready(f()), range(calls)):
        pass


MANNERS = {"one call at a time": one_at_a_time, "all cores": on_all_cores}


def timed(manner, f, calls):
    """Seconds a call, on the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    manner(f, calls)
    return np.array([time.perf_counter() - clock, time.process_time() - processor]) / calls


def measure(shape, n, chunks, cotangents):
    """Milliseconds for each image (or cotangent), by both, in turn."""
    r = np.random.default_rng(0)
    x = {chunk: jnp.asarray(r.random((chunk, *shape)), jnp.float32) for chunk in chunks}
    dim = Scattering(shape, groups=None, unit_norm=False).dim
    c = jnp.asarray(r.standard_normal((cotangents, dim)), jnp.float32)
    sides = {name: works(side(name, shape)) for name in SIDES}
    for work in sides["limbeck"]:
        sizes = [cotangents] if work == "pull-back" else chunks
        outputs = [np.asarray(sides[name][work](x[chunks[0]], c)) for name in SIDES]
        for manner_name, manner in MANNERS.items():
            ms = {}
            figures = {(name, size): [] for size in sizes for name in SIDES}
            for turn in range(ROUNDS + 1):
                for (name, size), seconds in figures.items():
                    f, images = sides[name][work], x.get(size, x[chunks[0]])
                    if turn == 0:
                        jax.block_until_ready(f(images, c))  # compiles
                    else:
                        call = timed(manner, lambda f=f, images=images: f(images, c), max(2, n // size // ROUNDS))
                        seconds.append(1000 * call / size)
            for name in SIDES:
                means = {size: np.mean(figures[name, size], axis=0) for size in sizes}
                chunk = min(means, key=lambda size: means[size][0])
                ms[name] = (chunk, *map(float, means[chunk]))
            yield {
                "shape": list(shape),
                "work": work,
                "manner": manner_name,
                **{f"{name}_chunk": ms[name][0] for name in SIDES},
                **{f"{name}_ms": ms[name][1] for name in SIDES},
                **{f"{name}_cpu_ms": ms[name][2] for name in SIDES},
                "ratio": ms["kymatio"][1] / ms["limbeck"][1],
                "cpu_ratio": ms["kymatio"][2] / ms["limbeck"][2],
                "max_abs_difference": float(np.abs(outputs[1] - outputs[0]).max()),
                "max_abs_value": float(np.abs(outputs[0]).max()),
            }


def peak_megabytes(name, shape, work, chunk, cotangents):
    """Peak memory that this one thing adds to a process of its own; None where it cannot be told."""
    if not Path("/proc/self/status").exists():
        return None
    code = (
        "import runpy, sys, jax.numpy as jnp\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})\n"
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000, help="images timed, for each side (default 10000)")
    parser.add_argument("--chunks", type=int, nargs="+", default=[128, 500], help="images a call (default 128 500)")
    parser.add_argument("--cotangents", type=int, default=64, help="cotangents at one image (default 64)")
    parser.add_argument("--quick", action="store_true", help="a few hundred images, no memory figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    if options.quick:
        options.n, options.chunks = 400, [100]

    about = facts()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load_average']}, JAX {about['jax']}\n")
    print(f"{'':>52} {'kymatio -> limbeck, ms: on the clock':>36} {'of the processor':>32}  difference  peak memory")
    rows = []
    for shape in SHAPES:
        for row in measure(shape, options.n, options.chunks, options.cotangents):
            memory = ""
            if not options.quick and row["manner"] == "one call at a time":
                for name in SIDES:
                    row[f"{name}_peak_mb"] = peak_megabytes(
                        name, shape, row["work"], row[f"{name}_chunk"], options.cotangents
                    )
                if row["limbeck_peak_mb"] is not None:
                    memory = f"{row['kymatio_peak_mb']:.0f} -> {row['limbeck_peak_mb']:.0f} MB"
            rows.append(row)
            print(
                f"{'x'.join(map(str, shape)):>10}  {row['work']:<19}{row['manner']:<20} "
                f"{row['kymatio_ms']:>15.3f} -> {row['limbeck_ms']:.3f}, {row['ratio']:>5.2f}x "
                f"{row['kymatio_cpu_ms']:>15.3f} -> {row['limbeck_cpu_ms']:.3f}, {row['cpu_ratio']:>5.2f}x "
                f"{row['max_abs_difference']:>11.1e}  {memory}",
                flush=True,
            )
    print("\nms for each image (for each cotangent in pull-back); memory is what a process adds for one call")
    write(options.json, {"benchmark": "scattering", "options": vars(options) | {"json": None}, "rows": rows})


if __name__ == "__main__":
    main()
