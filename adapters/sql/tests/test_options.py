"""Options that cannot work are refused in words, and a password is seen nowhere."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tillbridge.adapter import (
    AdapterContext,
    CancelsTickets,
    ReadsCatalogue,
    ReportsTicketUpdates,
    WritesTickets,
)
from tillbridge.adapter.conformance import CHECKS, Outcome, run_check
from tillbridge.adapter.conformance.subject import Subject
from tillbridge.core import files
from tillbridge.core.redaction import masked
from tillbridge_sql.adapter import ADAPTER, SqlAdapter
from tillbridge_sql.rig import SqlRig
from tillbridge_sql.rig_servers import NoServer, missing

QUERIES = "-- name: items\nSELECT 1 AS external_id, 'a' AS name, 1 AS price\n"
ORDERS = (
    QUERIES
    + "-- name: find_order\nSELECT n AS reference FROM o WHERE k = :key\n"
    + "-- name: order\nINSERT INTO o (k) VALUES (:key)\n"
)

SECRET = "s3cret-of-the-till"  # noqa: S105 -- of no till


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries.sql").write_text(QUERIES)
    (tmp_path / "orders.sql").write_text(ORDERS)
    (tmp_path / "dump.sql").write_text("CREATE TABLE o (n INTEGER PRIMARY KEY, k TEXT UNIQUE)")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    return tmp_path


def opened(folder: Path, **options: object) -> SqlAdapter:
    said = {"url": "sqlite:///till.db", "queries": "queries.sql", **options}
    checked = ADAPTER.options.model_validate(said)
    return ADAPTER.open(checked, AdapterContext("main", "EUR", "loc", folder))  # type: ignore[return-value] # it is one


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "postgresql://u:hush-hush@h/d"}, "holds a password"),
        ({"url": "oracle://u@h/d"}, "does not know"),
        ({"url": "nonsense"}, "no database URL"),
        ({"url": "sqlite://"}, "names no file"),
        ({"queries": "nowhere.sql"}, "cannot be read"),
        ({"change": "notify"}, "PostgreSQL's"),
        ({"dump": "dump.sql"}, "only for trying"),
        ({"orders": True}, "find_order is missing"),
        ({"password": {"file": "nowhere"}}, "does not exist"),
    ],
)
def test_options_that_cannot_work_are_refused_in_words(
    folder: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        opened(folder, **options)
    assert "hush-hush" not in str(refused.value)


def test_without_orders_nothing_about_them_is_even_loaded(folder: Path) -> None:
    quiet = opened(folder, queries="orders.sql")
    assert not isinstance(quiet, WritesTickets)
    assert not quiet._asking.queries.has("order")  # noqa: SLF001 -- that it is not there
    writing = opened(folder, queries="orders.sql", orders=True)
    assert isinstance(writing, WritesTickets)
    assert not isinstance(writing, CancelsTickets | ReportsTicketUpdates)


def test_the_password_is_learnt_as_a_secret_and_shown_by_nothing(folder: Path) -> None:
    pos = opened(
        folder, url="postgresql://till@127.0.0.1:1/x", password={"file": "password"}, timeout_s=1
    )
    health = pos.health()
    assert not health.online
    place = pos._database.place  # noqa: SLF001 -- the one that knows it
    assert place.url.password == SECRET
    for shown in (health.detail, str(place), repr(place), repr(pos._database)):  # noqa: SLF001 -- as above
        assert "s3cret" not in shown
    assert "s3cret" not in masked(f"it was {SECRET}")
    pos.close()


def test_without_a_server_nothing_is_tried_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> None:
        raise NoServer("There is no such server here; on Debian: apt-get install it.")

    monkeypatch.setattr("tillbridge_sql.rig.postgresql", none)
    monkeypatch.setattr("tillbridge_sql.rig.mariadb", none)
    result = run_check(next(each for each in CHECKS if each.name == "reads"), Subject(SqlRig))
    assert result.outcome is Outcome.NOT_TRIED
    assert "apt-get install" in result.text
    monkeypatch.setattr("tillbridge_sql.rig_servers._postgresql", none)
    assert "apt-get install" in missing("postgresql")


def test_a_link_to_a_database_of_the_bridge_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_folders", {folder / "data"})
    (folder / "data").mkdir()
    for path in (folder / "till.db", folder / "data/ledger.db"):
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (n INTEGER)")
        connection.commit()
        connection.close()
    pos = opened(folder)
    assert isinstance(pos, ReadsCatalogue)
    assert pos.read_catalogue().items
    pos.close()
    (folder / "till.db").unlink()
    (folder / "till.db").symlink_to(folder / "data/ledger.db")
    pos = opened(folder)
    assert isinstance(pos, ReadsCatalogue)
    with pytest.raises(OSError, match="a file of the bridge"):
        pos.read_catalogue()
    pos.close()
