"""Consistency can be forged by whoever has our code; a signature cannot."""

import base64
import json
import os
import shutil
import stat
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.errors import RequestError
from limbeck.privacy.guarantee import Guarantee
from limbeck.release import examine, load, verify
from limbeck.release.folder import sign_folder
from limbeck.release.signature import SIGNATURE, fingerprint, read_private, read_public, signed, write_keys
from tests.release.conftest import edit, make, mend

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


def unasked() -> bytes:
    raise AssertionError("no passphrase is needed")


@pytest.fixture
def authentic(tmp_path):
    return make().save(tmp_path / "authentic", sign=KEY)


def forgery(folder, out):
    """All of it recomputed, hashes, seals, event, curve and card, for more noise than there was."""
    true = load(folder)
    louder = true.plan.scaled(4)
    return replace(true, plan=louder, guarantee=Guarantee.of(louder, seeded=False)).save(out)


def test_a_signed_release_is_authenticated_by_its_key(authentic):
    found = examine(authentic, KEY.public_key())
    assert found.authenticated
    assert found.verdict == f"authenticated: signed by {fingerprint(KEY.public_key())}"


def test_without_the_key_it_is_consistent_and_says_who_signed(authentic):
    found = examine(authentic)
    assert found.consistent
    assert not found.authenticated
    by = fingerprint(KEY.public_key())
    assert found.verdict == f"consistent; signed by key {by}, which was not given: not authenticated"


def test_an_unsigned_release_is_consistent_and_no_more(saved):
    assert examine(saved).verdict == "consistent, not authenticated (the release is not signed)"
    (problem,) = verify(saved, KEY.public_key())
    assert problem.field == SIGNATURE
    assert "missing" in problem.message


def test_a_consistent_forgery_passes_unsigned_and_is_caught_by_the_signature(authentic, tmp_path):
    forged = forgery(authentic, tmp_path / "forged")
    found = examine(forged)
    assert found.verdict == "consistent, not authenticated (the release is not signed)"
    assert found.epsilon["stated"] < 0.3 * examine(authentic).epsilon["stated"]
    assert {p.field for p in verify(forged, KEY.public_key())} == {SIGNATURE}

    shutil.copy(authentic / SIGNATURE, forged)  # the true signature does not fit
    for key in (None, KEY.public_key(), OTHER.public_key()):
        assert {p.field for p in verify(forged, key)} == {SIGNATURE}

    (forged / SIGNATURE).write_bytes(signed((forged / "certificate.json").read_bytes(), OTHER))  # nor the forger's
    assert not examine(forged).authenticated
    (problem,) = verify(forged, KEY.public_key())
    assert problem.field == SIGNATURE
    assert fingerprint(OTHER.public_key()) in problem.message


def test_an_edit_below_the_accuracy_of_the_numbers_is_caught_too(authentic):
    edit(authentic / "certificate.json", lambda c: c.update(epsilon=c["epsilon"] * (1 - 1e-6)))
    mend(authentic)
    assert {p.field for p in verify(authentic, KEY.public_key())} == {SIGNATURE}


def test_a_changed_file_of_a_signed_release_is_not_authenticated(authentic):
    (authentic / "data.npz").write_bytes(b"other data")
    found = examine(authentic, KEY.public_key())
    assert not found.authenticated
    assert "data.npz" in {p.field for p in found.problems}


def test_another_key_fails(authentic):
    (problem,) = verify(authentic, OTHER.public_key())
    assert problem.field == SIGNATURE
    assert fingerprint(KEY.public_key()) in problem.message


def test_a_signature_of_another_release_fails(authentic, tmp_path):
    other = make(Guarantee("seeded")).save(tmp_path / "other", sign=KEY)
    shutil.copy(other / SIGNATURE, authentic)
    assert {p.field for p in verify(authentic, KEY.public_key())} == {SIGNATURE}


def test_a_signature_for_another_purpose_fails(authentic):
    content = (authentic / "certificate.json").read_bytes()
    algorithm, public, _ = signed(content, KEY).split()
    (authentic / SIGNATURE).write_bytes(b" ".join((algorithm, public, base64.b64encode(KEY.sign(content)))))
    assert {p.field for p in verify(authentic, KEY.public_key())} == {SIGNATURE}


