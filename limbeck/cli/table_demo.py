"""`limbeck demo --table`: the main job on an embedded table, ending with scores, plots and a release per epsilon."""

import json
from pathlib import Path

from limbeck.cli.table_evaluate import Settings, judge, real_frame, write_plots
from limbeck.cli.terminal import errors, output, progress
from limbeck.data.tables.catalogue import EMBEDDED, known_table, load_table
from limbeck.data.tables.table import rows_of
from limbeck.data.tables.typed import released_form, typed_frame

EPSILONS = (1.0, 10.0)
DELTA = 1e-4  # below 1 / 426, the number of rows
ROWS = 1000
SEEDS = 2


def table_demo(out: Path, *, force: bool, as_json: bool) -> None:
    """Distil scikit-learn's breast cancer data twice, and hold the rows against real ones.

    The table is public, so its scores and plots may be shown; those of private rows may not.
    """
    from limbeck.distill import TableDecant
    from limbeck.measure import Records

    schema = known_table(EMBEDDED).schema
    train = load_table(EMBEDDED, "train", Path())
    releases = {}
    for epsilon in EPSILONS:
        model = TableDecant(schema, epsilon=epsilon, delta=DELTA, rows=ROWS)
        with progress(f"distilling, epsilon {epsilon:g}") as report:
            model.fit(Records(schema, train.x, train.y, train.units), progress=report)
        releases[f"epsilon {epsilon:g}"] = model.release_

    form = released_form(schema)
    frames = {name: typed_frame(form, rows_of(form, release.frame)) for name, release in releases.items()}
    test, real = (real_frame(schema, EMBEDDED, split, None) for split in ("test", "train"))
    judged = judge(schema, frames, test, real, Settings(seeds=SEEDS))
    guarantees = {name: str(release.guarantee) for name, release in releases.items()}

    out.mkdir(parents=True, exist_ok=True)
    for name, release in releases.items():
        place = name.replace("epsilon ", "eps")
        release.save(out / f"release-{place}", force=force)
        write_plots(judged, name, test, schema, out / f"plots-{place}", public=True)
    text = json.dumps({"guarantees": guarantees, **judged.facts}, indent=1)
    (out / "scores.json").write_text(text + "\n", encoding="utf-8")
    if as_json:
        print(text)
        return
    judged.show(guarantees)
    output.print(
        "These classes are easy to tell apart: classifiers hardly show what epsilon costs, and marginals do. Look at "
        f"{out}: scores.json, and a release (data.csv) and plots per epsilon",
        highlight=False,
        soft_wrap=True,
    )
    errors.print(f"next: limbeck verify {out}/release-eps1", highlight=False)
