"""Deliveries per second, beside a handler that only verifies and one that commits each.

(b), which commits each, is what the bridge is compared with: the same server (aiohttp), the same
check of the signature, the same parsing, the same table with its indexes, and the same durability
(WAL, `synchronous = FULL`; one thread, as the bridge's). It lacks what a receiver on the internet
needs beside that: limits, deadlines of connections, metrics, the secrets of several stores.

How many times (b) the bridge manages is a matter of the disk more than of either: (b) waits for
each commit, the bridge for one in many. So what a commit costs here is printed, too. Measured with
16 and 64 at once, a delivery takes (b) some 0.45 ms of the processor and a commit, the bridge 0.1:
4.5 and 6 times (b) need a commit of a quarter and of half a millisecond.
The processor time of a delivery, beside that of (b), depends neither on the disk nor much on what
else the machine does: it says whether the bridge has become dearer.
"""

import contextlib
import hmac
import itertools
import json
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from bench.delivery_server import PATH, SECRET
from bench.footprint import processor_s
from bench.measure import Bench, Measured, Options, Result, Skipped, commit_ms
from tests.support.postgresql import new_database
from tillbridge_sql.rig_servers import missing

_SLOWER_US = 8000
_CONCURRENT = (1, 16, 64)
_PADDING = "x" * 1500
_MOST_PER_S = 16_000  # more are not prepared: then the time to send them all counts

Rates = dict[tuple[str, int], float]  # by kind and concurrency


def run(options: Options) -> Iterator[Result]:
    """Measure on this disk as it is, then with fsync made 8 ms slower."""
    seconds = 3.0 if options.long else 1.0
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        yield Measured("a commit on this disk (4 KiB, fsync)", commit_ms(folder), "ms")
        kinds = ("verifying", "committing", "grouping")
        rates, costs = _rates(Path(folder), kinds, options, seconds, {})
    yield from _told(rates, "")
    for (kind, concurrent), cost_us in sorted(costs.items(), key=lambda each: each[0][1]):
        beside = f"({cost_us / costs['committing', concurrent]:.2f} x (b))"
        what = f"{_NAMES[kind]}, {concurrent} at once: processor time of one"
        yield Measured(what, cost_us, "us", note=beside)
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
        rates, _costs = _rates(Path(folder), ("committing", "grouping"), options, seconds, slow)
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
    rates, _costs = _rates(folder, kinds, options, seconds, {}, urls)
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
) -> tuple[Rates, Rates]:
    """Return the median rate of each kind at each concurrency; rounds are interleaved.

    The second are the least microseconds of the processor that each delivery took the server.

    `env` is for all of them, `more` is the further environment of a kind.
    """
    seen: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with contextlib.ExitStack() as stack:
        servers = {
            kind: stack.enter_context(_server(kind, folder, {**env, **more.get(kind, {})}))
            for kind in kinds
        }
        for number in range(options.rounds):
            for concurrent in _CONCURRENT:
                # Whoever comes first in a round meets the machine as the last one left it.
                for kind in kinds if number % 2 else reversed(kinds):
                    port, pid = servers[kind]
                    before_s = processor_s(pid)
                    count, took_s = _load(port, concurrent, seconds)
                    cost_us = (processor_s(pid) - before_s) / count * 1e6
                    seen.setdefault((kind, concurrent), []).append((count / took_s, cost_us))
    rates = {key: statistics.median(rate for rate, _cost in each) for key, each in seen.items()}
    return rates, {key: min(cost for _rate, cost in each) for key, each in seen.items()}


@contextlib.contextmanager
def _server(kind: str, folder: Path, env: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Run a server; yields its port and its process id."""
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
        yield int(process.stdout.readline()), process.pid
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


def _load(port: int, concurrent: int, seconds: float) -> tuple[int, float]:
    """Return how many deliveries were acknowledged, and in how many seconds.

    On plain sockets: asyncio's would take as much of the machine as the receivers it measures.
    """
    # Made beforehand: what is measured is the server.
    prepared = [_request() for _ in range(int(_MOST_PER_S * seconds))]
    acknowledged = 0
    with contextlib.ExitStack() as stack:
        waiting = stack.enter_context(selectors.DefaultSelector())
        started = time.perf_counter()
        requests = _until(started + seconds, prepared)

        def send(connection: socket.socket) -> None:
            if request := next(requests, None):
                connection.sendall(request)
            else:
                waiting.unregister(connection)

        for _ in range(concurrent):
            connection = socket.create_connection(("127.0.0.1", port))
            stack.enter_context(connection)
            waiting.register(connection, selectors.EVENT_READ)
            send(connection)
        while waiting.get_map():
            for key, _events in waiting.select():
                connection = cast("socket.socket", key.fileobj)
                answer = b""
                while b"\r\n\r\n" not in answer:
                    answer += connection.recv(4096) or b"(closed)\r\n\r\n"
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(answer.decode("latin-1"))
                acknowledged += 1
                send(connection)
        return acknowledged, time.perf_counter() - started


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
