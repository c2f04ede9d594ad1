"""DP-KIP: differentially private kernel inducing points (Vinaroz & Park 2024), Algorithm 1."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Array

from limbeck.data import Schema, TableSchema
from limbeck.distill.class_shares import SHARE, Labels, check_labels, counted_sizes, counts_measurement
from limbeck.distill.inducing import (
    MEASUREMENT,
    AtSupport,
    AtWeights,
    Batch,
    Look,
    Optimiser,
    PerClass,
    Progress,
    batch_size,
    class_sizes,
    descend,
    features_for,
    plain_sizes,
    public_seed,
    random_support,
    sampling_of,
)
from limbeck.distill.relaxed import AtRows, Relaxed
from limbeck.errors import RequestError
from limbeck.features import FeatureMap, Kernel, Whitened
from limbeck.measure import Records, Session
from limbeck.measure.session import CHUNK
from limbeck.privacy.accounting import Relation
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.journal import Journal
from limbeck.privacy.plan import Measurement, Noise, Plan, check_privacy
from limbeck.privacy.stream import Stream
from limbeck.release import Release

Clip = Literal["inputs", "pixels", "features"]
INPUTS = ("inputs", "pixels")  # the same of any records, and of images
IMAGES: dict[str, dict[str, Any]] = {
    "inputs": {
        "features": "scattering", "clip_norm": 1e-2, "batch": 500, "epochs": 2.0, "learning_rate": 0.1, "chunk": CHUNK,
    },
    "features": {
        "features": "scattering", "clip_norm": 1.0, "batch": "full", "epochs": 100.0, "learning_rate": 0.2,
        "chunk": 512,
    },
}  # fmt: skip
TABLES: dict[str, dict[str, Any]] = {
    "inputs": IMAGES["features"] | {"features": "fc-ntk", "clip_norm": 0.5, "learning_rate": 0.1},
    "features": IMAGES["features"] | {"features": "table", "learning_rate": 0.1},
}
UNSET: Any = None  # stands for what these have
LOGITS = 4.0  # how far apart the initial labels are where they are logits


@dataclass
class DPKIP:
    """Distil by kernel inducing points under differential privacy.

    Each step asks for the gradient of the KIP loss (see `KIP`) with respect to the support: every unit's gradient
    is clipped to `clip_norm`, their sum over a Poisson batch is noised, and a step is taken on it.

    **Guarantee.** (epsilon, delta) differential privacy for one unit (a record, or all rows of a person, as the
    schema declares), against zeroing it out, by PLD accounting of the truncated Poisson-sampled Gaussian mechanism
    that is run. The initial support carries no data, and its labels none or noisy counts.

    **Parameters**

    - `schema`: what the data may hold, declared: images (shape, classes, range, unit) or a table.
    - `epsilon`, `delta`, `relation`: the guarantee. Keep delta well below 1 / n.
    - `per_class`: support images a class; of a table, rows a class, or a number for each class by its name.
    - `features`: a name ("scattering", "fc-ntk", "table"), a map or a kernel.
    - `clip`: where gradients are clipped. "inputs" (of images also called "pixels"): in the support's own coordinates,
      the paper's Algorithm 1. "features": in the weights W(X_s, Y_s) of the ridge regression, with a softmax loss,
      pulled back to the support: one matrix product and one backward pass a step (`inducing.AtWeights`); needs a finite
      feature map, which is whitened by made-up images if it is one of images, by name. Labels of images are learned.
    - `labels`: of a table: "uniform" (`per_class`), or "counted": as many rows in all, shared out as the classes are by
      noisy counts, which `class_shares.SHARE` of the budget buys.
    - `clip_norm`: C, in inputs for the loss with its 1/2 and summed over classes.
    - `batch`: expected units a step, a share of them (below 1), or "full". `epochs`: passes over the data, batch / n of
      one a step.
    - `learning_rate`, `optimiser`, `ridge` (lam): in inputs, as in the paper's tables 11 to 15, which `presets` gives
      by name. What is not given is as `IMAGES` and `TABLES` have it.
    - `noise`: "normal", or "discrete": integers throughout, proof against floating-point attacks, accounted by RDP,
      so that more noise is needed (about a third more for Poisson batches).
    - `init_seed`: the seed of the initial images: public, stored, drawn afresh when None.
    - `seed`: makes the noise repeatable, for tests. What it makes is marked "not private: seeded".
    - `chunk`: units computed at a time; sets the memory.

    **Attributes**: `plan_`, `guarantee_`, `release_`.

    **Example**

        schema = ImageSchema(shape=(28, 28, 1), classes=range(10), low=0, high=255)
        model = DPKIP(schema, epsilon=1, per_class=10)
        X_s, y_s = model.fit_resample(X, y)
        model.release_.save("release")

    The defaults were chosen without the data that you give: on public datasets. Choosing among settings by looking at
    private records costs budget; `tune` charges it.

    Of a table, the numbers behind the support are what is moved, and its rows fit the schema at every step: what is
    asked about is what is released (`relaxed.AtRows`).

    Departs from the paper in what its guarantee needs: Poisson batches where its code shuffles, accounting by PLD,
    normalisation from the declared range where its code uses the data's mean and deviation, no balancing of a table's
    classes by dropping records.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    per_class: PerClass = 10
    features: str | FeatureMap | Kernel = UNSET
    clip: Clip = "inputs"
    labels: Labels = "uniform"
    clip_norm: float = UNSET
    batch: Batch = UNSET
    epochs: float = UNSET
    learning_rate: float = UNSET
    ridge: float = 1e-3
    optimiser: Optimiser = "adam"
    relation: Relation = "zero-out"
    noise: Noise = "normal"
    init_seed: int | None = None
    seed: int | None = None
    chunk: int = UNSET
    plan_: Plan = field(init=False, repr=False)
    guarantee_: Guarantee = field(init=False, repr=False)
    release_: Release = field(init=False, repr=False)

    def __post_init__(self):
        if self.clip not in (*INPUTS, "features"):
            raise RequestError(f"clip is {self.clip!r}; inputs (pixels, of images) or features is expected.")
        usual = TABLES if isinstance(self.schema, TableSchema) else IMAGES
        for name, value in usual["inputs" if self.clip in INPUTS else "features"].items():
            if getattr(self, name) is None:
                setattr(self, name, value)

    def fit_resample(self, X, y=None, units=None, *, progress: Progress | None = None) -> tuple[Any, np.ndarray]:
        """Distil (X, y): records in declared units, images (m, H, W, C) or rows, and their labels (m,)."""
        self.fit(Records(self.schema, X, y, units), progress=progress)
        return self.release_.x, self.release_.labels

    def plan(self, n: int) -> Plan:
        """What will be measured of n units, with the noise that (epsilon, delta) asks for. Reads no data."""
        check_privacy(self.epsilon, self.delta)
        check_labels(self.schema, self.labels, self.per_class)
        terms: dict[str, Any] = {"delta": self.delta, "relation": self.relation, "unit": self.schema.unit}
        gradients = self.measurement(n)
        if self.labels == "uniform":
            return Plan(measurements=(gradients,), **terms).calibrated(self.epsilon)
        both = (counts_measurement(n, self.delta, self.noise), gradients)
        return Plan(measurements=both, **terms).shared(self.epsilon, (SHARE, 1 - SHARE))

    def measurement(self, n: int, name: str = MEASUREMENT) -> Measurement:
        """The gradients that will be asked of n units, with sigma 1: a plan is calibrated as a whole."""
        class_sizes(self.schema, self.per_class)
        steps = max(1, round(self.epochs * n / batch_size(self.batch, n)))
        sampling = sampling_of(n, self.batch, steps, self.delta, noise=self.noise, relation=self.relation)
        return Measurement(name=name, sampling=sampling, steps=steps, clip=self.clip_norm, sigma=1, noise=self.noise)

    def resolved_features(self) -> FeatureMap | Kernel:
        features = features_for(self.features, self.schema)
        if self.clip in INPUTS:
            return features
        if not isinstance(features, FeatureMap):
            raise RequestError(
                "clip 'features' needs a finite feature map, as scattering or, of rows, table is: fc-ntk is clipped in "
                "inputs."
            )
        whitened = isinstance(self.features, str) and not isinstance(self.schema, TableSchema)
        return Whitened.of(features) if whitened else features

    def look(self, features: FeatureMap | Kernel) -> Look:
        """What each step asks of the records."""
        look: Look
        if self.clip in INPUTS:
            look = AtSupport(features, self.ridge, decays=isinstance(self.schema, TableSchema))
        else:
            assert isinstance(features, FeatureMap)
            look = AtWeights(features, self.ridge, "softmax")
        return AtRows(look, Relaxed.of(self.schema)) if isinstance(self.schema, TableSchema) else look

    @property
    def learns_labels(self) -> bool:
        """A table goes out with one class a row, so what is optimised for it is that."""
        return self.clip == "features" and not isinstance(self.schema, TableSchema)

    def recipe(self, plan: Plan, name: str = MEASUREMENT) -> dict:
        """Every hyper-parameter, so that a result can be repeated; public."""
        return {
            "method": "DPKIP",
            "clip": self.clip,
            "per_class": plain_sizes(self.per_class),
            "features": self.resolved_features().config(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "clip_norm": self.clip_norm,
            "noise": self.noise,
            "batch": self.batch,
            "epochs": self.epochs,
            "steps": plan.measurement(name).steps,
            "learning_rate": self.learning_rate,
            "optimiser": self.optimiser,
            "ridge": self.ridge,
            "labels": "learned" if self.learns_labels else f"{self.labels}, fixed",
            "init": "uniform" if isinstance(self.schema, TableSchema) else "normal",
            "init_seed": self.init_seed,
        }

    def fit(
        self,
        records: Records,
        *,
        plan: Plan | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> "DPKIP":
        """Distil records; with a journal, an interrupted run can be continued without spending again."""
        self.plan_ = plan = plan or self.plan(records.n)
        stream = Stream(self.seed)
        session = Session(records, plan, stream=stream, journal=journal, chunk=self.chunk)
        x_s, y_s, recipe = self.distilled(session, records, progress=progress)
        self.guarantee_ = Guarantee.of(plan, seeded=stream.seeded, sources=self.schema.provenance)
        self.release_ = Release.of(self.schema, np.asarray(x_s), np.asarray(y_s), self.guarantee_, recipe, plan)
        return self

    def distilled(
        self, session: Session, records: Records, *, name: str = MEASUREMENT, progress: Progress | None = None
    ) -> tuple[Array, Array, dict]:
        """The encoded support that the answers to one measurement of a session lead to, and its recipe."""
        assert isinstance(session.plan, Plan)
        seed = public_seed() if self.init_seed is None else self.init_seed
        features = self.resolved_features()
        records.prepare(features)
        look, scale = self.look(features), LOGITS if self.clip == "features" else 1.0
        per_class = self.per_class
        if self.labels == "counted":
            assert isinstance(per_class, int)
            per_class = counted_sizes(session, self.schema, per_class)
        x_s, y_s = random_support(self.schema, per_class, seed)
        x_s, y_s = descend(
            session,
            look,
            x_s,
            scale * y_s,
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            steps=session.plan.measurement(name).steps,
            learn_labels=self.learns_labels,
            measurement=name,
            progress=progress,
        )
        if isinstance(look, AtRows):
            x_s, y_s = look.row(x_s), y_s / scale
        return x_s, y_s, self.recipe(session.plan, name) | {"init_seed": seed}
