"""Networks and the augmentation of what they see: as random embeddings, and as what people train on a release."""

from limbeck.networks.augmentation import KINDS, Change, augmented, augmented_each, drawn
from limbeck.networks.convnet import ConvNet

__all__ = ["KINDS", "Change", "ConvNet", "augmented", "augmented_each", "drawn"]
