"""Chunks side by side on the machine's cores."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

WORKERS = min(4, os.cpu_count() or 1)  # each holds a chunk: more cores are left to the chunks' own products

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
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(f, waiting)
