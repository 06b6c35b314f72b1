"""What commands do while no daemon runs: the same services, with the ledger's lock held."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tillbridge.config import LoadedSettings
from tillbridge.core.actor import Actor, Role, acting_as
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Dispatcher
from tillbridge.daemon.audited import audited
from tillbridge.daemon.compose import composed
from tillbridge.daemon.connecting import Wanted, begin_consent, begin_signup, integrate
from tillbridge.daemon.operations import Operations
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.operations.bridge import Bridge
from tillbridge.stores.consent import ConsentRequest, listening
from tillbridge.web.ports import Control


@asynccontextmanager
async def alone(loaded: LoadedSettings, *, user: str = "") -> AsyncIterator[Control]:
    """Offer the operations of a daemon without one; `user` is who acts, for the audit trail.

    Raises LedgerLocked while one runs.
    """
    async with composed(loaded) as composition:
        trail = AuditTrail(composition.services.ledger, composition.services.clock)
        with acting_as(Actor(f"command:{user or '?'}", Role.TECHNICIAN)):
            yield audited(Operations(composition), trail)


async def perform_alone(
    loaded: LoadedSettings, name: str, arguments: Mapping[str, Any], *, user: str = ""
) -> Answer:
    """Do an operation without a daemon. Raises LedgerLocked while one runs."""
    async with composed(loaded) as composition:
        trail = AuditTrail(composition.services.ledger, composition.services.clock)
        bridge = Bridge(composition, Operations(composition).status)
        actor = Actor(f"command:{user or '?'}", Role.TECHNICIAN)
        return await Dispatcher(bridge, trail).perform(name, arguments, actor)


@dataclass(frozen=True, slots=True)
class SigningUp:
    """The form of a signup, by the options of `tillbridge signup`."""

    form: Mapping[str, str]
    flow_type: str


async def connect_alone(
    loaded: LoadedSettings,
    wanted: Wanted,
    *,
    invite: Callable[[ConsentRequest], None],
    choose: Callable[[list[dict[str, Any]]], str],
    wait_s: float,
    signing_up: SigningUp | None = None,
) -> dict[str, Any]:
    """Connect a store: `invite` is given the address; waits `wait_s` seconds for the merchant.

    `choose` is given the merchant's stores where there are several, and returns an id, or "".
    """
    store = wanted.store
    async with composed(loaded, [store]) as composition:
        redirect_uri = loaded.settings.service.redirect_uri
        async with listening(redirect_uri, composition.consents) as consented:
            if signing_up is None:
                request = begin_consent(composition, wanted)
            else:
                request = await begin_signup(
                    composition, store, signing_up.form, signing_up.flow_type
                )
            invite(request)
            try:
                async with asyncio.timeout(wait_s):
                    await consented
            except TimeoutError:
                raise BridgeError(
                    _("Nobody consented in time."),
                    fix=_("Try again when the merchant is there."),
                ) from None
        answer = await integrate(composition.stores[store], wanted)
        if "choose" in answer and (store_id := choose(answer["choose"])):
            answer = await integrate(composition.stores[store], replace(wanted, store_id=store_id))
        return answer
