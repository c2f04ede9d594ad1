"""The custodian's list of bad records: all of them, no others, and no values."""

import numpy as np
from PIL import Image

from limbeck.data import Images, ImageSchema, encoding, read
from limbeck.data.check import FINITE, LABEL, RANGE, UNREADABLE, bad_records

SCHEMA = ImageSchema(shape=(3, 2), classes=("cat", "dog"), low=0, high=10)


def test_good_records_are_not_listed():
    assert bad_records(Images(np.full((4, 3, 2), 10.0), ["cat", "dog"] * 2), SCHEMA) == []
    assert bad_records(Images([], []), SCHEMA) == []


def test_each_reason_in_the_order_of_the_records(monkeypatch):
    X = np.full((8, 3, 2), 5.0)
    X[0, 2, 0] = -np.inf
    X[1, 0, 0], X[2, 1, 1], X[3, 0, 0], X[6, 0, 0], X[6, 1, 0] = np.nan, 10.001, -1e300, np.inf, 11
    y = ["cat", "dog", "dog", "cat", "secret", "cat", None, "dog"]
    expected = [
        (0, FINITE),
        (1, FINITE),
        (2, RANGE),
        (3, RANGE),
        (4, LABEL),
        (6, LABEL),
        (6, FINITE),
        (6, RANGE),
    ]
    assert bad_records(Images(X, y), SCHEMA) == expected
    monkeypatch.setattr(encoding, "BLOCK", 12)
    assert bad_records(Images(X, y), SCHEMA) == expected


def test_a_list_of_images_of_any_kind():
    X = [
        np.zeros((3, 2)),
        np.zeros((2, 3)),
        None,
        np.zeros((3, 2), complex),
        np.full((3, 2), np.nan),
        "secret",
    ]
    assert bad_records(Images(X, ["cat"] * 6), SCHEMA) == [
        (1, "shape (2, 3) where (3, 2, 1) is declared"),
        (2, UNREADABLE),
        (3, UNREADABLE),
        (4, FINITE),
        (5, UNREADABLE),
    ]


def test_null_records_are_the_bad_ones_apart_from_the_range():
    rng = np.random.default_rng(0)
    X = rng.choice([0, 3, 10, 12, np.nan], (200, 3, 2), p=[0.3, 0.3, 0.3, 0.05, 0.05])
    y = rng.choice(["cat", "dog", "emu"], 200).tolist()
    null = np.flatnonzero(SCHEMA.encode(X, y)[1] < 0).tolist()
    bad = bad_records(Images(X, y), SCHEMA)
    assert sorted({i for i, reason in bad if reason != RANGE}) == null
    assert any(reason == RANGE for _, reason in bad)


def test_a_folder_names_the_file(tmp_path):
    for name in ("cat/a.png", "cat/b.png", "dog/c.png", "emu/d.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (2, 3), 7).save(tmp_path / name)
    Image.new("L", (4, 4), 7).save(tmp_path / "cat" / "b.png")
    (tmp_path / "dog" / "c.png").write_bytes(b"x")
    assert bad_records(read(tmp_path, SCHEMA), SCHEMA) == [
        (1, "shape (4, 4, 1) where (3, 2, 1) is declared (cat/b.png)"),
        (2, f"{UNREADABLE} (dog/c.png)"),
        (3, f"{LABEL} (emu/d.png)"),
    ]
