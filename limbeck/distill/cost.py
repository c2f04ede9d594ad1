"""What a private run will cost in memory and time, before any data is read."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from limbeck.data import ImageSchema
from limbeck.distill.decant import TEACHER, Decant
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.inducing import MEASUREMENT, features_for, random_support
from limbeck.distill.matching import REFINING_STEPS, STEPS, made_up_support, mismatch
from limbeck.distill.pouring import Pouring, default_steps
from limbeck.distill.private_dm import SUMS, PrivateDM
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, Pixels
from limbeck.features.parallel import WORKERS
from limbeck.measure import ClassSums, Records, Session, WeightGradient
from limbeck.measure.store import Cache, Precision, check_space, is_in_file, physical_memory, store_bytes
from limbeck.privacy.plan import FullBatch, Measurement, Plan

OVERHEAD = 600 * 2**20  # the interpreter, JAX and its compiled code
ACTIVATIONS = 64  # numbers that differentiating a feature map keeps, about, for each of its features
RAW = 1  # bytes of a pixel as it is given: most images are of bytes. One that is mapped from a file takes none


def expected_memory(
    model: DPKIP | Decant | PrivateDM, n: int, cache: Cache = "auto", precision: Precision = "float32"
) -> int:
    """Bytes at the peak: records as given, their features unless they are kept in a file, and what a step takes."""
    D, F = int(np.prod(model.schema.shape)), _width(model)
    kept = 0 if is_in_file(n, F, cache, precision) else store_bytes(n, F, precision)
    match model:
        case DPKIP():
            working = _dpkip_numbers(model, D, F)
        case Decant():
            working = _decant_numbers(model, D, F)
        case PrivateDM():
            working = _decant_numbers(model.teacher, D, F) + _matching_numbers(model, D)
    return OVERHEAD + RAW * n * D + kept + 4 * working


def _width(model: DPKIP | Decant | PrivateDM) -> int:
    """What is kept of a record: its features, or its pixels where only a kernel is known."""
    if isinstance(model, PrivateDM):
        return max(_width(model.teacher), int(np.prod(model.schema.shape)))
    if isinstance(model, Decant) and model.project is not None:
        return model.project
    features = model.base_features() if isinstance(model, Decant) else features_for(model.features, model.schema)
    return features.dim if isinstance(features, FeatureMap) else int(np.prod(model.schema.shape))


def _dpkip_numbers(model: DPKIP, D: int, F: int) -> int:
    """The support, and a chunk of gradients a worker: flat in the batch size."""
    m = model.per_class * len(model.schema.classes)
    a_unit = 4 * m * D + 3 * m * m + 4 * F if model.clip == "pixels" else 4 * F
    return WORKERS * model.chunk * a_unit + 6 * m * D + 2 * m * F


def _decant_numbers(model: Decant, D: int, F: int) -> int:
    """The larger of what the two stages take."""
    C = len(model.schema.classes)
    m = model.per_class * C
    measuring = WORKERS * model.units_at_a_time * (2 * F + (F * C if model.forms_gradients else C))
    fitting = m * F * ACTIVATIONS + 3 * m * m + 6 * m * D
    return max(measuring, fitting)


def _matching_numbers(model: PrivateDM, D: int) -> int:
    """The networks, their sums, and what they see of a chunk a worker or of the images."""
    m, sums = model.per_class * len(model.schema.classes), model.number * model.embeddings.dim
    an_image = 24 * model.width * D // model.schema.shape[2]  # activations and their patches, forwards and back
    networks = model.number * 20 * model.width**2
    return networks + 2 * sums * len(model.schema.classes) + max(WORKERS * model.units_at_a_time // 4, m) * an_image


def check_memory(
    model: DPKIP | Decant | PrivateDM, n: int, cache: Cache = "auto", precision: Precision = "float32"
) -> None:
    """Refuse what cannot fit, in memory or on the disk where features may have to go, before anything is computed."""
    if is_in_file(n, F := _width(model), cache, precision):
        check_space(store_bytes(n, F, precision))
    needed, there = expected_memory(model, n, cache, precision), physical_memory()
    if needed > there:
        raise RequestError(
            f"{model.per_class} images a class ask for about {needed / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB. Choose a smaller --per-class or --chunk."
        )


def expected_seconds(model: DPKIP | Decant | PrivateDM, plan: Plan) -> float:
    """A rehearsal on noise, timed and scaled up, of every measurement and of the fit."""
    if not isinstance(model, PrivateDM):
        (measured,) = plan.measurements
        features = model.resolved_features()
        step = _step(model, features)
        fitting = _fitting_seconds(model, features) if isinstance(model, Decant) else 0.0
        return _measuring_seconds(model, measured, features, step, plan) + fitting
    features, pixels = model.resolved_features(), Pixels(model.embeddings.shape)
    taught, summed = (plan.measurement(name) for name in (TEACHER, SUMS))
    embedding = model.embeddings[0]
    sums = _measuring_seconds(
        model, summed, pixels, lambda s: lambda: s.ask(SUMS, lambda: ClassSums(embedding, pixels.shape)), plan
    )
    teaching = _measuring_seconds(model, taught, features, _step(model.teacher, features), plan)
    x_s, _ = made_up_support(model.schema, model.per_class, 0)
    M = jnp.zeros((len(model.schema.classes), embedding.dim - 1))
    slope = eqx.filter_jit(lambda e, x: jax.grad(lambda x: mismatch(e, M, x))(x))
    matching = _second_time(lambda: jax.block_until_ready(slope(embedding, x_s)))
    pouring = _fitting_seconds(model.teacher, features) / default_steps(len(x_s))
    return teaching + sums + (STEPS + REFINING_STEPS) * matching + REFINING_STEPS * pouring


def _measuring_seconds(
    model: DPKIP | Decant | PrivateDM,
    measured: Measurement,
    features: FeatureMap | Kernel,
    step: Callable[[Session], Callable[[], object]],
    plan: Plan,
) -> float:
    """Two rounds of the real step, a chunk alone and then one a worker, and what comes before the first."""
    schema: ImageSchema = model.schema
    chunk = model.chunk if isinstance(model, DPKIP) else model.units_at_a_time
    n = chunk * (1 + WORKERS)
    records = Records(
        schema.model_copy(update={"unit": "record", "rows_per_unit": 1}),
        np.random.default_rng().uniform(schema.low, schema.high, (n, *schema.shape)),
        [schema.classes[0]] * n,
    )

    def prepare() -> None:
        records.forget()
        records.prepare(features)

    rehearsed = measured.model_copy(update={"sampling": FullBatch(n=n), "steps": 2})
    session = Session(records, Plan(measurements=(rehearsed,), delta=plan.delta), chunk=chunk)
    preparing = _second_time(prepare)
    stepping = _second_time(step(session))
    rounds = 1 + -(-(-(-measured.sampling.cap // chunk) - 1) // WORKERS)
    return measured.steps * stepping * rounds / 2 + plan.n / n * preparing


def _step(model: DPKIP | Decant, features: FeatureMap | Kernel) -> Callable[[Session], Callable[[], object]]:
    """One private step of the method, of a session."""
    if isinstance(model, Decant):
        assert isinstance(features, FeatureMap)
        W = jnp.zeros((features.dim, len(model.schema.classes)))
        return lambda session: lambda: session.ask(TEACHER, lambda: WeightGradient(W, model.loss))
    x_s, y_s = random_support(model.schema, model.per_class, 0)
    look = model.look(features)

    def step(session: Session) -> None:
        answer = session.ask(MEASUREMENT, lambda: look.query(x_s, y_s))
        jax.block_until_ready(look.gradients(x_s, y_s, answer))

    return lambda session: lambda: step(session)


def _fitting_seconds(model: Decant, features: FeatureMap | Kernel) -> float:
    """All steps of pouring, from the second one's gradient."""
    assert isinstance(features, FeatureMap)
    x_s, _ = random_support(model.schema, model.per_class, 0)
    W = jax.random.normal(jax.random.key(0), (features.dim, len(model.schema.classes)))
    pouring = Pouring.towards(features, W, model.schema.shape, ridge=model.ridge)
    support = (x_s, jnp.zeros((len(x_s), W.shape[1])))
    slope = eqx.filter_jit(lambda pouring, support: jax.grad(pouring.loss)(support))
    one = _second_time(lambda: jax.block_until_ready(slope(pouring, support)))
    return default_steps(len(x_s)) * one


def _second_time(work: Callable[[], object]) -> float:
    """Seconds without compilation."""
    work()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
