"""Records of a table: units, null rows, and the same numbers whether it is a file or a frame."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from limbeck.data import TableSchema, read_table
from limbeck.errors import RequestError
from limbeck.features import TableFeatures
from limbeck.measure import Records, Session, WeightGradient
from limbeck.measure.fingerprint import fingerprint
from limbeck.privacy.plan import FullBatch, Measurement, Plan
from limbeck.privacy.stream import Stream

COLUMNS = [
    {"name": "a", "kind": "numerical", "low": 0, "high": 10},
    {"name": "b", "kind": "categorical", "categories": ["x", "y", "z"]},
    {"name": "t", "kind": "target", "classes": ["no", "yes"]},
]
SCHEMA = TableSchema(columns=COLUMNS)
PERSONS = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 2}])
PHI = TableFeatures.of(4, 2, (0,), width=8)


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.choice(["x", "y", "z"], n)
    t = np.where(rng.random(n) < 0.5, "yes", "no")
    return pd.DataFrame({"a": rng.uniform(0, 10, n), "b": b, "t": t, "who": rng.integers(0, n // 3, n)})


def answer(records, n, clip=1.0):
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=1, clip=clip, sigma=1e-9)
    session = Session(records, Plan(measurements=(measurement,), delta=1e-5), stream=Stream(0))
    records.prepare(PHI)
    return session.ask("g", lambda: WeightGradient(jnp.zeros((PHI.dim, 2))))


def test_a_file_and_a_frame_are_the_same_records(tmp_path):
    frame = table().drop(columns="who")
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv", SCHEMA)
    ways = [
        Records(SCHEMA, read.x, read.y, read.units),
        Records(SCHEMA, frame),
        Records(SCHEMA, frame.drop(columns="t"), frame["t"]),
        Records(SCHEMA, frame.drop(columns="t"), frame["t"].tolist()),
    ]
    answers = [answer(records, 300) for records in ways]
    assert all(records.n == 300 for records in ways)
    assert all(np.allclose(answers[0], other, atol=1e-6) for other in answers)
    assert len({fingerprint(records, b"key") for records in ways}) == 1


def test_a_null_row_adds_nothing_and_keeps_its_place():
    frame = table()
    spoilt = frame.astype({"a": object})
    spoilt.loc[0, "a"] = "what"
    without = answer(Records(SCHEMA, frame.iloc[1:]), 299) * 299
    assert np.allclose(answer(Records(SCHEMA, spoilt), 300) * 300, without, atol=1e-4)


def test_a_person_is_one_contribution_of_their_first_rows(tmp_path):
    frame = table()
    records = Records(PERSONS, frame)
    assert records.n == frame["who"].nunique()
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv", PERSONS)
    assert Records(PERSONS, read.x, read.y, read.units).n == records.n
    whole = answer(records, records.n) * records.n
    # Rows of a person beyond the second change nothing, whatever they hold.
    third = frame.groupby("who").cumcount() >= 2
    changed = frame.assign(a=np.where(third, 0.0, frame["a"]), t=np.where(third, "no", frame["t"]))
    assert np.allclose(answer(Records(PERSONS, changed), records.n) * records.n, whole, atol=1e-4)
    # And all of a person's rows together move the answer by no more than C.
    absent = frame.astype({"t": object})
    absent.loc[frame["who"] == frame["who"][0], "t"] = None
    moved = answer(Records(PERSONS, absent), records.n, clip=0.3) - answer(records, records.n, clip=0.3)
    assert np.linalg.norm(moved * records.n) <= 0.3


def test_persons_without_a_column_or_labels_are_refused():
    frame = table().drop(columns="who")
    with pytest.raises(RequestError, match="unit label"):
        Records(PERSONS, frame)
    assert Records(PERSONS, frame, units=["p"] * 200 + ["q"] * 100).n == 2
