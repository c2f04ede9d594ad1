"""What a set is worth: kernel ridge regression and networks trained on it, tested on real records."""

from limbeck.data.encoding import centred_onehot
from limbeck.evaluate.accuracy import accuracy, probabilities
from limbeck.evaluate.classifier import KRRClassifier
from limbeck.evaluate.krr import FullKRR, Regression, krr_fit, krr_full, krr_predict, krr_regression
from limbeck.evaluate.scores import (
    Scores,
    evaluate_support,
    full_network_accuracies,
    full_set_scores,
    random_subset,
    random_subset_scores,
)
from limbeck.evaluate.training import network_accuracies, network_predict, train_network

__all__ = [
    "FullKRR",
    "KRRClassifier",
    "Regression",
    "Scores",
    "accuracy",
    "centred_onehot",
    "evaluate_support",
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
    "train_network",
]
