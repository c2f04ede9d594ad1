"""Limbeck: distil a sensitive labelled dataset into a tiny one that may be shared."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from limbeck.data import ImageSchema, TableSchema
    from limbeck.distill import DM, DPKIP, KIP, Decant, PrivateDM, TableDecant, fit_matched, fit_signal, fit_table
    from limbeck.errors import RequestError
    from limbeck.release import Release, Signal, load, load_signal, verify

__all__ = [
    "DM",
    "DPKIP",
    "KIP",
    "Decant",
    "ImageSchema",
    "PrivateDM",
    "Release",
    "RequestError",
    "Signal",
    "TableDecant",
    "TableSchema",
    "fit_matched",
    "fit_signal",
    "fit_table",
    "load",
    "load_signal",
    "verify",
]

_HOMES = {
    "DM": "limbeck.distill",
    "DPKIP": "limbeck.distill",
    "KIP": "limbeck.distill",
    "Decant": "limbeck.distill",
    "ImageSchema": "limbeck.data",
    "PrivateDM": "limbeck.distill",
    "Release": "limbeck.release",
    "RequestError": "limbeck.errors",
    "Signal": "limbeck.release",
    "TableDecant": "limbeck.distill",
    "TableSchema": "limbeck.data",
    "fit_matched": "limbeck.distill",
    "fit_signal": "limbeck.distill",
    "fit_table": "limbeck.distill",
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
