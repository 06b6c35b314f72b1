"""The vault keeps secrets through damage and crashes, and opens for the right key only."""

import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.support.ledger_harness import opened
from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.ledger.backup import back_up
from tillbridge.ledger.vault import Vault

SECRET = "whsec_planted_0123456789"


def test_a_secret_is_there_after_a_restart(tmp_path: Path) -> None:
    Vault(tmp_path).put("main/refresh_token", SECRET)
    vault = Vault(tmp_path)
    assert vault.get("main/refresh_token") == SECRET
    assert vault.get("main/other") is None
    vault.drop("main/refresh_token")
    vault.drop("main/never_there")
    assert Vault(tmp_path).names() == ()


async def test_no_file_holds_a_secret_in_clear(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        ledger.vault.put("main/webhook_secrets", json.dumps([{"secret": SECRET, "since_ms": 1}]))
        back_up(tmp_path, at=1)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert SECRET.encode() not in path.read_bytes(), path


async def test_a_ledger_that_is_lost_costs_no_secret(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        ledger.vault.put("main/refresh_token", SECRET)
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from
        assert ledger.vault.get("main/refresh_token") == SECRET


def test_another_key_is_told_with_the_remedy_and_changes_nothing(tmp_path: Path) -> None:
    Vault(tmp_path).put("a", SECRET)
    before = (tmp_path / "ledger.vault").read_bytes()
    (tmp_path / "ledger.key").write_bytes(Fernet.generate_key())
    with pytest.raises(LedgerError, match=r"a different key.*ledger\.key.*tillbridge connect"):
        Vault(tmp_path)
    assert (tmp_path / "ledger.vault").read_bytes() == before


def test_a_missing_key_is_told_and_no_new_one_made(tmp_path: Path) -> None:
    Vault(tmp_path).put("a", SECRET)
    (tmp_path / "ledger.key").unlink()
    with pytest.raises(LedgerError, match="is missing"):
        Vault(tmp_path)
    assert not (tmp_path / "ledger.key").exists()


@pytest.mark.parametrize("key", [b"", b"short", b"\xff" * 44])
def test_what_is_no_key_is_told(key: bytes, tmp_path: Path) -> None:
    (tmp_path / "ledger.key").write_bytes(key)
    with pytest.raises(LedgerError, match="does not contain a key"):
        Vault(tmp_path)


def test_a_damaged_vault_is_told_without_what_is_in_it(tmp_path: Path) -> None:
    Vault(tmp_path).put("a", SECRET)
    path = tmp_path / "ledger.vault"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LedgerError) as failure:
        Vault(tmp_path)
    assert SECRET not in str(failure.value)
    assert failure.value.__cause__ is None


def test_the_key_may_come_from_the_service_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "ledger_key").write_bytes(Fernet.generate_key())
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    data = tmp_path / "data"
    data.mkdir()
    Vault(data).put("a", SECRET)
    assert Vault(data).get("a") == SECRET
    assert not (data / "ledger.key").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are those of POSIX")
def test_a_key_that_others_may_read_is_made_private(tmp_path: Path) -> None:
    Vault(tmp_path)
    key = tmp_path / "ledger.key"
    key.chmod(0o644)
    Vault(tmp_path)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_secret_that_cannot_be_written_is_refused_and_the_old_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path)
    vault.put("a", "old")

    def fail(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(LedgerUnwritable, match="No space left"):
            vault.put("a", SECRET)
    assert vault.get("a") == Vault(tmp_path).get("a") == "old"
    assert not list(tmp_path.glob("*.new"))


def test_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    threads = [
        threading.Thread(target=vault.put, args=(f"store{number}/token", str(number)))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Vault(tmp_path).names()) == sorted(vault.names())
    assert len(vault.names()) == 12
