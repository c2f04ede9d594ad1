"""The ledger as its users see it: grant, check, reserve, complete, and look.

An intent is written before a run begins and is charged in full for ever, whether the run completes, is interrupted,
or dies: what was seen on the way cannot be unseen. Completion is written for the reader only.
"""

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from limbeck.errors import RequestError
from limbeck.privacy.accounting import Relation, epsilon_of
from limbeck.privacy.events import event_tree
from limbeck.privacy.ledger import filter as privacy_filter
from limbeck.privacy.ledger import store
from limbeck.privacy.ledger.account import Account
from limbeck.privacy.ledger.grant import Grant
from limbeck.privacy.ledger.key import how_to_restore, key_file, key_name, make_key, read_key
from limbeck.privacy.ledger.place import located
from limbeck.privacy.ledger.store import Store, append, rows
from limbeck.privacy.plan import Plan


@dataclass(frozen=True)
class Reservation:
    """A run that has been charged. `same_records_as` names other datasets that held exactly these records."""

    run: str
    dataset: str
    grant: Grant | None
    same_records_as: tuple[str, ...] = ()

    def certified(self) -> dict[str, Any]:
        """What a release says of its ledger."""
        granted = self.grant and {name: getattr(self.grant, name) for name in ("epsilon", "delta", "filter")}
        return {"status": "recorded", "dataset": self.dataset, "run": self.run, "grant": granted}


