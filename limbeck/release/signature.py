"""Who wrote a release: a detached Ed25519 signature of its certificate, which holds the hashes of all other files.

`certificate.sig` is one line: `ed25519 PUBLIC-KEY SIGNATURE`, both in base64. What is signed is a fixed prefix, which
keeps a signature from meaning anything elsewhere, and the exact bytes of `certificate.json`. The public key in the line
tells *which* key signed; whose key that is, a reader must know from elsewhere, and hand over with `--key`.
"""

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from limbeck.errors import RequestError
from limbeck.release.contents import Unreadable, read_plain

SIGNATURE = "certificate.sig"
PURPOSE = b"limbeck release certificate, format 1\n"
ALGORITHM = b"ed25519"


def signed(certificate: bytes, key: Ed25519PrivateKey) -> bytes:
    """The content of `certificate.sig`."""
    fields = (key.public_key().public_bytes_raw(), key.sign(PURPOSE + certificate))
    return b" ".join((ALGORITHM, *map(base64.b64encode, fields))) + b"\n"


def signer(certificate: bytes, signature: bytes) -> Ed25519PublicKey:
    """The key that made this signature of this certificate; Unreadable if there is none."""
    try:
        algorithm, *fields = signature.removesuffix(b"\n").split(b" ")
        public, value = (base64.b64decode(field, validate=True) for field in fields)
        if algorithm != ALGORITHM or len(value) != 64:
            raise ValueError
        key = Ed25519PublicKey.from_public_bytes(public)
    except (ValueError, binascii.Error):
        raise Unreadable("is malformed: ed25519, a public key and a signature are expected, in one line") from None
    try:
        key.verify(value, PURPOSE + certificate)
    except InvalidSignature:
        raise Unreadable(f"is no signature of this certificate by key {fingerprint(key)}, which it names") from None
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """128 bits of the SHA-256 of the public key in DER; `openssl pkey -pubin -outform DER | sha256sum` begins so."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()[:32]


# Key files


def write_keys(folder: Path, name: str, passphrase: bytes | None = None) -> tuple[Path, Path, Ed25519PublicKey]:
    """A new pair, NAME.key (its owner's alone) and NAME.pub; nothing is overwritten."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise RequestError(f"the key's name is {name!r}; letters, digits, dots, dashes and underscores are expected.")
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    for path in (private, public):
        if os.path.lexists(path):
            raise RequestError(f"{path} exists, and a key is never overwritten. Choose another name or --out.")
    key = Ed25519PrivateKey.generate()
    protection = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_new(private, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, protection), 0o600)
        subject = serialization.PublicFormat.SubjectPublicKeyInfo
        _write_new(public, key.public_key().public_bytes(pem, subject), 0o644)
    except OSError as error:
        raise RequestError(f"the keys cannot be written to {folder}: {error.strerror}.") from None
    return private, public, key.public_key()


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as f:
        os.fchmod(f.fileno(), mode)
        f.write(content)
        f.flush()
        os.fsync(f.fileno())


def read_private(path: Path, passphrase: Callable[[], bytes]) -> Ed25519PrivateKey:
    """A key to sign with; `passphrase` is called only if the file is protected by one."""
    content = _pem(path)
    if b"PUBLIC KEY" in content:
        raise RequestError(
            f"{path} is a public key; signing takes the private one, which `limbeck keys new` calls .key."
        )
    given = passphrase() if b"ENCRYPTED" in content else None
    try:
        key: Any = serialization.load_pem_private_key(content, given)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = f"the passphrase of {path} is wrong, or the file is damaged." if given is not None else _no_key(path)
        raise RequestError(wrong) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise RequestError(_no_key(path))
    return key


def read_public(path: Path) -> Ed25519PublicKey:
    """A key to check signatures with."""
    content = _pem(path)
    if b"PRIVATE KEY" in content:
        raise RequestError(
            f"{path} is a private key; checking takes the public one, which `limbeck keys new` calls .pub."
        )
    try:
        key: Any = serialization.load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise RequestError(_no_key(path)) from None
    if not isinstance(key, Ed25519PublicKey):
        raise RequestError(_no_key(path))
    return key


def _pem(path: Path) -> bytes:
    """A key file may be a link, as it is the reader's own."""
    try:
        return read_plain(path.resolve())
    except Unreadable as error:
        raise RequestError(f"the key {path} {error}.") from None


def _no_key(path: Path) -> str:
    return f"{path} is not an Ed25519 key in PEM; make a pair with `limbeck keys new NAME`."
