"""The vault in a database: every bridge sees what another stores, and one key opens it for all."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, NullPool, create_engine, text

from tests.support.postgresql import new_database, on_postgresql
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, LedgerUnwritable
from tillbridge.ledger.models import SecretRow
from tillbridge.ledger.vault import Vault
from tillbridge.receiver import Echo

pytestmark = on_postgresql()

SECRET = "whsec_planted_0123456789"
KEY = Fernet.generate_key().decode()


@pytest.fixture
def database() -> Iterator[Engine]:
    engine = create_engine(new_database(), poolclass=NullPool)
    SecretRow.__table__.create(engine)  # type: ignore[attr-defined]  # SQLModel's tables have it
    yield engine
    engine.dispose()


def vault(database: Engine, folder: Path, key: str | None = KEY) -> Vault:
    return Vault(folder, key=key, database=database)


def tokens(database: Engine) -> dict[str, str]:
    with database.connect() as connection:
        rows = connection.execute(text("SELECT name, value FROM secrets"))
        return {row.name: row.value for row in rows}


def test_what_one_bridge_stores_another_reads_and_the_database_never_has_it_in_clear(
    database: Engine, tmp_path: Path
) -> None:
    first, second = vault(database, tmp_path), vault(database, tmp_path)
    first.put("main/webhook_secrets", SECRET)
    first.put("main/tokens", "older")
    assert second.get("main/tokens") is None
    assert set(second.refresh()) == {"main/webhook_secrets", "main/tokens"}
    assert second.get("main/webhook_secrets") == SECRET
    assert second.refresh() == ()
    second.put("main/tokens", "newer")
    first.drop("main/webhook_secrets")
    assert first.refresh() == ("main/tokens",)
    assert second.refresh() == ("main/webhook_secrets",)
    assert first.names() == second.names() == ("main/tokens",)
    assert vault(database, tmp_path).get("main/tokens") == "newer"
    assert not [each for each in tokens(database).values() if SECRET in each or "newer" in each]
    assert not list(tmp_path.iterdir())


def test_a_public_address_may_lead_to_any_bridge_of_the_database_and_to_no_other(
    database: Engine, tmp_path: Path
) -> None:
    asking, answering = (Echo(vault(database, tmp_path).mark) for _ in range(2))
    nonce = asking.new_nonce()
    assert asking.proves(nonce, answering.answer(nonce))
    alone = [Echo(Vault(tmp_path, key=KEY).mark) for _ in range(2)]
    assert not asking.proves(nonce, alone[0].answer(nonce))
    assert not alone[0].proves(nonce, alone[1].answer(nonce))


def test_a_secret_that_is_put_again_counts_whatever_another_made_of_it(
    database: Engine, tmp_path: Path
) -> None:
    first, second = vault(database, tmp_path), vault(database, tmp_path)
    first.put("a", "one")
    second.put("a", "two")
    first.put("a", "one")
    assert vault(database, tmp_path).get("a") == "one"
    second.refresh()
    first.put("b", "1")
    second.drop("b")  # which it has not read yet
    assert vault(database, tmp_path).names() == ("a",)


def test_others_hear_of_a_change_as_soon_as_it_is_committed(
    database: Engine, tmp_path: Path
) -> None:
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as listening:
        listening.execute(text("LISTEN tillbridge"))
        vault(database, tmp_path).put("main/tokens", SECRET)
        driver = listening.connection.driver_connection
        assert driver is not None
        told = next(driver.notifies(timeout=5))
    assert told.payload == "secret main/tokens"


def test_a_bridge_without_the_key_is_refused_and_makes_none(
    database: Engine, tmp_path: Path
) -> None:
    vault(database, tmp_path).put("a", SECRET)
    before = tokens(database)
    with pytest.raises(ConfigError, match=r"need their key") as caught:
        vault(database, tmp_path, key=None)
    assert "[ledger] key" in caught.value.fix
    assert not list(tmp_path.iterdir())
    assert tokens(database) == before


@pytest.mark.parametrize(
    "key", [pytest.param(Fernet.generate_key().decode(), id="another"), "no key", ""]
)
def test_a_bridge_with_another_key_is_refused_and_changes_nothing(
    database: Engine, tmp_path: Path, key: str
) -> None:
    vault(database, tmp_path)  # nothing is stored yet, and the key counts
    before = tokens(database)
    with pytest.raises(ConfigError) as caught:
        vault(database, tmp_path, key=key)
    assert "key" in caught.value.text
    assert caught.value.fix
    assert tokens(database) == before


def test_of_bridges_that_start_at_once_with_keys_of_their_own_one_goes_on(
    database: Engine, tmp_path: Path
) -> None:
    failed: list[BridgeError] = []

    def begin(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            vault(database, folder, key=None).put(f"{number}", SECRET)
        except BridgeError as failure:
            failed.append(failure)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 3
    assert {type(each) for each in failed} == {ConfigError}
    assert len(tokens(database)) == 2


def test_a_damaged_row_is_told_by_its_name_without_what_is_in_it(
    database: Engine, tmp_path: Path
) -> None:
    vault(database, tmp_path).put("main/tokens", SECRET)
    with database.begin() as connection:
        connection.execute(text("UPDATE secrets SET value = 'x' WHERE name = 'main/tokens'"))
    with pytest.raises(LedgerError, match="main/tokens") as caught:
        vault(database, tmp_path)
    assert caught.value.__cause__ is None


def test_a_database_that_is_gone_refuses_and_keeps_what_was_read(
    database: Engine, tmp_path: Path
) -> None:
    opened = vault(database, tmp_path)
    opened.put("a", "old")
    with database.begin() as connection:
        connection.execute(text("ALTER TABLE secrets RENAME TO gone"))
    with pytest.raises(LedgerUnwritable) as caught:
        opened.put("a", SECRET)
    with pytest.raises(LedgerError):
        opened.refresh()
    assert opened.get("a") == "old"
    assert SECRET not in str(caught.value)


def test_looking_for_a_vault_makes_none(database: Engine, tmp_path: Path) -> None:
    assert Vault.existing(tmp_path, key=KEY, database=database) is None
    assert tokens(database) == {}
    assert Vault.existing(tmp_path) is None
    vault(database, tmp_path).put("a", SECRET)
    found = Vault.existing(tmp_path, key=KEY, database=database)
    assert found is not None
    assert found.get("a") == SECRET
    with database.begin() as connection:
        connection.execute(text("DROP TABLE secrets"))
    assert Vault.existing(tmp_path, key=KEY, database=database) is None


def test_a_configured_key_opens_a_vault_that_is_a_file(tmp_path: Path) -> None:
    Vault(tmp_path, key=KEY).put("a", SECRET)
    assert not (tmp_path / "ledger.key").exists()
    assert Vault(tmp_path, key=KEY).get("a") == SECRET
    with pytest.raises(LedgerError, match="is missing"):
        Vault(tmp_path)
