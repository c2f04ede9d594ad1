"""The one exception a person is meant to see."""


class RequestError(ValueError):
    """The request was wrong: what was given, what was expected, what to do.

    The command line prints its message without a traceback and exits with code 2. The message never
    carries a private value: shapes, counts that are public, names of files and options only.
    """
