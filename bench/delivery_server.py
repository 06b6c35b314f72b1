"""The receivers that `bench.deliveries` compares, each a process of its own.

`python -m bench.delivery_server KIND DIR` prints its port, and serves until its standard input
closes. What uses PostgreSQL has its database's address in LEDGER_URL.
"""

import asyncio
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from tillbridge.config.bridge import ReceiverSettings
from tillbridge.core import log
from tillbridge.core.clock import Clock
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import metadata
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.vault import WebhookSecret
from tillbridge.receiver import Receiver
from tillbridge.receiver.deliveries import read_envelope, signer_of

SECRET = b"whsec_bench"
_SECRETS = (WebhookSecret(SECRET.decode(), since_ms=0),)
PATH = "/webhooks/main"
_CONNECTIONS = 16

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def verifying(_folder: Path) -> int:
    """(a) An aiohttp handler that only verifies."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=200 if _is_signed(await request.read(), request) else 401)

    return await _application(handle)


async def committing(folder: Path) -> int:
    """(b) A receiver that commits each delivery by itself, in a thread, into the same table."""
    connection = _same_table(folder / "each.db")
    thread = ThreadPoolExecutor(1)

    def commit(row: tuple[object, ...]) -> None:
        with connection:
            connection.execute(
                "INSERT OR IGNORE INTO inbox (store, delivery_id, event_id, event_type,"
                " received_at, body) VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )

    return await _application(_committing(thread, commit))


def _committing(
    threads: ThreadPoolExecutor, commit: Callable[[tuple[object, ...]], None]
) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        if not _is_signed(body, request):
            return web.Response(status=401)
        envelope = read_envelope(body)
        delivery = request.headers["X-Service-Delivery-Id"]
        row = ("main", delivery, envelope.event_id, envelope.event_type, 0, body)
        await asyncio.get_running_loop().run_in_executor(threads, commit, row)
        return web.Response()

    return handle


async def committing_on_postgresql(_folder: Path) -> int:
    """Commit each delivery by itself on the server, over up to 16 connections."""
    import psycopg  # noqa: PLC0415 -- here alone

    url = os.environ["LEDGER_URL"].replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE inbox (store text, delivery_id text, event_id text, event_type text,"
            " received_at bigint, body bytea, PRIMARY KEY (store, event_id))"
        )
    threads = ThreadPoolExecutor(_CONNECTIONS)
    each_thread = threading.local()

    def commit(row: tuple[object, ...]) -> None:
        if not hasattr(each_thread, "connection"):
            each_thread.connection = psycopg.connect(url, autocommit=True)
        each_thread.connection.execute(
            "INSERT INTO inbox VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", row
        )

    return await _application(_committing(threads, commit))


async def grouping_on_postgresql(folder: Path) -> int:
    """Serve with the bridge's own receiver, and its ledger on a server."""
    return await grouping(folder, os.environ["LEDGER_URL"])


async def grouping(folder: Path, url: str | None = None) -> int:
    """Serve with the bridge's own receiver and ledger."""
    log.configure("json", "info")
    clock = Clock()
    ledger = await Ledger.open(folder / "data", clock=clock, url=url)
    secrets = [{"secret": SECRET.decode(), "since_ms": 0}]
    ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
    receiver = Receiver(
        ReceiverSettings(listen="127.0.0.1:0", public_url="http://127.0.0.1"),
        {"main": "loc-1"},
        ledger,
        await ProblemTracker.start(ledger, clock=clock),
        clock=clock,
        wake=lambda _store: None,
    )
    await receiver.start()
    return receiver.port


def _is_signed(body: bytes, request: web.Request) -> bool:
    signature = request.headers.get("X-Service-Signature", "")
    return signer_of(body, signature, _SECRETS) is not None


async def _application(handler: Handler) -> int:
    application = web.Application()
    application.router.add_post(PATH, handler)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=512).start()
    return int(runner.addresses[0][1])


def _same_table(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    dialect = sqlite.dialect()
    inbox = metadata.tables["inbox"]
    connection.execute(str(CreateTable(inbox).compile(dialect=dialect)))
    for index in inbox.indexes:
        connection.execute(str(CreateIndex(index).compile(dialect=dialect)))
    return connection


KINDS: dict[str, Callable[[Path], Awaitable[int]]] = {
    "verifying": verifying,
    "committing": committing,
    "grouping": grouping,
    "committing_on_postgresql": committing_on_postgresql,
    "grouping_on_postgresql": grouping_on_postgresql,
}


async def main() -> None:
    """Serve until standard input closes."""
    port = await KINDS[sys.argv[1]](Path(sys.argv[2]))
    print(port, flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
