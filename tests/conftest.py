"""Tests keep to themselves: no test reads or writes the user's own registry or caches."""

import pytest


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LIMBECK_HOME", str(home))
    monkeypatch.delenv("LIMBECK_DATA", raising=False)
