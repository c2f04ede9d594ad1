"""What a set is worth: kernel ridge regression, networks and classifiers trained on it, tested on real records."""

from limbeck.data.encoding import centred_onehot
from limbeck.evaluate.accuracy import accuracy, probabilities
from limbeck.evaluate.classifier import KRRClassifier
from limbeck.evaluate.classifiers import CLASSIFIERS
from limbeck.evaluate.krr import FullKRR, Regression, krr_fit, krr_full, krr_predict, krr_regression
from limbeck.evaluate.scores import (
    Scores,
    evaluate_support,
    full_network_accuracies,
    full_set_scores,
    random_subset,
    random_subset_scores,
)
from limbeck.evaluate.tables import TableScores, evaluate_table, reference_scores
from limbeck.evaluate.training import network_accuracies, network_predict, train_network
from limbeck.evaluate.trial import Rows
from limbeck.evaluate.variation import variations, varied

__all__ = [
    "CLASSIFIERS",
    "FullKRR",
    "KRRClassifier",
    "Regression",
    "Rows",
    "Scores",
    "TableScores",
    "accuracy",
    "centred_onehot",
    "evaluate_support",
    "evaluate_table",
    "full_network_accuracies",
    "full_set_scores",
    "krr_fit",
    "krr_full",
    "krr_predict",
    "krr_regression",
    "network_accuracies",
    "network_predict",
    "probabilities",
    "random_subset",
    "random_subset_scores",
    "reference_scores",
    "train_network",
    "variations",
    "varied",
]
