"""A table's schema as evaluation sees it: numbers, and everything else one of a list."""

from limbeck.data import TableSchema
from limbeck.data.tables.columns import Feature, Numerical, Target
from limbeck.data.tables.typed import written
from limbeck.evaluate.columns import Column


def declared_columns(schema: TableSchema) -> tuple[tuple[Column, ...], Column]:
    """The features and the target, for frames as `typed_frame` gives them.

    Numbers are on their plain scale, whatever `scale` says: that is how a person would give them to a classifier.
    """
    return tuple(_column(column) for column in schema.features), _column(schema.target)


def _column(column: Feature | Target) -> Column:
    missing = not isinstance(column, Target) and column.indicated
    if isinstance(column, Numerical):
        return Column(column.name, "numerical", column.low, column.high, missing=missing)
    return Column(column.name, "categorical", categories=written(column), missing=missing)
