"""What a newcomer types first, as an ordinary user in an empty home."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bridge_process import free_port
from tests.support.ordinary_user import OrdinaryUser, ordinary_user

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.name != "posix", reason="needs a terminal of Unix"),
    pytest.mark.skipif(
        os.access("/var/lib/tillbridge/ledger.db", os.W_OK) and os.geteuid() != 0,
        reason="this user has a bridge already",
    ),
]


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as made:
        yield made


def test_an_empty_file_begins_a_bridge_that_every_command_finds(user: OrdinaryUser) -> None:
    missing = user.run("run")
    assert missing.returncode == 2
    assert "touch bridge.toml, then tillbridge run" in missing.stderr

    port = free_port()
    listen = f'[status_page]\nlisten = "127.0.0.1:{port}"\n'
    config = user.write("bridge.toml", listen)
    with user.terminal("run") as lines:
        # The first line is what a person has to do; the log comes below it.
        assert next(lines) == (
            f"Open http://127.0.0.1:{port}/setup in a browser to set up the bridge. "
            f"Data folder: {user.home}/data. Press Ctrl-C to stop."
        )
        assert "bridge.starting" in next(lines)
        status = user.run("status")
        assert "The bridge is not set up yet" in status.stdout
        assert "not running" not in status.stdout
        assert "bridge.setting_up" in user.run("logs").stdout

        for command in ("config check", "doctor", "connect main"):
            early = user.run(*command.split())
            assert (early.returncode, early.stderr.splitlines()[0]) == (
                2,
                "Nothing is set up yet: bridge.toml has no stores.",
            )

        # Another one wants its port, and is told whose it is.
        user.write("second/bridge.toml", listen)
        second = user.run("run", folder="second")
        assert second.returncode == 2
        if Path("/proc/net/tcp").exists():
            assert f"taken by the bridge of {config}" in second.stderr.replace(
                "Address already in use by", "taken by"
            )
        assert "bridge.not_started" in user.run("logs", folder="second").stdout
        assert "could not start" in user.run("status", folder="second").stdout
    assert sorted(each.name for each in user.home.iterdir()) == ["bridge.toml", "data", "second"]
    assert "the bridge is not running" in user.run("status").stdout
