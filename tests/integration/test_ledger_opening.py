"""Opening a ledger: one at a time, for its owner's eyes, and never one from the future."""

import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.ledger_harness import opened
from tillbridge.core.errors import LedgerError, LedgerLocked, LedgerUnwritable
from tillbridge.ledger import facts
from tillbridge.ledger.backup import back_up
from tillbridge.ledger.database import LEDGER_FILE, LedgerLock, close_to_others

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and signals are those of POSIX")


@posix
async def test_everything_is_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "a" / "data"
    async with opened(data) as ledger:
        ledger.vault.put("main/refresh_token", "secret")
        back_up(data, at=1)
        modes = {
            str(path.relative_to(data)): stat.S_IMODE(path.stat().st_mode)
            for path in data.rglob("*")
            if path.is_file()
        }
        assert modes
        assert set(modes.values()) == {0o600}, modes
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


@posix
async def test_files_that_others_may_read_or_that_are_read_only_are_closed_to_them(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as ledger:
        ledger.vault.put("main/refresh_token", "secret")
    names = [LEDGER_FILE, f"{LEDGER_FILE}-wal", f"{LEDGER_FILE}-shm", "ledger.vault"]
    for name, mode in zip(names, (0o644, 0o400, 0o400, 0o666), strict=True):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: facts.put_fact(connection, "", "n", "1", at=1))
        modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names}
        assert set(modes.values()) == {0o600}, modes


@posix
async def test_a_link_among_the_files_leads_to_no_change_elsewhere(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o644)
    data = tmp_path / "data"
    data.mkdir()
    (data / f"{LEDGER_FILE}-shm").symlink_to(other)
    close_to_others([data / f"{LEDGER_FILE}-shm"])
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


async def test_a_readonly_file_is_not_a_full_disk(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: connection.exec_driver_sql("PRAGMA query_only = ON"))
        with pytest.raises(LedgerUnwritable, match="readonly database") as caught:
            await ledger.write(lambda connection: facts.put_fact(connection, "", "n", "1", at=1))
        assert "give the bridge's user permission to write" in str(caught.value).lower()
        assert "disk space" not in str(caught.value)


async def test_commits_are_full_and_in_a_write_ahead_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        settings = await ledger.write(
            lambda connection: [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        )
        assert settings == ["wal", 2, 1]


async def test_a_second_one_is_refused_and_told_whose_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path):
        open_it = (
            "import asyncio, sys; from pathlib import Path\n"
            "from tillbridge.core.clock import Clock\n"
            "from tillbridge.ledger.ledger import Ledger\n"
            "asyncio.run(Ledger.open(Path(sys.argv[1]), clock=Clock()))"
        )
        other = subprocess.run(
            [sys.executable, "-c", open_it, tmp_path], capture_output=True, text=True, check=False
        )
        assert "LedgerLocked" in other.stderr
        with pytest.raises(LedgerLocked, match=r"pid \d+.*data_dir"):
            async with opened(tmp_path):
                pass
    async with opened(tmp_path):
        """The lock is free again."""


@posix
async def test_a_lock_that_a_killed_bridge_left_to_its_child_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It has what its parent had between fork and exec, which a busy machine draws out.
    fork = (
        "import ctypes, os, signal, sys; from pathlib import Path\n"
        "from tillbridge.ledger.database import LedgerLock\n"
        "lock = LedgerLock(Path(sys.argv[1]))\n"
        "if ctypes.PyDLL(None).fork():\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.stdin.read()"
    )
    python = [sys.executable, "-c", fork, str(tmp_path)]
    with subprocess.Popen(python, stdin=subprocess.PIPE) as killed:
        assert killed.wait() == -signal.SIGKILL
        with pytest.raises(LedgerLocked):
            async with opened(tmp_path):
                pass
        assert killed.stdin is not None
        # A child that other tests starve ends late.
        monkeypatch.setattr(LedgerLock, "waits_s", 60 * LedgerLock.waits_s)
        threading.Timer(0.2, killed.stdin.close).start()
        async with opened(tmp_path):
            """The child has let go of it."""


async def test_a_failed_opening_frees_the_lock(tmp_path: Path) -> None:
    (tmp_path / "ledger.key").write_text("no key")
    for _ in range(2):
        with pytest.raises(LedgerError) as failure:
            async with opened(tmp_path):
                pass
        assert not isinstance(failure.value, LedgerLocked)
    (tmp_path / "ledger.key").unlink()
    async with opened(tmp_path):
        """Nothing is left of it."""


async def test_a_ledger_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / LEDGER_FILE)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = (tmp_path / LEDGER_FILE).read_bytes()
    with pytest.raises(LedgerError, match="newer"):
        async with opened(tmp_path):
            pass
    assert (tmp_path / LEDGER_FILE).read_bytes() == before
    assert not list(tmp_path.glob("*.damaged-*"))


async def test_a_data_dir_that_is_a_file_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(LedgerError, match="data_dir"):
        async with opened(tmp_path / "data"):
            pass


async def test_opening_does_not_import_alembic(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from tillbridge.core.clock import Clock\n"
        "from tillbridge.ledger.ledger import Ledger\n"
        "async def main():\n"
        "    for _ in range(2):\n"
        "        await (await Ledger.open(Path(sys.argv[1]), clock=Clock())).close()\n"
        "asyncio.run(main())\n"
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True)


def test_a_ledger_in_a_file_needs_no_driver_of_a_server(tmp_path: Path) -> None:
    """Neither its memory nor its time: most restaurants have no server."""
    code = (
        "import asyncio, sys; from pathlib import Path; import tillbridge.daemon.run\n"
        "from tillbridge.core.clock import Clock; from tillbridge.ledger.ledger import Ledger\n"
        "async def main(): await (await Ledger.open(Path(sys.argv[1]), clock=Clock())).close()\n"
        "asyncio.run(main())\n"
        "print({'psycopg', 'tillbridge.ledger.postgresql'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
