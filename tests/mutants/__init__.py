"""Broken mechanisms: small patches of the real code, each with the test of the guarantee that must fail on it."""
