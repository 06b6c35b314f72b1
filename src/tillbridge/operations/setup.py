"""Setting the bridge up, on the page: from an empty file to a store that sells.

Before there is a store the steps are what was said and tested here. Beside a bridge that serves one
they are how that bridge does, and what is said here changes its configuration.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Function, operation
from tillbridge.operations.arguments import StoreName
from tillbridge.operations.bridge import not_running
from tillbridge.operations.connect import StoreId

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge
    from tillbridge.setup.draft import Draft, Finding
    from tillbridge.setup.pos import TillPreview
    from tillbridge.setup.proposal import SetupContext
    from tillbridge.setup.service import SignIn


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
        from tillbridge.setup.service import SignIn

        if self._sign_in is None:
            self._sign_in = SignIn(self.context)
        return self._sign_in

    @property
    def till(self) -> "TillPreview":
        """The adapter that is tried; as above."""
        from tillbridge.setup.pos import TillPreview

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
class _Work:
    """What a step works on: the running bridge, its set-up, and the answers so far."""

    bridge: "Bridge"
    setup: Setup
    place: "SetupContext"
    draft: "Draft"

    @property
    def is_running(self) -> bool:
        """Whether a bridge serves a store already: then only what could be written is kept."""
        return self.bridge.is_set_up

    def after(self, earlier: object) -> None:
        """Raise ConfigError where an earlier step has not given this answer."""
        if not earlier:
            raise ConfigError(
                _("An earlier step is not done yet."), fix=_("Take the steps in their order.")
            )


def _step(name: str, *, reads: bool = False) -> Callable[[Function], Function]:
    """Declare a step of setting up, which is given its work in the place of the bridge."""

    def declare(step: Function) -> Function:
        @wraps(step)
        async def run(bridge: "Bridge", **given: object) -> Answer:
            if bridge.setup is None:
                raise not_running()
            place = bridge.setup.context
            return await step(_Work(bridge, bridge.setup, place, await place.draft()), **given)

        operation(f"setup.{name}", role=Role.TECHNICIAN, reads=reads, before_setup=True)(run)
        return step

    return declare


@_step("show", reads=True)
async def show(work: _Work, adapter: str = "") -> Answer:
    """Return how far it is: `steps` and `next`, what the forms hold, and what would be written.

    Of the forms there are `service`, `sign_in`, `choice`, `till` (with `preview`) and `address`.
    `storefront` is where a guest orders at the practice service, `written` {lines, faults, digest}
    what would be written. `running`: the bridge serves a store.
    """
    import asyncio

    from tillbridge.config.writing import may_be_replaced
    from tillbridge.ledger.snapshot import take_snapshot
    from tillbridge.operations.status import overview
    from tillbridge.setup import service
    from tillbridge.setup.draft import findings_of, next_step, steps_of
    from tillbridge.setup.proposal import LISTEN, proposed

    bridge, setup, place, draft = work.bridge, work.setup, work.place, work.draft
    running, sign_in = work.is_running, setup.sign_in
    findings = draft.findings()
    if running:
        stores = bridge.settings.stores
        snapshot = await bridge.ledger.read(take_snapshot)
        of_bridge = findings_of(
            await overview(bridge),
            draft.store if draft.store in stores else next(iter(stores)),
            base_url=bridge.settings.service.base_url,
            delivered=snapshot.last_delivery_at is not None,
        )
        findings = {**of_bridge, **findings}
    steps = steps_of(findings)
    asks_for_store = not running and "sign_in" in draft.found
    proposal = await proposed(place, draft)
    refused = place.restarts.refused
    return {
        "file": str(place.path),
        "writable": await asyncio.to_thread(may_be_replaced, place.path),
        "running": running,
        "restarting": place.restarts.again,
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


@_step("service")
async def service(work: _Work, base_url: str = "") -> Answer:
    """Test whether the ordering service answers there."""
    from tillbridge.setup.service import checked_url, reached

    place, draft = work.place, work.draft
    url = checked_url(base_url)
    found = await reached(url)
    if found.done:
        await place.store(draft.passed("service", found.text, base_url=url))
    elif not work.is_running:  # beside a bridge that serves only what could be written is kept
        await place.store(draft.failed("service", base_url=url))
    return _answer(found)


@_step("sign_in")
async def sign_in(work: _Work, client_id: str = "", client_secret: str = "") -> Answer:
    """Test the app's id and secret, which goes into the vault; an empty one stays as it is."""
    from tillbridge.setup.service import ASSUMED, known

    setup, place, draft = work.setup, work.place, work.draft
    work.after(draft.base_url)
    app_id, secret = client_id.strip(), client_secret.strip()
    if not app_id or not (secret or setup.sign_in.has_secret(draft.base_url)):
        raise ConfigError(
            _("The client id or its secret is missing."),
            fix=_("Both are in the service's console."),
        )
    draft = draft.with_answers(
        client_id=app_id, redirect_uri=draft.redirect_uri or place.redirect_uri
    )
    before = setup.sign_in.stored_secret()
    if secret:
        setup.sign_in.store_secret(secret, draft.base_url)
        draft = draft.with_answers(secret_given=True)
    try:
        app = setup.sign_in.app(draft)
        await known(app, draft.base_url, ASSUMED.community_audience, place.clock)
    except BridgeError:
        if secret:
            setup.sign_in.restore_secret(before)  # the one that works stays
        raise
    await setup.sign_in.close()
    text = _("The service knows this app.")
    draft = draft.passed("app", text)
    if work.is_running:
        draft = draft.passed("sign_in", text)
    await place.store(draft)
    return {"ok": True, "text": text}


