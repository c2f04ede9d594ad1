"""Rows that gradients can move: every column as it is defined by itself, in a program that does not grow with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data import TableSchema
from limbeck.distill.relaxed import SHARPNESS, Relaxed

Y = {"name": "y", "kind": "target", "classes": ["a", "b"]}
COLUMNS = [
    {"name": "n", "kind": "numerical", "low": 0, "high": 1, "missing": "indicator"},
    {"name": "c", "kind": "categorical", "categories": ["u", "v", "w"], "missing": "indicator"},
    {"name": "b", "kind": "boolean", "missing": "indicator"},
    {"name": "o", "kind": "ordinal", "levels": [1, 2, 3, 4]},
    {"name": "one", "kind": "categorical", "categories": ["u"]},
    {"name": "two", "kind": "categorical", "categories": ["u", "z"]},
    {"name": "m", "kind": "numerical", "low": 0, "high": 1},
]


def by_column(schema, z, straight):
    """The same a column at a time."""
    parts = []
    for slot in schema.layout.slots:
        v = z[:, slot.start : slot.stop]
        if slot.is_group:
            soft = jax.nn.softmax(SHARPNESS * v)
            hard = jax.nn.one_hot(jnp.argmax(soft, axis=1), v.shape[1])
            parts.append(through(soft, hard, straight))
            continue
        x = jnp.clip(v, -1, 1)
        steps = {"boolean": 1, "ordinal": 3}.get(slot.column.kind)
        if steps:
            x = through(x, 2 * jnp.round((x + 1) / 2 * steps) / steps - 1, straight)
        if slot.indicator is not None:
            soft = jax.nn.sigmoid(SHARPNESS * z[:, slot.indicator : slot.indicator + 1])
            missing = through(soft, (soft > 0.5).astype(soft.dtype), straight)
            parts += [x * (1 - missing), missing]
        else:
            parts.append(x)
    return jnp.concatenate(parts, axis=1)


def through(soft, hard, straight):
    return soft + jax.lax.stop_gradient(hard - soft) if straight else soft


@pytest.mark.parametrize("straight", [True, False])
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[1:2], COLUMNS[-1:]], ids=["all", "categories", "numbers"])
def test_rows_and_their_gradients_are_those_of_each_column(columns, straight):
    schema = TableSchema(columns=[*columns, Y])
    rng = np.random.default_rng(0)
    z = jnp.asarray([*rng.normal(0, 1, (20, *schema.shape)), *rng.choice([-1, 0, 0.25, 1], (20, *schema.shape))])
    w = jnp.asarray(rng.normal(size=z.shape))
    row = Relaxed.of(schema, straight)
    np.testing.assert_allclose(row(z), by_column(schema, z, straight), atol=1e-6)
    given = jax.grad(lambda z: (w * row(z)).sum())(z)
    np.testing.assert_allclose(given, jax.grad(lambda z: (w * by_column(schema, z, straight)).sum())(z), atol=1e-5)


def test_a_program_for_two_thousand_columns_is_no_longer_than_for_two():
    def operations(k):
        columns = [column | {"name": f"{column['name']}{i}"} for i in range(k) for column in COLUMNS[:3]]
        schema = TableSchema(columns=[*columns, Y])
        return len(jax.make_jaxpr(Relaxed.of(schema).__call__)(jnp.zeros((2, *schema.shape))).eqns)

    assert operations(700) == operations(2)
