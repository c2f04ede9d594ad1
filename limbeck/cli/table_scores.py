"""A table's scores as a person reads them and as a program does."""

from typing import Any

HEADINGS = {"roc": "ROC", "prc": "PRC", "f1_macro": "F1, macro", "f1_weighted": "F1, weighted"}


def table_score_facts(rows: dict, fidelities: dict | None = None) -> dict[str, Any]:
    """Scores of sets, by their names, and how like real rows they are, as JSON has it."""
    facts: dict[str, Any] = {"rows": {name: scores.model_dump(mode="json") for name, scores in rows.items()}}
    if fidelities:
        facts["fidelity"] = {name: found.model_dump(mode="json") for name, found in fidelities.items()}
    return facts


def table_score_table(rows: dict, guarantees: dict[str, str]):
    """A row a set: means over classifiers, with the spread over seeds."""
    from rich.table import Table

    metrics = _metrics(rows)
    optimistic = any(scores.optimistic for scores in rows.values())
    table = Table(
        "set",
        "records",
        *(f"mean {HEADINGS[metric]}" for metric in metrics),
        "guarantee",
        caption="optimistic: predicted classes, and the best of several settings on the test rows"
        if optimistic
        else None,
    )
    for name, scores in rows.items():
        size = str(scores.records) if scores.records == scores.available else f"{scores.records} of {scores.available}"
        found = [mean_and_spread(scores, metric) for metric in metrics]
        table.add_row(name, size, *found, guarantees.get(name, "real records"))
    return table


def classifier_table(rows: dict):
    """A row a classifier, columns for each set; a star where some seed's could only predict one class."""
    from rich.table import Table

    metrics = _metrics(rows)
    trained = {name: scores for name, scores in rows.items() if len(scores.classifiers) > 1} or rows
    table = Table("classifier", *(f"{name}\n{HEADINGS[metric]}" for name in trained for metric in metrics))
    for classifier in dict.fromkeys(one for scores in trained.values() for one in scores.classifiers):
        cells = []
        for scores in trained.values():
            row = scores.classifiers.get(classifier)
            star = " *" if row is not None and row.constant else ""
            cells += ["-" if row is None else mean_and_spread(row, metric) + star for metric in metrics]
        table.add_row(classifier, *cells)
    if any(row.constant for scores in trained.values() for row in scores.classifiers.values()):
        table.caption = "* could not be fitted to these rows for some seed, and predicts one class there"
    return table


def fidelity_table(fidelities: dict):
    """How like the real test rows each set is: 1 is no difference."""
    from rich.table import Table

    table = Table("set", "records", "marginals", "correlations", "class balance", "overall")
    for name, found in fidelities.items():
        values = (found.marginal_mean, found.correlations, found.class_balance, found.overall)
        table.add_row(name, str(found.records), *(f"{value:.3f}" for value in values))
    return table


def mean_and_spread(scores: Any, metric: str) -> str:
    spread = scores.sd[metric]
    return f"{scores.mean[metric]:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")


def _metrics(rows: dict) -> list[str]:
    return list(dict.fromkeys(metric for scores in rows.values() for metric in scores.mean))
