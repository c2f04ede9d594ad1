"""The card: a release's README, with the header that the Hugging Face hub reads."""

import json
from typing import Any

from limbeck.data import ImageSchema, Schema, TableSchema
from limbeck.privacy.guarantee import Guarantee
from limbeck.privacy.plan import Plan
from limbeck.release.certificate import REAL_RECORDS, ledger_line, schema_origin

HOW = """## How it was made

| | |
| --- | --- |
{rows}

All settings are in `recipe.json`, what was declared about the data in `schema.json`.

## Check it

```
limbeck verify {name}
```

recomputes the guarantee from this folder alone and compares every file with `certificate.json`.
"""

CARD = (
    """---
pretty_name: {method} distillation, {per_class} images a class
task_categories:
- image-classification
tags:
- synthetic
- dataset-distillation
{tags}
size_categories:
- {size}
---

# A distilled dataset: {m} records for {classes} classes

**{statement}**

{explanation}

## Use it

```python
import limbeck
model = limbeck.load("{name}").classifier()   # kernel ridge regression on the set
model.predict(images)                         # raw images, shape {shape}, values {low:g} to {high:g}
```

or from the command line:

```
limbeck predict {name} FILE_OR_FOLDER --out predictions.csv
```

Networks of your own learn more from many variations of the set, labelled by that regression, than from {m} images:

```python
images, probabilities = limbeck.load("{name}").varied()
```

`data.npz` holds `x` ({m} images in the declared units, {held}), `y` (their labels) and `y_soft`
(the centred targets that the kernel ridge regression is trained on). `images/` shows them; `images/index.csv` gives
each picture's range.

"""
    + HOW
)

TABLE_CARD = (
    """---
pretty_name: {method} distillation of a table, {m} rows
task_categories:
- tabular-classification
tags:
- synthetic
- tabular
{tags}
size_categories:
- {size}
---

# A distilled table: {m} rows, {columns} columns, {classes} classes

**{statement}**

{explanation}

## Use it

```python
import pandas as pd
table = pd.read_parquet("{name}/data.parquet")   # or read_csv("{name}/data.csv")
X, y = table.drop(columns={target!r}), table[{target!r}]
```

The columns, their order and their types are those of the original table, but for columns that were dropped: whole
numbers are whole, categories are members of the declared lists, and bounds hold. Rows are made up: none stands for
anybody. `data.npz` holds the same rows as numbers (`x`, as the features see them), `y` and `y_soft`.

"""
    + HOW
)

SIGNAL_CARD = (
    """# A signal: private measurements from which datasets are fitted

**{statement}**

{explanation}

## Use it

```
limbeck fit {name} --per-class 10 --out release
```

makes a dataset of it, of any size and any number of times. That needs no private data and spends no further budget:
every dataset has the guarantee above, all of them together too, and names this signal in its certificate.

`signal.npz` holds, measured under noise,

{arrays}

"""
    + HOW
)

ARRAYS = {
    "W": "the weights of a linear model of {1} classes on {0} features;",
    "S": "sums over each of {1} classes of what random networks see in images, {0} coordinates together.",
}
TABLE_ARRAYS = ARRAYS | {"S": "how many rows of each of {1} classes lie in each of {0} cells of the columns, scaled."}

PRIVATE = """One {unit} of the original data, present or blanked out, changes the probability of any outcome of what is
in this folder by a factor of at most exp({epsilon:.4g}), but for a probability of {delta:g}. This holds whatever else a
reader knows. It does not say that {what} look anonymous, that groups of {unit}s are hidden, or that what is true
of the whole population cannot be learned: it is meant to be.{rows}"""

SEEDED = """The noise of this run came from a given seed, so whoever knows the seed can subtract it. It is for tests."""

NONE = """This set was made from the raw data without noise. It can give away single records. Treat it as you treat the
data itself."""

UNSAFE = """Bounds, categories or classes in `schema.json` were read from the data itself, so they, and whatever was
made with them, can give away single records. The noise of what was measured does not mend that. Treat this folder as
you treat the data itself."""

REAL_START = """Its images are real records that were changed a little, or not at all: whoever sees the set sees single
records of the data."""


