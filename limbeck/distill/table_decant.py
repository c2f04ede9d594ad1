"""Decant for tables: a private teacher and private marginals, and rows that stand for both."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from limbeck.data import TableSchema
from limbeck.distill.decant import Decant
from limbeck.distill.inducing import PerClass, Progress, sampling_of
from limbeck.distill.marginal_rows import marginals_for
from limbeck.distill.measuring import Answers, Measuring
from limbeck.distill.table_fit import fit_table, table_recipe
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Marginals, Pixels
from limbeck.measure import ClassSums, Loss, Records, Session
from limbeck.measure.session import CHUNK
from limbeck.measure.store import store_bytes
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import Measurement, Noise, Plan, check_privacy
from limbeck.release import Release, Signal

MARGINALS = "class marginals"
FEWEST, MOST = 2, 32  # bins of a number
BATCH = 2**16  # expected units a step, of tables with more than twice as many
ROOM = 4 * 2**30  # bytes that features may take; beyond, they are computed at every step


@dataclass
class TableDecant(Measuring):
    r"""Distil a table into rows that train any classifier.

    (a) **Measure.** Two things, under one budget: a linear teacher on features of the rows, as `Decant` has it; and,
    once, how many rows of each class lie in each cell of each column (`Marginals`: categories, levels, and the declared
    range of a number cut evenly). Both are one `Signal`.

    (b) **Fit** (`fit_table`). Rows are drawn from the marginals of the classes and labelled by the teacher. `per_class`
    pours few rows instead.

    A row counts once in every column, so its counts have norm one after division by the root of their number, and the
    noise of a count is sigma times that root. Numbers have as many bins, by formula, as leave three times that noise to
    an average cell: a function of (epsilon, delta, n) and of the schema.

    **Guarantee.** (epsilon, delta) differential privacy for one unit (a row, or all rows of a person where the schema
    has a unit column), against zeroing it out, by PLD accounting of both measurements together. It is the signal's, and
    by post-processing that of all that is fitted to it.

    **Parameters**

    - `schema`: what the table may hold, declared.
    - `epsilon`, `delta`, `relation`, `noise`, `seed`, `init_seed`, `chunk`, `steps`, `learning_rate`, `loss`,
      `clip_norm`, `project`: as `Decant`'s.
    - `batch`: expected units of a step of the teacher, or "full"; when None, all of them, and of large tables 65,536.
    - `rows`: how many rows; 10,000 when None. `per_class`: rows a class, for a small set, or a number for
      each class by its name; None for drawn rows.
    - `share`: of the budget, to the teacher: of 1 / sigma^2, which is what Gaussian mechanisms compose by.
    - `features`: "table", or a finite map of encoded rows. `ridge`: of a small set.

    **Attributes**: `plan_`, `guarantee_`, `signal_`, `release_`.

    **Example**

        schema = TableSchema.from_json("schema.json")
        model = TableDecant(schema, epsilon=1)
        X_s, y_s = model.fit_resample(frame)
        model.release_.save("release")                  # data.csv, data.parquet, the certificate
    """

    schema: TableSchema
    epsilon: float = 1.0
    delta: float = 1e-5
    rows: int | None = None
    per_class: PerClass | None = None
    share: float = 0.5
    features: str | FeatureMap = "table"
    project: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    loss: Loss = "softmax"
    clip_norm: float = 1.0
    batch: int | Literal["full"] | None = None
    ridge: float = 1e-3
    relation: Relation = "zero-out"
    noise: Noise = "normal"
    init_seed: int | None = None
    seed: int | None = None
    chunk: int = 512

    def teacher(self, n: int) -> Decant:
        """The other half of the measurement, of n units."""
        names = ("epsilon", "delta", "features", "project", "steps", "learning_rate", "loss", "clip_norm")
        same = {name: getattr(self, name) for name in (*names, "relation", "noise", "chunk")}
        batch = self.batch or ("full" if n <= 2 * BATCH else BATCH)
        return Decant(self.schema, per_class=self.per_class or 1, batch=batch, **same)

    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""
        check_privacy(self.epsilon, self.delta)
        if not 0 < self.share < 1:
            raise RequestError(f"the teacher's share is {self.share}; it must lie between 0 and 1.")
        table_recipe(self.schema, self.rows, per_class=self.per_class, init_seed=None)
        both = (self.teacher(n).measurement(n), self.counts(n))
        plan = Plan(measurements=both, delta=self.delta, relation=self.relation, unit=self.schema.unit)
        return plan.shared(self.epsilon, (self.share, 1 - self.share))

    def counts(self, n: int) -> Measurement:
        """The marginals, with sigma 1."""
        sampling = sampling_of(n, "full", 1, self.delta)
        return Measurement(name=MARGINALS, sampling=sampling, steps=1, clip=1.0, sigma=1, noise=self.noise)

    def marginals(self, plan: Plan) -> Marginals:
        """The cells that are counted, by the noise that their counts will have."""
        m, columns = plan.measurement(MARGINALS), len(self.schema.layout.slots)
        bins = plan.n / (3 * len(self.schema.classes) * m.sigma * np.sqrt(columns))
        return marginals_for(self.schema, int(np.clip(bins, FEWEST, MOST)))

    def resolved_features(self) -> FeatureMap:
        """What the teacher sees."""
        return self.teacher(1).resolved_features()

    def kept_features(self, n: int) -> FeatureMap:
        """What is kept of n units while the teacher learns: its features, or rows where those take too much room."""
        features = self.resolved_features()
        rows = n * self.schema.rows_per_unit
        return features if store_bytes(rows, features.dim) <= ROOM else Pixels(self.schema.shape)

    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""
        own = {"method": "TableDecant", "share": self.share, "embeddings": self.marginals(plan).config()}
        return self.teacher(plan.n).signal_recipe(plan) | own

    def recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of both stages, so that a result can be repeated; public."""
        return self.signal_recipe(plan) | table_recipe(self.schema, self.rows, **self._fit_settings)

    def fitted(self, signal: Signal, progress: Progress | None) -> Release:
        features = self.resolved_features()
        return fit_table(signal, self.rows, features=features, progress=progress, **self._fit_settings)

    def answers(self, session: Session, records: Records, plan: Plan, progress: Progress | None) -> Answers:
        """The teacher and the marginals."""
        features, kept = self.resolved_features(), self.kept_features(records.n)
        records.prepare(kept)
        through = features if isinstance(kept, Pixels) else None
        W = self.teacher(records.n).learned(session, features.dim, plan, progress, through)
        records.prepare(Pixels(self.schema.shape))
        S = session.ask(MARGINALS, lambda: ClassSums(self.marginals(plan), self.schema.shape))
        return W, np.asarray(S)

    @property
    def _fit_settings(self) -> dict[str, Any]:
        small = {} if self.per_class is None else {"ridge": self.ridge}
        return {"per_class": self.per_class, "init_seed": self.init_seed} | small

    @property
    def units_at_a_time(self) -> int:
        return min(self.chunk, CHUNK) if self.teacher(1).forms_gradients else self.chunk
