"""Real processes that share a ledger: forked from one interpreter that has only imported, so that they start at once.

    python -m tests.privacy.processes race|begin|killed URL FOLDER

Prints what each process did, as JSON.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from limbeck.errors import RequestError
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.ledger import filter as privacy_filter
from tests.privacy.plans import full

PLAN = full(10.0)
PRICE = PLAN.epsilon  # worked out once, before anything races
DATASETS = 8
PROCESSES = ("a", "b", "c", "d")
TOGETHER = multiprocessing.get_context("fork").Barrier(len(PROCESSES))


def forked(work: Callable[[Callable[[str], None]], None], told: Path) -> int:
    """A process that does `work`, writing down what it is told."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with told.open("a", buffering=1) as file:
            work(lambda line: print(line, file=file))
        code = 0
    finally:
        os._exit(code)


def race(url: str, name: str, tell: Callable[[str], None]) -> None:
    """All at once for each dataset, and slow to decide: whoever reads before another has written, wins wrongly."""
    ledger, admits = Ledger.open(url), privacy_filter.admits

    def slowly(*arguments):
        time.sleep(0.05)
        return admits(*arguments)

    privacy_filter.admits = slowly
    for last in range(DATASETS):
        TOGETHER.wait(60)
        with suppress(RequestError):
            ledger.reserve(f"d{last}", PLAN, run=f"{name}-{last}")
            tell(str(last))


def begin(url: str, name: str, tell: Callable[[str], None]) -> None:
    for i in range(5):
        Ledger.open(url).reserve("census", PLAN, run=f"{name}-{i}")
    tell(Ledger.open(url).fingerprint_key().hex())


def spend(url: str, name: str, tell: Callable[[str], None]) -> None:
    ledger = Ledger.open(url)
    for i in range(10_000):
        ledger.reserve("census", PLAN, run=f"{name}-{i}")
        tell(f"{name}-{i}")
        if i % 2:
            ledger.complete(f"{name}-{i}")


def together(work: Callable, url: str, folder: Path) -> list[list[str]]:
    pids = [forked(lambda tell, name=name: work(url, name, tell), folder / name) for name in PROCESSES]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(PROCESSES)
    return [(folder / name).read_text().split() for name in PROCESSES]


def killed(url: str, folder: Path) -> list[dict]:
    """Ten processes, one after another, each killed at a moment of its own; what was told and what is charged."""
    moments, found = random.Random(0), []
    for i in range(10):
        told = folder / f"p{i}"
        pid = forked(lambda tell, i=i: spend(url, f"p{i}", tell), told)
        enough = moments.randrange(6)
        while (len(told.read_text().split()) if told.exists() else 0) < enough:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        (account,) = Ledger.open(url).status("census")
        lines = told.read_text().split() if told.exists() else []
        mine = [row["run"] for row in account.intents if row["run"].startswith(f"p{i}-")]
        found.append({"told": lines, "charged": mine, "all": len(account.intents), "spent": account.standing.spent})
    return found


if __name__ == "__main__":
    what, url, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    print(
        json.dumps(
            killed(url, folder) if what == "killed" else together({"race": race, "begin": begin}[what], url, folder)
        )
    )
