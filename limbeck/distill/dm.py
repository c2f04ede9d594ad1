"""DM: dataset condensation with distribution matching (Zhao & Bilen 2023), without privacy."""

from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from limbeck.data import ImageSchema
from limbeck.distill.inducing import Progress, batch_size, check_per_class, features_for, public_seed
from limbeck.distill.matching import made_up_support, mismatch, natural
from limbeck.errors import RequestError
from limbeck.features import Embedding, Embeddings, FeatureMap, Kernel, Pixels
from limbeck.features.embedding import CONSTANT
from limbeck.measure import ClassSums, Records, Session, Unprotected
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.stream import Stream
from limbeck.release import Release
from limbeck.release.certificate import FIXED_LABELS, REAL_RECORDS

Init = Literal["random", "real"]
INITS: dict[Init, str] = {"random": "dead leaves", "real": REAL_RECORDS}  # and what the recipe calls them


@dataclass
class DM:
    r"""Distil by distribution matching. **No privacy guarantee**: the output is a function of the raw data.

    Minimises, over the images X_s, how far the means of random networks' embeddings are from those of real images,

        E_{ϑ, ω}  sum_c | mean_{x in T_c} ψ_ϑ(A_ω(x)) - mean_{s in S_c} ψ_ϑ(A_ω(s)) |^2,

    with a new random ConvNet ϑ, a new augmentation ω (siamese: the same for real images and synthetic ones) and new
    real images T_c of every class at each step. Useful as the ceiling of `PrivateDM`, and for data that is public.

    **Parameters**

    - `schema`: what the data may hold, declared.
    - `per_class`: images a class.
    - `init`: what the images start from. "random": made-up dead leaves, in which there is no data. "real": records, as
      in the paper. **Such a set gives single records away**: many of its images remain recognisable as the records
      that they were, and its recipe, card and certificate say so.
    - `steps`, `learning_rate`: of Adam, whose rate falls to zero along a cosine. `batch`: real images of each class a
      step, all of them where there are fewer.
    - `width`, `depth`: of the networks.
    - `features`, `ridge`: of the kernel ridge regression that a release is read with. The images do not depend on them.
    - `init_seed`: of the initial images, networks, augmentations and batches; drawn afresh when None. The same seed and
      records make the same set.

    **Attributes**: `release_`, `guarantee_` ("no privacy guarantee").

    **Example**

        X_s, y_s = DM(schema, per_class=10).fit_resample(X, y)

    **Reference.** Zhao & Bilen, *Dataset condensation with distribution matching*, 2023. Departs from it in that
    embeddings are centred by public images and of unit norm, as `PrivateDM`'s are; in Adam, and fewer steps than their
    20,000 of SGD; in networks of 64 filters instead of 128, and 64 real images of each class a step instead of 256, for
    the sake of time (`width=128, batch=256` has theirs); and in the default of `init`, which is real there. A class
    without records keeps the images that it started with.
    """

    schema: ImageSchema
    per_class: int = 10
    init: Init = "random"
    steps: int = 1000
    batch: int = 64
    learning_rate: float = 0.05
    width: int = 64
    depth: int = 3
    features: str | FeatureMap | Kernel = "scattering"
    ridge: float = 1e-3
    init_seed: int | None = None
    release_: Release = field(init=False, repr=False)

    def fit_resample(self, X, y, units=None, *, progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distil (X, y): images in declared units (m, H, W, C) and their labels (m,)."""
        self.fit(Records(self.schema, X, y, units), progress=progress)
        return self.release_.x, self.release_.labels

    def fit(self, records: Records, *, progress: Progress | None = None) -> "DM":
        self.check()
        batch = batch_size(self.batch, records.n)
        features = features_for(self.features, self.schema)
        seed = public_seed() if self.init_seed is None else self.init_seed
        embeddings = self.embeddings(seed)
        records.prepare(Pixels(embeddings.shape))
        session = Session(records, Unprotected(records.n, batch), stream=Stream(seed))
        x_s, y_s = made_up_support(self.schema, self.per_class, seed)
        if self.init == "real":
            x_s = with_real(session, x_s, len(self.schema.classes))
        x_s = self._matched(session, embeddings, x_s, progress)
        self.guarantee_ = Guarantee("none")
        self.release_ = Release.of(
            self.schema,
            np.asarray(x_s),
            np.asarray(y_s),
            self.guarantee_,
            recipe={
                "method": "DM",
                "per_class": self.per_class,
                "features": features.config(),
                "ridge": self.ridge,
                "batch": batch,
                "steps": self.steps,
                "learning_rate": self.learning_rate,
                "embeddings": embeddings.config(),
                "valid_range": True,
                "labels": FIXED_LABELS,
                "init": INITS[self.init],
                "init_seed": seed,
            },
            whole=True,
        )
        return self

    def check(self) -> None:
        """Refuse settings that cannot be, before anything is read."""
        check_per_class(self.per_class)
        if self.init not in INITS:
            raise RequestError(f"init is {self.init!r}; {' or '.join(INITS)} is expected.")
        if self.steps < 1:
            raise RequestError(f"{self.steps} steps were asked for; at least 1 is needed.")
        if not 0 < self.learning_rate < float("inf"):
            raise RequestError(f"the learning rate is {self.learning_rate}; a positive number is expected.")
        if self.init_seed is not None and self.init_seed < 0:
            raise RequestError(f"init_seed is {self.init_seed}; it must be 0 or more.")

    def embeddings(self, seed: int) -> Embeddings:
        """One network and one augmentation a step."""
        H, W, C = self.schema.shape
        return Embeddings((H, W, C), self.steps, self.width, self.depth, seed=seed)

    def _matched(
        self, session: Session, embeddings: Embeddings, x_s: Float[Array, "m H W ch"], progress: Progress | None
    ) -> Float[Array, "m H W ch"]:
        moments = _ADAM.init(x_s)
        for t in range(self.steps):
            rate = jnp.float32(self.learning_rate * (1 + np.cos(np.pi * t / self.steps)) / 2)
            embedding = embeddings.made(t)
            M, found = class_means(session.class_sums(lambda: ClassSums(embedding, embeddings.shape)))  # noqa: B023
            x_s, moments = _step(embedding, jnp.asarray(M), jnp.asarray(found), x_s, moments, rate)
            if progress is not None:
                jax.block_until_ready(x_s)
                progress(t + 1, self.steps)
        return x_s


def with_real(session: Session, x_s: Float[Array, "m H W ch"], classes: int) -> Float[Array, "m H W ch"]:
    """The support with real records instead of made-up images, as far as each class has them. It gives them away."""
    per_class = len(x_s) // classes
    for c in range(classes):
        real = session.real(c, per_class)
        x_s = x_s.at[c * per_class : c * per_class + len(real)].set(real.reshape(len(real), *x_s.shape[1:]))
    return x_s


def class_means(S: Float[np.ndarray, "C F C"]) -> tuple[Float[np.ndarray, "C d"], Bool[np.ndarray, " C"]]:
    """The mean direction of each class's own embeddings, and whether it has any: S[c] is of a batch drawn for c.

    The last coordinate of an embedding is a constant, so a sum over its own last coordinate is a mean over a constant.
    """
    of_itself = S[np.arange(len(S)), :, np.arange(len(S))]
    found = of_itself[:, -1] > 0
    mean = of_itself[:, :-1] / np.where(found, of_itself[:, -1], 1)[:, None]
    return mean * np.float32(CONSTANT / np.sqrt(1 - CONSTANT**2)), found


_ADAM = optax.scale_by_adam()


@eqx.filter_jit
def _step(
    embedding: Embedding,
    M: Float[Array, "C d"],
    found: Bool[Array, " C"],
    x_s: Float[Array, "m H W ch"],
    moments: Any,
    rate: Float[Array, ""],
) -> tuple[Float[Array, "m H W ch"], Any]:
    """One step of Adam on the images of the classes that were found, within the range [-1, 1]."""
    slope = jax.grad(lambda x: mismatch(embedding, M, x))(x_s)
    moving = jnp.repeat(found, len(x_s) // len(M))[:, None, None, None]
    direction, moments = _ADAM.update(natural(jnp.where(moving, slope, 0.0)), moments)
    return jnp.clip(x_s - rate * natural(direction), -1, 1), moments
