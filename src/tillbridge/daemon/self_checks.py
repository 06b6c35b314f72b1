"""What the bridge finds out about its surroundings by itself, also while nothing happens.

The service and the clock by one small request; the disk by its numbers, and the folders of the
bridge by writing. What a till's folders are like is the adapter's to say.
"""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.adapter.folders import trouble_of, try_writing
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.stores.service_reach import ServiceReach

if TYPE_CHECKING:
    from tillbridge.diagnostics.checks.service import Asked

_FIRST_S = 5.0
_AGAIN_S = 5.0
_DISK_EVERY_S = 15.0
CLOCK = Scope("", frozenset({"clock.wrong"}))
DISK = Scope("", frozenset({"disk.low", "disk.not_writable"}))
_MADE_LATER = ("backups", "log")
_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class ServiceProbe:
    """Asks the service every `every_s` seconds, and measures the clock by its answer."""

    def __init__(
        self,
        ask: "Callable[[], Awaitable[Asked]]",
        reach: ServiceReach,
        desk: ProblemDesk,
        *,
        every_s: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._ask = ask
        self._reach = reach
        self._desk = desk
        self._every_s = every_s
        self._jitter = jitter

    async def run(self) -> None:
        """Probe until cancelled."""
        wait_s = min(_FIRST_S, self._every_s)
        while True:
            await asyncio.sleep(wait_s)
            wait_s = await self.probe()

    async def probe(self) -> float:
        """Probe once, and return in how many seconds to do it again."""
        asked = await self._ask()
        again = self._reach.probed(answers=asked.answers, fix=asked.fix)
        if asked.skew_s is not None:
            self._desk.report(CLOCK, asked.clock_problems())
        if again:
            return min(_AGAIN_S, self._every_s)
        return self._every_s * (0.9 + 0.2 * self._jitter())


async def ask_service(base_url: str) -> "Asked":
    """Ask the service without a credential, as doctor does."""
    # Not before the first probe.
    from tillbridge.diagnostics.checks.service import ask  # noqa: PLC0415 -- see above

    return await ask(base_url)


class DiskCheck:
    """Looks at the room on the disk, and writes into the bridge's own folders."""

    def __init__(self, data_dir: Path, desk: ProblemDesk) -> None:
        self._data_dir = data_dir
        self._desk = desk

    async def run(self) -> None:
        """Look until cancelled, at once to begin with."""
        while True:
            await self.look()
            await asyncio.sleep(_DISK_EVERY_S)

    async def look(self) -> None:
        """Look once."""
        from tillbridge.diagnostics.apart import apart  # noqa: PLC0415 -- with the first look

        found = await apart(partial(disk_problems, self._data_dir))
        if self._desk.is_open("ledger.unwritable"):  # one cause is one problem
            found = [each for each in found if each.subject != str(self._data_dir)]
        self._desk.report(DISK, found)


def disk_problems(data_dir: Path) -> list[Found]:
    """Return what is wrong with the data folder's disk and the folders in it. Blocks."""
    from tillbridge.diagnostics.checks.ledger import low_disk  # noqa: PLC0415 -- with the first look

    found = []
    if (low := low_disk(data_dir)) is not None:
        found.append(low)
    for folder in (data_dir, *(data_dir / name for name in _MADE_LATER)):
        if folder != data_dir and not folder.exists():
            continue
        failure = try_writing(folder)
        if failure is not None and failure.errno not in _NO_ROOM:
            trouble = trouble_of(folder, failure)
            detail = {"detail": trouble.text, "remedy": trouble.fix}
            found.append(Found("disk.not_writable", str(folder), detail))
    return found
