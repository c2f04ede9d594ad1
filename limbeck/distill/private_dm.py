"""PrivateDM: distribution matching under differential privacy. Measure class sums once, fit images for ever."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from limbeck.data import ImageSchema
from limbeck.distill.decant import Decant
from limbeck.distill.inducing import Progress, check_per_class, sampling_of
from limbeck.distill.matching import Serves, class_sums, default_steps, fit_matched, matching_recipe
from limbeck.distill.measuring import Answers, Measuring
from limbeck.errors import RequestError
from limbeck.features import Embeddings, FeatureMap, Pixels
from limbeck.measure import Records, Session
from limbeck.measure.session import CHUNK
from limbeck.privacy.accounting import Relation
from limbeck.privacy.plan import FullBatch, Measurement, Noise, Plan, check_privacy
from limbeck.release import Release, Signal
from limbeck.release.contents import LIMIT

SUMS = "class sums"
NETWORKS, LEAST = 200, 10  # at most: more have brought nothing; at least, in which networks are made narrower first
WIDTHS = (64, 32, 16)
NOISE = 1.0  # the most on a class's mean embedding, which has norm one, in each network
SAMPLE = 0.05  # of the records, for each network
FEWEST = 200  # records of each class, on average, in a sample


@dataclass
class PrivateDM(Measuring):
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
    - `networks`, `width`, `depth`, `network_seed`: of the random networks, which are public. When None, as many as
      leave each class's mean with noise of norm one at most (`affordable`), and no more than 200.
    - `project`: to so many main directions of public images' embeddings; all when None.
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
    share: float = 0.8
    networks: int | None = None
    width: int | None = None
    depth: int = 3
    project: int | None = None
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

    @property
    def teacher(self) -> Decant:
        """The other half of the measurement."""
        return Decant(
            self.schema, epsilon=self.epsilon, delta=self.delta, per_class=self.per_class, features=self.features,
            ridge=self.ridge, relation=self.relation, noise=self.noise,
        )  # fmt: skip

    def embeddings(self, n: int) -> Embeddings:
        """What n units are seen by: as many networks, and as wide ones, as (epsilon, delta) lets them pay for."""
        H, W, C = self.schema.shape
        one = Embeddings((H, W, C), 1, WIDTHS[0], self.depth, seed=self.network_seed, project=self.project)
        made = [replace(one, width=width) for width in (WIDTHS if self.width is None else (self.width,))]
        if self.networks is not None:
            return replace(made[0], number=self.networks)
        numbers = [self.affordable(n, one.dim) for one in made]
        enough = next((i for i, K in enumerate(numbers) if K >= LEAST), -1)
        return replace(made[enough], number=int(np.clip(numbers[enough], LEAST, NETWORKS)))

    def affordable(self, n: int, dim: int) -> int:
        r"""The number of networks whose noise on a mean of n / C records' embeddings has a norm of `NOISE`.

        K sums share what one full-batch Gaussian would have, of multiplier sigma: each has sigma sqrt(K / (1 - share))
        in every coordinate, and its class means that over n / C. So K = (1 - share) (NOISE n / (C sigma))^2 / dim.
        """
        sigma = _sigma_of_one_sum(self.epsilon, self.delta, self.relation)
        return int((1 - self.share) * (NOISE * n / (len(self.schema.classes) * sigma)) ** 2 / dim)

    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""
        check_privacy(self.epsilon, self.delta)
        check_per_class(self.per_class)
        if not 0 < self.share < 1:
            raise RequestError(f"the teacher's share is {self.share}; it must lie between 0 and 1.")
        if self.networks is not None and self.networks < 1:
            raise RequestError(f"{self.networks} networks were asked for; at least 1 is needed.")
        self._check_size(self.embeddings(n))
        both = (self.teacher.measurement(n), self.sums(n))
        plan = Plan(measurements=both, delta=self.delta, relation=self.relation, unit=self.schema.unit)
        return plan.shared(self.epsilon, (self.share, 1 - self.share))

    def _check_size(self, embeddings: Embeddings) -> None:
        """Refuse a signal that would be too large to be read back, before anything is spent on it."""
        one, K = 4 * embeddings.dim * len(self.schema.classes), len(embeddings)
        if K * one > LIMIT:
            raise RequestError(
                f"the sums of {K} networks take {K * one / 2**20:.0f} MiB, and a signal holds "
                f"{LIMIT // 2**20}: at most {LIMIT // one} networks fit these images and classes."
            )

    def sums(self, n: int) -> Measurement:
        """One noisy sum a network, with sigma 1."""
        least, K = FEWEST * len(self.schema.classes), len(self.embeddings(n))
        batch = min(n, max(round(SAMPLE * n), least)) if self.batch is None else self.batch
        sampling = sampling_of(n, batch, K, self.delta, noise=self.noise, relation=self.relation)
        return Measurement(name=SUMS, sampling=sampling, steps=K, clip=1.0, sigma=1, noise=self.noise)

    def resolved_features(self) -> FeatureMap:
        """What the teacher sees: what is prepared first."""
        return self.teacher.resolved_features()

    def signal_recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of the measurement; public."""
        taught = self.teacher.signal_recipe(plan)
        own = {"share": self.share, "embeddings": self.embeddings(plan.n).config()}
        return taught | {"method": "PrivateDM", "batch": plan.measurement(SUMS).sampling.expected} | own

    def recipe(self, plan: Plan) -> dict[str, Any]:
        """Every hyper-parameter of both stages, so that a result can be repeated; public."""
        steps, refining = default_steps(self.per_class * len(self.schema.classes))
        fitted = matching_recipe(self.per_class, steps=steps, refining_steps=refining, **self._fit_settings)
        return self.signal_recipe(plan) | fitted

    def fitted(self, signal: Signal, progress: Progress | None) -> Release:
        return fit_matched(
            signal, self.per_class, features=self.resolved_features(), progress=progress, **self._fit_settings
        )

    def answers(self, session: Session, records: Records, plan: Plan, progress: Progress | None) -> Answers:
        """The teacher and the class sums."""
        features, embeddings = self.resolved_features(), self.embeddings(records.n)
        records.prepare(features)
        W = self.teacher.learned(session, features.dim, plan, progress)
        records.prepare(Pixels(embeddings.shape))
        return W, class_sums(lambda query: session.ask(SUMS, query), embeddings, progress)

    @property
    def _fit_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("serves", "ridge", "smoothness", "init_seed")}

    @property
    def units_at_a_time(self) -> int:
        return min(self.chunk, CHUNK) if self.teacher.forms_gradients else self.chunk


@lru_cache(maxsize=64)
def _sigma_of_one_sum(epsilon: float, delta: float, relation: Relation) -> float:
    check_privacy(epsilon, delta)
    once = Measurement(name=SUMS, sampling=FullBatch(n=1), steps=1, clip=1.0, sigma=1)
    (calibrated,) = Plan(measurements=(once,), delta=delta, relation=relation).calibrated(epsilon).measurements
    return calibrated.sigma
