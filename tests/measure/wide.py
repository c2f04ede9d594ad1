"""A feature map that costs nothing and takes much room, and a run that uses it.

    python -m tests.measure.wide IMAGES.npy

prepares a quarter of the mapped images and then all of them, with features on disk, and reads each as a full batch
does. Prints the process's peak memory after each, and waits to be killed.
"""

import sys
import time
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from limbeck.data import ImageSchema
from limbeck.data.readers.opening import load_array
from limbeck.features import FeatureMap
from limbeck.measure import Records


class Wide(FeatureMap):
    """Pixels in many copies, phi(x)[i D + j] = 1 + scale (i + 1) x[j]: of zeros, too, it is not zero."""

    copies: int = eqx.field(static=True, default=2)
    scale: float = 1.0
    pixels: int = eqx.field(static=True, default=16)

    @property
    def dim(self):
        return self.copies * self.pixels

    def __call__(self, x):
        flat = x.reshape(len(x), 1, -1)
        return (1 + self.scale * jnp.arange(1.0, self.copies + 1)[:, None] * flat).reshape(len(x), -1)

    def config(self):
        return {"name": "wide", "copies": self.copies, "scale": self.scale}


def peak_memory() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main() -> None:
    images = load_array(Path(sys.argv[1]))
    schema = ImageSchema(shape=images.shape[1:], classes=range(2), low=0, high=255)
    for n in (len(images) // 4, len(images)):
        records = Records(schema, images[:n], np.zeros(n, int), cache="disk")
        records.prepare(Wide(1, pixels=int(np.prod(schema.shape))))
        for units in np.split(np.arange(n), 100):
            assert np.isfinite(records.batch(units)[0]).all()
        print(peak_memory(), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
