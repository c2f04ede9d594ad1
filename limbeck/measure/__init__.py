"""The only code that sees private records, and only through a plan. What it returns may leave."""

from limbeck.measure.class_counts import ClassCounts
from limbeck.measure.class_sums import ClassSums
from limbeck.measure.correct import CorrectPredictions
from limbeck.measure.gradients import SupportGradient
from limbeck.measure.records import Records
from limbeck.measure.session import Query, Session, Unprotected
from limbeck.measure.weights import FeatureGradient, Loss, WeightGradient

__all__ = [
    "ClassCounts",
    "ClassSums",
    "CorrectPredictions",
    "FeatureGradient",
    "Loss",
    "Query",
    "Records",
    "Session",
    "SupportGradient",
    "Unprotected",
    "WeightGradient",
]
