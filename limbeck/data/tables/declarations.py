"""Columns of a schema, written down in short: what the catalogue is made of."""

from typing import Any


def number(name: str, low: float, high: float, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "numerical", "low": low, "high": high, **options}


def whole(name: str, low: int, high: int, **options: Any) -> dict[str, Any]:
    return number(name, low, high, integer=True, **options)


def amount(name: str, high: int) -> dict[str, Any]:
    return whole(name, 0, high, scale="log")


def categories(name: str, words: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "categorical", "categories": words.split(), **options}


def flag(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "boolean", "true": 1, "false": 0, **options}


def dropped(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "dropped"}


def target(name: str, classes: list, groups: dict[str, list] | None = None) -> dict[str, Any]:
    return {"name": name, "kind": "target", "classes": classes, "groups": groups or {}}
