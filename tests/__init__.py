"""Run-time type checks for the tests: beartype, with Python's own rule that an int will do for a float."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
