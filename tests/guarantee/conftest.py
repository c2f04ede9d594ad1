"""The command line, as in its own tests, for the properties that a user sees there."""

from tests.cli.conftest import limbeck, small

__all__ = ["limbeck", "small"]
