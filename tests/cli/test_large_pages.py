"""The command begins again with large pages, as the same process and with the same words."""

import os
import subprocess
import sys

import pytest

from limbeck.__main__ import LARGE, TUNABLES

SEEN = f"""
import os, sys
from limbeck.__main__ import with_large_pages
print(os.getpid(), flush=True)
with_large_pages()
print(sys.argv[1:], os.environ[{TUNABLES!r}])
"""


def run(*command: str, **set_: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != TUNABLES} | set_
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is asked for")
def test_it_begins_again_once_as_the_same_process():
    words = ["a b", "--c='d'", "é", ""]
    first, second, last = run("-c", SEEN, *words).stdout.splitlines()
    assert first == second
    assert last == f"{words} {LARGE}"


def test_what_is_set_stays():
    lines = run("-c", SEEN, **{TUNABLES: "glibc.malloc.check=0"}).stdout.splitlines()
    assert len(lines) == 2
    assert lines[1] == "[] glibc.malloc.check=0"


def test_a_wrong_request_is_still_refused_with_two():
    done = run("-m", "limbeck", "verify", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
