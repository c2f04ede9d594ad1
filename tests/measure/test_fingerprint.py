"""The fingerprint knows the same records whatever their order and format, and nothing without its key."""

import hashlib
import hmac
import re

import numpy as np
import pytest

from limbeck.data import ImageSchema
from limbeck.measure import Records
from limbeck.measure import fingerprint as module
from limbeck.measure.fingerprint import BLOCK, fingerprint

KEY = bytes(range(32))
SCHEMA = ImageSchema(shape=(4, 5, 1), classes=range(3), low=0, high=255)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (30, 4, 5), dtype=np.uint8), rng.integers(0, 3, 30)


def digest(x, y, key=KEY, schema=SCHEMA):
    return fingerprint(Records(schema, x, y), key)


def test_order_and_format_do_not_matter(data):
    x, y = data
    order = np.random.default_rng(1).permutation(len(y))
    same = {
        digest(x, y),
        digest(x[order], y[order]),
        digest(x.astype(np.float64).reshape(30, 20), [str(label) for label in y]),
        digest(list(x[..., None].astype(np.int64)), y.astype(np.float32)),
    }
    assert len(same) == 1
    assert re.fullmatch("[0-9a-f]{64}", same.pop())


def test_every_record_label_and_repetition_counts(data):
    x, y = data
    y[:2] = (0, 1)
    brighter, swapped, other = x.copy(), y.copy(), y.copy()
    brighter[7, 2, 2] ^= 1
    swapped[:2] = (1, 0)
    other[7] = (other[7] + 1) % 3
    digests = {
        digest(x, y), digest(brighter, y), digest(x, swapped), digest(x, other), digest(x[1:], y[1:]),
        digest(np.concatenate([x, x[:1]]), np.concatenate([y, y[:1]])),
    }  # fmt: skip
    assert len(digests) == 6


def test_another_key_another_digest(data):
    assert digest(*data) != digest(*data, key=bytes(32))


def test_null_records_keep_their_place(data):
    x, y = data
    broken = x.astype(np.float64)
    broken[3, 0, 0] = np.nan
    outside = y.copy()
    outside[3] = 99
    assert digest(broken, y) == digest(x, outside)  # both are the null record
    assert digest(broken, y) != digest(np.delete(x, 3, 0), np.delete(y, 3))


def test_blocks_join_seamlessly():
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 256, (BLOCK + 5, 4, 5), dtype=np.uint8), np.zeros(BLOCK + 5, int)
    turned = np.roll(np.arange(len(y)), 3)
    assert digest(x, y) == digest(x[turned], y[turned])


def by_hand(x, y):
    """Of everything at once, record by record, with the library's plain HMAC."""
    total = 0
    for pixels, label in zip(*SCHEMA.encode(x, y), strict=True):
        content = b"record" + int(label).to_bytes(4, "little", signed=True) + (pixels + 0.0).astype("<f4").tobytes()
        total += int.from_bytes(hmac.new(KEY, content, hashlib.sha256).digest(), "little")
    summary = (total % 2**256).to_bytes(32, "little") + len(y).to_bytes(8, "little")
    return hmac.new(KEY, b"records" + summary, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("size", [1, 7, 30, 31])
def test_the_digest_is_the_same_in_any_blocks(data, size, monkeypatch):
    x, y = data[0].astype(np.float64), data[1].copy()
    x[3, 0, 0], y[5], y[6] = np.nan, 99, 0
    monkeypatch.setattr(module, "BLOCK", size)
    assert digest(x, y) == digest(list(x), y.tolist()) == by_hand(x, y)


def test_the_digest_is_what_ledgers_hold():
    """Ledgers keep digests: another one for the same records would not be known again."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (30, 4, 5)).astype(np.float64), rng.integers(0, 3, 30)
    x[3, 0, 0], y[5] = np.nan, 99
    assert digest(x, y) == "7220fbcb910d8f1ad7bf2cae616ea5e9aa31f058de5ae6aca5400a87e47019dc"


def test_it_says_nothing(data, capfd):
    digest(*data)
    assert capfd.readouterr() == ("", "")