class Ledger:
    """A ledger in a SQLite file or a PostgreSQL database.

    **Formal guarantee.** Everything that was ever released about one unit of a granted dataset, by runs that were
    reserved here, is (epsilon, delta)-differentially private together, although later runs were chosen in sight of
    earlier ones: see `filter`. It holds for what is declared: all versions of the data under one name.

    **Example**

        ledger = Ledger.open()
        ledger.grant("census", epsilon=3, delta=1e-5)
        ledger.reserve("census", plan, run=journal.run)
    """

    def __init__(self, store: Store):
        self._store = store

    @classmethod
    def open(cls, url: str | os.PathLike[str] | None = None, *, create: bool = True) -> "Ledger":
        """The ledger at a path or URL; by default LIMBECK_LEDGER, or the one in this user's state folder."""
        return cls(Store.open(located(url), create=create))

    # Granting and spending

    def grant(
        self, dataset: str, *, epsilon: float, delta: float, unit: str = "record", relation: Any = "zero-out",
        filter: Any = "rdp",
    ) -> Account:  # fmt: skip
        """Set the limit of a dataset from now on. Earlier grants stay in the history; what is spent stays spent."""
        new = Grant.of(dataset, epsilon, delta, unit, relation, filter)
        with self._store.write() as connection:
            account = Account.read(connection, dataset, unit, relation)
            if account.grant and account.events and account.grant.filter != new.filter:
                raise RequestError(
                    f"{dataset!r} has been spent under the {account.grant.filter} filter, which was fixed before its "
                    f"first run; choosing another in sight of the results is not covered by its proof. Grant with "
                    f"--filter {account.grant.filter}."
                )
            privacy_filter.standing(new, account.events, account.order)  # refuses runs that gdp cannot count
            append(connection, store.grants, **asdict(new), runs_before=len(account.events))
            return Account.read(connection, dataset, unit, relation)

    def check(self, dataset: str, plan: Plan) -> Grant | None:
        """Refuse a plan that would exceed its grant; None if nothing limits it. Writes nothing."""
        with self._store.read() as connection:
            account = self._account(connection, dataset, plan.unit, plan.relation)
        if not _admitted(account, plan):
            raise _refusal(account, plan)
        return account.grant

    def check_request(self, dataset: str, *, epsilon: float, delta: float, unit: str, relation: Any) -> None:
        """Refuse what cannot fit whatever the number of records is, before they are known."""
        with self._store.read() as connection:
            account = self._account(connection, dataset, unit, relation)
        if (grant := account.grant) is None:
            return
        if delta > grant.delta:
            raise _large_delta(delta, grant)
        if delta == grant.delta and epsilon > grant.epsilon:
            raise RequestError(f"epsilon {epsilon:g} is above the grant: {grant}.")
        if account.exhausted:
            raise RequestError(f"nothing is left of the grant: {grant}. {_SEE}")

    def check_name(self, dataset: str) -> None:
        """Refuse a name that was guessed, where grants are for others: it may be one of those by another file name."""
        with self._store.read() as connection:
            granted = sorted({row["dataset"] for row in rows(connection, store.grants)})
        if granted and dataset not in granted:
            raise RequestError(
                f"the ledger holds grants for {', '.join(map(repr, granted))} and none for {dataset!r}, as this data "
                "is called by default. Say with --dataset NAME which dataset it is: every version of a dataset draws "
                "on one grant."
            )

    def reserve(
        self, dataset: str, plan: Plan, *, run: str, fingerprint: str | None = None, out: str | None = None
    ) -> Reservation:
        """Charge a run before it begins, or refuse it: one transaction, so of two that race for the rest one wins."""
        _ = plan.epsilon  # priced, and remembered, before the ledger is held
        key = self._key_in_use() if fingerprint else None
        with self._store.write() as connection:
            account = self._account(connection, dataset, plan.unit, plan.relation)
            if admitted := _admitted(account, plan):
                append(
                    connection, store.intents, run=run, dataset=dataset, unit=plan.unit, relation=plan.relation,
                    event=json.dumps(event_tree(plan.event)), **_price(account, plan), fingerprint=fingerprint,
                    fingerprint_key=key, out=out,
                )  # fmt: skip
            seen = rows(connection, store.intents, fingerprint=fingerprint, fingerprint_key=key) if fingerprint else []
        if not admitted:
            raise _refusal(account, plan)
        return Reservation(run, dataset, account.grant, tuple(sorted({r["dataset"] for r in seen} - {dataset})))

    def complete(self, run: str) -> None:
        """Note that the run's release was written."""
        with self._store.write() as connection:
            if not rows(connection, store.completions, run=run):
                append(connection, store.completions, run=run)

    def reservation(self, run: str) -> Reservation | None:
        """The charge of a run that was begun before, or None if this ledger does not know it."""
        with self._store.read() as connection:
            known = rows(connection, store.intents, run=run)
            if not known:
                return None
            name, unit, relation = (known[0][column] for column in store.ACCOUNT)
            return Reservation(run, name, Account.read(connection, name, unit, relation).grant)

    # Looking

    def status(self, dataset: str | None = None) -> list[Account]:
        """Every account, or those of one dataset: one a unit and relation."""
        with self._store.read() as connection:
            every = [*rows(connection, store.grants), *rows(connection, store.intents)]
            names = dict.fromkeys(tuple(row[column] for column in store.ACCOUNT) for row in every)
            found = [Account.read(connection, *name) for name in names if dataset in (None, name[0])]
        if dataset is not None and not found:
            raise RequestError(
                f"the ledger holds nothing about {dataset!r}; `limbeck ledger show` lists what it holds."
            )
        return found

    def history(self, dataset: str | None = None) -> list[dict]:
        """Every row in the order of writing: grants, intents and completions."""
        with self._store.read() as connection:
            tables = {"grant": store.grants, "intent": store.intents, "completion": store.completions}
            found = {kind: rows(connection, table) for kind, table in tables.items()}
        owner = {row["run"]: row["dataset"] for row in found["intent"]}
        found["completion"] = [row | {"dataset": owner[row["run"]]} for row in found["completion"]]
        found["intent"] = [row | {"event": json.loads(row["event"])} for row in found["intent"]]
        listed = [{"row": kind} | row for kind, some in found.items() for row in some]
        return sorted((row for row in listed if dataset in (None, row["dataset"])), key=lambda row: row["at"])

    def export(self) -> dict:
        """The whole ledger as plain JSON data, for a backup or a reviewer. No key and no record is in it."""
        return {"format": store.FORMAT, "rows": self.history(), "status": [s.facts() for s in self.status()]}

    # Fingerprints

    def fingerprint_key(self) -> bytes:
        """The key that fingerprints are made with; made at its first use, refused when it is not the ledger's."""
        path = key_file(self._store.url)
        with self._store.write() as connection:
            key, expected = read_key(path), _setting(connection, "fingerprint key")
            if key is None and expected is None:
                key = make_key(path)
            if key is None:
                raise RequestError(f"the key of the ledger's fingerprints is missing. {how_to_restore(path)}")
            if expected is None:
                append(connection, store.settings, name="fingerprint key", value=key_name(key))
            elif expected != key_name(key):
                raise RequestError(f"{path} is not the key of this ledger's fingerprints. {how_to_restore(path)}")
        return key

    def rekey(self) -> None:
        """Begin a new key where the old one is lost; earlier fingerprints stay, and nothing is compared with them."""
        path = key_file(self._store.url)
        with self._store.write() as connection:
            append(connection, store.settings, name="fingerprint key", value=key_name(make_key(path, replace=True)))

    def _key_in_use(self) -> str | None:
        with self._store.read() as connection:
            return _setting(connection, "fingerprint key")

    def _account(self, connection: sa.Connection, dataset: str, unit: str, relation: Relation) -> Account:
        """The account that a run draws on: what is granted per record, zero-out, is not free on other terms."""
        account = Account.read(connection, dataset, unit, relation)
        others = rows(connection, store.grants, dataset=dataset)
        if account.grant is None and others:
            terms = sorted({f"per {row['unit']}, {row['relation']}" for row in others})
            raise RequestError(
                f"{dataset!r} is granted {'; '.join(terms)}, and this run is per {unit}, {relation}. Run it on those "
                "terms, or grant these too: they are then spent separately, and add up."
            )
        return account


