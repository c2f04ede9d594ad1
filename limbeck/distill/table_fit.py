"""Fitting rows of a table to a signal: post-processing, without records and without budget."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from limbeck.data import TableSchema
from limbeck.data.encoding import centred_onehot
from limbeck.distill.class_shares import apportioned
from limbeck.distill.inducing import PerClass, Progress, class_sizes, plain_sizes, public_seed
from limbeck.distill.marginal_rows import (
    MARGINALS,
    SPREAD,
    ClassMarginals,
    count_noise,
    marginals_for,
    uniform_marginals,
    warp_by,
)
from limbeck.distill.pouring import (
    RATE,
    TERMS,
    Pouring,
    centred,
    default_steps,
    features_of_signal,
    poured,
)
from limbeck.distill.relaxed import Relaxed, Through
from limbeck.errors import RequestError
from limbeck.evaluate.accuracy import as_large_as_onehot
from limbeck.features import FeatureMap, Marginals, Warp, Warped, features_of, from_config
from limbeck.release import Release, Signal

ROWS = 10_000
LEAST = 10  # rows of a class, however rare
EXAMPLES = 2000  # drawn rows on which a small set is held to the teacher
DRAWN = "the teacher's predictions, as many of each class as were counted"
POURED = "the teacher's predictions, as many of each class as were asked for"


def fit_table(
    signal: Signal,
    rows: int | None = None,
    *,
    per_class: PerClass | None = None,
    init_seed: int | None = None,
    features: FeatureMap | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Release:
    """Rows that stand for a private teacher and for the marginals that were measured with it.

    Each row is drawn from a class's noisy marginals, a column at a time, and labelled by the teacher, whose logits are
    shifted so that every class has the share of rows that was counted: what is likely comes from the marginals, what
    goes with what from the teacher. With `per_class`, few rows are poured instead: moved until kernel ridge regression
    on them is the teacher (`pouring.Pouring`), each step on rows that fit the schema.

    **Guarantee.** The signal's own: this is a function of the signal and of public inputs.

    **Parameters**

    - `signal`: as measured, or `load_signal(folder)`. `rows`: how many; `ROWS` when None.
    - `per_class`: rows a class, for a small set: one number, or one for each class by its name.
    - `init_seed`: the seed of what is drawn: public, stored, drawn afresh when None.
    - `features`: the recipe's, if they are at hand. `terms`: of the loss of a small set.
    """
    schema = signal.schema
    if not isinstance(schema, TableSchema):
        raise RequestError("this signal is of images: fit_signal makes sets of them.")
    seed = public_seed() if init_seed is None else init_seed
    rng = np.random.default_rng(seed)
    features = Warped(features_of_signal(signal, features), warp_of(signal))
    recipe = table_recipe(schema, rows, per_class=per_class, init_seed=seed, **terms)
    drawn = class_marginals(signal)
    if per_class is None:
        x, c = labelled_rows(signal, features, drawn, recipe["rows"], rng, progress)
        x = as_released(schema, x)
        y = centred_onehot(c, len(schema.classes))
    else:
        x, y = _small(signal, features, drawn, recipe, rng, progress)
    return Release.of(
        schema, x, y, signal.guarantee, signal.recipe | recipe, signal.plan,
        ledger=signal.ledger, derived_from=signal.digest,
    )  # fmt: skip


def table_recipe(
    schema: TableSchema, rows: int | None, *, per_class: PerClass | None, init_seed: int | None, **terms: Any
) -> dict[str, Any]:
    """Every hyper-parameter of the fit; public."""
    if per_class is None:
        if rows is not None and rows < LEAST * len(schema.classes):
            raise RequestError(
                f"{rows} rows were asked for; at least {LEAST * len(schema.classes)} are drawn. Fewer are poured: say "
                "how many a class with --per-class."
            )
        return {"rows": ROWS if rows is None else rows, "labels": DRAWN, "init": "marginals", "init_seed": init_seed}
    m = sum(class_sizes(schema, per_class))
    if rows is not None:
        raise RequestError("rows and per_class are two ways to say how many: give one of them.")
    return {
        "per_class": plain_sizes(per_class), "fit_steps": default_steps(m), "fit_learning_rate": RATE,
        **(TERMS | terms), "labels": POURED, "init": "marginals", "init_seed": init_seed,
    }  # fmt: skip


def class_marginals(signal: Signal) -> ClassMarginals:
    """The signal's own, or uniform ones where it has none."""
    schema = signal.schema
    assert isinstance(schema, TableSchema)
    if signal.S is None or signal.plan is None:
        return uniform_marginals(marginals_for(schema, bins=16), len(schema.classes))
    cells = _cells(signal, "embeddings")
    first = _cells(signal, "spread").dim if "spread" in signal.recipe else 0
    if first + cells.dim != len(signal.S):
        raise RequestError("the signal's marginals are not its recipe's. Try `limbeck verify`.")
    return ClassMarginals.of(cells, signal.S[first:], signal.plan.n, count_noise(signal.plan, MARGINALS, cells))