@_step("allow")
async def allow(work: _Work, email: str = "") -> Answer:
    """Begin the merchant's consent; return the `url` that the merchant opens."""
    setup, draft = work.setup, work.draft
    work.after(draft.found.get("app"))
    request = await setup.sign_in.begin(draft, email.strip())
    return {"ok": True, "url": request.url, "text": _("Let the merchant open this address.")}


@_step("sign_up")
async def sign_up(work: _Work, form: dict[str, str]) -> Answer:
    """Make a merchant and a store at the service; return the `url` to go on."""
    setup, draft = work.setup, work.draft
    work.after(draft.found.get("app"))
    request = await setup.sign_in.sign_up(draft, form)
    text = (
        _("A merchant with this e-mail exists already, and signs in instead.")
        if request.as_login
        else _("Let the merchant open this address, and finish there.")
    )
    return {"ok": True, "url": request.url, "text": text}


@_step("choose")
async def choose(
    work: _Work,
    store: StoreName = "",
    store_id: StoreId = "",
    location_id: str = "",
    currency: str = "",
) -> Answer:
    """Say which of the merchant's stores this is; `store` is what it is called here."""
    from tillbridge.setup.service import chosen

    setup, place, draft = work.setup, work.place, work.draft
    work.after(draft.found.get("sign_in"))
    with_store = await chosen(
        draft,
        setup.sign_in,
        store=store,
        store_id=store_id,
        location_id=location_id,
        currency=currency,
    )
    setup.sign_in.rename(draft.store, with_store.store, draft.base_url)
    await place.store(with_store)
    return {"ok": True, "text": with_store.found["store"]}


@_step("till")
async def till(work: _Work, adapter: str, form: dict[str, str]) -> Answer:
    """Try an adapter with these options, and keep them where it reads what it should."""
    from tillbridge.setup.pos import finding_of, takes_orders

    setup, place, draft = work.setup, work.place, work.draft
    work.after(draft.currency)
    pos = await setup.till.answers(adapter, form, draft.pos)
    preview = await setup.till.look(pos, draft)
    found = finding_of(adapter, preview)
    if not found.done:
        return _answer(found)
    if preview["takes_orders"]:
        await place.store(draft.passed("adapter", found.text, pos=pos, orders={}))
    elif draft.orders and await takes_orders(draft.orders, draft, place.base_dir):
        await place.store(draft.passed("adapter", found.text, pos=pos))
    else:
        await place.store(draft.passed("menu", found.text, pos=pos))
        fix = _("It takes no orders: say below where they go.")
        return {"ok": True, "text": found.text, "fix": fix}
    return {"ok": True, "text": found.text}


@_step("orders")
async def orders(work: _Work, adapter: str, form: dict[str, str]) -> Answer:
    """Let another adapter write the orders, where that of the till does not."""
    from tillbridge.setup.pos import takes_orders

    setup, place, draft = work.setup, work.place, work.draft
    work.after(draft.pos)
    writer = await setup.till.answers(adapter, form, draft.orders)
    if not await takes_orders(writer, draft, place.base_dir):
        raise ConfigError(
            _("As configured, {adapter} takes no orders.").format(adapter=adapter),
            fix=_("Tell it where orders go, or choose another one."),
        )
    menu = draft.found.get("menu") or draft.found.get("adapter", "")
    text = _("{menu} {adapter} writes the orders.").format(menu=menu, adapter=adapter).strip()
    await place.store(draft.passed("adapter", text, orders=writer))
    return {"ok": True, "text": text}


