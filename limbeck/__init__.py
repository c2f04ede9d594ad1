"""Limbeck: distil a sensitive labelled dataset into a tiny one that may be shared."""

__version__ = "0.1.0"