_SEE = "See `limbeck ledger show`; a custodian can raise the limit with `limbeck ledger grant`."


def _setting(connection: sa.Connection, name: str) -> str | None:
    found = rows(connection, store.settings, name=name)
    return found[-1]["value"] if found else None


def _admitted(account: Account, plan: Plan) -> bool:
    grant = account.grant
    if grant is None:
        return True
    return plan.delta <= grant.delta and privacy_filter.admits(grant, account.events, plan.event, account.order)


def _price(account: Account, plan: Plan) -> dict[str, Any]:
    """What the run costs by itself, at the grant's delta, and the order that the filter is fixed to by it."""
    grant, order = account.grant, None
    delta = grant.delta if grant else plan.delta
    if grant and grant.filter == "rdp":
        order = privacy_filter.standing(grant, (*account.events, plan.event), account.order).order
    return {"epsilon": epsilon_of(plan.event, delta, plan.relation), "delta": delta, "renyi_order": order}


def _refusal(account: Account, plan: Plan) -> RequestError:
    """What was asked, what remains, and what would fit."""
    grant = account.grant
    assert grant is not None
    if plan.delta > grant.delta:
        return _large_delta(plan.delta, grant)
    fit = privacy_filter.largest_fit(grant, account.events, plan, account.order)
    would = f"would fit with --epsilon {_rounded_down(fit)}" if fit else "does not fit, whatever its noise"
    return RequestError(
        f"this run asks for epsilon {plan.epsilon:.4g} at delta {plan.delta:g}, more than remains: "
        f"{account.remaining:.4g} of {grant} (runs so far: {len(account.events)}; spent by the filter: epsilon "
        f"{account.spent:.4g}). The same plan {would}. {_SEE}"
    )


def _large_delta(delta: float, grant: Grant) -> RequestError:
    return RequestError(f"delta {delta:g} is above that of the grant: {grant}. Choose --delta {grant.delta:g}.")


def _rounded_down(epsilon: float) -> str:
    """Three digits, for a person to type."""
    digits = f"{epsilon:.3g}"
    return digits if float(digits) <= epsilon else f"{epsilon * (1 - 5e-3):.3g}"
