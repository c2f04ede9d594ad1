"""Tests keep to themselves: no test reads or writes the user's own registry or caches."""

import jax
import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, cache, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LIMBECK_HOME", str(home))
    monkeypatch.setenv("LIMBECK_CACHE", str(cache))
    monkeypatch.delenv("LIMBECK_DATA", raising=False)


@pytest.fixture(autouse=True)
def _quick_compilation(request):
    """Most tests run a compiled function once, and compiling it takes the longest. Networks are trained in earnest."""
    jax.config.update("jax_disable_most_optimizations", "tests/evaluate" not in request.node.nodeid)
