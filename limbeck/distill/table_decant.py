"""Decant for tables: a private teacher and private marginals, and rows that stand for both."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from limbeck.data import TableSchema
from limbeck.distill.decant import Decant
from limbeck.distill.inducing import PerClass, Progress, sampling_of
from limbeck.distill.marginal_rows import MARGINALS, SPREAD, count_noise, marginals_for, spread_for, warp_by
from limbeck.distill.measuring import Answers, Measuring
from limbeck.distill.table_fit import fit_table, table_recipe
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Marginals, Pixels, Warp, Warped
from limbeck.measure import ClassSums, Loss, Records, Session
from limbeck.measure.session import CHUNK
from limbeck.measure.store import store_bytes
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import Measurement, Noise, Plan, check_privacy
from limbeck.release import Release, Signal

FEWEST, MOST = 2, 32  # bins of a number
FINEST = 64  # and of the first look at it
LOOK = 0.1  # of the budget, to that look
BATCH = 2**16  # expected units a step, of tables with more than twice as many
ROOM = 4 * 2**30  # bytes that features may take; beyond, they are computed at every step


@dataclass
class TableDecant(Measuring):
    r"""Distil a table into rows that train any classifier.

    (a) **Measure.** Three things, under one budget. Once, and first, how many rows lie in each piece of each number's
    declared range: numbers are then stretched where rows are dense (`Warp`), for all that follows, so that a range that
    was declared too wide costs little. Once, how many rows of each class lie in each cell of each column (`Marginals`:
    categories, levels, and the stretched range of a number cut evenly). And a linear teacher on features of the
    rows, as `Decant` has it. All are one `Signal`; a table without numbers has no first look.

    (b) **Fit** (`fit_table`). Counts of columns that are cut alike lend to each other, as far as noise explains how
    they differ. Rows are drawn from the marginals of the classes, half of them from mixtures of two, and labelled by
    the teacher. `per_class` pours few rows instead.

    A row counts once in every column, so its counts have norm one after division by the root of their number, and the
    noise of a count is sigma times that root. Numbers have as many bins, by formula, as leave three times that noise to
    an average cell: a function of (epsilon, delta, n) and of the schema.

    **Guarantee.** (epsilon, delta) differential privacy for one unit (a row, or all rows of a person where the schema
    has a unit column), against zeroing it out, by PLD accounting of all measurements together: what is asked later
    depends on earlier answers, which is adaptive composition. It is the signal's, and by post-processing that of all
    that is fitted to it.

    **Parameters**

    - `schema`: what the table may hold, declared.
    - `epsilon`, `delta`, `relation`, `noise`, `seed`, `init_seed`, `chunk`, `steps`, `learning_rate`, `loss`,
      `clip_norm`, `project`: as `Decant`'s.
    - `batch`: expected units of a step of the teacher, or "full"; when None, all of them, and of large tables 65,536.
    - `rows`: how many rows; 10,000 when None. `per_class`: rows a class, for a small set, or a number for
      each class by its name; None for drawn rows.
    - `share`: to the teacher, of what the first look leaves of the budget: of 1 / sigma^2, by which Gaussians compose.
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
        look = () if spread_for(self.schema, FEWEST) is None else (self.counts(n, SPREAD),)
        measurements = (self.teacher(n).measurement(n), self.counts(n, MARGINALS), *look)
        left = 1 - LOOK * len(look)
        shares = (self.share * left, (1 - self.share) * left, LOOK)[: len(measurements)]
        plan = Plan(measurements=measurements, delta=self.delta, relation=self.relation, unit=self.schema.unit)
        return plan.shared(self.epsilon, shares)

    def counts(self, n: int, name: str = MARGINALS) -> Measurement:
        """Counts of cells, asked for once, with sigma 1."""
        sampling = sampling_of(n, "full", 1, self.delta)
        return Measurement(name=name, sampling=sampling, steps=1, clip=1.0, sigma=1, noise=self.noise)

    def marginals(self, plan: Plan) -> Marginals:
        """The cells that are counted, by the noise that their counts will have."""
        m, columns = plan.measurement(MARGINALS), len(self.schema.layout.slots)
        bins = plan.n / (3 * len(self.schema.classes) * m.sigma * np.sqrt(columns))
        return marginals_for(self.schema, int(np.clip(bins, FEWEST, MOST)))

    def spread(self, plan: Plan) -> Marginals | None:
        """The even pieces in which numbers are looked at first: twice their noise, all classes together, to each."""
        rough = spread_for(self.schema, FEWEST)
        if rough is None:
            return None
        noise = plan.measurement(SPREAD).sigma * np.sqrt(len(rough.columns) * len(self.schema.classes))
        return spread_for(self.schema, int(np.clip(plan.n / (2 * noise), FEWEST, FINEST)))

    def resolved_features(self) -> FeatureMap:
        """What the teacher sees."""
        return self.teacher(1).resolved_features()

    def kept_features(self, n: int) -> FeatureMap:
        """What is kept of n units while the teacher learns: its features, or rows where those take too much room."""
        features = self.resolved_features()
        rows = n * self.schema.rows_per_unit
        return features if store_bytes(rows, features.dim) <= ROOM else Pixels(self.schema.shape)

    @property
    def first_seen(self) -> FeatureMap:
        """What of the records is needed first: they themselves, to see where numbers lie."""
        return Pixels(self.schema.shape)

    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""
        spread = self.spread(plan)
        own = {"method": "TableDecant", "share": self.share, "embeddings": self.marginals(plan).config()}
        own |= {} if spread is None else {"spread": spread.config()}
        return self.teacher(plan.n).signal_recipe(plan) | own

    def recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of both stages, so that a result can be repeated; public."""
        return self.signal_recipe(plan) | table_recipe(self.schema, self.rows, **self._fit_settings)

    def fitted(self, signal: Signal, progress: Progress | None) -> Release:
        features = self.resolved_features()
        return fit_table(signal, self.rows, features=features, progress=progress, **self._fit_settings)

    def answers(self, session: Session, records: Records, plan: Plan, progress: Progress | None) -> Answers:
        """Where numbers lie, then the marginals and the teacher; the first two are one array, one below the other."""
        records.prepare(self.first_seen)
        spread, warp, sums = self.spread(plan), Warp.plain(), []
        if spread is not None:
            sums = [np.asarray(session.ask(SPREAD, lambda: ClassSums(spread, self.schema.shape)))]
            warp = warp_by(spread, sums[0], plan.n, count_noise(plan, SPREAD, spread))
        cells = Warped(self.marginals(plan), warp)
        sums.append(np.asarray(session.ask(MARGINALS, lambda: ClassSums(cells, self.schema.shape))))
        features, through = Warped(self.resolved_features(), warp), None
        if isinstance(self.kept_features(records.n), Pixels):
            through = features
        else:
            records.prepare(features)
        W = self.teacher(records.n).learned(session, features.dim, plan, progress, through)
        return W, np.concatenate(sums)

    @property
    def _fit_settings(self) -> dict[str, Any]:
        small = {} if self.per_class is None else {"ridge": self.ridge}
        return {"per_class": self.per_class, "init_seed": self.init_seed} | small

    @property
    def units_at_a_time(self) -> int:
        return min(self.chunk, CHUNK) if self.teacher(1).forms_gradients else self.chunk
