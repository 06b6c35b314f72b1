"""`tillbridge migrate`: what packages do before they start a newer version."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.fork_server import run
from tillbridge import ledger_schemas

ROOT = Path(__file__).resolve().parents[2]


def schema_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def content_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def migrate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("migrate", *arguments, cwd=folder, within_s=110)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger of the first version, with its configuration in the folder above."""
    text = (ROOT / "config" / "bridge.toml").read_text("utf-8")
    text = text.replace('# data_dir = "/var/lib/tillbridge"', 'data_dir = "data"')
    (tmp_path / "bridge.toml").write_text(text, "utf-8")
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((ROOT / "tests/data/ledgers/0001.sql").read_text("utf-8"))
    return path


def test_a_trial_changes_nothing(ledger: Path) -> None:
    before = ledger.read_bytes()
    done = migrate(ledger.parents[1], "--dry-run")
    assert done.returncode == 0, done.stderr
    assert ledger.read_bytes() == before
    assert [each.name for each in ledger.parent.iterdir()] == ["ledger.db"]


def test_the_ledger_is_backed_up_and_brought_to_this_version(ledger: Path) -> None:
    done = migrate(ledger.parents[1])
    assert done.returncode == 0, done.stderr
    assert schema_of(ledger) == ledger_schemas()[-1]
    (saved,) = (ledger.parent / "backups").glob("*.db")
    assert schema_of(saved) == "0001"


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_a_ledger_that_cannot_be_taken_over_is_as_it_was(
    ledger: Path, arguments: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("CREATE TABLE menu_past (in_the_way INTEGER)")
        connection.commit()
    before = content_of(ledger)
    done = migrate(ledger.parents[1], *arguments)
    assert done.returncode == 1
    assert "could not be updated to this version" in done.stderr
    assert content_of(ledger) == before


def test_where_there_is_no_ledger_there_is_nothing_to_do(ledger: Path) -> None:
    ledger.unlink()
    done = migrate(ledger.parents[1])
    assert done.returncode == 0
    assert not ledger.exists()
