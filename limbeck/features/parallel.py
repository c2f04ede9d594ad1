"""Chunks side by side on the machine's cores."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(f: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """f of each item, in order. A chunk's products are too small to fill two cores; two chunks do.

    The first runs alone, so that what it compiles is compiled once.
    """
    waiting = iter(items)
    for first in waiting:
        yield f(first)
        break
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(f, waiting)
