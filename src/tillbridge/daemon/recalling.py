"""After a ledger was lost: which store this is at the service is learnt again from the service."""

import asyncio
from collections.abc import Awaitable, Callable

from tillbridge.daemon.rooms import StoreRooms
from tillbridge.errors import BridgeError, ConsentLost, LedgerError, ServiceError
from tillbridge.log import get_logger

log = get_logger()

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0


async def recall_store(
    rooms: StoreRooms, on_connected: Callable[[StoreRooms], Awaitable[None]]
) -> None:
    """Until the store is known at the service, ask; then wait for ever (it is supervised).

    The tokens and the webhook secret are in the vault, so no person is needed. A store that was
    never connected has no tokens: nothing is asked until it is.
    """
    wait_s = _FIRST_WAIT_S
    while rooms.service_store_id is None:
        if await rooms.tokens.tokens() is not None:
            try:
                if await rooms.integrator.recall():
                    await rooms.connected()
                    await on_connected(rooms)
                    log.info("integration.recalled", store=rooms.name)
                    break
            except (ConsentLost, LedgerError, ServiceError) as failure:
                log.debug("integration.not_recalled", store=rooms.name, detail=failure.text)
            except BridgeError as failure:  # a person has to decide: several stores, no secret
                log.warning("integration.not_recalled", store=rooms.name, detail=str(failure))
        await asyncio.sleep(wait_s)
        wait_s = min(_LONGEST_WAIT_S, wait_s * 2)
    await asyncio.Event().wait()
