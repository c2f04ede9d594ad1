"""The ledger's rows: appended, never changed, in SQLite or PostgreSQL through the same code.

A write is one serialised transaction. SQLite: BEGIN IMMEDIATE takes the only write lock before anything is read, and
the write-ahead log is synced at every commit. PostgreSQL: an advisory lock, held to the transaction's end, does the
same, and READ COMMITTED lets what is read after it see what was committed before it. So of two processes that race for
the last of a budget, the second reads what the first has written. Users of a shared ledger need the rights to SELECT
and INSERT, and no others.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from limbeck.errors import RequestError
from limbeck.privacy.ledger.place import DAMAGED, described, explained, sqlite_file, trouble

FORMAT = 1
SOFTWARE = f"limbeck {version('limbeck')}"
WAIT = 60  # seconds, at most, for another process's transaction

metadata = sa.MetaData()
ACCOUNT = ("dataset", "unit", "relation")


def _table(name: str, *columns: sa.Column) -> sa.Table:
    return sa.Table(
        f"limbeck_{name}",
        metadata,
        sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
        *columns,
        sa.Column("at", sa.String, nullable=False),
        sa.Column("software", sa.String, nullable=False),
    )


def _required(name: str, kind: type = sa.String, *more, **options) -> sa.Column:
    return sa.Column(name, kind, *more, nullable=False, **options)


settings = _table("settings", _required("name"), _required("value"))
grants = _table(
    "grants",
    *map(_required, ACCOUNT),
    _required("epsilon", sa.Double),
    _required("delta", sa.Double),
    _required("filter"),
    _required("runs_before", sa.Integer),
)
intents = _table(
    "intents",
    _required("run", unique=True),
    *map(_required, ACCOUNT),
    _required("event", sa.Text),
    _required("epsilon", sa.Double),
    _required("delta", sa.Double),
    sa.Column("renyi_order", sa.Integer),
    sa.Column("fingerprint", sa.String),
    sa.Column("fingerprint_key", sa.String),
    sa.Column("out", sa.String),
)
completions = _table("completions", _required("run", sa.String, sa.ForeignKey(intents.c.run), unique=True))


class Store:
    """Transactions on one ledger. Connections are opened for each and closed after it."""

    def __init__(self, url: sa.URL):
        self.url = url
        options: dict[str, Any] = {"poolclass": sa.NullPool}
        if self._sqlite:
            options |= {"connect_args": {"timeout": WAIT}}
        else:
            options |= {"connect_args": {"connect_timeout": 10}, "isolation_level": "READ COMMITTED"}
        self.engine = sa.create_engine(url, **options)
        if self._sqlite:
            sa.event.listen(self.engine, "connect", _plain_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)

    @classmethod
    def open(cls, url: sa.URL, *, create: bool) -> "Store":
        """The ledger at this address; a missing one is made if `create`."""
        store = cls(url)
        with explained(url):
            if not store._exists():
                if not create:
                    raise RequestError(
                        f"there is no ledger ({described(url)}). `limbeck ledger grant` makes one, and so does "
                        "`limbeck distill`; another is chosen with --ledger or LIMBECK_LEDGER."
                    )
                store._create()
            store._check()
        return store

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with explained(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction that no other writer overlaps: what is read in it is still true when it commits."""
        with explained(self.url), self.engine.execution_options(writing=True).begin() as connection:
            if not self._sqlite:
                _lock_postgresql(connection)
            yield connection

    @property
    def _sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def _exists(self) -> bool:
        if self._sqlite and not os.path.exists(sqlite_file(self.url)):
            return False
        with self.engine.begin() as connection:
            return self._sqlite or sa.inspect(connection).has_table(settings.name)

    def _create(self) -> None:
        if not self._sqlite:
            with self.engine.begin() as connection:
                _lock_postgresql(connection)
                if not sa.inspect(connection).has_table(settings.name):
                    _define(connection)
            return
        path = sqlite_file(self.url)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._create_sqlite(path)
        except OSError as error:
            raise RequestError(
                f"the ledger {path} cannot be made: {error.strerror}. Make its folder writable, or choose another "
                "place with --ledger."
            ) from None

    def _create_sqlite(self, path: Path) -> None:
        """Made whole beside its place and linked into it: two processes that begin at once share one ledger."""
        handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        try:
            with Store(self.url.set(database=new)).engine.connect() as connection:
                connection.exec_driver_sql("COMMIT")  # the journal's mode is set outside of transactions
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                _define(connection)
                connection.commit()
            with suppress(FileExistsError):
                os.link(new, path)
        finally:
            os.unlink(new)

    def _check(self) -> None:
        with self.engine.begin() as connection:
            if self._sqlite and connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() != "ok":
                raise trouble(self.url, DAMAGED)
            if not sa.inspect(connection).has_table(settings.name):
                raise RequestError(f"{described(self.url)} is a database, and not a ledger of Limbeck's.")
            found = connection.scalar(sa.select(settings.c.value).where(settings.c.name == "format"))
        if not str(found).isdecimal() or int(str(found)) > FORMAT:
            raise RequestError(
                f"the ledger ({described(self.url)}) has format {found}, and this is {SOFTWARE}, which knows "
                f"formats up to {FORMAT}. Upgrade Limbeck; the ledger was not touched."
            )


def append(connection: sa.Connection, table: sa.Table, **row) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    connection.execute(table.insert().values(**row, at=now, software=SOFTWARE))


def rows(connection: sa.Connection, table: sa.Table, **equal) -> list[dict]:
    """The rows in the order in which they were written."""
    chosen = sa.select(table).where(*(table.c[name] == value for name, value in equal.items())).order_by(table.c.id)
    return [dict(row) for row in connection.execute(chosen).mappings()]


def _define(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    for statement in _append_only(connection.dialect.name):
        connection.exec_driver_sql(statement)
    append(connection, settings, name="format", value=str(FORMAT))


def _append_only(dialect: str) -> Iterator[str]:
    """Triggers that refuse to change or delete a row, whoever asks."""
    if dialect == "postgresql":
        yield (
            "CREATE FUNCTION limbeck_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
        )
    for name in metadata.tables:
        if dialect == "postgresql":
            yield (
                f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
                "FOR EACH STATEMENT EXECUTE FUNCTION limbeck_refuse()"
            )
        else:
            for verb in ("UPDATE", "DELETE"):
                yield (
                    f"CREATE TRIGGER {name}_no_{verb.lower()} BEFORE {verb} ON {name} "
                    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
                )


def _lock_postgresql(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}s'")
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('limbeck ledger'))")


def _plain_sqlite(connection, _record) -> None:
    """Leave transactions to us (the driver would begin them late, after the first read), and make commits durable."""
    connection.isolation_level = None
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
