"""Apply a mutant and run the test that must catch it: in this process, with the real code patched."""

import contextlib
import functools
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import jax
import pytest

from tests.mutants.catalogue import Mutant

ROOT = Path(__file__).parents[2]
QUIET = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:faulthandler",
    "-o",
    "addopts=",
    "--assert=plain",
    "-q",
    "--tb=no",
)

Verdict = Literal["caught", "survived", "crashed"]


@dataclass
class Watch:
    """What became of the tests of a run. Only a failed assertion is a catch; an error is a mutant that is broken."""

    passed: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed

    def pytest_exception_interact(self, call, report):
        if report.when == "call" and call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)):
            self.failed += 1
        else:
            self.errors.append(str(call.excinfo.value))


def run(node: str) -> Watch:
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        options = (*QUIET, f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), f"--basetemp={folder}/t")
        pytest.main([*options, str(ROOT / node)], plugins=[watch])
    return watch


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The mutant in place of the real code, and the real code again afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        if mutant.traced:
            jax.clear_caches()
        yield
    if mutant.traced:
        jax.clear_caches()


def verdict(mutant: Mutant) -> Verdict:
    """What became of the mutant. That the test passes without it, the ordinary suite shows, and `is_sound`."""
    with applied(mutant):
        seen = run(mutant.caught_by)
    if seen.errors:
        return "crashed"
    return "caught" if seen.failed else "survived"


@functools.cache
def is_sound(node: str) -> bool:
    """Whether a test passes on the real code."""
    seen = run(node)
    return bool(seen.passed and not seen.failed and not seen.errors)
