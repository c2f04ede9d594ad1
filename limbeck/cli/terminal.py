"""What a person sees while waiting: a bar with an ETA on a terminal, plain lines in a pipe. All on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

# A pipe has no width of its own, and a table that is read by a program must not be folded.
output = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True, width=None if sys.stderr.isatty() else 160)

PLAIN_SECONDS = 10  # between two lines in a pipe


def note(text: str, *, style: str = "") -> None:
    """One line for the person on stderr, as it is."""
    errors.print(text, style=style, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A function (done, total) to call along the way; shown once the work has taken two seconds."""
    if errors.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=errors, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _plain(what)


def _plain(what: str) -> Callable[[int, int | None], None]:
    begun = last = time.monotonic()
    start: int | None = None

    def report(done: int, total: int | None) -> None:
        nonlocal last, start
        now = time.monotonic()
        start = done if start is None else start
        if now - last < PLAIN_SECONDS and not (done == total and now - begun > 2):
            return
        last = now
        left = f", {(now - begun) / (done - start) * (total - done):.0f} s left" if total and done > start else ""
        errors.print(f"{what}: {done}{f' of {total}' if total else ''}, {now - begun:.0f} s{left}", highlight=False)

    return report
