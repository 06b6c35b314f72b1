"""A PostgreSQL server for ledgers, as Debian's package has it: one a process, a database a test.

pytestmark = on_postgresql()    # skipped where there is none; one worker runs all of them
url = new_database()            # of an empty database, as `Ledger.open` takes it

pytestmark = pytest.mark.usefixtures("each_database")  # every test twice: on SQLite, on PostgreSQL
"""

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from tillbridge.ledger import ledger
from tillbridge.ledger.backend import Backend
from tillbridge_sql.rig_servers import Postgresql, missing

# Such a server is refused: it confirms commits that are not on disk.
_UNSAFE = ("fsync=", "full_page_writes=")


class LedgerServer(Postgresql):
    """PostgreSQL as a ledger needs it: it waits for the disk. `options` are further settings."""

    options: Sequence[str] = ()

    def command(self) -> Sequence[str]:
        """Return the postmaster's."""
        words = list(super().command())
        kept = words[:3]
        for flag, setting in zip(words[3::2], words[4::2], strict=True):
            if not setting.startswith(_UNSAFE):
                kept += [flag, setting]
        return [*kept, *(word for option in self.options for word in ("-c", option))]


@cache
def server() -> LedgerServer:
    """Return this process's server. Raises NoServer where there can be none."""
    return LedgerServer()


def new_database() -> str:
    """Return the URL of an empty database, with its password."""
    name = server().make_database("TEMPLATE template0")
    return server().url(name).render_as_string(hide_password=False)


def on_postgresql() -> list[Any]:
    """Return the marks of tests that need the server."""
    why = missing("postgresql")
    return [
        pytest.mark.skipif(bool(why), reason=why or "there is one"),
        pytest.mark.xdist_group("ledger-postgresql"),
    ]


# -- ledgers of tests that know nothing of it: instead of a file, each has a schema

_free: list[str] = []  # schemas whose test is over, with empty tables
_EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE each record;
BEGIN
    FOR each IN SELECT tablename FROM pg_tables
        WHERE schemaname = current_schema AND tablename <> 'alembic_version'
    LOOP EXECUTE format('DELETE FROM %I', each.tablename); END LOOP;
    FOR each IN SELECT sequencename FROM pg_sequences WHERE schemaname = current_schema
    LOOP PERFORM setval(each.sequencename::regclass, 1, false); END LOOP;
END $$
"""


@cache
def _shared_database() -> str:
    return new_database()


_urls: dict[Path, str] | None = None  # by data directory, in a test on PostgreSQL


@contextlib.contextmanager
def instead_of_files() -> Iterator[None]:
    """Let `Ledger.open` use PostgreSQL wherever it is given a data directory alone."""
    global _urls  # noqa: PLW0603 -- what `ledger_table` looks at
    real, _urls = ledger._backend_of, {}

    def backend_of(data_dir: Path, url: str | None, own: str) -> Backend:
        return real(data_dir, url or url_of(data_dir), own)

    with patch.object(ledger, "_backend_of", backend_of):
        yield
    for url in _urls.values():
        with psycopg.connect(_plain(url), autocommit=True) as connection:
            connection.execute(_EMPTY)
        _free.append(url)
    _urls = None


def url_of(data_dir: Path) -> str | None:
    """Return where the ledger of this directory is; None: in a file."""
    if _urls is None:
        return None
    if data_dir not in _urls:
        _urls[data_dir] = _free.pop() if _free else _new_schema()
    return _urls[data_dir]


def ledger_table(data_dir: Path) -> str:
    """Return what bridge.toml says of the ledger of this directory; nothing if it is a file."""
    url = url_of(data_dir)
    return "" if url is None else f'[ledger]\nurl = "{_plain(url)}"\n'


def _new_schema() -> str:
    with psycopg.connect(_plain(_shared_database()), autocommit=True) as connection:
        count = connection.execute("SELECT count(*) FROM pg_namespace").fetchone()
        assert count is not None
        connection.execute(f"CREATE SCHEMA test_{count[0]}")
    return f"{_shared_database()}?options=-csearch_path%3Dtest_{count[0]}"


def _plain(url: str) -> str:
    return url.replace("postgresql+psycopg", "postgresql")
