"""A tiny problem through the real path: 4 x 4 images of two classes, a support of four, `Session.ask`.

Four units at a time and one clipping norm throughout, so that each kind of step is compiled once.
"""

from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from hypothesis import settings
from jaxtyping import Array

from limbeck.data import ImageSchema
from limbeck.distill import DPKIP
from limbeck.features import FCNTK, Scattering
from limbeck.measure import Records, Session, SupportGradient
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.privacy.stream import Stream

FAMILIES = ("fc-ntk", "scattering")
NOISES = ("normal", "discrete")
N = 4
C = 0.5
QUIET = 1e-9  # so little noise that sums can be read off; on the grid it is still one step, C / 2^20
POISONS = (np.nan, np.inf, -np.inf, 1e38, -3e38, 1e18, 1e-45, 1e-30, 0.0, 1.0)

SCHEMA = ImageSchema(shape=(4, 4, 1), classes=("a", "b"), low=0, high=1)
NULL = "no such class"

# Tests of a promise keep no database, so that a mutant leaves nothing behind for the next run to find.
quickly = settings(max_examples=25, deadline=None, database=None)


def person_schema(rows: int) -> ImageSchema:
    return SCHEMA.model_copy(update={"unit": "person", "rows_per_unit": rows})


def data(n: int = N, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    return np.random.default_rng(seed).uniform(size=(n, 4, 4)), [("a", "b")[i % 2] for i in range(n)]


@lru_cache
def features(family: str):
    """Both families as they are; the scattering transform with two angles, which are compiled in seconds."""
    return FCNTK() if family == "fc-ntk" else Scattering(SCHEMA.shape, L=2, groups=3)


def records(X, y, family: str = "fc-ntk", units=None, schema: ImageSchema = SCHEMA) -> Records:
    made = Records(schema, X, y, units)
    made.prepare(features(family))
    return made


def null_records(n: int = N, family: str = "fc-ntk") -> Records:
    """Units that contribute nothing: what a session answers is its noise."""
    return records(data(n)[0], [NULL] * n, family)


class Poisoned(Records):
    """Records whose first unit holds what no encoding would let through, just before it is measured."""

    value: float

    def batch(self, units):
        inputs, y = super().batch(units)
        inputs = inputs.copy()
        inputs[units == 0] = np.float32(self.value)
        return inputs, y


def poisoned(value: float, X, y, family: str) -> Records:
    made = Poisoned(SCHEMA, X, y)
    made.value = value
    made.prepare(features(family))
    return made


@lru_cache
def query(family: str = "fc-ntk", support: str = "random") -> SupportGradient:
    """The real query, at a support that is random, all one point, or zero."""
    x = np.random.default_rng(1).normal(size=(4, 4, 4, 1)) * {"random": 1, "same": 1, "zero": 0}[support]
    x_s = jnp.asarray(np.repeat(x[:1], 4, axis=0) if support == "same" else x, jnp.float32)
    return SupportGradient.at(features(family), x_s, jnp.asarray([[0.5, -0.5], [-0.5, 0.5]] * 2), 1e-3)


class Inputs(eqx.Module):
    """The plainest query: a unit's contribution is the sum of its own rows, in [0, 1]."""

    def contributions(self, inputs: Array, y: Array) -> Array:
        return jnp.where(jnp.isnan(y[..., :1]), 0.0, (inputs + 1) / 2).sum(axis=1)

    def decoded(self, total: Array) -> Array:
        return total

    def mean(self, inputs: Array, y: Array) -> Array:
        return inputs.mean((0, 1))


def plan(sampling, *, steps: int = 1, clip: float = C, sigma: float = QUIET, noise="normal", **more) -> Plan:
    measurement = Measurement(name="g", sampling=sampling, steps=steps, clip=clip, sigma=sigma, noise=noise)
    return Plan(measurements=(measurement,), delta=1e-5, **more)


def total(
    of: Records, asked, *, sampling=None, stream: Stream | None = None, chunk: int = 64, **measured
) -> np.ndarray:
    """One answer as the sum that it is: clipped contributions and noise, under the same randomness by default."""
    sampling = sampling or FullBatch(n=of.n)
    session = Session(of, plan(sampling, **measured), stream=stream or Stream(seed=1), chunk=chunk)
    return np.asarray(session.ask("g", lambda: asked), np.float64) * sampling.expected


def noise(family: str, kind: str, answers: int, sigma: float, sampling=None) -> np.ndarray:
    """What a session adds to nothing, in units of sigma C: one row an answer."""
    sampling = sampling or FullBatch(n=N)
    asked = query(family)
    session = Session(null_records(sampling.n, family), plan(sampling, steps=answers, sigma=sigma, noise=kind))
    rows = [np.asarray(session.ask("g", lambda: asked)).ravel() for _ in range(answers)]
    return np.stack(rows).astype(np.float64) * sampling.expected / (sigma * C)


def tiny(**changes) -> DPKIP:
    """DP-KIP on the tiny problem: two full-batch steps, whose calibration is a closed form."""
    settings = {
        "epsilon": 2.0, "delta": 1e-3, "clip_norm": C,
        "per_class": 2, "features": "fc-ntk", "batch": "full", "epochs": 2,
    }  # fmt: skip
    return DPKIP(SCHEMA, **(settings | changes))
