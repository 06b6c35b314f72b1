"""A store that moves from one bridge to another: its alerts go on, and none says it is resolved."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.bridge_process import until
from tests.support.postgresql import new_database, on_postgresql
from tests.support.problem_reports import report_open, report_over
from tillbridge.alerts.dispatcher import AlertDispatcher
from tillbridge.alerts.episodes import Message
from tillbridge.config.bridge import AlertSettings
from tillbridge.core.clock import Clock
from tillbridge.ledger import leases
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import BridgeRow
from tillbridge.ledger.problems import ProblemTracker

pytestmark = on_postgresql()

_KEY = urlsafe_b64encode(bytes(32)).decode()
_ONCE = AlertSettings(repeat_min=[0], settle_s=0.3)


class Bridge:
    """What sends the alerts of one bridge; it is also their channel."""

    name = "book"

    def __init__(self, ledger: Ledger, tracker: ProblemTracker, row: BridgeRow) -> None:
        self.ledger, self.tracker, self.row = ledger, tracker, row
        self.kinds: list[str] = []

    async def send(self, message: Message) -> None:
        self.kinds.append(message.kind)

    async def probe(self) -> None:
        pass

    async def take_main(self) -> None:
        await self.ledger.write(leases.beat, self.row, lambda _seen: ["main"], dead_ms=None)
        await self.tracker.adopt(["main"])

    async def leave_main(self) -> None:
        await self.tracker.settle()
        self.tracker.give_up("main")
        await self.ledger.write(leases.release, self.row.holder, ["main"])

    async def follows(self) -> None:
        """Wait until it has looked since now: a problem of its own opens and closes."""
        seen = len(self.kinds)
        report_open(self.tracker, "clock.wrong")
        await until("it has looked", lambda: len(self.kinds) > seen)
        report_over(self.tracker, "clock.wrong")
        await until("it has looked again", lambda: len(self.kinds) > seen + 1)


@asynccontextmanager
async def bridge(url: str, folder: Path, name: str) -> AsyncIterator[Bridge]:
    clock = Clock()
    ledger = await Ledger.open(folder / name, clock=clock, url=url, key=_KEY, name=name)
    tracker = await ProblemTracker.start(ledger, clock=clock)
    row = BridgeRow(name=name, holder="", started_at=1, seen_at=0, detail={})
    row.holder = await ledger.write(leases.join, row, ["main"], 8_000)
    made = Bridge(ledger, tracker, row)

    async def about(_store: str) -> tuple[str, str]:
        return "", ""

    dispatcher = AlertDispatcher([made], _ONCE, ledger, tracker, clock=clock, about=about)
    running = asyncio.create_task(dispatcher.run())
    try:
        yield made
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tracker.settle()
        await ledger.close()


async def test_the_next_owner_sends_no_alert_again_and_its_end(tmp_path: Path) -> None:
    url = new_database()
    async with bridge(url, tmp_path, "a") as a, bridge(url, tmp_path, "b") as b:
        await a.take_main()
        report_open(a.tracker, "pos.offline", "main", detail="no answer")
        await until("an alert", lambda: a.kinds)
        await a.leave_main()
        await b.take_main()
        await b.follows()
        await a.follows()
        assert a.kinds == ["open", "open", "over"], "the store's problem, and one of its own"
        assert b.kinds == ["open", "over"], "only its own"
        report_over(b.tracker, "pos.offline", "main")
        await until("the end", lambda: b.kinds == ["open", "over", "over"])
        await a.follows()
        assert a.kinds == ["open", *["open", "over"] * 2]
