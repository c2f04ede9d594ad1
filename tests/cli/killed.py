"""Runs of the real command that are killed in mid-run, each after one answer more than the one before.

    python -m tests.cli.killed OUT... -- limbeck distill ...

Forked from one interpreter that has imported and computed nothing, so that each is quick to begin. Prints, after each
kill, how many runs the ledger has charged and what its filter has counted.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import limbeck.distill  # noqa: F401
from limbeck.cli import main
from limbeck.measure.session import Session
from limbeck.privacy.ledger import Ledger

ask = Session.ask


def slowly(self, *arguments):
    time.sleep(0.05)
    return ask(self, *arguments)


def answers(out: Path) -> int:
    folder = out.with_name(f"{out.name}.work") / "run"
    return sum(file.read_bytes().count(b'"name"') for file in folder.glob("answers-*"))


def killed(out: Path, command: list[str], after: int) -> None:
    pid = os.fork()
    if not pid:
        Session.ask = slowly
        sys.argv = [*command, "--out", str(out)]
        os.dup2(2, 1)
        main()
    while answers(out) < after:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the run ended by itself"
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # JAX warns of forks, which matter once it has computed
    split = sys.argv.index("--")
    found = []
    for i, name in enumerate(sys.argv[1:split]):
        killed(Path(name), sys.argv[split + 1 :], after=i + 1)
        (account,) = Ledger.open().status()
        found.append((len(account.intents), account.standing.spent))
    print(json.dumps(found))
