"""What `limbeck verify` looks at, and what it finds: the evidence of a folder, checks, and problems with its fields."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data import Schema
from limbeck.privacy.plan import Plan
from limbeck.release.certificate import Certificate
from limbeck.release.price import Beyond, Price


@dataclass(frozen=True)
class Problem:
    """A field or a file that is not what the rest of the folder says it must be."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True)
class Check:
    """What was checked and what it shows if there is no problem. A note is worth knowing and no problem."""

    name: str
    shows: str
    problems: tuple[Problem, ...] = ()
    note: bool = False

    @property
    def found(self) -> str:
        """What it shows, or the fields that are wrong."""
        wrong = list(dict.fromkeys(problem.field for problem in self.problems))
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        return f"wrong: {', '.join(wrong[:5])}{more}" if wrong else self.shows

    @property
    def result(self) -> str:
        return "failed" if self.problems else "note" if self.note else "ok"


@dataclass(frozen=True)
class Evidence:
    """What the folder holds, read once. What could not be read is None, and `unreadable` says so."""

    folder: Path
    contents: dict[str, str]
    raw: dict[str, Any]
    claimed: Certificate
    schema: Schema | None
    recipe: dict[str, Any] | None
    arrays: dict[str, tuple[int, ...]] | None
    plan: Plan | None
    price: Price | Beyond | None
    unreadable: tuple[Problem, ...] = ()
