"""What a kernel sees: finite feature maps φ(x), and kernels k(x, z) known in closed form."""

from collections.abc import Sequence
from typing import Any

from limbeck.errors import RequestError
from limbeck.features.base import FeatureMap, Kernel, gram
from limbeck.features.chunked import features_of
from limbeck.features.dead_leaves import dead_leaves
from limbeck.features.embedding import Embedding, Embeddings
from limbeck.features.marginals import Cells, Marginals
from limbeck.features.ntk import FCNTK
from limbeck.features.pixels import Pixels
from limbeck.features.projected import Projected
from limbeck.features.scattering import Scattering
from limbeck.features.table import TableFeatures
from limbeck.features.warped import Warp, Warped
from limbeck.features.whitened import Whitened

__all__ = [
    "FCNTK",
    "Cells",
    "Embedding",
    "Embeddings",
    "FeatureMap",
    "Kernel",
    "Marginals",
    "Pixels",
    "Projected",
    "Scattering",
    "TableFeatures",
    "Warp",
    "Warped",
    "Whitened",
    "dead_leaves",
    "features_of",
    "from_config",
    "gram",
    "named",
]

NAMES = ("fc-ntk", "scattering", "table")


def named(name: str, shape: Sequence[int], **options: Any) -> FeatureMap | Kernel:
    """The features that `name` stands for, for examples of `shape`; `options` as its class takes them."""
    try:
        if name == "scattering":
            if len(shape) != 3:
                raise RequestError(f"scattering is of images, with three axes (H, W, C); {tuple(shape)} was given")
            H, W, C = map(int, shape)
            return Scattering((H, W, C), **options)
        if name == "fc-ntk":
            return FCNTK(**options)
        if name == "table":
            if len(shape) != 1 or not {"columns", "numbers"} <= options.keys():
                raise RequestError("the features called table are of the rows of a table, by its schema")
            return TableFeatures.of(int(shape[0]), **options)
        if name == "marginals":
            return Marginals(int(shape[0]), tuple(Cells(*column) for column in options["columns"]))
    except TypeError as error:  # an option that the class does not know
        raise RequestError(f"features {name!r}: {error}") from None
    raise RequestError(f"unknown features {name!r}; known names are {', '.join(NAMES)}")


def from_config(config: dict[str, Any], shape: Sequence[int]) -> FeatureMap | Kernel:
    """The features whose `config()` this is, for examples of `shape`."""
    options = dict(config)
    name = options.pop("name", None)
    if name in ("whitened", "projected"):
        base = from_config(options["base"], shape)
        assert isinstance(base, FeatureMap)
        if name == "projected":
            return Projected.of(base, options["dim"], options["seed"])
        whitened = Whitened.of(base, options["seed"])
        if whitened.config() != config:
            raise RequestError("these features were whitened in a way that this version of limbeck does not know")
        return whitened
    declared = options.pop("shape", None)
    if declared is not None and tuple(declared) != tuple(shape):
        raise RequestError(f"these features are of examples of shape {tuple(declared)}; the data's is {tuple(shape)}")
    return named(str(name), shape, **options)
