"""The release folder: written whole or not at all, and read back."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.data import ImageSchema
from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Plan
from limbeck.release.card import card
from limbeck.release.certificate import NO_LEDGER, Certificate, certificate, digest_of, plan_of
from limbeck.release.contents import file_digest
from limbeck.release.pictures import write_pictures
from limbeck.release.signature import SIGNATURE, signed
from limbeck.release.verify import Verification, examine

if TYPE_CHECKING:
    from limbeck.evaluate import KRRClassifier


@dataclass(frozen=True)
class Release:
    """What goes out: a synthetic labelled set, what is promised about it, and how it was made.

    - `x` (m, H, W, C): images in the declared units; they are not held within the declared range.
    - `labels` (m,): the declared class of each. `soft` (m, classes): the centred targets.
    - `ledger`: the row of a budget ledger that the run was charged to: `{"status": "recorded", "dataset": ...,
      "run": ..., "grant": {"epsilon": ..., "delta": ...}}`, `{"status": "not used: --no-ledger"}`,
      or `{"status": "none"}`.
    """

    schema: ImageSchema
    x: np.ndarray
    labels: np.ndarray
    soft: np.ndarray
    guarantee: Guarantee
    recipe: dict
    plan: Plan | None = None
    ledger: dict[str, Any] = field(default_factory=lambda: dict(NO_LEDGER))

    @classmethod
    def of(
        cls,
        schema: ImageSchema,
        x_s: np.ndarray,
        y_s: np.ndarray,
        guarantee: Guarantee,
        recipe: dict,
        plan: Plan | None = None,
    ) -> "Release":
        """From an encoded support."""
        return cls(schema, schema.decode(x_s), schema.labels(y_s.argmax(axis=1)), y_s, guarantee, recipe, plan)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def encoded(self) -> np.ndarray:
        """The images as features see them: the declared range mapped to [-1, 1], and not held within it."""
        low, high = self.schema.low, self.schema.high
        return (2 * (self.x.astype(np.float64) - low) / (high - low) - 1).astype(np.float32)

    def classifier(self) -> "KRRClassifier":
        """The kernel ridge regression that the set was distilled for, fitted: a scikit-learn classifier."""
        from limbeck.evaluate import KRRClassifier
        from limbeck.features import from_config

        features = from_config(self.recipe["features"], self.schema.shape)
        return KRRClassifier.from_support(
            self.encoded, self.soft, features=features, schema=self.schema, ridge=self.recipe["ridge"]
        )

    def save(self, path: str | Path, *, force: bool = False, sign: Ed25519PrivateKey | None = None) -> Path:
        """Write the folder, atomically, and signed if there is a key; an existing one is replaced only if `force`."""
        path = Path(path)
        check_free(path, force)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            self._write(partial, path.name, sign)
            partial.chmod(0o755 if self.guarantee.status == "private" else 0o700)
            if path.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
                path.rename(old / path.name)
                partial.rename(path)
                shutil.rmtree(old)
            else:
                partial.rename(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return path

    def _write(self, folder: Path, name: str, key: Ed25519PrivateKey | None) -> None:
        np.savez_compressed(folder / "data.npz", x=self.x, y=_plain(self.labels), y_soft=self.soft)
        write_pictures(folder / "images", self.schema, self.x, self.labels)
        self.schema.to_json(folder / "schema.json")
        (folder / "recipe.json").write_text(json.dumps(self.recipe, indent=1) + "\n", encoding="utf-8")
        text = card(name, self.schema, len(self), self.guarantee, self.recipe, self.plan, self.ledger)
        (folder / "README.md").write_text(text, encoding="utf-8")
        files = {str(p.relative_to(folder)): file_digest(p) for p in sorted(folder.rglob("*")) if p.is_file()}
        inputs = {"schema": self.schema.digest(), "recipe": digest_of(self.recipe)}
        sealed = certificate(self.plan, self.guarantee, self.schema.rows_per_unit, inputs, files, self.ledger)
        content = (sealed.model_dump_json(indent=1) + "\n").encode()
        (folder / "certificate.json").write_bytes(content)
        if key is not None:
            (folder / SIGNATURE).write_bytes(signed(content, key))
        for file in folder.rglob("*"):
            if file.is_file():
                with file.open("rb") as f:
                    os.fsync(f.fileno())


def load(path: str | Path) -> Release:
    """Read a release folder: arrays, schema, guarantee as stated. `limbeck verify` recomputes the guarantee."""
    path = Path(path)
    try:
        stated = Certificate.model_validate_json((path / "certificate.json").read_text(encoding="utf-8"))
        schema = ImageSchema.from_json(path / "schema.json")
        recipe = json.loads((path / "recipe.json").read_text(encoding="utf-8"))
        with np.load(path / "data.npz", allow_pickle=False) as z:
            x, y, soft = z["x"], z["y"], z["y_soft"]
    except (OSError, ValueError, KeyError) as error:
        raise RequestError(
            f"{path} is not a release folder: its certificate.json, schema.json, recipe.json or data.npz is missing "
            f"or broken ({type(error).__name__}). Try `limbeck verify {path}`."
        ) from None
    if stated.status == "private" and stated.epsilon is not None and stated.delta is not None:
        guarantee = Guarantee("private", stated.epsilon, stated.delta, stated.unit, stated.relation)
    else:
        guarantee = Guarantee("none" if stated.status == "private" else stated.status)
    _, c = schema.encode(np.full((len(y), *schema.shape), schema.low), y)
    plan = plan_of(stated) if stated.measurements else None
    return Release(schema, x, schema.labels(c), soft, guarantee, recipe, plan, stated.ledger)


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


def check_free(path: Path, force: bool) -> None:
    """Refuse to overwrite: asked before any data is read, and again before writing."""
    if path.exists() and not force:
        raise RequestError(f"{path} exists. Choose another --out, or replace it with --force.")


def _plain(labels: np.ndarray) -> np.ndarray:
    """Labels as numbers or text: an object array would need a pickle."""
    return labels.astype(str) if labels.dtype == object else labels
