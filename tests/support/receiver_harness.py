"""A receiver with a real ledger, deliveries signed for it, and a client over raw sockets."""

import asyncio
import contextlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, opened
from tillbridge.config.bridge import ReceiverSettings
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import Delivery
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.receiver import Receiver

SECRET = "whsec_main"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class ReceiverHarness:
    receiver: Receiver
    ledger: Ledger
    tracker: ProblemTracker
    clock: StoppedClock
    woken: list[str] = field(default_factory=list)

    async def send(
        self,
        body: bytes,
        *,
        store: str = "main",
        secret: str = SECRET,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str | None = None,
    ) -> Answer:
        """Send one request as the service does; a header of None is left out."""
        all_headers: dict[str, str | None] = {
            "Host": "store.example",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-Service-Event": "order.created",
            "X-Service-Delivery-Id": f"dlv_{next(_numbers)}",
            "X-Service-Signature": sign(body, secret),
            **(headers or {}),
        }
        lines = [f"{method} {path or f'/webhooks/{store}'} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in all_headers.items() if value is not None]
        head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"
        async with self.connection() as (reader, writer):
            writer.write(head + body)
            given = await answer(reader)
            return await answer(reader) if given.status == 100 else given

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.receiver.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def kept(self) -> list[str]:
        return await self.ledger.read(
            lambda connection: list(connection.scalars(select(col(Delivery.event_id))))
        )


async def answer(reader: asyncio.StreamReader) -> Answer:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    status = int(first.split()[1])
    if status == 100:  # go on; the answer follows
        return await answer(reader)
    length = int(headers.get("content-length", "0"))
    return Answer(status, headers, await reader.readexactly(length))


def sign(body: bytes, secret: str = SECRET) -> str:
    return hmac.digest(secret.encode(), body, "sha256").hex()


def head(body: bytes) -> bytes:
    """Return the shortest head that the body can be delivered with."""
    lines = f"Content-Length: {len(body)}\r\nX-Service-Signature: {sign(body)}\r\n\r\n"
    return b"POST /webhooks/main HTTP/1.1\r\nHost: store.example\r\n" + lines.encode()


def event(**changed: object) -> bytes:
    number = next(_numbers)
    fields = {
        "event_type": "order.created",
        "event_id": f"evt_{number}",
        "store_id": "st_main",
        "location_id": "loc-1",
        "timestamp": "2020-01-01T00:00:00.000Z",
        "data": {"id": f"ord_{number}"},
        **changed,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not ...}).encode()


@contextlib.asynccontextmanager
async def receiving(
    data_dir: Path,
    *,
    success_status: int = 200,
    communities: Mapping[str, str] | None = None,
    **settings: float,
) -> AsyncIterator[ReceiverHarness]:
    """Run a receiver for the stores main and other; both have a secret, `new` has none yet."""
    clock = StoppedClock()
    async with opened(data_dir, clock) as ledger:
        for store in ("main", "other"):
            secrets = [{"secret": f"whsec_{store}", "since_ms": 0}]
            ledger.vault.put(f"{store}/webhook_secrets", json.dumps(secrets))
        await ledger.write(
            lambda connection: put_fact(connection, "main", "service_store_id", "st_main", at=0)
        )
        tracker = await ProblemTracker.start(ledger, clock=clock)
        woken: list[str] = []
        receiver = Receiver(
            ReceiverSettings.model_validate(
                {"listen": "127.0.0.1:0", "public_url": "https://store.example", **settings}
            ),
            {"main": "loc-1", "other": "loc-2", "new": "loc-3", **(communities or {})},
            ledger,
            tracker,
            clock=clock,
            wake=woken.append,
            success_status=success_status,
        )
        await receiver.start()
        try:
            yield ReceiverHarness(receiver, ledger, tracker, clock, woken)
        finally:
            await receiver.stop(2)
            await tracker.settle()