@pytest.mark.parametrize(
    "broken",
    [
        lambda s: b"",
        lambda s: b"\xff" * 100,
        lambda s: s.replace(b"ed25519", b"rsa"),
        lambda s: s.split()[0] + b" " + s.split()[1],
        lambda s: s + s,
        lambda s: s[:-10] + b"\n",
        lambda s: s.replace(b" ", b"  "),
        lambda s: b"ed25519 AAAA " + s.split()[2],
        lambda s: s[:20] + (b"B" if s[20:21] == b"A" else b"A") + s[21:],
        lambda s: s[:70] + (b"B" if s[70:71] == b"A" else b"A") + s[71:],
    ],
)
def test_a_malformed_signature_fails_with_and_without_a_key(authentic, broken):
    (authentic / SIGNATURE).write_bytes(broken((authentic / SIGNATURE).read_bytes()))
    for key in (None, KEY.public_key()):
        assert {p.field for p in verify(authentic, key)} == {SIGNATURE}


@pytest.mark.parametrize("make_it", [os.mkdir, os.mkfifo, lambda p: os.symlink("certificate.json", p)])
def test_a_signature_that_is_no_plain_file_fails(copy, make_it):
    make_it(copy / SIGNATURE)
    assert {p.field for p in verify(copy, KEY.public_key())} == {SIGNATURE}


def test_an_existing_release_is_signed_if_it_verifies(copy, saved):
    assert sign_folder(copy, KEY).authenticated
    assert (copy / "certificate.json").read_bytes() == (saved / "certificate.json").read_bytes()
    assert {p.name for p in copy.parent.iterdir()} == {"release"}
    with pytest.raises(RequestError, match="signed already"):
        sign_folder(copy, OTHER)
    assert sign_folder(copy, OTHER, force=True).authenticated
    assert examine(copy, OTHER.public_key()).authenticated


def test_a_broken_release_is_not_signed(copy):
    edit(copy / "certificate.json", lambda c: c.update(epsilon=0.1))
    assert not sign_folder(copy, KEY).consistent
    assert not (copy / SIGNATURE).exists()


def test_a_release_without_a_guarantee_can_be_signed_and_still_promises_nothing(tmp_path):
    folder = make(Guarantee("none"), None).save(tmp_path / "kip", sign=KEY)
    found = examine(folder, KEY.public_key())
    assert found.authenticated
    assert found.guarantee == "no privacy guarantee"
    assert json.loads((folder / "certificate.json").read_text())["epsilon"] is None


# Key files


def test_keys_are_written_once_and_read_back(tmp_path):
    private, public, key = write_keys(tmp_path / "keys", "mine")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert read_private(private, unasked).public_key() == read_public(public) == key
    before = private.read_bytes()
    with pytest.raises(RequestError, match="never overwritten"):
        write_keys(tmp_path / "keys", "mine")
    assert private.read_bytes() == before
    private.unlink()
    with pytest.raises(RequestError, match=r"mine\.pub exists"):
        write_keys(tmp_path / "keys", "mine")
    assert not private.exists()


def test_a_passphrase_protects_the_key(tmp_path):
    private, _, key = write_keys(tmp_path, "mine", b"open sesame")
    assert b"ENCRYPTED" in private.read_bytes()
    assert read_private(private, lambda: b"open sesame").public_key() == key
    with pytest.raises(RequestError, match=r"passphrase of .*mine\.key is wrong"):
        read_private(private, lambda: b"guess")


@pytest.mark.parametrize("name", ["", "../mine", "a/b", "-x", ".hidden", "a b", "a\n"])
def test_a_key_has_a_plain_name(tmp_path, name):
    with pytest.raises(RequestError, match="name"):
        write_keys(tmp_path, name)


def foreign(kind: str) -> bytes:
    key = {
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
    }[kind]()
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"\xff\x00", b"-----BEGIN PRIVATE KEY-----\nAAAA", "rsa", "ec", None]
)
def test_a_bad_key_file_is_explained(tmp_path, content):
    path = tmp_path / "bad.key"
    if content is not None:
        path.write_bytes(foreign(content) if isinstance(content, str) else content)
    with pytest.raises(RequestError, match=r"bad\.key"):
        read_private(path, unasked)
    with pytest.raises(RequestError, match=r"bad\.key"):
        read_public(path)


def test_the_wrong_half_of_a_pair_is_explained(tmp_path):
    private, public, _ = write_keys(tmp_path, "mine")
    with pytest.raises(RequestError, match="is a public key"):
        read_private(public, unasked)
    with pytest.raises(RequestError, match="is a private key"):
        read_public(private)
    with pytest.raises(RequestError, match="folder"):
        read_public(tmp_path)
