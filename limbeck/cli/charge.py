"""How a private run draws on the ledger: which dataset it is, what is checked when, what the person is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limbeck.cli.terminal import note
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from limbeck.measure import Records
    from limbeck.privacy.ledger import Ledger
    from limbeck.privacy.plan import Plan


@dataclass(frozen=True)
class Charge:
    """A run's dataset in the ledger; without a ledger nothing is recorded, and the certificate says so."""

    dataset: str
    ledger: "Ledger | None"
    unused: str = "not used: --no-ledger"  # what the certificate says without one

    @classmethod
    def of(
        cls, data: str, dataset: str | None, ledger: str | None, no_ledger: bool, *, unsafe: bool = False
    ) -> "Charge":
        """By default a dataset is called by its catalogue name or its file's; where grants are, by one of theirs.

        What is made with an `unsafe` schema is outside of every grant: it is not charged.
        """
        name = dataset or (Path(data).resolve().stem if Path(data).exists() else data)
        if no_ledger:
            if ledger is not None or dataset is not None:
                raise RequestError("--no-ledger records nothing, so --ledger and --dataset do not go with it.")
            return cls(name, None)
        if unsafe:
            if ledger is not None or dataset is not None:
                raise RequestError("--unsafe-schema promises nothing and spends nothing: leave --ledger and --dataset.")
            return cls(name, None, "none")

        from limbeck.privacy.ledger import Ledger

        opened = Ledger.open(ledger)
        if dataset is None:
            opened.check_name(name)
        return cls(name, opened)

    @property
    def request(self) -> str:
        """Part of what a run was asked to do: it is resumed on the same terms."""
        return f"recorded as {self.dataset!r}" if self.ledger else "not used"

    def check_request(self, settings: dict[str, Any], unit: str) -> None:
        """Before anything is read: refuse what cannot fit whatever the number of records."""
        if self.ledger:
            terms = {name: settings[name] for name in ("epsilon", "delta", "relation")}
            self.ledger.check_request(self.dataset, **terms, unit=unit)

    def check(self, plan: "Plan") -> None:
        """Refuse a plan that does not fit; nothing is charged yet."""
        if self.ledger:
            self.ledger.check(self.dataset, plan)

    def reserve(self, run: str, plan: "Plan", records: "Records | None", out: Path) -> dict[str, Any]:
        """Charge the run, unless it has been; what the certificate says of it.

        Without records nothing is compared: those of a schema that is not finished have no encoding of their own.
        """
        if self.ledger is None:
            return {"status": self.unused}
        reserved = self.ledger.reservation(run)
        if reserved is None:
            from limbeck.measure.fingerprint import fingerprint

            digest = fingerprint(records, self.ledger.fingerprint_key()) if records is not None else None
            reserved = self.ledger.reserve(self.dataset, plan, run=run, fingerprint=digest, out=out.name)
        if reserved.grant is None:
            note(
                f"no grant for dataset {self.dataset!r}: spending is recorded but not limited; set a limit with "
                f"`limbeck ledger grant {self.dataset} --epsilon E --delta D`"
            )
        if reserved.same_records_as:
            note(
                f"warning: the same records are in the ledger as {', '.join(map(repr, reserved.same_records_as))}. If "
                f"{self.dataset!r} is that dataset, its grant is not charged with this run; run under its name with "
                "--dataset.",
                style="yellow",
            )
        return reserved.certified()

    def complete(self, run: str) -> None:
        """The release is written. If the ledger cannot be reached now, the run shows as unfinished: charged alike."""
        try:
            if self.ledger:
                self.ledger.complete(run)
        except RequestError as error:
            note(f"warning: the release is written, but its completion is not recorded: {error}", style="yellow")
