"""A command in the seconds in which a bridge has the database and does not answer yet."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tillbridge.cli import commands
from tillbridge.cli.commands import asked_or_alone
from tillbridge.core.errors import LedgerLocked
from tillbridge.ledger.database import LedgerLock
from tillbridge.web.listener import announced


class Starting:
    """A bridge that has the ledger's lock. `then` happens once a command has met the lock."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._open = ExitStack()
        self._lock = LedgerLock(data_dir)
        self.then = self.close

    def serve(self) -> None:
        """Listen where commands look for the bridge."""
        listener = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._open.enter_context(announced(self._data_dir, url=url, token="t"))

    def close(self) -> None:
        """End, and let others have the ledger."""
        self._lock.release()
        self._open.close()

    def command(self) -> str:
        """Return who has done what a command asks for."""

        def alone() -> str:
            try:
                lock = LedgerLock(self._data_dir)
            except LedgerLocked:
                self.then()
                raise
            with lock:
                return "the command itself"

        return asked_or_alone(self._data_dir, lambda _running: "the bridge", alone)


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Starting]:
    bridge = Starting(tmp_path)
    yield bridge
    bridge.close()


def test_a_bridge_that_is_starting_is_waited_for_and_asked(starting: Starting) -> None:
    starting.then = starting.serve
    assert starting.command() == "the bridge"


def test_where_the_bridge_ends_the_command_does_it_itself(starting: Starting) -> None:
    assert starting.command() == "the command itself"


def test_who_never_answers_is_named(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_STARTS_WITHIN_S", 0.0)
    starting.then = lambda: None
    with pytest.raises(LedgerLocked, match=r"pid \d+"):
        starting.command()
