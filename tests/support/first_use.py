"""What the program makes at its first use, made before the tests fork their commands and bridges.

The tree of commands, the models of the settings, routes, templates, statements: a bridge that is
forked afterwards starts and ends with little more than half of the processor time. `make` leaves
nothing of it that a bridge could tell from a first start (tests/integration/test_forked.py).
"""

import asyncio
import logging
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import structlog
import tzlocal.unix
from typer import main as typer

from tillbridge.cli.app import app
from tillbridge.cli.control import find_running
from tillbridge.config.loading import load_to_run
from tillbridge.core import files, formats, i18n, redaction, started
from tillbridge.core.network import listening_sockets
from tillbridge.daemon.reload import RestartController
from tillbridge.daemon.run import live
from tillbridge.daemon.watchdog import ServiceManager
from tillbridge.pos.call_lane import POOL
from tillbridge.web.listener import HeldAddress
from tillbridge.web.rendering import template

# Each table that a command or a bridge reads, as short as may be. Nobody answers for the service.
_CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:9/v2"
client_id = "app_123"
client_secret = "unused-secret"
redirect_uri = "http://127.0.0.1:{port}/oauth/callback"
[receiver]
listen = "127.0.0.1:0"
public_url = "https://store.example.net"
[status_page]
listen = "127.0.0.1:{port}"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
"""


def make() -> None:
    """Make what commands and bridges make at their first use, and what then stays the same."""
    whole: Any = typer.get_command(app)
    setattr(typer, "get_command", lambda _app: whole)  # noqa: B010 -- a module has no such type
    commands = [whole]
    while commands:
        command = commands.pop()
        for each in command.params:
            each.get_runtime_param()
        commands += getattr(command, "commands", {}).values()
    for name in template("base.html").environment.list_templates():
        template(name)
    formats.money(950, "USD")
    for language in i18n.languages():
        formats.language_name(language)
    with _nothing_left(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bridge.toml"
        file.write_text("", "utf-8")
        load_to_run(file)
        (file.parent / "orders").mkdir()
        (file.parent / "menu.csv").write_text("external_id,name,price\np1,Soup,3.50\n", "utf-8")
        asyncio.run(_play(file))


async def _play(file: Path) -> None:
    """Run a bridge until it has shown its page, and end it in order."""
    restarts, address = RestartController(), HeldAddress()
    # A port that is chosen and held at once: other tests choose theirs in the same moment.
    address._sockets = await listening_sockets("127.0.0.1", 0)
    address._at = address._sockets[0].getsockname()
    file.write_text(_CONFIG.format(port=address._at[1]), "utf-8")
    run = live(load_to_run(file), restarts, address, ServiceManager.of({}))
    async with asyncio.timeout(60), asyncio.TaskGroup() as playing:
        playing.create_task(run)
        while (bridge := find_running(file.parent / "data")) is None:
            await asyncio.sleep(0.01)
        url = f"http://{bridge.host}:{bridge.port}/"
        async with aiohttp.request("GET", url) as page:
            page.raise_for_status()
            await page.read()
        restarts.stop()
    address.close()


@contextmanager
def _nothing_left() -> Iterator[None]:
    """Take back what a bridge leaves in its process."""

    def drop(*_event: object) -> str:
        raise structlog.DropEvent

    structlog.configure(processors=[drop])
    logging.disable()
    with warnings.catch_warnings():  # forgets what it has warned of, too
        yield
    deadline = time.monotonic() + 60
    while threading.active_count() > 1:  # a fork has the thread alone that forks
        while POOL._idle:
            POOL._idle.pop().put(sys.exit)
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.01)
    logging.disable(logging.NOTSET)
    structlog.reset_defaults()
    i18n.set_reader(i18n.NOBODY)
    files._folders.clear()
    files._files.clear()
    redaction._learnt.clear()
    redaction._known = redaction.KnownTexts()
    started.command_to.cache_clear()  # of the terminal or service that it runs in
    tzlocal.unix._cache_tz = tzlocal.unix._cache_tz_name = None  # of TZ
