"""Tests keep to themselves: no test reads or writes the user's own registry or caches."""

import os

import jax
import pytest
from hypothesis import settings

# The first example of a test may compile, and the machine may be busy: how long one takes says nothing.
settings.register_profile("limbeck", deadline=None)
settings.load_profile("limbeck")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", autouse=True)
def _own_places(tmp_path_factory, cache):
    """For what fixtures of a module do, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMBECK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("LIMBECK_CACHE", str(cache))
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """What one process of a run has compiled, the others need not."""
    own = tmp_path_factory.getbasetemp()
    of_run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    jax.config.update("jax_compilation_cache_dir", str(of_run / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


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
