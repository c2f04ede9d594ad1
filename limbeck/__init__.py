"""Limbeck: distil a sensitive labelled dataset into a tiny one that may be shared."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from limbeck.data import ImageSchema
    from limbeck.distill import DPKIP, KIP, Decant, PrivateDM, fit_matched, fit_signal
    from limbeck.errors import RequestError
    from limbeck.release import Release, Signal, load, load_signal, verify

__all__ = [
    "DPKIP",
    "KIP",
    "Decant",
    "ImageSchema",
    "PrivateDM",
    "Release",
    "RequestError",
    "Signal",
    "fit_matched",
    "fit_signal",
    "load",
    "load_signal",
    "verify",
]

_HOMES = {
    "DPKIP": "limbeck.distill",
    "KIP": "limbeck.distill",
    "Decant": "limbeck.distill",
    "ImageSchema": "limbeck.data",
    "PrivateDM": "limbeck.distill",
    "Release": "limbeck.release",
    "RequestError": "limbeck.errors",
    "Signal": "limbeck.release",
    "fit_matched": "limbeck.distill",
    "fit_signal": "limbeck.distill",
    "load": "limbeck.release",
    "load_signal": "limbeck.release",
    "verify": "limbeck.release",
}


def __getattr__(name: str) -> Any:
    """Public names are fetched when they are first used, so that importing limbeck is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'limbeck' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
