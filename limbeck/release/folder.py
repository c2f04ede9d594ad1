"""The release: a synthetic labelled set, as a folder and read back."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.data import ImageSchema, Schema, TableSchema, encoding, of_images
from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Plan
from limbeck.release.card import card
from limbeck.release.certificate import NO_LEDGER
from limbeck.release.pictures import write_pictures
from limbeck.release.sealed import read_stated, write_folder
from limbeck.release.signature import SIGNATURE, signed
from limbeck.release.tables import read_plain_table, with_target, write_plain
from limbeck.release.verify import Verification, examine

if TYPE_CHECKING:
    import pandas as pd

    from limbeck.evaluate import KRRClassifier


@dataclass(frozen=True)
class Release:
    """What goes out: a synthetic labelled set, what is promised about it, and how it was made.

    - `x` (m, H, W, C): images in the declared units, held within the declared range (uint8) only if the recipe says so;
      or, of a table, a DataFrame of the declared columns but for the target, with nothing in it that does not fit them.
    - `labels` (m,): the declared class of each. `soft` (m, classes): the centred targets.
    - `ledger`: the row of a budget ledger that the run was charged to: `{"status": "recorded", "dataset": ...,
      "run": ..., "grant": {"epsilon": ..., "delta": ...}}`, `{"status": "not used: --no-ledger"}`,
      or `{"status": "none"}`.
    - `derived_from`: the SHA-256 of the certificate of the signal that it was fitted to, if it was: the plan and the
      ledger are then that signal's, and nothing further was spent.
    """

    schema: Schema
    x: Any
    labels: np.ndarray
    soft: np.ndarray
    guarantee: Guarantee
    recipe: dict
    plan: Plan | None = None
    ledger: dict[str, Any] = field(default_factory=lambda: dict(NO_LEDGER))
    derived_from: str | None = None

    def __post_init__(self) -> None:
        """What is promised counts the schema's price too, whatever made this."""
        object.__setattr__(self, "guarantee", self.guarantee.with_schema(self.schema.provenance))

    @classmethod
    def of(
        cls,
        schema: Schema,
        x_s: np.ndarray,
        y_s: np.ndarray,
        guarantee: Guarantee,
        recipe: dict,
        plan: Plan | None = None,
        *,
        whole: bool = False,
        **origin: Any,
    ) -> "Release":
        """From an encoded support, as whole numbers if it is `whole`; `origin` may say `ledger` and `derived_from`."""
        labels = schema.labels(y_s.argmax(axis=1))
        x = schema.decode(x_s, whole=whole) if isinstance(schema, ImageSchema) else schema.decode(x_s)
        return cls(schema, x, labels, y_s, guarantee, recipe, plan, **origin)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def encoded(self) -> np.ndarray:
        """What features see: the declared range mapped to [-1, 1], and not held within it by images; or rows."""
        return self.schema.encoded(self.x)

    @property
    def frame(self) -> "pd.DataFrame":
        """A table as it is released: the declared columns in their order, the target among them."""
        assert isinstance(self.schema, TableSchema)
        return with_target(self.schema, self.x, self.labels)

    def classifier(self) -> "KRRClassifier":
        """The kernel ridge regression that the set was distilled for, fitted: a scikit-learn classifier."""
        from limbeck.evaluate import KRRClassifier
        from limbeck.features import from_config

        if isinstance(self.schema, TableSchema):
            raise RequestError(
                "a table trains any classifier: read its data.csv or data.parquet, or `frame` in Python."
            )
        features = from_config(self.recipe["features"], self.schema.shape)
        return KRRClassifier.from_support(
            self.encoded, self.soft, features=features, schema=self.schema, ridge=self.recipe["ridge"]
        )

    def varied(self, n: int | None = None, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Variations of the images, and what the classifier says of each as probabilities: for training networks.

        There are n of them, or as many as `limbeck evaluate` shows networks.

        They are in the declared units, as `x` is, and a function of the release and of a public seed alone: whatever
        the release guarantees holds for them too.
        """
        from limbeck.evaluate import varied
        from limbeck.evaluate.training import label_probabilities
        from limbeck.evaluate.variation import VARIATIONS
        from limbeck.features import from_config

        schema = of_images(self.schema, "variations")
        features = from_config(self.recipe["features"], schema.shape)
        number = VARIATIONS if n is None else n
        x, y = varied(self.encoded, self.soft, features, self.recipe["ridge"], number, seed)
        return schema.decode(x, whole=self.x.dtype.kind == "u"), label_probabilities(y, "soft")

    def save(self, path: str | Path, *, force: bool = False, sign: Ed25519PrivateKey | None = None) -> Path:
        """Write the folder, atomically, and signed if there is a key; an existing one is replaced only if `force`."""
        return write_folder(self, Path(path), force=force, sign=sign)

    def write(self, folder: Path, name: str) -> None:
        """The data, its pictures or plain tables, and the card."""
        x = self.x if isinstance(self.schema, ImageSchema) else self.encoded
        np.savez_compressed(folder / "data.npz", x=x, y=_plain(self.labels), y_soft=self.soft)
        if isinstance(self.schema, ImageSchema):
            write_pictures(folder / "images", self.schema, self.x, self.labels)
        else:
            write_plain(folder, self.frame)
        text = card(
            name, self.schema, len(self), self.guarantee, self.recipe, self.plan, self.ledger, self.derived_from
        )
        (folder / "README.md").write_text(text, encoding="utf-8")


def load(path: str | Path) -> Release:
    """Read a release folder: arrays, schema, guarantee as stated. `limbeck verify` recomputes the guarantee."""
    path = Path(path)
    try:
        stated = read_stated(path)
        with np.load(path / "data.npz", allow_pickle=False) as z:
            x, y, soft = z["x"], z["y"], z["y_soft"]
        if isinstance(stated.schema, TableSchema):
            x = read_plain_table(path, stated.schema)
    except (OSError, ValueError, KeyError) as error:
        if (path / "signal.npz").is_file():
            raise RequestError(f"{path} is a signal: make a release of it with `limbeck fit {path}`.") from None
        raise RequestError(
            f"{path} is not a release folder: its certificate.json, schema.json, recipe.json or data.npz is missing "
            f"or broken ({type(error).__name__}). Try `limbeck verify {path}`."
        ) from None
    schema, said = stated.schema, stated.certificate
    c = encoding.class_indices(y if y.dtype.kind in encoding.REAL else y.tolist(), schema.classes)
    return Release(
        schema, x, schema.labels(c), soft, stated.guarantee, stated.recipe, stated.plan, said.ledger, said.derived_from
    )


def sign_folder(path: str | Path, key: Ed25519PrivateKey, *, force: bool = False) -> Verification:
    """Sign a release that is what its certificate says; one that is not is left alone, and the result says why."""
    path = Path(path)
    target = path / SIGNATURE
    if os.path.lexists(target) and not force:
        raise RequestError(f"{path} is signed already. Replace the signature with --force.")
    found = examine(path)
    if any(problem.field != SIGNATURE for problem in found.problems):
        return found
    content = (path / "certificate.json").read_bytes()
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.resolve().parent) as beside:
        new = Path(beside) / SIGNATURE
        with new.open("wb") as f:
            f.write(signed(content, key))
            f.flush()
            os.fsync(f.fileno())
        new.replace(target)
    return examine(path, key.public_key())


def _plain(labels: np.ndarray) -> np.ndarray:
    """Labels as numbers or text: an object array would need a pickle."""
    return labels.astype(str) if labels.dtype == object else labels
