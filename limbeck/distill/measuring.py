"""What methods share that measure once and fit afterwards: the way from records to a signal, and on to a release."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from limbeck.data import Schema
from limbeck.distill.inducing import Progress
from limbeck.measure import Records, Session
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.journal import Journal
from limbeck.privacy.plan import Plan
from limbeck.privacy.stream import Stream
from limbeck.release import Release, Signal

Answers = tuple[Float[Array, "F C"], np.ndarray | None]


class Measuring(ABC):
    """A method of two stages. It says what it plans, what it asks of a session, and how a set is fitted to the answers.

    The session, its secret stream and the guarantee are made here, and nowhere else: a method sees answers alone.
    """

    schema: Schema
    seed: int | None
    plan_: Plan
    guarantee_: Guarantee
    signal_: Signal
    release_: Release

    @abstractmethod
    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""

    @abstractmethod
    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""

    @property
    @abstractmethod
    def units_at_a_time(self) -> int:
        """How many a session computes with at once."""

    @abstractmethod
    def answers(self, session: Session, records: Records, plan: Plan, progress: Progress | None) -> Answers:
        """All that is ever asked of the records: the teacher's weights W, and sums S if there are any."""

    @abstractmethod
    def fitted(self, signal: Signal, progress: Progress | None) -> Release:
        """A set of the size that was asked for: post-processing."""

    def fit_resample(self, X, y=None, units=None, *, progress: Progress | None = None) -> tuple[Any, np.ndarray]:
        """Distil (X, y): records in declared units, images (m, H, W, C) or rows, and their labels (m,)."""
        self.fit(Records(self.schema, X, y, units), progress=progress)
        return self.release_.x, self.release_.labels

    def fit(
        self,
        records: Records,
        *,
        plan: Plan | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> "Measuring":
        """Measure, then fit; with a journal, an interrupted run can be continued without spending again."""
        self.release_ = self.fitted(self.measure(records, plan=plan, journal=journal, progress=progress), progress)
        return self

    def measure(
        self,
        records: Records,
        *,
        plan: Plan | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> Signal:
        """The signal: what sets of every size are fitted to, without the records."""
        self.plan_ = plan = plan or self.plan(records.n)
        stream = Stream(self.seed)
        session = Session(records, plan, stream=stream, journal=journal, chunk=self.units_at_a_time)
        W, S = self.answers(session, records, plan, progress)
        self.guarantee_ = Guarantee.of(plan, seeded=stream.seeded, sources=self.schema.provenance)
        self.signal_ = Signal(self.schema, np.asarray(W), self.guarantee_, self.signal_recipe(plan), plan, S=S)
        return self.signal_