def card(
    name: str,
    schema: Schema,
    m: int,
    guarantee: Guarantee,
    recipe: dict,
    plan: Plan | None,
    ledger: dict[str, Any],
    derived_from: str | None = None,
) -> str:
    """The README.md of a release."""
    if isinstance(schema, TableSchema):
        return _table_card(name, schema, m, guarantee, recipe, plan, ledger, derived_from)
    private = guarantee.status == "private"
    facts = {
        "method": recipe["method"],
        "features": f"`{json.dumps(recipe['features'])}`",
        "ridge": f"{recipe['ridge']:g}",
        "guarantee": str(guarantee),
    }
    if derived_from is not None:
        facts["derived from"] = f"signal {derived_from}: no further budget"
    return CARD.format(
        method=recipe["method"],
        per_class=recipe["per_class"],
        tags="- differential-privacy" if private else "- no-privacy-guarantee",
        size=size_category(m),
        m=m,
        classes=len(schema.classes),
        statement=headline(str(guarantee)),
        explanation=explanation(schema, guarantee) + _start(recipe),
        name=name,
        shape=schema.shape,
        low=schema.low,
        high=schema.high,
        held="held within the range" if recipe.get("valid_range") else "not held within the range",
        rows=table(facts, plan, ledger),
    )


def _table_card(
    name: str,
    schema: TableSchema,
    m: int,
    guarantee: Guarantee,
    recipe: dict,
    plan: Plan | None,
    ledger: dict[str, Any],
    derived_from: str | None,
) -> str:
    facts = {"method": recipe["method"], "labels": recipe.get("labels", "fixed"), "guarantee": str(guarantee)}
    facts |= schema_facts(schema)
    if derived_from is not None:
        facts["derived from"] = f"signal {derived_from}: no further budget"
    return TABLE_CARD.format(
        method=recipe["method"],
        tags="- differential-privacy" if guarantee.status == "private" else "- no-privacy-guarantee",
        size=size_category(m),
        m=m,
        columns=len(schema.released_names),
        classes=len(schema.classes),
        statement=headline(str(guarantee)),
        explanation=explanation(schema, guarantee),
        name=name,
        target=schema.target.name,
        rows=table(facts, plan, ledger),
    )


def size_category(m: int) -> str:
    """As the Hugging Face hub words it."""
    return "n<1K" if m < 1000 else "1K<n<10K" if m < 10_000 else "10K<n<100K"


def signal_card(
    name: str,
    schema: Schema,
    shapes: dict[str, tuple[int, ...]],
    guarantee: Guarantee,
    recipe: dict,
    plan: Plan | None,
    ledger: dict[str, Any],
) -> str:
    """The README.md of a signal whose arrays have these shapes."""
    facts = {
        "method": recipe["method"],
        "features": f"`{json.dumps(recipe['features'])}`",
        "guarantee": str(guarantee),
    } | schema_facts(schema)
    arrays = ARRAYS if isinstance(schema, ImageSchema) else TABLE_ARRAYS
    return SIGNAL_CARD.format(
        statement=headline(str(guarantee)),
        explanation=explanation(schema, guarantee),
        name=name,
        arrays="\n".join(f"- `{array}`: {arrays[array].format(*shape)}" for array, shape in shapes.items()),
        rows=table(facts, plan, ledger),
    )


def explanation(schema: Schema, guarantee: Guarantee) -> str:
    """What the guarantee means, in words."""
    kept = f" Of each person, at most {schema.rows_per_unit} records were used." if schema.unit == "person" else ""
    return {
        "private": PRIVATE.format(
            unit=guarantee.unit,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            rows=kept,
            what="the images" if isinstance(schema, ImageSchema) else "the rows",
        ),
        "seeded": SEEDED,
        "none": UNSAFE if guarantee.why else NONE,
    }[guarantee.status]


def schema_facts(schema: Schema) -> dict[str, str]:
    """Where the parts of a schema came from that nobody declared, as rows of how it was made."""
    columns = {name: said for name, said in schema_origin(schema).items() if name.startswith("column")}
    return {name.replace("|", "\\|"): said for name, said in columns.items()}


def _start(recipe: dict) -> str:
    """A warning, where the images began as records."""
    return f"\n\n**Started from real records.** {REAL_START}" if recipe.get("init") == REAL_RECORDS else ""


def table(facts: dict[str, str], plan: Plan | None, ledger: dict[str, Any]) -> str:
    """The rows of how it was made: what is given, every measurement, and the ledger."""
    rows = dict(facts)
    for measured in plan.measurements if plan else ():
        sampling = measured.sampling
        rows[measured.name] = (
            f"{measured.steps} answers; clip {measured.clip:g}, sigma {measured.sigma:.4g}, "
            f"{sampling.n} units, each in a batch with probability {sampling.q:.4g}, {measured.noise} noise"
        )
    rows["ledger"] = ledger_line(ledger)
    return "\n".join(f"| {k} | {v} |" for k, v in rows.items())


def headline(statement: str) -> str:
    """The guarantee as the sentence that the card opens with."""
    return statement[0].upper() + statement[1:] + "."
