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
from jaxtyping import Array, ArrayLike, Float, Int

from limbeck.features.parallel import in_parallel
from limbeck.measure import grid
from limbeck.measure.clipping import clipped_sum, explicit, plain_sum
from limbeck.measure.records import Records
from limbeck.privacy.journal import Journal
from limbeck.privacy.plan import Measurement, Plan
from limbeck.privacy.stream import Stream

CHUNK = 64


@runtime_checkable
class Query(Protocol):
    """Public state, and how one unit contributes to the answer. A pytree, so that it passes through jit."""

    def contributions(self, inputs: Array, y: Array) -> Any:
        """Pure: a chunk of units (u, k, ...) -> one contribution each, a tree of (u, ...), not yet clipped."""
        ...

    def decoded(self, total: Any) -> Array:
        """Pure: a sum of contributions as an answer. Linear, and no norm grows: sensitivity carries over."""
        ...

    def mean(self, inputs: Array, y: Array) -> Any:
        """The same, averaged over the rows and unclipped: for sessions without a guarantee."""
        ...


@dataclass(frozen=True)
class Unprotected:
    """No clipping and no noise: what comes out carries no privacy guarantee. Batches are plain random subsets.

    `batch` units are drawn of all n, or of those of each class where a query is asked by class.
    """

    n: int
    batch: int


