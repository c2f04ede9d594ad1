"""What a method sees of a kernel: a finite map φ(x), or a closed form k(x, z) with its derivative."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float


class FeatureMap(eqx.Module):
    """A finite feature map: k(x, z) = <φ(x), φ(z)>."""

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The number of features, F."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "b ..."]) -> Float[Array, "b F"]:
        """φ of each example; an example's features depend on that example alone."""

    @abc.abstractmethod
    def config(self) -> dict[str, Any]:
        """What `from_config` needs to build this map again, in JSON's types."""


class Kernel(eqx.Module):
    """A kernel known in closed form, a function of p = |x|², q = |z|² and s = <x, z> alone.

    So its gradient lies in the span of the two points: ∇_z k(x, z) = k_s x + 2 k_q z.
    """

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "a ..."], z: Float[Array, "b ..."]) -> Float[Array, "a b"]:
        """The matrix of k(x_i, z_j); examples of any shape are flattened."""

    @abc.abstractmethod
    def derivative(
        self, x: Float[Array, "a ..."], z: Float[Array, "b ..."]
    ) -> tuple[Float[Array, "a b"], Float[Array, "a b"], Float[Array, "a b"]]:
        """k, k_s = ∂k/∂s and k_q = ∂k/∂q for every pair."""

    @abc.abstractmethod
    def diagonal(self, x: Float[Array, "a ..."]) -> tuple[Float[Array, " a"], Float[Array, " a"]]:
        """k(x, x) and its derivative in p = |x|², so that ∇_x k(x, x) = 2 (dk/dp) x."""

    @abc.abstractmethod
    def config(self) -> dict[str, Any]:
        """What `from_config` needs to build this kernel again, in JSON's types."""


def gram(features: FeatureMap | Kernel, x: Float[Array, "a ..."], z: Float[Array, "b ..."]) -> Float[Array, "a b"]:
    """The matrix of k(x_i, z_j), whichever way the kernel is known."""
    if isinstance(features, Kernel):
        return features(x, z)
    return features(x) @ features(z).T
