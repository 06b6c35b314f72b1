"""Asks again and again whether the public address leads here, as doctor does when it is asked.

An address of this network alone is not probed: nobody outside is expected there.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tillbridge.config import is_loopback
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemDesk

if TYPE_CHECKING:
    from tillbridge.diagnostics.outside import Judgement
    from tillbridge.diagnostics.subject import Subject

FACT = "public_address"
CODE = "public_address.unreachable"
_FIRST_S = 20.0  # a tunnel that starts with the machine needs a moment
_AGAIN_S = 5.0  # one probe that fails is asked again before anybody is told
_IN_A_ROW = 2

log = get_logger()

Look = Callable[[], Awaitable["Judgement"]]


class AddressProbe:
    """Keeps the fact `public_address` and the problem `public_address.unreachable`."""

    def __init__(
        self,
        look: Look,
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
        every_s: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._look = look
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._every_s = every_s
        self._jitter = jitter
        self._failed = 0
        self._reached: bool | None = None

    async def run(self, *, first_s: float = _FIRST_S) -> None:
        """Probe until cancelled."""
        wait_s = min(first_s, self._every_s)
        while True:
            await asyncio.sleep(wait_s)
            wait_s = await self.probe()

    async def probe(self) -> float:
        """Probe once, and return in how many seconds to do it again."""
        judgement = await self._look()
        if judgement.reachable:
            self._failed = 0
            self._tell(reached=True, cause=judgement.cause)
            self._desk.close(CODE, "")
            await self._note(judgement.cause)
        elif judgement.reachable is False:
            self._failed += 1
            if self._failed < _IN_A_ROW:
                return min(_AGAIN_S, self._every_s)
            self._tell(reached=False, cause=judgement.cause)
            self._desk.open(CODE, "", detail=judgement.text, remedy=judgement.fix)
        # Without a verdict what was known stands.
        return self._every_s * (0.9 + 0.2 * self._jitter())

    def _tell(self, *, reached: bool, cause: str) -> None:
        if reached is self._reached:
            return
        event = "public_address.reached" if reached else "public_address.unreachable"
        (log.info if reached else log.warning)(event, cause=cause)
        self._reached = reached

    async def _note(self, cause: str) -> None:
        at = self._clock.now_ms()
        fact = {"ok_at": at, "cause": cause}
        try:
            await self._ledger.write(lambda db: put_fact(db, "", FACT, fact, at=at))
        except LedgerError:
            log.warning("public_address.not_noted")


def wants_probing(public_url: str, base_url: str, every_s: float) -> bool:
    """Return whether there is an address that the internet is to reach.

    A service on this very machine (the sandbox) comes to it another way.
    """
    local = any(is_loopback(urlsplit(url).hostname or "") for url in (public_url, base_url))
    return every_s > 0 and not local


async def look_at(subject: "Subject") -> "Judgement":
    """Send a nonce through the public address and judge what comes of it."""
    # Not before the first probe: a bridge behind no public address never needs it.
    from tillbridge.diagnostics.checks.public import gather  # noqa: PLC0415 -- see above
    from tillbridge.diagnostics.outside import judge  # noqa: PLC0415 -- see above

    try:
        snapshot = await asyncio.wait_for(subject.snapshot(), 3)
        delivered_at = snapshot.last_delivery_at
    except (LedgerError, TimeoutError):
        delivered_at = None
    return judge(await gather(subject, delivered_at_ms=delivered_at))