class Session:
    """Runs a plan on records.

    **Why this is private.** Each `ask` draws a batch by the plan's own sampler, sums contributions clipped to C
    (sensitivity at most C, see `clipped_sum`), adds N(0, sigma^2 C^2) from a secret cryptographic stream (or, on a
    grid of integers, a discrete Gaussian: see `grid`) and divides by a public constant: the very mechanism that the
    plan's event describes. No more answers are given than the plan has steps. Everything else that leaves is a
    function of these answers and of public state.

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
        self._once: dict[str, np.ndarray] = {}  # answers of measurements of one step, which a checkpoint keeps

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
        answer = self._replayed(name, step)
        if answer is None:
            answer = self._noisy_mean(measurement, query())
            if self._journal is not None:
                self._journal.append(name, step, answer)
        if measurement.steps == 1:
            self._once[name] = answer
        return answer

    def _replayed(self, name: str, step: int) -> np.ndarray | None:
        """An answer that the run has paid for already: in the journal, or kept in its last checkpoint."""
        if self._journal is None:
            return None
        stored = self._journal.replay(name, step)
        return stored if stored is not None else (self._journal.state() or {}).get(_kept(name))

    def class_sums(self, query: Callable[[], Query]) -> np.ndarray:
        """For each class, the query's exact sum over a batch of the units that have a record of it: (classes, ...).

        Unclipped, without noise, and drawn by what records hold: a session that has a plan refuses.
        """
        batch, asked = self._unprotected().batch, query()
        classes = range(len(self._records.schema.classes))
        chunks = ((c, chunk) for c in classes for chunk in self._chunks_of_class(c, batch))
        totals: list[Any] = [0.0 for _ in classes]
        for c, part in in_parallel(lambda one: (one[0], _sum(asked, *self._records.batch(one[1]))), chunks):
            totals[c] = totals[c] + np.asarray(part, np.float64)
        return np.stack(totals).astype(np.float32)

    def real(self, c: int, size: int) -> Float[np.ndarray, "k d"]:
        """At most `size` records of class c, of as many units, as they are: what is made of them gives them away.

        No plan has a price for this, so a session that has one refuses.
        """
        self._unprotected()
        inputs, y = self._records.batch(np.concatenate(self._chunks_of_class(c, size)))
        mine = np.where(np.isnan(y[..., 0]), -1, y.argmax(axis=-1)) == c
        first = mine.any(axis=1)
        return inputs[first, mine[first].argmax(axis=1)]

    def _unprotected(self) -> Unprotected:
        if not isinstance(self.plan, Unprotected):
            raise RuntimeError("a session with a plan gives what the plan holds: no exact sums, and no records")
        return self.plan

    def _chunks_of_class(self, c: int, size: int) -> Int[np.ndarray, "chunks u"]:
        """At most `size` random units with a record of class c, in one or more chunks of one shape, padded with -1."""
        units = self._records.of_class(c)
        units = self._stream.subset(units, size) if len(units) > size else units
        rounds = max(1, -(-len(units) // self._chunk))
        return np.pad(units, (0, rounds * self._chunk - len(units)), constant_values=-1).reshape(rounds, -1)

    def checkpoint(self, step: int, state: Any) -> None:
        """Let the journal keep the method's state, a pytree that these answers led to, instead of the answers.

        Answers that are given once stay beside it: what they led to need not be in the state.
        """
        if self._journal is not None and self._journal.snapshot_due():
            leaves = jax.tree.leaves(state)
            arrays = {f"leaf{i}": np.asarray(v) for i, v in enumerate(leaves)}
            arrays |= {_kept(name): answer for name, answer in self._once.items()}
            self._journal.snapshot({"step": np.array(step), **arrays})

    def restored(self, name: str, state: Any) -> tuple[int, Any]:
        """The step and state of the last checkpoint, or (0, state). Later answers are replayed by `ask`."""
        saved = self._journal.state() if self._journal is not None else None
        if saved is None:
            return 0, state
        self._asked[name] = step = int(saved["step"])
        leaves, tree = jax.tree.flatten(state)
        return step, jax.tree.unflatten(tree, [jnp.asarray(saved[f"leaf{i}"]) for i in range(len(leaves))])

    def _noisy_mean(self, measurement: Measurement, query: Query) -> np.ndarray:
        units = measurement.sampling.draw(self._stream)
        rounds = -(-len(units) // self._chunk)
        size = -(-len(units) // rounds)  # even chunks, at most the one asked for
        units = np.pad(units, (0, rounds * size - len(units)), constant_values=-1)
        add_up = self._noisy_integers if measurement.noise == "discrete" else self._noisy_floats
        total = add_up(measurement, query, units.reshape(rounds, size))
        return (total / measurement.sampling.expected).astype(np.float32)

    def _noisy_floats(self, measurement: Measurement, query: Query, chunks: np.ndarray) -> np.ndarray:
        C = measurement.clip

        def clipped(chunk: np.ndarray) -> np.ndarray:
            return np.asarray(_clipped_chunk(query, *self._records.batch(chunk), C), np.float64)

        total = sum(in_parallel(clipped, chunks), start=np.zeros(()))
        return total + self._stream.normal(total.shape) * (measurement.sigma * C)

    def _noisy_integers(self, measurement: Measurement, query: Query, chunks: np.ndarray) -> np.ndarray:
        C = measurement.clip

        def on_grid(chunk: np.ndarray) -> np.ndarray:
            return grid.exact_sum(np.asarray(_rounded_chunk(query, *self._records.batch(chunk), C)))

        total = sum(in_parallel(on_grid, chunks), start=np.zeros((), np.int64))
        return grid.in_units(grid.noisy(total, measurement.sigma, self._stream), C)

    def _exact(self, query: Query) -> Any:
        assert isinstance(self.plan, Unprotected)
        units = self._stream.subset(np.arange(self.plan.n), self.plan.batch)
        return jax.tree.map(np.asarray, _mean(query, *self._records.batch(units)))


def _kept(name: str) -> str:
    return f"answer to {name}"


# Private arrays are arguments here and never constants: constants reach compilation caches.
@eqx.filter_jit
def _clipped_chunk(query: Query, inputs: ArrayLike, y: ArrayLike, clip: float) -> Array:
    return query.decoded(clipped_sum(query.contributions(jnp.asarray(inputs), jnp.asarray(y)), clip))


@eqx.filter_jit
def _rounded_chunk(query: Query, inputs: ArrayLike, y: ArrayLike, clip: float) -> Array:
    contributions = explicit(query.contributions(jnp.asarray(inputs), jnp.asarray(y)))
    return grid.rounded(jax.vmap(query.decoded)(contributions), clip)


@eqx.filter_jit
def _sum(query: Query, inputs: ArrayLike, y: ArrayLike) -> Array:
    return query.decoded(plain_sum(query.contributions(jnp.asarray(inputs), jnp.asarray(y))))


@eqx.filter_jit
def _mean(query: Query, inputs: ArrayLike, y: ArrayLike) -> Any:
    return query.mean(jnp.asarray(inputs), jnp.asarray(y))