@_step("address")
async def address(
    work: _Work, listen: str = "", public_url: str = "", *, anyway: bool = False
) -> Answer:
    """Send a nonce through the public address; `anyway` goes on where nobody can tell."""
    from tillbridge.setup.proposal import LISTEN, judged, note_address, proposed

    place, draft = work.place, work.draft
    work.after(draft.pos)
    url = public_url.strip().rstrip("/")
    draft = draft.with_answers(listen=listen.strip() or LISTEN, public_url=url)
    proposal = await proposed(place, draft)
    if proposal.faults:
        raise ConfigError(proposal.faults[0], fix=_("Correct it."))
    judgement = await judged(place, proposal, draft.listen)
    if not (judgement.reachable or (judgement.reachable is None and anyway)):
        if not work.is_running:
            await place.store(draft.failed("address"))
        return {"ok": False, "text": judgement.text, "fix": judgement.fix}
    await place.store(draft.passed("address", judgement.text))
    if judgement.reachable:
        await note_address(place.ledger, place.clock.now_ms(), judgement.cause)
    return {"ok": True, "text": judgement.text}


@_step("order")
async def order(work: _Work) -> Answer:
    """Place an order at the practice service, as a guest would."""
    from tillbridge.setup.service import is_practice, place_order

    draft = work.draft
    if not work.is_running:
        raise ConfigError(_("The bridge does not run yet."), fix=_("Finish the steps before."))
    if not is_practice(draft.base_url):
        raise ConfigError(
            _("That would be a real order."), fix=_("Order something small at the storefront.")
        )
    return _answer(await place_order(draft.base_url, await _store_id(work)))


@_step("write")
async def write(work: _Work, digest: str = "") -> Answer:
    """Write the difference of that digest into the file, and begin anew with it."""
    import asyncio

    from tillbridge.config.writing import replace_file
    from tillbridge.setup.proposal import begin_anew, proposed, restore_file

    place, draft = work.place, work.draft
    proposal = await proposed(place, draft)
    if proposal.digest != digest:
        raise ConfigError(
            _("The configuration has changed since this was shown."),
            fix=_("Look at the difference again."),
        )
    if proposal.faults:
        raise ConfigError("\n".join(proposal.faults), fix=_("Mend it in the steps above."))
    copy = await asyncio.to_thread(replace_file, place.path, proposal.new)
    undo = partial(restore_file, place.path, copy)
    await begin_anew(place, draft, proposal.new, undo, connect=_to_connect(work))
    text = _("{file} is written, and the bridge starts anew with it.")
    copied = _("The file as it was is kept as {copy}.")
    return {
        "ok": True,
        "text": text.format(file=place.path.name),
        "fix": copied.format(copy=copy.name) if copy else "",
    }


@_step("text")
async def text(work: _Work) -> Answer:
    """Return `file`, the whole `text` as it would be, `lines`, `faults` and its `digest`.

    For a command whose user may write the file: it may hold secrets of others.
    """
    from tillbridge.setup.proposal import digest_of, proposed

    place, draft = work.place, work.draft
    proposal = await proposed(place, draft)
    return {
        "file": str(place.path.resolve()),
        "text": proposal.new,
        "lines": list(proposal.lines),
        "faults": list(proposal.faults),
        "digest": digest_of(proposal.new),
    }


@_step("written")
async def written(work: _Work, digest: str) -> Answer:
    """Take note that such a command has written the text of that digest, and begin anew with it."""
    import asyncio

    from tillbridge.setup.proposal import begin_anew, cannot_undo, digest_of

    place, draft = work.place, work.draft
    found, _document = await asyncio.to_thread(place.document)
    if digest_of(found) != digest:
        raise ConfigError(
            _("The file is not what was to be written."), fix=_("Look at it, and try again.")
        )
    connect = _to_connect(work)
    await begin_anew(place, draft, found, cannot_undo, connect=connect)
    return {"ok": True, "text": _("It is written, and the bridge starts anew with it.")}


@_step("forget")
async def forget(work: _Work) -> Answer:
    """Forget what was said here and is not written."""
    setup, place = work.setup, work.place
    await place.forget()
    setup.till.forget()
    return {"ok": True, "text": _("Forgotten: everything is as the file says.")}


def _to_connect(work: _Work) -> str:
    return "" if work.is_running else work.draft.store


async def _storefront(work: _Work) -> str:
    """Return where a guest orders at the practice service; "" where it is a real one."""
    from tillbridge.setup.service import is_practice, storefront_of

    if not work.is_running or not is_practice(work.draft.base_url):
        return ""
    store_id = await _store_id(work)
    return storefront_of(work.draft.base_url, store_id) if store_id else ""


async def _store_id(work: _Work) -> str:
    draft = work.draft
    found = draft.store_id or await work.bridge.ledger.get_fact(draft.store, "service_store_id")
    return str(found or "")


def _answer(found: "Finding") -> Answer:
    return {"ok": found.done, "text": found.text, "fix": found.fix}
