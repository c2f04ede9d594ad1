"""The ledger on both databases: what is granted, charged, refused and remembered."""

import json
import stat

import pytest
import sqlalchemy as sa

from limbeck.errors import RequestError
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.ledger.key import key_file
from limbeck.privacy.ledger.place import located
from tests.privacy.plans import full, sampled


@pytest.fixture
def ledger(url):
    return Ledger.open(url)


def only(ledger, dataset):
    (account,) = ledger.status(dataset)
    return account


def test_a_budget_is_spent_down_and_then_refused(ledger):
    ledger.grant("census", epsilon=1, delta=1e-5)
    plan = full(10.0)
    runs, said = 0, ""
    while not said:
        try:
            ledger.reserve("census", plan, run=f"run{runs}")
            runs += 1
        except RequestError as refused:
            said = str(refused)
    account = only(ledger, "census")
    assert len(account.intents) == runs > 2
    assert 0.8 < account.spent <= 1
    assert account.composed[0] <= account.spent  # PLD is tighter, and assumes more
    assert account.summed[0] == pytest.approx(runs * account.intents[0]["epsilon"])
    assert f"asks for epsilon {plan.epsilon:.4g}" in said
    assert f"{account.remaining:.4g} of epsilon 1" in said
    fit = float(said.split("--epsilon ")[1].split()[0].rstrip("."))
    ledger.reserve("census", plan.calibrated(fit), run="fitting")


def test_an_intent_is_charged_whether_or_not_it_completes(ledger):
    ledger.grant("census", epsilon=2, delta=1e-5)
    ledger.reserve("census", full(10.0), run="a")
    ledger.reserve("census", full(10.0), run="b")
    before = only(ledger, "census").spent
    ledger.complete("a")
    ledger.complete("a")
    after = only(ledger, "census")
    assert after.spent == before
    assert after.unfinished == ("b",)


def test_a_reservation_is_found_by_its_run(ledger):
    ledger.grant("census", epsilon=2, delta=1e-5)
    made = ledger.reserve("census", full(10.0), run="a")
    assert ledger.reservation("a") == made
    assert ledger.reservation("b") is None
    assert made.certified() == {
        "status": "recorded", "dataset": "census", "run": "a",
        "grant": {"epsilon": 2.0, "delta": 1e-5, "filter": "rdp"},
    }  # fmt: skip


def test_without_a_grant_runs_are_recorded_and_then_counted(ledger):
    assert ledger.reserve("census", full(2.0), run="a").grant is None
    assert only(ledger, "census").remaining is None
    account = ledger.grant("census", epsilon=1, delta=1e-5)
    assert account.late
    assert account.exhausted
    assert account.spent > 1
    with pytest.raises(RequestError, match="more than remains"):
        ledger.reserve("census", full(100.0), run="b")


def test_a_later_grant_replaces_the_limit_and_keeps_the_order(ledger):
    ledger.grant("census", epsilon=1, delta=1e-5)
    ledger.reserve("census", sampled(4.0), run="a")
    order = only(ledger, "census").order
    account = ledger.grant("census", epsilon=8, delta=1e-5)
    assert account.late
    ledger.reserve("census", full(2.0), run="b")
    assert only(ledger, "census").order == order
    lowered = ledger.grant("census", epsilon=1, delta=1e-5)
    assert lowered.exhausted
    grants = [row for row in ledger.history("census") if row["row"] == "grant"]
    assert [(row["epsilon"], row["runs_before"]) for row in grants] == [(1, 0), (8, 1), (1, 2)]


def test_the_filter_is_fixed_before_the_first_run(ledger):
    ledger.grant("census", epsilon=1, delta=1e-5)
    ledger.grant("census", epsilon=1, delta=1e-5, filter="gdp")
    ledger.reserve("census", full(20.0), run="a")
    with pytest.raises(RequestError, match="gdp filter"):
        ledger.grant("census", epsilon=1, delta=1e-5, filter="rdp")
    ledger.reserve("other", sampled(4.0), run="b")
    with pytest.raises(RequestError, match="full batches"):
        ledger.grant("other", epsilon=1, delta=1e-5, filter="gdp")


def test_other_terms_are_not_free(ledger):
    """A budget per record, zero-out, is not to be had again by asking for another relation or unit."""
    ledger.grant("census", epsilon=1, delta=1e-5)
    for terms in ({"relation": "replace-one"}, {"unit": "person"}):
        with pytest.raises(RequestError, match="per record, zero-out"):
            ledger.reserve("census", full(50.0, **terms), run="a")
    ledger.grant("census", epsilon=1, delta=1e-5, relation="replace-one")
    ledger.reserve("census", full(50.0, relation="replace-one"), run="a")
    assert {account.relation: len(account.intents) for account in ledger.status("census")} == {
        "zero-out": 0,
        "replace-one": 1,
    }


def test_what_cannot_fit_is_refused_before_n_is_known(ledger):
    ledger.grant("census", epsilon=1, delta=1e-5)
    terms = {"unit": "record", "relation": "zero-out"}
    ledger.check_request("census", epsilon=1, delta=1e-5, **terms)
    ledger.check_request("free", epsilon=99, delta=1e-2, **terms)
    with pytest.raises(RequestError, match=r"epsilon 1\.5 is above"):
        ledger.check_request("census", epsilon=1.5, delta=1e-5, **terms)
    with pytest.raises(RequestError, match="Choose --delta 1e-05"):
        ledger.check_request("census", epsilon=0.1, delta=1e-4, **terms)
    with pytest.raises(RequestError, match="Choose --delta 1e-05"):
        ledger.check("census", full(1000.0, delta=1e-4))
    ledger.reserve("census", sampled(1.0).calibrated(1.0), run="a")
    with pytest.raises(RequestError, match="nothing is left"):
        ledger.check_request("census", epsilon=0.1, delta=1e-5, **terms)


