"""What a private run will cost in memory and time, before any data is read."""

import os
import time
from collections.abc import Callable

import numpy as np

from limbeck.data import ImageSchema
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.inducing import MEASUREMENT, features_for, random_support
from limbeck.errors import RequestError
from limbeck.features import FeatureMap
from limbeck.features.parallel import WORKERS
from limbeck.measure import Records, Session, SupportGradient
from limbeck.privacy.plan import FullBatch, Plan

OVERHEAD = 600 * 2**20  # the interpreter, JAX and its compiled code


def expected_memory(model: DPKIP, n: int) -> int:
    """Bytes at the peak: records and their features, and a chunk of gradients a worker. Flat in the batch size."""
    features = features_for(model.features, model.schema)
    D = int(np.prod(model.schema.shape))
    F = features.dim if isinstance(features, FeatureMap) else D
    m = model.per_class * len(model.schema.classes)
    records = n * (D + (F if isinstance(features, FeatureMap) else 0))
    chunk = WORKERS * model.chunk * (4 * m * D + 3 * m * m + 4 * F)
    return OVERHEAD + 4 * (records + chunk + 6 * m * D + 2 * m * F)


def check_memory(model: DPKIP, n: int) -> None:
    """Refuse what cannot fit, before anything is computed."""
    needed, there = expected_memory(model, n), available_memory()
    if needed > there:
        raise RequestError(
            f"{model.per_class} images a class ask for about {needed / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB. Choose a smaller --per-class or --chunk."
        )


def available_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def expected_seconds(model: DPKIP, plan: Plan) -> float:
    """A rehearsal on noise, timed and scaled up: two rounds of the real step, a chunk alone and then one a worker."""
    (measured,) = plan.measurements
    schema: ImageSchema = model.schema
    features = features_for(model.features, schema)
    n = model.chunk * (1 + WORKERS)
    records = Records(
        schema.model_copy(update={"unit": "record", "rows_per_unit": 1}),
        np.random.default_rng().uniform(schema.low, schema.high, (n, *schema.shape)),
        [schema.classes[0]] * n,
    )

    def prepare() -> None:
        records.forget()
        records.prepare(features)

    rehearsed = measured.model_copy(update={"sampling": FullBatch(n=n), "steps": 2})
    session = Session(records, Plan(measurements=(rehearsed,), delta=plan.delta), chunk=model.chunk)
    x_s, y_s = random_support(schema, model.per_class, 0)
    query = SupportGradient.at(features, x_s, y_s, model.ridge)
    preparing = _second_time(prepare)
    stepping = _second_time(lambda: session.ask(MEASUREMENT, lambda: query))
    rounds = 1 + -(-(-(-measured.sampling.cap // model.chunk) - 1) // WORKERS)
    return measured.steps * stepping * rounds / 2 + plan.n / n * preparing


def _second_time(work: Callable[[], object]) -> float:
    """Seconds without compilation."""
    work()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
