"""KIP: kernel inducing points (Nguyen, Chen & Lee 2021), with the features of Vinaroz & Park 2024."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limbeck.data import Schema, TableSchema
from limbeck.distill.inducing import (
    AtSupport,
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
)
from limbeck.distill.relaxed import AtRows, Relaxed
from limbeck.features import FeatureMap, Kernel
from limbeck.measure import Records, Session, Unprotected
from limbeck.privacy.guarantee import Guarantee
from limbeck.release import Release


@dataclass
class KIP:
    """Distil by kernel inducing points. **No privacy guarantee**: the output is a function of the raw data.

    Minimises, over the support X_s (and its labels Y_s if `learn_labels`), the loss of kernel ridge regression
    trained on the support and tested on the data,

        sum_t 1/2 | y_t - k(x_t, X_s) (K + lam tr(K)/m I)^-1 Y_s |^2,

    by Adam or SGD on random batches. Useful as the ceiling for private methods, and for data that is public.

    **Parameters**

    - `schema`: what the data may hold, declared.
    - `per_class`: support images a class; of a table, rows a class, or a number for each class by its name.
    - `features`: a name ("scattering", "fc-ntk", "table"), a map or a kernel; when None, scattering for images and
      fc-ntk for a table, whose rows fit the schema at every step (`relaxed.AtRows`).
    - `batch`, `epochs`, `learning_rate`, `optimiser`, `ridge` (lam), `learn_labels`: as in the paper's tables
      8 to 10, which `presets.kip` gives by name.
    - `init_seed`: the seed of the initial images; drawn afresh when None.

    **Attributes**: `release_`, `guarantee_` ("no privacy guarantee"), `soft_labels_` (m, C).

    **Example**

        X_s, y_s = KIP(schema, per_class=10).fit_resample(X, y)

    Departs from the paper in its initial images, which are N(0, I) here and real images there.
    """

    schema: Schema
    per_class: PerClass = 10
    features: str | FeatureMap | Kernel | None = None
    batch: Batch = 1000
    epochs: float = 50
    learning_rate: float = 0.01
    ridge: float = 1e-3
    optimiser: Optimiser = "adam"
    learn_labels: bool = False
    init_seed: int | None = None
    release_: Release = field(init=False, repr=False)

    def fit_resample(self, X, y=None, units=None, *, progress: Progress | None = None) -> tuple[Any, np.ndarray]:
        """Distil (X, y): records in declared units, images (m, H, W, C) or rows, and their labels (m,)."""
        self.fit(Records(self.schema, X, y, units), progress=progress)
        return self.release_.x, self.release_.labels

    def fit(self, records: Records, *, progress: Progress | None = None) -> "KIP":
        class_sizes(self.schema, self.per_class)
        batch = batch_size(self.batch, records.n)
        table = isinstance(self.schema, TableSchema)
        features = features_for(self.features or ("fc-ntk" if table else "scattering"), self.schema)
        look: Look = AtSupport(features, self.ridge)
        if isinstance(self.schema, TableSchema):
            look = AtRows(look, Relaxed.of(self.schema))
        records.prepare(features)
        seed = public_seed() if self.init_seed is None else self.init_seed
        steps = max(1, round(self.epochs * records.n / batch))
        x_s, y_s = descend(
            Session(records, Unprotected(records.n, batch)),
            look,
            *random_support(self.schema, self.per_class, seed),
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            steps=steps,
            learn_labels=self.learn_labels,
            progress=progress,
        )
        if isinstance(look, AtRows):
            x_s = look.row(x_s)
        self.guarantee_ = Guarantee("none")
        self.soft_labels_ = np.asarray(y_s)
        self.release_ = Release.of(
            self.schema,
            np.asarray(x_s),
            self.soft_labels_,
            self.guarantee_,
            recipe={
                "method": "KIP",
                "per_class": plain_sizes(self.per_class),
                "features": features.config(),
                "batch": batch,
                "epochs": self.epochs,
                "steps": steps,
                "learning_rate": self.learning_rate,
                "optimiser": self.optimiser,
                "ridge": self.ridge,
                "learn_labels": self.learn_labels,
                "init": "uniform" if table else "normal",
                "init_seed": seed,
            },
        )
        return self
