"""Tests keep to themselves: no test reads or writes the user's own registry or caches."""

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
