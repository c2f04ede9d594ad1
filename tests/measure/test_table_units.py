"""Rows of one person: kept by that person's rows alone, clipped as one, sampled as one."""

import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data import TableSchema, read_table
from limbeck.features import TableFeatures
from limbeck.measure import Records, Session, WeightGradient
from limbeck.privacy.plan import FullBatch, Measurement, Plan, Poisson
from limbeck.privacy.stream import Stream
from tests.measure.test_table_records import COLUMNS, table

K, C = 3, 0.4
SCHEMA = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": K}])
PHI = TableFeatures.of(4, 2, (0,), width=8)
W = jnp.asarray(np.random.default_rng(1).normal(size=(PHI.dim, 2)), jnp.float32)


def people(n=90, seed=0):
    return table(n, seed).assign(who=[f"p{i}" for i in np.random.default_rng(seed).integers(0, 20, n)])


def rows_of(frame):
    """What is kept of each person, by name: the set of their inputs, whatever the order of persons is."""
    records = Records(SCHEMA, frame)
    records.prepare(PHI)
    inputs, y = records.batch(np.arange(records.n))
    kept = [
        np.concatenate([i[~np.isnan(t[:, 0])], t[~np.isnan(t[:, 0])]], axis=1) for i, t in zip(inputs, y, strict=True)
    ]
    return sorted(map(np.ndarray.tobytes, kept))


def test_which_rows_are_kept_depends_on_their_person_alone():
    """Whatever becomes of the others' rows: other places, other contents, none at all."""
    frame = people()
    mine = frame["who"] == frame["who"].mode()[0]
    assert mine.sum() > K
    alone = rows_of(frame[mine])
    rng = np.random.default_rng(2)
    for _ in range(5):
        others = frame[~mine].sample(frac=rng.uniform(0.2, 1), random_state=rng.integers(99))
        places = np.sort(rng.choice(len(others) + mine.sum(), mine.sum(), replace=False))
        order = np.full(len(others) + mine.sum(), -1)
        order[places] = np.flatnonzero(mine)
        order[order < 0] = others.index
        shuffled = frame.loc[order].reset_index(drop=True)
        assert alone[0] in rows_of(shuffled)
        assert len(rows_of(shuffled)) == shuffled["who"].nunique()


def slow_sum(frame, clip):
    """sum_u g_u min(1, C / |g_u|) with |g_u|^2 = sum_ij <phi_i, phi_j> <r_i, r_j>, person by person and row by row."""
    total = np.zeros((PHI.dim, 2))
    for _, rows in frame.groupby("who", sort=False):
        x, c = SCHEMA.encode(rows.head(K))
        phi = np.asarray(PHI(jnp.asarray(x)), np.float64)[c >= 0]
        r = phi @ np.asarray(W, np.float64) - (np.eye(2)[c[c >= 0]] - 0.5)
        squared = sum((phi[i] @ phi[j]) * (r[i] @ r[j]) for i in range(len(r)) for j in range(len(r)))
        g = sum((np.outer(phi[i], r[i]) for i in range(len(r))), start=np.zeros_like(total))
        assert np.isclose(np.linalg.norm(g) ** 2, squared)
        total += g * min(1, clip / np.sqrt(squared)) if squared > 0 else 0
    return total


@pytest.mark.parametrize("clip", [1e-2, C, 100.0])
@pytest.mark.parametrize("source", ["frame", "file"])
def test_a_persons_norm_is_that_of_their_rows_together(clip, source, tmp_path):
    frame = people().astype({"t": object})
    frame.loc[::7, "t"] = "perhaps"  # null rows count for nothing
    if source == "file":
        frame.to_csv(tmp_path / "t.csv", index=False)
        read = read_table(tmp_path / "t.csv", SCHEMA)
        records = Records(SCHEMA, read.x, read.y, read.units)
    else:
        records = Records(SCHEMA, frame)
    n = frame["who"].nunique()
    assert records.n == n
    measurement = Measurement(name="g", sampling=FullBatch(n=n), steps=1, clip=clip, sigma=1e-9)
    session = Session(records, Plan(measurements=(measurement,), delta=1e-5, unit="person"), stream=Stream(0), chunk=7)
    records.prepare(PHI)
    answer = session.ask("g", lambda: WeightGradient(W)) * n
    np.testing.assert_allclose(answer, slow_sum(frame, clip), rtol=3e-3, atol=1e-4 * clip)


def test_persons_are_sampled_and_not_rows():
    """A person joins a batch with all of their rows or with none, with probability q whatever their number."""
    frame = table(59).assign(who=["many"] * 50 + [f"p{i}" for i in range(9)])
    schema = TableSchema(columns=[*COLUMNS, {"name": "who", "kind": "unit", "rows": 50}])
    records = Records(schema, frame)
    assert records.n == 10
    sampling = Poisson(n=10, q=0.3, cap=10)
    drawn = [sampling.draw(Stream(seed)) for seed in range(400)]
    records.prepare(PHI)
    held = [np.sort((~np.isnan(records.batch(units)[1][..., 0])).sum(axis=1))[::-1] for units in drawn]
    assert {int(rows) for rows in np.concatenate(held)} <= {0, 1, 50}  # nobody comes in part
    assert 0.2 < np.mean([rows[0] == 50 for rows in held]) < 0.4
