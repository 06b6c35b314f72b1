"""A ledger copied to a server and back is the same, and there is only one that counts."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Integer, LargeBinary, Table, text

from tests.support.ledger_harness import StoppedClock
from tests.support.postgresql import new_database, on_postgresql
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, LedgerLocked
from tillbridge.ledger import facts
from tillbridge.ledger.copy_sides import new_file, new_on_server, present_file, present_server
from tillbridge.ledger.copying import Copied, copy_ledger
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import metadata
from tillbridge.ledger.postgresql import engine_of
from tillbridge.ledger.recover import restore
from tillbridge.ledger.vault import Vault

pytestmark = on_postgresql()

AT = 1_800_000_000_000
OF_BRIDGES = {"bridges", "leases", "requests", "secrets"}
TABLES = [each for each in metadata.sorted_tables if each.name not in OF_BRIDGES]
TEXTS = ["", "Müller & Søn", "🍕 pizza", "{}", '{"a": [1, "\\u0000"]}', "ende\n", "it's %s ? :x"]


async def ledger_of(data: Path, url: str | None = None) -> Ledger:
    return await Ledger.open(data, clock=StoppedClock(AT), url=url)


async def shop(data: Path, rows: int = 40) -> None:
    """Make a ledger with odd rows in every table, and secrets."""
    ledger = await ledger_of(data)
    for number in range(7):
        ledger.vault.put(f"store{number}/tokens", f"token-{number}-ü")
    await ledger.close()
    chance = random.Random(7)
    with closing(sqlite3.connect(data / "ledger.db")) as connection, connection:
        for table in TABLES:
            for number in range(rows):
                values = [_odd(table, each, number, chance) for each in table.columns]
                marks = ", ".join("?" * len(values))
                names = ", ".join(f'"{each.name}"' for each in table.columns)
                connection.execute(f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', values)


def _odd(table: Table, column: Column[Any], number: int, chance: random.Random) -> object:
    if column.nullable and number % 3 == 0:
        return None
    if isinstance(column.type, Boolean):
        return number % 2
    if isinstance(column.type, Integer):
        return number + 1 if column.primary_key else chance.choice([0, -1, 2**53, AT, number])
    if isinstance(column.type, LargeBinary):
        return bytes([number, 0, 255]) * number
    words = chance.choice(TEXTS)
    return f"{words}{number}" if column.primary_key or column.name == "event_id" else words


def rows_of(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            each.name: sorted(connection.execute(f'SELECT * FROM "{each.name}"'), key=repr)
            for each in TABLES
        }


def nothing(_what: str, _done: int, _total: int) -> None:
    """Nobody looks how far it is."""


def to_server(data: Path, url: str, report: Callable[[str, int, int], None] = nothing) -> Copied:
    with present_file(data, None, at=AT) as here, new_on_server(url, data, None) as there:
        return copy_ledger(here, there, at=AT, report=report)


def to_file(data: Path, url: str, report: Callable[[str, int, int], None] = nothing) -> Copied:
    with present_server(url, data, None) as here, new_file(data, None, at=AT) as there:
        return copy_ledger(here, there, at=AT, report=report)


async def test_there_and_back_every_row_and_secret_is_the_same(tmp_path: Path) -> None:
    await shop(tmp_path)
    before, url = rows_of(tmp_path / "ledger.db"), new_database()
    copied = to_server(tmp_path, url)
    assert copied.rows == {each.name: 40 for each in TABLES}
    assert copied.secrets == 7
    ledger = await ledger_of(tmp_path, url)
    assert ledger.vault.get("store3/tokens") == "token-3-ü"
    ledger.vault.put("store3/tokens", "newer")
    ledger.vault.drop("store4/tokens")
    await ledger.put_fact("main", "since", 5, at=AT)
    next_id = text("SELECT nextval(pg_get_serial_sequence('order_log', 'id'))")
    assert await ledger.write(lambda connection: connection.scalar(next_id)) == 41
    await ledger.close()
    to_file(tmp_path, url)
    ledger = await ledger_of(tmp_path)
    assert await ledger.get_fact("main", "since", int) == 5
    assert ledger.vault.get("store3/tokens") == "newer"
    assert len(ledger.vault.names()) == 6
    await ledger.drop_fact("main", "since")
    await ledger.close()
    assert rows_of(tmp_path / "ledger.db") == before
    assert [each.name for each in tmp_path.glob("ledger.db.replaced-*")]
    assert not (tmp_path / ".copy").exists()


async def test_only_the_copy_counts_and_each_ledger_says_which_does(tmp_path: Path) -> None:
    await shop(tmp_path, 3)
    url = new_database()
    to_server(tmp_path, url)
    with pytest.raises(ConfigError, match="was copied to") as caught:
        await ledger_of(tmp_path)
    assert "127.0.0.1" in caught.value.text
    assert "Keep-it-secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="was copied to"):
        to_server(tmp_path, new_database())
    to_file(tmp_path, url)
    with pytest.raises(ConfigError, match="was copied to"):
        await ledger_of(tmp_path, url)
    to_server(tmp_path, url)  # which was copied elsewhere, and may be replaced
    await (await ledger_of(tmp_path, url)).close()


@pytest.mark.parametrize(
    "seed",
    [
        *range(2),
        *(
            pytest.param(seed, marks=pytest.mark.slow(reason="other moments of the same"))
            for seed in (2, 3)
        ),
    ],
)
async def test_a_copy_that_is_interrupted_goes_on_and_counts_only_at_its_end(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tillbridge.ledger.copying._PORTION", 7)
    await shop(tmp_path)
    url, chance = new_database(), random.Random(seed)
    before = rows_of(tmp_path / "ledger.db")
    reports: list[str] = []

    class CutOff(Exception):
        pass

    def interrupted(copy: Callable[..., Copied], after: int) -> bool:
        left = after

        def cut_off(what: str, _done: int, _total: int) -> None:
            nonlocal left
            reports.append(what)
            left -= 1
            if left == 0:
                raise CutOff

        try:
            copy(tmp_path, url, cut_off)
        except CutOff:
            return True
        return False

    assert interrupted(to_server, chance.randint(1, 60))
    with pytest.raises(ConfigError, match="unfinished copy"):
        await ledger_of(tmp_path, url)
    await (await ledger_of(tmp_path)).close()  # the present one still counts
    for _time in range(3):
        interrupted(to_server, chance.randint(1, 100))
    assert not interrupted(to_server, 0)
    assert len([each for each in reports if each == "Copying orders"]) == 6  # none twice
    for _time in range(3):
        interrupted(to_file, chance.randint(1, 100))
    assert not interrupted(to_file, 0)
    assert rows_of(tmp_path / "ledger.db") == before


async def test_a_copy_that_differs_is_found_and_the_present_ledger_counts(tmp_path: Path) -> None:
    await shop(tmp_path)
    url = new_database()

    def tamper(what: str, _done: int, _total: int) -> None:
        if what.startswith("Comparing"):
            other = engine_of(url)
            with other.connect() as connection:
                connection.execute(text("UPDATE orders SET order_number = '0' WHERE ticket <> ''"))
            other.dispose()

    with pytest.raises(LedgerError, match="orders differs: 40 rows, and 40"):
        to_server(tmp_path, url, tamper)
    await (await ledger_of(tmp_path)).close()
    with pytest.raises(ConfigError, match="unfinished copy"):
        await ledger_of(tmp_path, url)


async def test_nothing_is_copied_while_a_bridge_uses_either(tmp_path: Path) -> None:
    await shop(tmp_path, 2)
    url = new_database()
    other = tmp_path / "other"
    ledger = await ledger_of(other, url)
    with pytest.raises(LedgerLocked, match="is using the database"):
        to_server(tmp_path, url)
    with pytest.raises(LedgerLocked, match="is using the database"):
        to_file(tmp_path, url)
    await ledger.close()
    with pytest.raises(ConfigError, match="is a ledger in the database"):
        to_server(tmp_path, url)
    with present_server(url, tmp_path, None), pytest.raises(LedgerLocked, match="being copied"):
        await ledger_of(other, url)
    await (await ledger_of(other, url)).close()


async def test_a_text_that_the_server_cannot_store_is_copied_as_it_would_store_it(
    tmp_path: Path,
) -> None:
    ledger = await ledger_of(tmp_path)
    await ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("INSERT INTO facts VALUES ('main', 'odd', ?, 1)", ('"a\0b"',))
    url = new_database()
    to_server(tmp_path, url)
    ledger = await ledger_of(tmp_path, url)
    assert await ledger.get_fact("main", "odd") == "a\ufffdb"
    await ledger.close()


async def test_a_row_that_no_server_takes_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    await shop(tmp_path, 3)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE facts SET at = 'long ago' WHERE rowid = 2")
        odd = connection.execute("SELECT store FROM facts WHERE rowid = 2").fetchone()[0]
    with pytest.raises(LedgerError, match="does not take the row") as caught:
        to_server(tmp_path, new_database())
    assert odd in caught.value.text
    await (await ledger_of(tmp_path)).close()


async def test_a_server_that_is_lost_costs_what_came_since_and_no_order_twice(
    tmp_path: Path,
) -> None:
    """The file is restored as a backup is: the till is asked before an order is written."""
    ledger = await ledger_of(tmp_path)
    await ledger.write(facts.put_fact, "main", "before", 1, at=AT)
    await ledger.close()
    to_server(tmp_path, new_database())
    restore(tmp_path, tmp_path / "ledger.db", at=AT, who="command:anna")
    ledger = await ledger_of(tmp_path)
    assert await ledger.get_fact("main", "before") == 1
    await ledger.close()


async def test_of_nothing_there_is_no_copy(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="There is no database"):
        to_server(tmp_path, new_database())
    with pytest.raises(ConfigError, match="has no ledger of this version"):
        to_file(tmp_path, new_database())
    assert not (tmp_path / "ledger.db").exists()


async def test_the_key_of_the_folder_is_that_of_the_server_too(tmp_path: Path) -> None:
    await shop(tmp_path, 1)
    url = new_database()
    to_server(tmp_path, url)
    engine = engine_of(url)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ConfigError, match="need their key"):
        Vault(other, database=engine)
    assert len(Vault(tmp_path, database=engine).names()) == 7
    engine.dispose()


async def test_what_is_the_bridges_own_is_that_of_the_bridge_that_copies(tmp_path: Path) -> None:
    ledger = await ledger_of(tmp_path)
    await ledger.put_fact("", "running", {"pid": 1}, at=AT)
    await ledger.put_fact("", "orders_seen", 7, at=AT)  # of all bridges
    await ledger.close()
    url = new_database()
    with (
        present_file(tmp_path, None, at=AT) as here,
        new_on_server(url, tmp_path, None, name="cellar") as there,
    ):
        copy_ledger(here, there, at=AT, report=nothing)
    for name, pid in (("cellar", {"pid": 1}), ("attic", None)):
        ledger = await Ledger.open(tmp_path, clock=StoppedClock(AT), url=url, name=name)
        assert await ledger.get_fact("", "running") == pid
        assert await ledger.get_fact("", "orders_seen") == 7
        await ledger.close()
    with (
        present_server(url, tmp_path, None, name="cellar") as here,
        new_file(tmp_path, None, at=AT) as there,
    ):
        copy_ledger(here, there, at=AT, report=nothing)
    ledger = await ledger_of(tmp_path)
    assert await ledger.get_fact("", "running") == {"pid": 1}
    assert await ledger.get_fact("", "orders_seen") == 7
    await ledger.close()
