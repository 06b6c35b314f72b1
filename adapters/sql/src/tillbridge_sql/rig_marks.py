"""Marks for tests that want a real server: skipped where there is none, one server for all of them.

With pytest-xdist's `--dist=loadgroup` all tests of one kind of server run in one worker.
"""

from typing import Any

from tillbridge_sql.rig import PostgresqlRig, SqlRig
from tillbridge_sql.rig_servers import missing


def on_servers(*tills: type[SqlRig]) -> list[Any]:
    """Return the tills as parameters of a test, each with the marks of its server."""
    import pytest  # noqa: PLC0415 -- only tests have pytest

    return [pytest.param(till, marks=marks_of(till), id=till.__name__) for till in tills]


def marks_of(till: type[SqlRig]) -> list[Any]:
    """Return the marks of the server that a till is on."""
    import pytest  # noqa: PLC0415 -- as above

    server = "postgresql" if issubclass(till, PostgresqlRig) else "mariadb"
    why = missing(server)
    return [
        pytest.mark.skipif(bool(why), reason=why or "there is one"),
        pytest.mark.xdist_group(f"sql-{server}"),
    ]
