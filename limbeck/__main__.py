"""`limbeck`, and `python -m limbeck`: the command line, with large pages of memory where Linux gives them."""

import os
import sys

TUNABLES, LARGE = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"


def main() -> None:
    with_large_pages()
    from limbeck.cli import main as command

    command()


def with_large_pages() -> None:
    """Begin again, as the same process, with an allocator that asks for pages of 2 MiB.

    XLA takes its temporary arrays anew at every step, and the first touch of each 4 KiB page is a fault: half of a step
    of matching embeddings went there (`benchmarks/scale.py`). glibc reads this setting once, before Python begins.
    Whoever has set `GLIBC_TUNABLES`, to whatever, keeps it; elsewhere than on Linux, and with another allocator than
    glibc's, nothing changes.
    """
    if sys.platform == "linux" and TUNABLES not in os.environ:
        os.execve(sys.executable, sys.orig_argv, os.environ | {TUNABLES: LARGE})


if __name__ == "__main__":
    main()
