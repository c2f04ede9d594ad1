"""Networks and the augmentation of what they see: as random embeddings, and as what people train on a release."""

from limbeck.networks.augmentation import KINDS, Change, augmented, augmented_each, drawn
from limbeck.networks.convnet import ConvNet
from limbeck.networks.lenet import LeNet
from limbeck.networks.mlp import MLP
from limbeck.networks.resnet import ResNet

# Each is made by (shape, classes, rng=...) and takes images (b, H, W, C) to scores (b, classes).
Network = ConvNet | MLP | LeNet | ResNet
NETWORKS: dict[str, type[Network]] = {"convnet": ConvNet, "mlp": MLP, "lenet": LeNet, "resnet": ResNet}

__all__ = [
    "KINDS",
    "MLP",
    "NETWORKS",
    "Change",
    "ConvNet",
    "LeNet",
    "Network",
    "ResNet",
    "augmented",
    "augmented_each",
    "drawn",
]
