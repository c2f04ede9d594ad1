"""PrivateDM: distribution matching under differential privacy. Measure class sums once, fit images for ever."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limbeck.data import ImageSchema
from limbeck.distill.decant import Decant
from limbeck.distill.inducing import Progress, check_per_class, sampling_of
from limbeck.distill.matching import REFINING_STEPS, STEPS, Serves, class_sums, fit_matched, matching_recipe
from limbeck.errors import RequestError
from limbeck.features import Embeddings, FeatureMap, Pixels
from limbeck.measure import Records, Session
from limbeck.measure.session import CHUNK
from limbeck.privacy.accounting import Relation
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.journal import Journal
from limbeck.privacy.plan import Measurement, Noise, Plan, check_privacy
from limbeck.privacy.stream import Stream
from limbeck.release import Release, Signal
from limbeck.release.contents import LIMIT

SUMS = "class sums"
NETWORKS = 200
SAMPLE = 0.05  # of the records, for each network
FEWEST = 200  # records of each class, on average, in a sample


@dataclass
class PrivateDM:
    r"""Match what random networks see of the data: images that people recognise and networks learn from.

    (a) **Measure.** For each of `networks` random ConvNets, the sum of its embeddings over the records of every class
    (`ClassSums`), of a Poisson sample; and a linear teacher, as `Decant` has it. Both are one `Signal`.

    (b) **Fit** (`fit_matched`). Images, a class at a time, whose embeddings have the measured means; then images on
    which the teacher agrees and, for `serves="both"`, on which kernel ridge regression is the teacher.

    A record's embedding has norm one and touches one class, so a sum has sensitivity one, whatever the classes' sizes.
    Its last coordinate is a constant: sums count the classes too, and means need no exact counts.

    **Guarantee.** (epsilon, delta) differential privacy for one unit, against zeroing it out, by PLD accounting of both
    measurements together. It is the signal's, and by post-processing that of all that is fitted to it. Networks,
    augmentation, what embeddings are centred by and initial images are made from public seeds.

    **Parameters**

    - `schema`, `epsilon`, `delta`, `relation`, `noise`, `seed`, `init_seed`, `chunk`: as `Decant`'s.
    - `per_class`: images a class. `serves`: "networks", or "both" networks and kernel ridge regression.
    - `share`: of the budget, to the teacher. As shares of 1 / sigma^2, which is what Gaussian mechanisms compose by.
    - `networks` (200 when None), `width`, `depth`, `network_seed`: of the random networks, which are public.
    - `batch`: expected units of a sample; 5% of them, and no fewer than 200 a class, when None.
    - `features`, `ridge`, `smoothness`: of the teacher and of the fit.

    **Attributes**: `plan_`, `guarantee_`, `signal_`, `release_`.

    **Example**

        model = PrivateDM(schema, epsilon=1, per_class=10)
        X_s, y_s = model.fit_resample(X, y)
        fit_matched(model.signal_, per_class=50, serves="networks").save("larger")

    **References.** Zhao & Bilen, *Dataset condensation with distribution matching*, 2023; Zheng & Li, *Differentially
    private dataset condensation*, 2023, who noise sums along the way; Dosser (ICCV 2025), who sample the signal first.
    Departs from them in that embeddings are centred by public images and of unit norm, and in the teacher.
    """

    schema: ImageSchema
    epsilon: float = 1.0
    delta: float = 1e-5
    per_class: int = 10
    serves: Serves = "both"
    share: float = 0.5
    networks: int | None = None
    width: int = 64
    depth: int = 3
    network_seed: int = 0
    batch: int | None = None
    features: str | FeatureMap = "scattering"
    ridge: float = 1e-3
    smoothness: float = 0.0
    relation: Relation = "zero-out"
    noise: Noise = "normal"
    init_seed: int | None = None
    seed: int | None = None
    chunk: int = 256
    plan_: Plan = field(init=False, repr=False)
    guarantee_: Guarantee = field(init=False, repr=False)
    signal_: Signal = field(init=False, repr=False)
    release_: Release = field(init=False, repr=False)

    def fit_resample(self, X, y, units=None, *, progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distil (X, y): images in declared units (m, H, W, C) and their labels (m,)."""
        self.fit(Records(self.schema, X, y, units), progress=progress)
        return self.release_.x, self.release_.labels

    @property
    def teacher(self) -> Decant:
        """The other half of the measurement."""
        return Decant(
            self.schema, epsilon=self.epsilon, delta=self.delta, per_class=self.per_class, features=self.features,
            ridge=self.ridge, relation=self.relation, noise=self.noise,
        )  # fmt: skip

    @property
    def number(self) -> int:
        """Of networks."""
        return NETWORKS if self.networks is None else self.networks

    @property
    def embeddings(self) -> Embeddings:
        H, W, C = self.schema.shape
        return Embeddings((H, W, C), self.number, self.width, self.depth, seed=self.network_seed)

    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""
        check_privacy(self.epsilon, self.delta)
        check_per_class(self.per_class)
        if not 0 < self.share < 1:
            raise RequestError(f"the teacher's share is {self.share}; it must lie between 0 and 1.")
        if self.number < 1:
            raise RequestError(f"{self.number} networks were asked for; at least 1 is needed.")
        self._check_size()
        (taught,) = self.teacher.plan(n).measurements
        (summed,) = self._of(self.sums(n)).calibrated(self.epsilon).measurements
        shared = tuple(
            m.model_copy(update={"sigma": m.sigma / np.sqrt(share)})
            for m, share in ((taught, self.share), (summed, 1 - self.share))
        )
        return self._of(*shared).calibrated(self.epsilon)

    def _check_size(self) -> None:
        """Refuse a signal that would be too large to be read back, before anything is spent on it."""
        one = 4 * self.embeddings.dim * len(self.schema.classes)
        if self.number * one > LIMIT:
            raise RequestError(
                f"the sums of {self.number} networks take {self.number * one / 2**20:.0f} MiB, and a signal holds "
                f"{LIMIT // 2**20}: at most {LIMIT // one} networks fit these images and classes."
            )

    def sums(self, n: int) -> Measurement:
        """One noisy sum a network, with sigma 1."""
        least = FEWEST * len(self.schema.classes)
        batch = min(n, max(round(SAMPLE * n), least)) if self.batch is None else self.batch
        sampling = sampling_of(n, batch, self.number, self.delta, noise=self.noise, relation=self.relation)
        return Measurement(name=SUMS, sampling=sampling, steps=self.number, clip=1.0, sigma=1, noise=self.noise)

    def _of(self, *measurements: Measurement) -> Plan:
        return Plan(measurements=measurements, delta=self.delta, relation=self.relation, unit=self.schema.unit)

    def resolved_features(self) -> FeatureMap:
        """What the teacher sees: what is prepared first."""
        return self.teacher.resolved_features()

    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""
        taught = self.teacher.signal_recipe(plan)
        own = {"share": self.share, "embeddings": self.embeddings.config()}
        return taught | {"method": "PrivateDM", "batch": plan.measurement(SUMS).sampling.expected} | own

    def recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of both stages, so that a result can be repeated; public."""
        fitted = matching_recipe(self.per_class, steps=STEPS, refining_steps=REFINING_STEPS, **self._fit_settings)
        return self.signal_recipe(plan) | fitted

    def fit(
        self,
        records: Records,
        *,
        plan: Plan | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> "PrivateDM":
        """Measure, then fit; with a journal, an interrupted run can be continued without spending again."""
        signal = self.measure(records, plan=plan, journal=journal, progress=progress)
        self.release_ = fit_matched(
            signal, self.per_class, features=self.resolved_features(), progress=progress, **self._fit_settings
        )
        return self

    def measure(
        self,
        records: Records,
        *,
        plan: Plan | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> Signal:
        """The teacher and the class sums: all that is ever asked of the records."""
        self.plan_ = plan = plan or self.plan(records.n)
        stream, features = Stream(self.seed), self.resolved_features()
        session = Session(records, plan, stream=stream, journal=journal, chunk=self.units_at_a_time)
        records.prepare(features)
        W = self.teacher.learned(session, features.dim, plan, progress)
        records.prepare(Pixels(self.embeddings.shape))
        S = class_sums(lambda query: session.ask(SUMS, query), self.embeddings, progress)
        self.guarantee_ = Guarantee.of(plan, seeded=stream.seeded)
        recipe = self.signal_recipe(plan)
        self.signal_ = Signal(self.schema, np.asarray(W), self.guarantee_, recipe, plan, S=S)
        return self.signal_

    @property
    def _fit_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("serves", "ridge", "smoothness", "init_seed")}

    @property
    def units_at_a_time(self) -> int:
        return min(self.chunk, CHUNK) if self.teacher.forms_gradients else self.chunk
