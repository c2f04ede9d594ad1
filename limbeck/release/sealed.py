"""A folder that goes out: written whole or not at all, with a certificate of everything in it, and read back."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.data import Schema, load_schema
from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Plan
from limbeck.release.certificate import Certificate, certificate, plan_of
from limbeck.release.contents import file_digest
from limbeck.release.signature import SIGNATURE, signed


@runtime_checkable
class Outgoing(Protocol):
    """What may go out: a release, or a signal."""

    @property
    def schema(self) -> Schema: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def recipe(self) -> dict: ...
    @property
    def plan(self) -> Plan | None: ...
    @property
    def ledger(self) -> dict[str, Any]: ...
    @property
    def derived_from(self) -> str | None: ...

    def write(self, folder: Path, name: str) -> None:
        """Its own files, the card included, into a folder that will be called `name`."""
        ...


def write_folder(content: Outgoing, path: Path, *, force: bool, sign: Ed25519PrivateKey | None) -> Path:
    """Write the folder, atomically, and signed if there is a key; an existing one is replaced only if `force`."""
    check_free(path, force)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        content.write(partial, path.name)
        _seal(content, partial, sign)
        partial.chmod(0o755 if content.guarantee.status == "private" else 0o700)
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


def _seal(content: Outgoing, folder: Path, key: Ed25519PrivateKey | None) -> None:
    """The public inputs, the certificate of all files, and its signature; all of it durable."""
    content.schema.to_json(folder / "schema.json")
    (folder / "recipe.json").write_text(json.dumps(content.recipe, indent=1) + "\n", encoding="utf-8")
    files = {str(p.relative_to(folder)): file_digest(p) for p in sorted(folder.rglob("*")) if p.is_file()}
    sealed = certificate(
        content.plan,
        content.guarantee,
        content.schema,
        content.recipe,
        files,
        content.ledger,
        derived_from=content.derived_from,
    )
    text = (sealed.model_dump_json(indent=1) + "\n").encode()
    (folder / "certificate.json").write_bytes(text)
    if key is not None:
        (folder / SIGNATURE).write_bytes(signed(text, key))
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as f:
                os.fsync(f.fileno())


def check_free(path: Path, force: bool) -> None:
    """Refuse to overwrite: asked before any data is read, and again before writing."""
    if path.exists() and not force:
        raise RequestError(f"{path} exists. Choose another --out, or replace it with --force.")


@dataclass(frozen=True)
class Stated:
    """What a folder says of itself; `limbeck verify` recomputes it."""

    certificate: Certificate
    schema: Schema
    recipe: dict
    guarantee: Guarantee
    plan: Plan | None


def read_stated(path: Path) -> Stated:
    """The certificate, schema and recipe of a folder; `OSError` or `ValueError` if one is missing or broken."""
    stated = Certificate.model_validate_json((path / "certificate.json").read_text(encoding="utf-8"))
    schema = load_schema(path / "schema.json")
    recipe = json.loads((path / "recipe.json").read_text(encoding="utf-8"))
    if stated.status == "private" and stated.epsilon is not None and stated.delta is not None:
        guarantee = Guarantee("private", stated.epsilon, stated.delta, stated.unit, stated.relation)
    else:
        guarantee = Guarantee("none" if stated.status == "private" else stated.status)
    guarantee = guarantee.with_schema(schema.provenance)
    return Stated(stated, schema, recipe, guarantee, plan_of(stated) if stated.measurements else None)
