"""The seam between measuring and fitting: a session owns the records and the plan, and answers queries.

A method sends a query that carries public state only (the current support) and receives a noisy array. It
never sees a record, a batch, a norm or a count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from limbeck.measure.records import Records
from limbeck.privacy.journal import Journal
from limbeck.privacy.plan import ROUNDING, Measurement, Plan
from limbeck.privacy.stream import Stream

CHUNK = 64


@runtime_checkable
class Query(Protocol):
    """Public state, and how one unit contributes to the answer. A pytree, so that it passes through jit."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def contributions(self, inputs: Array, y: Array) -> Array:
        """Pure: a chunk of units (u, k, ...) -> one contribution each (u, *shape), not yet clipped."""
        ...

    def mean(self, inputs: Array, y: Array) -> Any:
        """The same, averaged over the rows and unclipped: for sessions without a guarantee."""
        ...


@dataclass(frozen=True)
class Unprotected:
    """No clipping and no noise: what comes out carries no privacy guarantee. Batches are plain random subsets."""

    n: int
    batch: int


def clipped_sum(g: Float[Array, "u *shape"], clip: float) -> Float[Array, "*shape"]:
    """Sum over units of g_u * min(1, C / |g_u|), where a contribution that is not finite counts as zero.

    **Formal guarantee.** Removing one row changes the result by at most `clip` in l2 norm, whatever g holds.
    The norm is taken of the very numbers that are summed, so no cancellation can hide in it.

    | row | becomes |
    | --- | --- |
    | zeros | zeros |
    | any NaN or Inf, or an entry above 1e30 | zeros |
    | norm <= C | itself |
    """
    flat = g.reshape(g.shape[0], -1)
    largest = jnp.max(jnp.abs(flat), axis=1)
    usable = largest <= 1e30  # false for NaN and Inf; beyond it, reciprocals are subnormal and flushed to zero
    kept = jnp.where(usable[:, None], flat, 0.0)
    # Scaled by the largest entry, so that squares neither overflow nor vanish.
    scale = jnp.clip(jnp.where(usable, largest, 1.0), 1e-30, None)[:, None]
    norm = scale[:, 0] * jnp.sqrt(jnp.sum((kept / scale) ** 2, axis=1))
    factor = ROUNDING * jnp.minimum(1.0, clip / jnp.maximum(norm, 1e-30))
    return (factor @ kept).reshape(g.shape[1:])


class Session:
    """Runs a plan on records.

    **Why this is private.** Each `ask` draws a batch by the plan's own sampler, sums contributions clipped to C
    (sensitivity at most C, see `clipped_sum`), adds N(0, sigma^2 C^2) from a secret cryptographic stream and
    divides by a public constant: the very mechanism that the plan's event describes. No more answers are given
    than the plan has steps. Everything else that leaves is a function of these answers and of public state.

    **Parameters**

    - `records`, `plan`: what is measured, and how; the plan's n must be the records' number of units.
    - `stream`: secret randomness; a fresh one by default.
    - `journal`: where answers are stored durably before they are used, so that an interrupted run continues
      without spending again.
    - `chunk`: units computed at a time: sets the memory, changes nothing else but rounding.
    """

    def __init__(
        self,
        records: Records,
        plan: Plan | Unprotected,
        *,
        stream: Stream | None = None,
        journal: Journal | None = None,
        chunk: int = CHUNK,
    ):
        assert records.n == plan.n, "a plan is made for the records' public number of units"
        self.plan = plan
        self._records, self._stream, self._journal, self._chunk = records, stream or Stream(), journal, chunk
        self._asked: dict[str, int] = {}

    def ask(self, name: str, query: Callable[[], Query]) -> Any:
        """The next answer of the plan's measurement `name`: a noisy mean over the expected batch.

        The query comes as a function, called only if the answer is not in the journal already.
        """
        if isinstance(self.plan, Unprotected):
            return self._exact(query())
        measurement = self.plan.measurement(name)
        step = self._asked.get(name, 0)
        if step >= measurement.steps:
            raise RuntimeError(f"the plan holds {measurement.steps} answers of {name!r} and all have been given")
        self._asked[name] = step + 1
        if self._journal is not None and (stored := self._journal.replay(name, step)) is not None:
            return stored
        answer = self._noisy_mean(measurement, query())
        if self._journal is not None:
            self._journal.append(name, step, answer)
        return answer

    def checkpoint(self, step: int, state: Any) -> None:
        """Let the journal keep the method's state, a pytree that these answers led to, instead of the answers."""
        if self._journal is not None and self._journal.snapshot_due():
            leaves = jax.tree.leaves(state)
            self._journal.snapshot(
                {"step": np.array(step), **{f"leaf{i}": np.asarray(v) for i, v in enumerate(leaves)}}
            )

    def restored(self, name: str, state: Any) -> tuple[int, Any]:
        """The step and state of the last checkpoint, or (0, state). Later answers are replayed by `ask`."""
        saved = self._journal.state() if self._journal is not None else None
        if saved is None:
            return 0, state
        self._asked[name] = step = int(saved["step"])
        leaves, tree = jax.tree.flatten(state)
        return step, jax.tree.unflatten(tree, [jnp.asarray(saved[f"leaf{i}"]) for i in range(len(leaves))])

    def _noisy_mean(self, measurement: Measurement, query: Query) -> np.ndarray:
        sampling = measurement.sampling
        units = sampling.draw(self._stream)
        units = np.pad(units, (0, -len(units) % self._chunk), constant_values=-1)
        total = np.zeros(query.shape)
        for chunk in units.reshape(-1, self._chunk):
            inputs, targets = self._records.batch(chunk)
            total += np.asarray(_clipped_chunk(query, inputs, targets, measurement.clip), np.float64)
        noise = self._stream.normal(query.shape) * (measurement.sigma * measurement.clip)
        return ((total + noise) / sampling.expected).astype(np.float32)

    def _exact(self, query: Query) -> Any:
        assert isinstance(self.plan, Unprotected)
        units = self._stream.subset(np.arange(self.plan.n), self.plan.batch)
        return jax.tree.map(np.asarray, _mean(query, *self._records.batch(units)))


# Private arrays are arguments here and never constants: constants reach compilation caches.
@eqx.filter_jit
def _clipped_chunk(query: Query, inputs: ArrayLike, y: ArrayLike, clip: float) -> Array:
    return clipped_sum(query.contributions(jnp.asarray(inputs), jnp.asarray(y)), clip)


@eqx.filter_jit
def _mean(query: Query, inputs: ArrayLike, y: ArrayLike) -> Any:
    return query.mean(jnp.asarray(inputs), jnp.asarray(y))