def test_a_guessed_name_is_refused_where_there_are_grants(ledger):
    ledger.check_name("anything")
    ledger.grant("census", epsilon=1, delta=1e-5)
    ledger.check_name("census")
    with pytest.raises(RequestError, match=r"'census'.*--dataset"):
        ledger.check_name("census-v2")


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"epsilon": 0}, "epsilon"), ({"epsilon": float("nan")}, "epsilon"), ({"delta": 1}, "delta"),
        ({"unit": "house"}, "unit"), ({"relation": "add"}, "relation"), ({"filter": "pld"}, "filter"),
    ],
)  # fmt: skip
def test_a_wrong_grant_is_explained(ledger, terms, said):
    with pytest.raises(RequestError, match=said):
        ledger.grant("census", **({"epsilon": 1, "delta": 1e-5} | terms))
    assert ledger.history() == []


@pytest.mark.parametrize("statement", ["UPDATE {} SET software = 'x'", "DELETE FROM {}"])
@pytest.mark.parametrize("table", ["grants", "intents", "completions", "settings"])
def test_rows_are_never_changed(ledger, table, statement):
    ledger.grant("census", epsilon=1, delta=1e-5)
    ledger.reserve("census", full(20.0), run="a")
    ledger.complete("a")
    before = ledger.export()
    with pytest.raises(RequestError, match="append-only"), ledger._store.write() as connection:
        connection.exec_driver_sql(statement.format(f"limbeck_{table}"))
    assert ledger.export() == before


def test_a_colleague_needs_no_right_but_to_read_and_append(postgres_url):
    Ledger.open(postgres_url).grant("census", epsilon=1, delta=1e-5)
    with Ledger.open(postgres_url)._store.engine.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE colleague LOGIN")
        connection.exec_driver_sql("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO colleague")
    colleague = Ledger.open(postgres_url.replace("limbeck@", "colleague@"))
    colleague.fingerprint_key()
    colleague.reserve("census", full(20.0), run="a", fingerprint="f" * 64)
    colleague.complete("a")
    with pytest.raises(RequestError, match="must be owner"), colleague._store.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER limbeck_grants_append_only ON limbeck_grants")
    assert len(colleague.history()) == 3


def test_an_export_is_plain_json(ledger):
    ledger.grant("census", epsilon=1, delta=1e-5)
    ledger.reserve("census", full(20.0), run="a", out="release")
    ledger.complete("a")
    exported = json.loads(json.dumps(ledger.export()))
    assert [row["row"] for row in exported["rows"]] == ["grant", "intent", "completion"]
    assert exported["rows"][1]["event"]["event"] == "Composed"
    assert exported["status"][0]["filter"]["fraction"] == only(ledger, "census").standing.fraction


def test_the_same_records_under_another_name(ledger):
    ledger.fingerprint_key()
    assert ledger.reserve("census", full(20.0), run="a", fingerprint="f" * 64).same_records_as == ()
    assert ledger.reserve("census", full(20.0), run="b", fingerprint="f" * 64).same_records_as == ()
    assert ledger.reserve("people", full(20.0), run="c", fingerprint="f" * 64).same_records_as == ("census",)
    assert ledger.reserve("people", full(20.0), run="d", fingerprint="0" * 64).same_records_as == ()


def test_the_fingerprint_key(ledger, url):
    key = ledger.fingerprint_key()
    assert len(key) == 32
    assert ledger.fingerprint_key() == key
    path = key_file(located(url))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ledger.reserve("census", full(20.0), run="a", fingerprint="f" * 64)
    path.rename(path.with_suffix(".kept"))
    with pytest.raises(RequestError, match=r"missing.*backup.*rekey"):
        ledger.fingerprint_key()
    path.write_bytes(bytes(32))
    with pytest.raises(RequestError, match="not the key"):
        ledger.fingerprint_key()
    path.write_bytes(b"short")
    with pytest.raises(RequestError, match="damaged"):
        ledger.fingerprint_key()
    path.with_suffix(".kept").rename(path)
    assert ledger.fingerprint_key() == key
    ledger.rekey()
    assert ledger.fingerprint_key() != key
    # Digests of two keys are not comparable, and are not compared.
    assert ledger.reserve("people", full(20.0), run="b", fingerprint="f" * 64).same_records_as == ()


def test_a_ledger_that_is_not_there(url):
    with pytest.raises(RequestError, match="there is no ledger"):
        Ledger.open(url, create=False)
    Ledger.open(url)
    Ledger.open(url, create=False)


def test_a_newer_ledger_is_not_touched(ledger, url):
    with ledger._store.write() as connection:
        for trigger in _triggers(connection):
            connection.exec_driver_sql(trigger)
        connection.exec_driver_sql("UPDATE limbeck_settings SET value = '2' WHERE name = 'format'")
    with pytest.raises(RequestError, match=r"format 2.*Upgrade Limbeck"):
        Ledger.open(url)


def _triggers(connection):
    if connection.dialect.name == "sqlite":
        return ["DROP TRIGGER limbeck_settings_no_update"]
    return ["DROP TRIGGER limbeck_settings_append_only ON limbeck_settings"]


def test_a_database_of_somebody_else(url):
    engine = sa.create_engine(located(url), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE theirs (x INTEGER)")
    if engine.dialect.name == "sqlite":
        with pytest.raises(RequestError, match="not a ledger"):
            Ledger.open(url)
    else:  # a database holds many tables, and the ledger's have names of their own
        assert Ledger.open(url).history() == []
