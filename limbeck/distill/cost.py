"""What a run will cost in memory and, of a private one, in time, before any data is read."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from limbeck.data import ImageSchema, Schema, TableSchema
from limbeck.distill.decant import TEACHER, Decant
from limbeck.distill.dm import DM
from limbeck.distill.dpkip import DPKIP
from limbeck.distill.inducing import MEASUREMENT, class_sizes, features_for, random_support
from limbeck.distill.marginal_rows import MARGINALS
from limbeck.distill.matching import default_steps as matching_steps
from limbeck.distill.matching import made_up_support, mismatch
from limbeck.distill.pouring import TERMS, Pouring, default_steps
from limbeck.distill.private_dm import SUMS, PrivateDM
from limbeck.distill.relaxed import Relaxed, Through
from limbeck.distill.table_decant import TableDecant
from limbeck.distill.table_fit import ROWS
from limbeck.errors import RequestError
from limbeck.features import Embeddings, FeatureMap, Kernel, Pixels, features_of
from limbeck.features.embedding import PUBLIC_IMAGES
from limbeck.features.parallel import WORKERS
from limbeck.measure import ClassSums, Records, Session
from limbeck.measure.session import CHUNK
from limbeck.measure.store import Cache, Precision, check_space, is_in_file, physical_memory, store_bytes
from limbeck.privacy.plan import FullBatch, Measurement, Plan

Method = DPKIP | Decant | PrivateDM | TableDecant

OVERHEAD = 600 * 2**20  # the interpreter, JAX and its compiled code
ACTIVATIONS = 64  # numbers that differentiating a feature map keeps, about, for each of its features
RAW = 1  # bytes of a pixel as it is given: most images are of bytes. One that is mapped from a file takes none


def expected_memory(model: Method | DM, n: int, cache: Cache = "auto", precision: Precision = "float32") -> int:
    """Bytes at the peak: records as given, their features unless they are kept in a file, and what a step takes."""
    D, F = int(np.prod(model.schema.shape)), _width(model, n)
    kept = 0 if is_in_file(n, F, cache, precision) else store_bytes(n, F, precision)
    match model:
        case DPKIP():
            working = _dpkip_numbers(model, D, F)
        case Decant():
            working = _decant_numbers(model, D, F)
        case PrivateDM():
            working = _decant_numbers(model.teacher, D, F) + _matching_numbers(model, model.embeddings(n), D)
        case DM():
            working = _embedding_numbers(model, model.width, CHUNK, D)
        case TableDecant():
            drawn = (model.rows or ROWS) * (model.resolved_features().dim + 3 * D) if model.per_class is None else 0
            working = max(_decant_numbers(model.teacher(n), D, model.resolved_features().dim), drawn)
    raw = RAW * n * D if isinstance(model.schema, ImageSchema) else 0  # tables are read a block at a time
    return OVERHEAD + raw + kept + 4 * working


def _width(model: Method | DM, n: int) -> int:
    """What is kept of a record: its features, or its pixels where only a kernel is known."""
    if isinstance(model, DM):
        return int(np.prod(model.schema.shape))
    if isinstance(model, TableDecant):
        return model.kept_features(n).dim
    if isinstance(model, PrivateDM):
        return max(_width(model.teacher, n), int(np.prod(model.schema.shape)))
    if isinstance(model, Decant) and model.project is not None:
        return model.project
    features = model.base_features() if isinstance(model, Decant) else features_for(model.features, model.schema)
    return features.dim if isinstance(features, FeatureMap) else int(np.prod(model.schema.shape))


def _dpkip_numbers(model: DPKIP, D: int, F: int) -> int:
    """The support, and a chunk of gradients a worker: flat in the batch size."""
    m = sum(class_sizes(model.schema, model.per_class))
    a_unit = 4 * F if model.clip == "features" else 4 * m * D + 3 * m * m + 4 * F
    return WORKERS * model.chunk * a_unit + 6 * m * D + 2 * m * F


def _decant_numbers(model: Decant, D: int, F: int) -> int:
    """The larger of what the two stages take."""
    C = len(model.schema.classes)
    m = sum(class_sizes(model.schema, model.per_class))
    measuring = WORKERS * model.units_at_a_time * (2 * F + (F * C if model.forms_gradients else C))
    fitting = m * F * ACTIVATIONS + 3 * m * m + 6 * m * D
    return max(measuring, fitting)


def _matching_numbers(model: PrivateDM, embeddings: Embeddings, D: int) -> int:
    """The networks, their sums, and what they see of a chunk a worker or of the images."""
    sums = len(embeddings) * embeddings.dim
    networks = len(embeddings) * 20 * embeddings.width**2
    seen = _embedding_numbers(model, embeddings.width, model.units_at_a_time, D)
    return networks + 2 * sums * len(model.schema.classes) + seen


def _embedding_numbers(model: PrivateDM | DM, width: int, chunk: int, D: int) -> int:
    """What a network sees of a chunk a worker or of public images, forwards, or of the support, forwards and back."""
    m = model.per_class * len(model.schema.classes)
    an_image = 24 * width * D // model.schema.shape[2]  # activations and their patches, forwards and back
    return max(WORKERS * chunk // 4, PUBLIC_IMAGES // 4, m) * an_image


def check_memory(model: Method | DM, n: int, cache: Cache = "auto", precision: Precision = "float32") -> None:
    """Refuse what cannot fit, in memory or on the disk where features may have to go, before anything is computed."""
    if is_in_file(n, F := _width(model, n), cache, precision):
        check_space(store_bytes(n, F, precision))
    needed, there = expected_memory(model, n, cache, precision), physical_memory()
    if needed > there:
        what = "images" if isinstance(model.schema, ImageSchema) else "rows"
        asked = "" if model.per_class is None else f"{sum(class_sizes(model.schema, model.per_class))} "
        raise RequestError(
            f"{asked}{what} ask for about {needed / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB. Choose a smaller --per-class or --chunk."
        )


def expected_seconds(model: Method, plan: Plan) -> float:
    """A rehearsal on noise, timed and scaled up, of every measurement and of the fit."""
    if isinstance(model, TableDecant):
        return _table_seconds(model, plan)
    if not isinstance(model, PrivateDM):
        measured = plan.measurement(TEACHER if isinstance(model, Decant) else MEASUREMENT)
        features = model.resolved_features()
        step = _step(model, features)
        fitting = _fitting_seconds(model, features) if isinstance(model, Decant) else 0.0
        return _measuring_seconds(model, measured, features, step, plan) + fitting
    embeddings = model.embeddings(plan.n)
    features, pixels = model.resolved_features(), Pixels(embeddings.shape)
    taught, summed = (plan.measurement(name) for name in (TEACHER, SUMS))
    embedding = embeddings[0]
    sums = _measuring_seconds(
        model, summed, pixels, lambda s: lambda: s.ask(SUMS, lambda: ClassSums(embedding, pixels.shape)), plan
    )
    teaching = _measuring_seconds(model, taught, features, _step(model.teacher, features), plan)
    x_s, _ = made_up_support(model.schema, model.per_class, 0)
    M = jnp.zeros((len(model.schema.classes), embeddings.dim - 1))
    slope = eqx.filter_jit(lambda e, x: jax.grad(lambda x: mismatch(e, M, x))(x))
    matching = _second_time(lambda: jax.block_until_ready(slope(embedding, x_s)))
    pouring = _fitting_seconds(model.teacher, features) / default_steps(len(x_s))
    steps, refining = matching_steps(len(x_s))
    return teaching + sums + (steps + refining) * matching + refining * pouring


def _table_seconds(model: TableDecant, plan: Plan) -> float:
    """The same of a table: drawing rows takes what preparing as many of them does."""
    features, rows = model.resolved_features(), Pixels(model.schema.shape)
    teacher, kept, cells = model.teacher(plan.n), model.kept_features(plan.n), model.marginals(plan)
    step = _step(teacher, features, features if isinstance(kept, Pixels) else None)
    teaching = _measuring_seconds(model, plan.measurement(TEACHER), kept, step, plan)
    counting = _measuring_seconds(
        model,
        plan.measurement(MARGINALS),
        rows,
        lambda s: lambda: s.ask(MARGINALS, lambda: ClassSums(cells, rows.shape)),
        plan,
    )
    return teaching + counting + (_fitting_seconds(teacher, features) if model.per_class else 1.0)


def _measuring_seconds(
    model: Method,
    measured: Measurement,
    features: FeatureMap | Kernel,
    step: Callable[[Session], Callable[[], object]],
    plan: Plan,
) -> float:
    """Two rounds of the real step, a chunk alone and then one a worker, and what comes before the first."""
    schema: Schema = model.schema
    chunk = model.chunk if isinstance(model, DPKIP) else model.units_at_a_time
    n = chunk * (1 + WORKERS)
    records = Records(schema.by_record(), _noise(schema, n), [schema.classes[0]] * n)

    def prepare() -> None:
        records.forget()
        records.prepare(features)

    rehearsed = measured.model_copy(update={"sampling": FullBatch(n=n), "steps": 2})
    session = Session(records, Plan(measurements=(rehearsed,), delta=plan.delta), chunk=chunk)
    preparing = _second_time(prepare)
    stepping = _second_time(step(session))
    rounds = 1 + -(-(-(-measured.sampling.cap // chunk) - 1) // WORKERS)
    return measured.steps * stepping * rounds / 2 + plan.n / n * preparing


def _noise(schema: Schema, n: int) -> Any:
    """Made-up records within what is declared."""
    rng = np.random.default_rng()
    if isinstance(schema, TableSchema):
        return schema.decode(rng.uniform(-1, 1, (n, *schema.shape)))
    return rng.uniform(schema.low, schema.high, (n, *schema.shape))


def _step(
    model: DPKIP | Decant, features: FeatureMap | Kernel, through: FeatureMap | None = None
) -> Callable[[Session], Callable[[], object]]:
    """One private step of the method, of a session."""
    if isinstance(model, Decant):
        assert isinstance(features, FeatureMap)
        W = jnp.zeros((features.dim, len(model.schema.classes)))
        return lambda session: lambda: session.ask(TEACHER, lambda: model.query(W, through))
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
    if isinstance(model.schema, ImageSchema):
        pouring = Pouring.towards(features, W, model.schema.shape, ridge=model.ridge)
    else:
        examples = features_of(features, np.asarray(random_support(model.schema, 1000, 1)[0]))
        row = Relaxed.of(model.schema)
        pouring = Pouring(Through(features, row), W, jnp.asarray(examples), **(TERMS | {"ridge": model.ridge}))
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
