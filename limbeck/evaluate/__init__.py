"""What a set is worth: kernel ridge regression and ConvNets trained on it, tested on real records."""

from limbeck.data.encoding import centred_onehot
from limbeck.evaluate.accuracy import accuracy, probabilities
from limbeck.evaluate.classifier import KRRClassifier
from limbeck.evaluate.convnet import convnet_accuracies, convnet_predict, train_convnet
from limbeck.evaluate.krr import FullKRR, Regression, krr_fit, krr_full, krr_predict, krr_regression
from limbeck.evaluate.scores import (
    Scores,
    evaluate_support,
    full_set_scores,
    random_subset,
    random_subset_scores,
)

__all__ = [
    "FullKRR",
    "KRRClassifier",
    "Regression",
    "Scores",
    "accuracy",
    "centred_onehot",
    "convnet_accuracies",
    "convnet_predict",
    "evaluate_support",
    "full_set_scores",
    "krr_fit",
    "krr_full",
    "krr_predict",
    "krr_regression",
    "probabilities",
    "random_subset",
    "random_subset_scores",
    "train_convnet",
]