def warp_of(signal: Signal) -> Warp:
    """How the signal's numbers were stretched before anything else was asked of them."""
    if "spread" not in signal.recipe or signal.S is None or signal.plan is None:
        return Warp.plain()
    spread = _cells(signal, "spread")
    if spread.dim > len(signal.S):
        raise RequestError("the signal's marginals are not its recipe's. Try `limbeck verify`.")
    return warp_by(spread, signal.S[: spread.dim], signal.plan.n, count_noise(signal.plan, SPREAD, spread))


def _cells(signal: Signal, name: str) -> Marginals:
    try:
        cells = from_config(signal.recipe[name], signal.schema.shape)
    except (KeyError, TypeError, ValueError):
        raise RequestError("the signal's recipe does not say its marginals. Try `limbeck verify`.") from None
    if not isinstance(cells, Marginals):
        raise RequestError("the signal's marginals are not its recipe's. Try `limbeck verify`.")
    return cells


def labelled_rows(
    signal: Signal,
    features: FeatureMap,
    drawn: ClassMarginals,
    rows: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " m"]]:
    """Encoded rows from the marginals, and the classes that the teacher gives them."""
    assert isinstance(signal.schema, TableSchema)
    wanted = apportioned(drawn.counts, rows, LEAST)
    x = drawn.draw(np.repeat(np.arange(len(wanted)), wanted), rng)
    x = as_released(signal.schema, np.asarray(warp_of(signal).inverse(jnp.asarray(x))))
    f = features_of(features, x, progress=progress) @ np.asarray(centred(jnp.asarray(signal.W)))
    order = rng.permutation(rows)
    return x[order], with_shares(f, wanted)[order]


def with_shares(f: Float[np.ndarray, "m C"], wanted: Int[np.ndarray, " C"]) -> Int[np.ndarray, " m"]:
    """The class of the largest logit after a shift a class, such that each class has about as many as wanted.

    Of two classes that is a threshold. Of more, shifts are moved until the shares are right; what is still wrong then
    is given to the classes that lack rows, those first that lie nearest to them.
    """
    shift = np.zeros(f.shape[1])
    scale = max(float(f.std()), 1e-6)
    for step in range(200):
        found = np.bincount((f + shift).argmax(axis=1), minlength=len(wanted))
        if np.array_equal(found, wanted):
            break
        shift += scale * 0.97**step * np.log((wanted + 1) / (found + 1)) / 2
    c = (f + shift).argmax(axis=1)
    for k in np.argsort(wanted):  # the rare ones first
        spare = np.bincount(c, minlength=len(wanted)) - wanted
        lacking = -spare[k]
        if lacking > 0:
            margin = (f + shift)[:, k] - (f + shift)[np.arange(len(c)), c]
            margin[spare[c] <= 0] = -np.inf
            nearest = np.argsort(-margin, kind="stable")[:lacking]
            c[nearest[margin[nearest] > -np.inf]] = k
    return c


def as_released(schema: TableSchema, x: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
    """Rows as a reader will have them, encoded again: what is labelled is what goes out."""
    return schema.encoded(schema.decode(x))


def _small(
    signal: Signal,
    features: FeatureMap,
    drawn: ClassMarginals,
    recipe: dict[str, Any],
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "m C"]]:
    """Few rows, as many of each class as were asked for, on which kernel ridge regression is the teacher."""
    schema = signal.schema
    assert isinstance(schema, TableSchema)
    sizes, row = class_sizes(schema, recipe["per_class"]), Relaxed.of(schema)
    pool, c = labelled_rows(signal, features, drawn, max(EXAMPLES, 4 * sum(sizes)), rng)
    terms = {name: recipe[name] for name in TERMS}
    W = centred(jnp.asarray(signal.W, jnp.float32))
    pouring = Pouring(Through(features, row), W, jnp.asarray(features_of(features, pool[:EXAMPLES])), **terms)
    start = np.concatenate([_some(np.flatnonzero(c == k), size, rng) for k, size in enumerate(sizes)])
    z, U = poured(pouring, row.inverse(pool[start]), steps=recipe["fit_steps"], progress=progress)
    if not bool(jnp.all(jnp.isfinite(z))):
        raise RequestError("the rows diverged: they are no longer finite. Try a larger ridge.")
    x = as_released(schema, np.asarray(row(z)))
    labels = eqx.filter_jit(Pouring.labels)(eqx.tree_at(lambda p: p.features, pouring, features), jnp.asarray(x), U)
    return x, _of_sizes(np.asarray(as_large_as_onehot(labels)), np.array(sizes))


def _of_sizes(y: Float[np.ndarray, "m C"], sizes: Int[np.ndarray, " C"]) -> Float[np.ndarray, "m C"]:
    """Labels of which each class has its number: rows that are nearest to a class that lacks some are given to it."""
    c = with_shares(y, sizes)
    return np.where((y.argmax(axis=1) == c)[:, None], y, centred_onehot(c, len(sizes))).astype(np.float32)


def _some(rows: Int[np.ndarray, " k"], number: int, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
    return rng.choice(rows, number, replace=len(rows) < number)
