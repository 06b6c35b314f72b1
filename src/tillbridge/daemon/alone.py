"""What commands do while no daemon runs: the same rooms, with the ledger's lock held."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tillbridge.configfile import LoadedSettings
from tillbridge.daemon.audited import AuditTrail, audited
from tillbridge.daemon.building import built
from tillbridge.daemon.connecting import begin_consent, integrate
from tillbridge.daemon.operations import Operations
from tillbridge.errors import BridgeError
from tillbridge.i18n import _
from tillbridge.status.acting import acting_as
from tillbridge.status.ports import Control
from tillbridge.stores.callback import listening


@asynccontextmanager
async def alone(loaded: LoadedSettings, *, user: str = "") -> AsyncIterator[Control]:
    """Offer the operations of a daemon without one; `user` is who acts, for the audit trail.

    Raises LedgerLocked while one runs.
    """
    async with built(loaded) as building:
        trail = AuditTrail(building.house.ledger, building.house.clock)
        with acting_as(f"command:{user or '?'}", "technician"):
            yield audited(Operations(building), trail)


async def connect_alone(
    loaded: LoadedSettings,
    store: str,
    *,
    reintegrate: bool,
    invite: Callable[[str], None],
    wait_s: float,
) -> dict[str, Any]:
    """Connect a store: `invite` is given the address; waits `wait_s` seconds for the merchant."""
    async with built(loaded, [store]) as building:
        redirect_uri = loaded.settings.service.redirect_uri
        async with listening(redirect_uri, building.consents) as consented:
            invite(begin_consent(building, store).url)
            try:
                async with asyncio.timeout(wait_s):
                    await consented
            except TimeoutError:
                raise BridgeError(
                    _("Nobody consented in time."),
                    fix=_("Try again when the merchant is there."),
                ) from None
        return await integrate(building.stores[store], reintegrate=reintegrate)
