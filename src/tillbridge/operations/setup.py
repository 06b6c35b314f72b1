"""Setting the bridge up, on the page: from an empty file to a store that sells.

Before there is a store, the steps are what was entered and tested here. Once the bridge serves one,
they show how it is doing, and what is entered here changes its configuration.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from typing import TYPE_CHECKING

from tillbridge.config.writing import may_be_replaced
from tillbridge.core.actor import Role
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Function, operation
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.operations.bridge import not_running
from tillbridge.operations.status import overview
from tillbridge.setup import service
from tillbridge.setup.draft import (
    Finding,
    findings_of,
    next_step,
    not_done,
    starting,
    steps_changed,
    steps_of,
)
from tillbridge.setup.pos import TillPreview
from tillbridge.setup.proposal import LISTEN, proposed
from tillbridge.setup.service import SignIn, is_practice, storefront_of

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge
    from tillbridge.setup.draft import Draft
    from tillbridge.setup.proposal import Proposal, SetupContext


class Setup:
    """What the steps share: the file and the answers so far, the sign-in, the till that is tried.

    Used from the event loop.
    """

    def __init__(self, context: "SetupContext") -> None:
        self.context = context
        self._sign_in: SignIn | None = None
        self._till: TillPreview | None = None

    @property
    def sign_in(self) -> "SignIn":
        """The merchant's consent. Made, with what it imports, once somebody opens the page."""
        if self._sign_in is None:
            self._sign_in = SignIn(self.context)
        return self._sign_in

    @property
    def till(self) -> "TillPreview":
        """The adapter that is tried; as above."""
        if self._till is None:
            self._till = TillPreview(self.context)
        return self._till

    async def close(self) -> None:
        """Let go of the service and the till."""
        if self._till is not None:
            await self._till.close()
        if self._sign_in is not None:
            await self._sign_in.close()


@dataclass(frozen=True, slots=True)
class Work:
    """What a step works on: the running bridge, its set-up, and the answers so far."""

    bridge: "Bridge"
    setup: Setup
    place: "SetupContext"
    draft: "Draft"

    @property
    def is_running(self) -> bool:
        """Whether a bridge serves a store already: then only valid answers are stored."""
        return self.bridge.is_set_up

    def after(self, earlier: object) -> None:
        """Raise ConfigError if an earlier step has not given this answer."""
        if not earlier:
            raise ConfigError(
                _("An earlier step is not done yet."), fix=_("Complete the steps in order.")
            )


def step(name: str, *, reads: bool = False) -> Callable[[Function], Function]:
    """Declare a step of setting up, which is given its work in the place of the bridge."""

    def declare(act: Function) -> Function:
        @wraps(act)
        async def run(bridge: "Bridge", **given: object) -> Answer:
            if bridge.setup is None:
                raise not_running()
            place = bridge.setup.context
            return await act(Work(bridge, bridge.setup, place, await place.draft()), **given)

        operation(f"setup.{name}", role=Role.TECHNICIAN, reads=reads, before_setup=True)(run)
        return act

    return declare


@step("show", reads=True)
async def show(work: Work, adapter: str = "") -> Answer:
    """Return how far it is: `steps` and `next`, what the forms hold, and what would be written.

    Of the forms there are `service`, `sign_in` (with the `url` that the merchant opens), `choice`,
    `till` (with `preview` and the export's `columns`) and `address`. `restarting` also while it is
    not known yet how a new start has gone; `held`: the menu waits for a person. `storefront` is
    where a guest orders at the practice service, `written` {lines, faults, digest} what would be
    written. `running`: the bridge serves a store.
    """
    setup, place, draft = work.setup, work.place, work.draft
    running, sign_in = work.is_running, setup.sign_in
    proposal = await proposed(place, draft)
    findings, is_starting, held = draft.findings(), False, False
    if running:
        findings, is_starting, held = await _found_running(work, proposal)
    left = service.left_of_practice(draft)
    findings, held = {**findings, **left}, held and "adapter" not in left
    steps = steps_of(findings)
    asks_for_store = not running and "sign_in" in draft.found
    asks_merchant = not running and "app" in draft.found and "sign_in" not in draft.found
    refused = place.restarts.refused
    return {
        "file": str(place.path),
        "writable": await asyncio.to_thread(may_be_replaced, place.path),
        "running": running,
        "restarting": place.restarts.again or is_starting,
        "held": held,
        "refused": None if refused is None else {"text": refused.text, "fix": refused.fix},
        "store": draft.store,
        "steps": [asdict(step) for step in steps],
        "next": next_step(steps),
        "service": {"base_url": draft.base_url, "practice": service.PRACTICE},
        "sign_in": {
            "client_id": draft.client_id,
            "app_known": "app" in draft.found,
            "has_secret": await asyncio.to_thread(sign_in.has_secret, draft.base_url),
            "redirect_uri": draft.redirect_uri or place.redirect_uri,
            "url": await sign_in.address(draft) if asks_merchant else "",
        },
        "choice": await service.choice_among(draft, sign_in)
        if asks_for_store
        else service.choice_of(draft),
        "till": await setup.till.show(draft, adapter, all_adapters=bool(adapter) or not running),
        "storefront": await _storefront(work),
        "address": {
            "listen": draft.listen or LISTEN,
            "public_url": draft.public_url,
            "practice": service.is_practice(draft.base_url),
        },
        "written": {
            "lines": list(proposal.lines),
            "faults": list(proposal.faults),
            "digest": proposal.digest,
        },
    }


async def _found_running(
    work: Work, proposal: "Proposal"
) -> "tuple[dict[str, Finding], bool, bool]":
    """Return how the steps of a bridge that serves a store are.

    Also whether it is still starting, and whether the store's menu waits for a person.
    """
    bridge, place, draft = work.bridge, work.place, work.draft
    stores = bridge.settings.stores
    store = draft.store if draft.store in stores else next(iter(stores))
    snapshot = await bridge.ledger.read(take_snapshot)
    seen = await overview(bridge)
    _text, document = await asyncio.to_thread(place.document)
    changed = steps_changed(draft, document)
    has_secret = await asyncio.to_thread(work.setup.sign_in.has_secret, draft.base_url)
    saved = "" if proposal.lines else _("Everything is in {file}.").format(file=place.path.name)
    findings = {
        **findings_of(
            seen,
            store,
            base_url=bridge.settings.service.base_url,
            currency=stores[store].currency,
            delivered=snapshot.last_delivery_at is not None,
        ),
        **{name: each for name, each in draft.findings().items() if name in changed},
        **({} if has_secret else {"sign_in": _other_app()}),
        "save": Finding(not proposal.lines, saved),
    }
    return findings, starting(seen, store), bool(seen["stores"][store]["menu"]["held"])


def _other_app() -> "Finding":
    """Return that another service than the one so far needs an app of its own."""
    return not_done(
        _("The bridge does not have the app's secret for this service."),
        _("Enter the client id and secret from this service's console."),
    )


async def _storefront(work: Work) -> str:
    """Return where a guest orders at the practice service; "" where it is a real one."""
    if not work.is_running or not is_practice(work.draft.base_url):
        return ""
    store_id = await store_id_of(work)
    return storefront_of(work.draft.base_url, store_id) if store_id else ""


async def store_id_of(work: Work) -> str:
    """Return the service's id of the store; "" while it is not known."""
    draft = work.draft
    found = draft.store_id or await work.bridge.ledger.get_fact(draft.store, "service_store_id")
    return str(found or "")
