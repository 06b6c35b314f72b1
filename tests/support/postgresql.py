"""A PostgreSQL server for ledgers, as Debian's package has it: one a process, a database a test.

pytestmark = on_postgresql()    # skipped where there is none; one worker runs all of them
url = new_database()            # of an empty database, as `Ledger.open` takes it
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

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
