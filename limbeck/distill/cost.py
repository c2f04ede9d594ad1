"""What a private run will cost in memory and time, before any data is read."""

import os
import time

import numpy as np

from limbeck.data import ImageSchema
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.inducing import MEASUREMENT, features_for, random_support
from limbeck.errors import RequestError
from limbeck.features import FeatureMap
from limbeck.features.parallel import WORKERS
from limbeck.measure import Records, Session, SupportGradient
from limbeck.privacy.plan import FullBatch, Measurement, Plan

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
    """A rehearsal on noise: the features of one chunk and one chunk of the real step, timed and scaled up."""
    (measured,) = plan.measurements
    schema: ImageSchema = model.schema
    features = features_for(model.features, schema)
    noise = np.random.default_rng().uniform(schema.low, schema.high, (model.chunk, *schema.shape))
    records = Records(
        schema.model_copy(update={"unit": "record", "rows_per_unit": 1}),
        noise,
        [schema.classes[0]] * len(noise),
    )
    records.prepare(features)
    begun = time.perf_counter()
    records.forget()
    records.prepare(features)
    preparing = time.perf_counter() - begun
    rehearsal = Plan(
        measurements=(
            Measurement(name=MEASUREMENT, sampling=FullBatch(n=model.chunk), steps=2, clip=measured.clip, sigma=1.0),
        ),
        delta=plan.delta,
    )
    session = Session(records, rehearsal, chunk=model.chunk)
    x_s, y_s = random_support(schema, model.per_class, 0)
    query = SupportGradient.at(features, x_s, y_s, model.ridge)
    session.ask(MEASUREMENT, lambda: query)
    begun = time.perf_counter()
    session.ask(MEASUREMENT, lambda: query)
    stepping = time.perf_counter() - begun
    chunks = -(-measured.sampling.cap // model.chunk) * measured.steps
    return chunks * stepping + plan.n / model.chunk * preparing
