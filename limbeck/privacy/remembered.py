"""Numbers that are slow to find and quick to check, kept in the user's cache. All of them are public."""

import hashlib
import json
import os
from pathlib import Path


class Remembered:
    """One number by its question. It is a hint: whoever uses it checks it, so a wrong one costs only time."""

    def __init__(self, question: str):
        name = hashlib.sha256(question.encode()).hexdigest()[:32]
        self._path = cache_folder() / "numbers" / f"{name}.json"

    @property
    def value(self) -> float | None:
        try:
            return float(json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, value: float) -> None:
        """Best effort: a cache that cannot be written is no error."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps(value))
            new.replace(self._path)
        except OSError:
            pass


def cache_folder() -> Path:
    """LIMBECK_CACHE, or the user's cache."""
    given = os.environ.get("LIMBECK_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "limbeck"
