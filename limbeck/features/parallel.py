"""Chunks side by side on the machine's cores."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

WORKERS = min(4, os.cpu_count() or 1)  # each holds a chunk: more cores are left to the chunks' own products
AHEAD = 2 * WORKERS  # items taken before their turn, so that no core waits for the next one

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(f: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """f of each item, in order. A chunk's products are too small to fill two cores; two chunks do.

    The first runs alone, so that what it compiles is compiled once. Items are made by the calling thread and only
    `AHEAD` of their turn: they may be chunks of what would not fit in memory.
    """
    waiting = iter(items)
    for first in waiting:
        yield f(first)
        break
    with ThreadPoolExecutor(WORKERS) as pool:
        begun = deque(pool.submit(f, item) for item in islice(waiting, AHEAD))
        try:
            while begun:
                done = begun.popleft().result()
                begun.extend(pool.submit(f, item) for item in islice(waiting, 1))
                yield done
        finally:
            for future in begun:
                future.cancel()
