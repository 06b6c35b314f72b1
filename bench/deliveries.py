"""Deliveries per second, beside a handler that only verifies and one that commits each."""

import asyncio
import contextlib
import hmac
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.delivery_server import PATH, SECRET
from bench.measure import Bench, Measured, Options, Result, Skipped
from tests.support.postgresql import new_database
from tillbridge_sql.rig_servers import missing

_SLOWER_US = 8000
_CONCURRENT = (1, 16, 64)
_PADDING = "x" * 1500
_MOST_PER_S = 8000  # more are not prepared: then the time to send them all counts

Rates = dict[tuple[str, int], float]


def run(options: Options) -> Iterator[Result]:
    """Measure on this disk as it is, then with fsync made 8 ms slower."""
    seconds = 3.0 if options.long else 1.0
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        rates = _rates(Path(folder), ("verifying", "committing", "grouping"), options, seconds, {})
    yield from _told(rates, "")
    yield _ratio(rates, 1, "committing", 1, "")
    yield _ratio(rates, 16, "committing", 4.5, "")
    yield _ratio(rates, 16, "verifying", 0.6, "")
    yield _ratio(rates, 64, "committing", 6, "")
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        shim = _slow_fsync(Path(folder))
        if isinstance(shim, Skipped):
            yield shim
            return
        slow = {"LD_PRELOAD": str(shim), "SLOW_FSYNC_US": str(_SLOWER_US)}
        rates = _rates(Path(folder), ("committing", "grouping"), options, seconds, slow)
    yield from _told(rates, ", fsync +8 ms")
    yield _ratio(rates, 16, "committing", 8, ", fsync +8 ms")
    yield _ratio(rates, 64, "committing", 20, ", fsync +8 ms")

    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        yield from _beside_postgresql(Path(folder), options, seconds)


def _beside_postgresql(folder: Path, options: Options, seconds: float) -> Iterator[Result]:
    if why := missing("postgresql"):
        yield Skipped("with the database on PostgreSQL", why)
        return
    kinds = ("grouping", "committing_on_postgresql", "grouping_on_postgresql")
    urls = {kind: {"LEDGER_URL": new_database()} for kind in kinds[1:]}
    rates = _rates(folder, kinds, options, seconds, {}, urls)
    yield from _told(rates, "")
    for concurrent in _CONCURRENT:
        for beside in kinds[:2]:
            value = rates["grouping_on_postgresql", concurrent] / rates[beside, concurrent]
            what = f"bridge on PostgreSQL beside {_NAMES[beside]}, {concurrent} at once"
            yield Measured(what, value)


_NAMES = {
    "verifying": "(a) only verifies",
    "committing": "(b) commits each",
    "grouping": "bridge",
    "committing_on_postgresql": "(b) on PostgreSQL",
    "grouping_on_postgresql": "bridge on PostgreSQL",
}


def _told(rates: Rates, how: str) -> Iterator[Measured]:
    for (kind, concurrent), rate in sorted(rates.items(), key=lambda each: each[0][1]):
        yield Measured(f"{_NAMES[kind]}, {concurrent} at once{how}", rate, "/s")


def _ratio(rates: Rates, concurrent: int, beside: str, aim: float | None, how: str) -> Measured:
    return Measured(
        f"bridge beside {_NAMES[beside]}, {concurrent} at once{how}",
        rates["grouping", concurrent] / rates[beside, concurrent],
        aim=aim,
    )


def _rates(
    folder: Path,
    kinds: tuple[str, ...],
    options: Options,
    seconds: float,
    env: dict[str, str],
    more: Mapping[str, Mapping[str, str]] = {},
) -> Rates:
    """Return the median rate of each kind at each concurrency; rounds are interleaved.

    `env` is for all of them, `more` is the further environment of a kind.
    """
    seen: dict[tuple[str, int], list[float]] = {}
    with contextlib.ExitStack() as stack:
        ports = {
            kind: stack.enter_context(_server(kind, folder, {**env, **more.get(kind, {})}))
            for kind in kinds
        }
        for number in range(options.rounds):
            for concurrent in _CONCURRENT:
                # Whoever comes first in a round meets the machine as the last one left it.
                for kind in kinds if number % 2 else reversed(kinds):
                    rate = asyncio.run(_load(ports[kind], concurrent, seconds))
                    seen.setdefault((kind, concurrent), []).append(rate)
    return {key: statistics.median(rates) for key, rates in seen.items()}


@contextlib.contextmanager
def _server(kind: str, folder: Path, env: dict[str, str]) -> Iterator[int]:
    (folder / kind).mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.delivery_server", kind, str(folder / kind)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.stdout.close()


_numbers = itertools.count()


def _request() -> bytes:
    """Return a signed delivery of about 2 KB, never the same twice."""
    number = next(_numbers)
    body = json.dumps(
        {
            "event_type": "order.created",
            "event_id": f"evt_{number}",
            "store_id": "st_main",
            "location_id": "loc-1",
            "timestamp": "2026-11-21T19:02:00.000Z",
            "data": {"id": f"ord_{number}", "order_number": str(number), "note": _PADDING},
        }
    ).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"X-Service-Event: order.created\r\nX-Service-Delivery-Id: dlv_{number}\r\n"
        f"X-Service-Signature: {hmac.digest(SECRET, body, 'sha256').hex()}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Sender(asyncio.Protocol):
    """Sends one delivery after the other over one connection, as long as there is one."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._received = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.acknowledged = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if b"\r\n\r\n" not in self._received:
            return
        if not self._received.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(self._received.decode("latin-1")))
            self._transport.close()
            return
        self._received = b""
        self.acknowledged += 1
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's signature
        if not self.done.done():
            self.done.set_result(None)


async def _load(port: int, concurrent: int, seconds: float) -> float:
    """Return acknowledged deliveries per second."""
    loop = asyncio.get_running_loop()
    # Made beforehand: what is measured is the server.
    prepared = [_request() for _ in range(int(_MOST_PER_S * seconds))]
    started = time.perf_counter()
    requests = _until(started + seconds, prepared)
    senders = [_Sender(requests) for _ in range(concurrent)]
    for sender in senders:
        await loop.create_connection(partial(_same, sender), "127.0.0.1", port)
    await asyncio.gather(*(sender.done for sender in senders))
    return sum(sender.acknowledged for sender in senders) / (time.perf_counter() - started)


def _same(sender: _Sender) -> _Sender:
    return sender


def _until(end: float, prepared: list[bytes]) -> Iterator[bytes]:
    for each in prepared:
        if time.perf_counter() > end:
            return
        yield each


def _slow_fsync(folder: Path) -> Path | Skipped:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return Skipped("with fsync 8 ms slower", "needs Linux and a C compiler (cc)")
    shim = folder / "slow_fsync.so"
    source = Path(__file__).with_name("slow_fsync.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    return shim


BENCH = Bench("deliveries", "verified, durable and acknowledged deliveries per second", run)
