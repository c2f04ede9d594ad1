"""The signal: what a measurement returned, noised. A release in itself, from which data of any size is fitted."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jaxtyping import Float

from limbeck.data import Schema
from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Plan
from limbeck.release.card import signal_card
from limbeck.release.certificate import NO_LEDGER
from limbeck.release.contents import Unreadable, array_shapes, file_digest, small_array
from limbeck.release.sealed import read_stated, write_folder

SIGNAL = "signal.npz"


@dataclass(frozen=True)
class Signal:
    """What was measured, under noise, what is promised about it, and how it was measured.

    - `W` (features, classes): a private teacher, the linear model on the recipe's features.
    - `S` (coordinates, classes): sums of the recipe's embeddings over each class, if they were asked for: what random
      networks see of images, one network below the other, or the marginals of a table.
    - `guarantee`, `recipe`, `plan`, `ledger`: as a `Release`'s. What is fitted to a signal carries them on: it is
      post-processing, so one run and one charge serve any number of sizes.
    - `digest`: the SHA-256 of the certificate of the folder that it was read from, by which what is fitted to it
      names it; None for a signal that was not read from a folder.
    """

    schema: Schema
    W: Float[np.ndarray, "F C"]
    guarantee: Guarantee
    recipe: dict
    plan: Plan | None
    ledger: dict[str, Any] = field(default_factory=lambda: dict(NO_LEDGER))
    digest: str | None = None
    S: Float[np.ndarray, "KF C"] | None = None

    def __post_init__(self) -> None:
        """What is promised counts the schema's price too, whatever made this."""
        object.__setattr__(self, "guarantee", self.guarantee.with_schema(self.schema.provenance))

    @property
    def derived_from(self) -> None:
        """A signal is measured, not derived."""
        return

    def save(self, path: str | Path, *, force: bool = False, sign: Ed25519PrivateKey | None = None) -> Path:
        """Write the folder, atomically, and signed if there is a key; an existing one is replaced only if `force`."""
        return write_folder(self, Path(path), force=force, sign=sign)

    def write(self, folder: Path, name: str) -> None:
        """The arrays and the card."""
        arrays: dict[str, Any] = {"W": self.W} | ({} if self.S is None else {"S": self.S})
        np.savez(folder / SIGNAL, **arrays)
        shapes = {array: values.shape for array, values in arrays.items()}
        text = signal_card(name, self.schema, shapes, self.guarantee, self.recipe, self.plan, self.ledger)
        (folder / "README.md").write_text(text, encoding="utf-8")


def load_signal(path: str | Path) -> Signal:
    """Read a signal folder: weights, schema, guarantee as stated. `limbeck verify` recomputes the guarantee."""
    path = Path(path)
    try:
        stated = read_stated(path)
        held = array_shapes(path / SIGNAL)
        W, S = (small_array(path / SIGNAL, name) if name in held or name == "W" else None for name in ("W", "S"))
        for array in (W, S):
            if array is not None and not _for_every_class(array, len(stated.schema.classes)):
                raise Unreadable("does not hold finite numbers for every class")
        assert W is not None
        digest = file_digest(path / "certificate.json")
    except (OSError, ValueError, KeyError) as error:
        hint = "; it is a release, which is fitted already" if (path / "data.npz").is_file() else ""
        raise RequestError(
            f"{path} is not a signal folder: its certificate.json, schema.json, recipe.json or {SIGNAL} is missing "
            f"or broken ({type(error).__name__}){hint}. `limbeck measure` makes one; `limbeck verify` checks it."
        ) from None
    ledger = stated.certificate.ledger
    return Signal(stated.schema, W, stated.guarantee, stated.recipe, stated.plan, ledger, digest, S)


def _for_every_class(array: np.ndarray, classes: int) -> bool:
    return array.ndim == 2 and array.shape[1] == classes and array.dtype.kind == "f" and bool(np.isfinite(array).all())
