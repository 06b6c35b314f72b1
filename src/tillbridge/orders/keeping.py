"""Writes to the ledger that have to happen: they wait for a disk that is full or failing."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from tillbridge.errors import LedgerUnwritable
from tillbridge.ledger.ledger import Ledger

T = TypeVar("T")

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0


async def keep(ledger: Ledger, job: Callable[[Connection], T]) -> T:
    """Write `job`, again and again until it is committed. The ledger itself tells that it cannot.

    `job` may run several times, so it looks before it changes anything.
    """
    wait = _FIRST_WAIT_S
    while True:
        try:
            return await ledger.write(job)
        except LedgerUnwritable:
            await asyncio.sleep(wait)
            wait = min(_LONGEST_WAIT_S, wait * 2)
