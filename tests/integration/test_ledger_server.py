"""A server is looked at before a ledger is on it: what is wrong is told, with what to do."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.support.bridge_process import free_port
from tests.support.ledger_harness import StoppedClock
from tests.support.postgresql import new_database, on_postgresql, server
from tillbridge import ledger_schemas
from tillbridge.cli.exits import exit_code_of
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, LedgerUnreachable
from tillbridge.diagnostics.check import Level
from tillbridge.diagnostics.checks.ledger import server_verdict
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.postgresql import engine_of
from tillbridge.ledger.server import OtherBridge, Server, look_at, unfit

pytestmark = on_postgresql()

GOOD = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
NEWEST = ledger_schemas()[-1]


async def refusal(folder: Path, url: str) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        await Ledger.open(folder, clock=StoppedClock(), url=url)
    assert "Keep-it-secret" not in str(caught.value)
    assert caught.value.fix
    return caught.value


def run(url: str, *statements: str) -> None:
    engine = engine_of(url)
    with engine.connect() as connection:
        for each in statements:
            connection.execute(text(each))
    engine.dispose()


def changed(url: str, **parts: object) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)  # type: ignore[arg-type]  # as the test has them


async def test_a_good_server_is_said_to_be_one(tmp_path: Path) -> None:
    url = new_database()
    seen = look_at(url)
    assert seen.settings == GOOD
    assert seen.schema == ""
    assert not seen.is_foreign
    assert abs(seen.clock_ahead_s) < 5
    assert unfit(seen) is None
    ledger = await Ledger.open(tmp_path, clock=StoppedClock(), url=url)
    now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    run(
        url,
        "INSERT INTO bridges (name, holder, started_at, seen_at)"
        f" VALUES ('cellar', 'a', 1, {now} - 1000), ('attic', 'b', 1, {now} - 60000)",
    )
    seen = look_at(url)
    assert seen.schema == NEWEST
    assert {each.name: each.is_alive for each in seen.bridges} == {"cellar": True, "attic": False}
    await ledger.close()


async def test_a_server_that_does_not_answer_is_not_reachable(tmp_path: Path) -> None:
    failure = await refusal(tmp_path, changed(new_database(), port=free_port()))
    assert isinstance(failure, LedgerUnreachable)
    assert exit_code_of(failure) == 3
    assert "cannot be reached" in failure.text


async def test_a_wrong_password_and_a_missing_database_are_told(tmp_path: Path) -> None:
    url = new_database()
    failure = await refusal(tmp_path, changed(url, password="wrong-as-well"))
    assert "wrong-as-well" not in str(failure)
    assert (exit_code_of(failure), "refuses the user" in failure.text) == (2, True)
    failure = await refusal(tmp_path, changed(url, database="not_there"))
    assert (exit_code_of(failure), "not_there does not exist" in failure.text) == (2, True)


@pytest.mark.parametrize("setting", ["synchronous_commit"])  # the others are of the whole server
async def test_a_server_that_confirms_what_is_not_on_disk_is_refused(
    tmp_path: Path, setting: str
) -> None:
    url = new_database()
    run(url, f"ALTER DATABASE {make_url(url).database} SET {setting} = off")
    failure = await refusal(tmp_path, url)
    assert exit_code_of(failure) == 2
    assert f"{setting} = off" in failure.text
    assert look_at(url).schema == ""  # nothing was made


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    url = new_database()
    run(url, "CREATE TABLE guests (name text)")
    failure = await refusal(tmp_path, url)
    assert (exit_code_of(failure), "another program" in failure.text) == (2, True)
    run(url, "CREATE TABLE alembic_version (version_num text)")
    run(url, "INSERT INTO alembic_version VALUES ('a1b2c3d4')")
    failure = await refusal(tmp_path, url)
    assert (exit_code_of(failure), "another program" in failure.text) == (2, True)


async def test_a_ledger_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    url = new_database()
    await (await Ledger.open(tmp_path, clock=StoppedClock(), url=url)).close()
    run(url, "UPDATE alembic_version SET version_num = '9000'")
    failure = await refusal(tmp_path, url)
    assert (exit_code_of(failure), "newer tillbridge (schema 9000)" in failure.text) == (2, True)


async def test_a_database_that_has_not_every_letter_is_refused(tmp_path: Path) -> None:
    name = server().make_database("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    failure = await refusal(tmp_path, server().url(name).render_as_string(hide_password=False))
    assert (exit_code_of(failure), "as LATIN1" in failure.text) == (2, True)


async def test_a_user_who_may_not_make_tables_is_told_before_any_is_made(tmp_path: Path) -> None:
    url = new_database()
    database = make_url(url).database
    run(
        url,
        f"CREATE ROLE guest_{database} LOGIN PASSWORD 'Keep-it-secret:1'",
        "REVOKE CREATE ON SCHEMA public FROM public",
    )
    failure = await refusal(tmp_path, changed(url, username=f"guest_{database}"))
    assert (exit_code_of(failure), "may not create tables" in failure.text) == (2, True)


async def test_bridges_that_start_at_once_make_the_tables_once(tmp_path: Path) -> None:
    url, key = new_database(), "ZmVybmV0LWtleS1mb3ItdGVzdHMtb25seS1mb3JldmU="
    ledgers = await asyncio.gather(
        *(
            Ledger.open(tmp_path / str(number), clock=StoppedClock(), url=url, key=key)
            for number in range(3)
        )
    )
    for ledger in ledgers:
        await ledger.close()


async def test_without_the_driver_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match="needs psycopg") as caught:
        await Ledger.open(tmp_path, clock=StoppedClock(), url="postgresql+psycopg://db/shop")
    assert "pip install 'tillbridge[postgresql]'" in caught.value.fix


# -- what was seen, judged


def seen(**changes: object) -> Server:
    values: Mapping[str, object] = {
        "name": "db/shop",
        "settings": GOOD,
        "schema": NEWEST,
        **changes,
    }
    return Server(**values)  # type: ignore[arg-type]  # as the test has them


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"version": 13}, ConfigError, "PostgreSQL 13, which is too old"),
        ({"settings": {**GOOD, "fsync": "off"}}, ConfigError, "fsync = off"),
        ({"settings": {**GOOD, "full_page_writes": "off"}}, ConfigError, "full_page_writes = off"),
        ({"encoding": "SQL_ASCII"}, ConfigError, "as SQL_ASCII"),
        ({"is_foreign": True, "schema": ""}, ConfigError, "another program"),
        ({"schema": "9000"}, ConfigError, "newer tillbridge"),
        ({"schema": "", "may_create": False}, ConfigError, "may not create tables"),
        ({"is_standby": True}, LedgerUnreachable, "is a standby"),
        ({"clock_ahead_s": 180.0}, ConfigError, "differ by 180 seconds"),
        ({"clock_ahead_s": -61.0}, ConfigError, "differ by 61 seconds"),
    ],
)
def test_what_is_unfit_is_refused_with_a_remedy_and_doctor_says_the_same(
    changes: dict[str, object], kind: type[BridgeError], words: str
) -> None:
    refused = unfit(seen(**changes))
    assert type(refused) is kind
    assert words in refused.text
    assert refused.fix
    finding = server_verdict(seen(**changes), running=False, writable=None)
    assert (finding.level, finding.text, finding.fix) == (Level.FAILED, refused.text, refused.fix)


def test_a_server_whose_standbys_or_writes_are_fewer_is_the_hosts_decision() -> None:
    assert unfit(seen(settings={**GOOD, "synchronous_commit": "local"})) is None
    assert unfit(seen(settings={**GOOD, "synchronous_commit": "remote_write"})) is None


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({}, Level.OK, "db/shop (PostgreSQL 14) writes each commit to disk."),
        ({"standbys": "ANY 1 (b, c)"}, Level.OK, "to the standbys ANY 1 (b, c)"),
        ({"schema": ""}, Level.SKIPPED, "is empty"),
        ({"schema": "0001"}, Level.OK, "The next start updates it"),
        ({"clock_ahead_s": 3.0}, Level.WARNING, "differ by 3 s"),
    ],
)
def test_doctor_says_what_kind_of_server_it_is(
    changes: dict[str, object], level: Level, words: str
) -> None:
    finding = server_verdict(seen(**changes), running=False, writable=None)
    assert (finding.level, words in finding.text) == (level, True), finding.text


def test_doctor_names_the_bridges_that_run() -> None:
    bridges = [OtherBridge("cellar", "a", "1.0", 1.0), OtherBridge("attic", "b", "1.0", 9.0)]
    finding = server_verdict(seen(bridges=bridges), running=True, writable=True)
    assert finding.details["bridges"] == ["cellar"]


def test_a_bridge_that_cannot_write_fails_whatever_the_server_says() -> None:
    finding = server_verdict(seen(), running=True, writable=False)
    assert (finding.level, finding.code) == (Level.FAILED, "ledger.unwritable")
    finding = server_verdict(seen(schema="0001"), running=True, writable=True)
    assert (finding.level, "Restart the bridge" in finding.fix) == (Level.FAILED, True)
