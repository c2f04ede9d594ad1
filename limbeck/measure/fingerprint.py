"""A keyed fingerprint of records: tells the same records under another name, and tells an outsider nothing."""

import hmac

import numpy as np

from limbeck.measure.records import Records

BLOCK = 4096  # records turned into bytes at a time; the digest does not depend on it


def fingerprint(records: Records, key: bytes) -> str:
    """A digest of the records as a multiset: whatever their order, and whatever the file's format was.

    Each record's encoded pixels and class become one keyed hash; the hashes are added modulo 2^256, which forgets
    the order and keeps repetitions, and the sum is hashed again with their number. Without the key a guess of the
    data cannot be tried against the digest.

    It is a function of private records: it goes into the custodian's ledger, and nowhere else.
    """
    total = number = 0
    for _, x, c in records.encoded_blocks(BLOCK):
        # + 0.0 turns -0.0 into 0.0: equal pixels have equal bytes.
        pixels = np.ascontiguousarray(x.reshape(len(c), -1) + np.float32(0.0), "<f4")
        classes = np.ascontiguousarray(c, "<i4")
        number += len(c)
        for pixel_row, label in zip(pixels, classes, strict=True):
            digest = hmac.digest(key, b"record" + label.tobytes() + pixel_row.tobytes(), "sha256")
            total += int.from_bytes(digest, "little")
    summary = (total % 2**256).to_bytes(32, "little") + number.to_bytes(8, "little")
    return hmac.digest(key, b"records" + summary, "sha256").hex()
