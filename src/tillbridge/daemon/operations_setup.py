"""What the page asks about setting the bridge up, in either of its restarts.

While nothing is set up the steps are what was said and tested here. Beside a bridge that runs they
are how that bridge does, and what is said here changes its configuration.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from tillbridge.config.writing import may_be_replaced
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.daemon.self_checks import FACT as ADDRESS_FACT
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.setup.address import LISTEN, judged
from tillbridge.setup.draft import Draft, Finding, draft_of, next_step, steps_of
from tillbridge.setup.file import SetupContext, SetupFile
from tillbridge.setup.pos import TillPreview, finding_of, takes_orders
from tillbridge.setup.service import (
    ASSUMED,
    PRACTICE,
    SignIn,
    checked_url,
    choice_among,
    choice_of,
    chosen,
    is_practice,
    known,
    reached,
)
from tillbridge.web.ports import Answer, CallbackAnswer


class SetupOperations:
    """The operations. `standing` tells how the running bridge does; None: nothing runs yet."""

    def __init__(
        self,
        place: SetupContext,
        tracker: ProblemTracker,
        standing: Callable[[Draft], Awaitable[Mapping[str, Finding]]] | None = None,
    ) -> None:
        self._place = place
        self._tracker = tracker
        self._standing = standing
        self._sign_in = SignIn(place)
        self._till = TillPreview(place)
        self._file = SetupFile(place)

    async def close(self) -> None:
        """Let go of the service and the till."""
        await self._till.close()
        await self._sign_in.close()

    async def returned(self, query: Mapping[str, str]) -> CallbackAnswer:
        """Take the merchant's return from the service."""
        return await self._sign_in.returned(query)

    async def show(self, adapter: str = "") -> Answer:
        """Return how far it is, what the forms hold, and what would be written."""
        place, draft = self._place, await self._place.draft()
        findings = dict(draft.findings())
        if self._standing is not None:
            findings = {**await self._standing(draft), **findings}
        steps = steps_of(findings)
        running = self._standing is not None
        asks_for_store = not running and "sign_in" in draft.found
        proposal = await self._file.proposal(draft)
        refused = place.restarts.refused
        return {
            "file": str(place.path),
            "writable": await asyncio.to_thread(may_be_replaced, place.path),
            "running": running,
            "restarting": place.restarts.again,
            "refused": None if refused is None else {"text": refused.text, "fix": refused.fix},
            "store": draft.store,
            "steps": [step.to_json() for step in steps],
            "next": next_step(steps),
            "service": {"base_url": draft.base_url, "practice": PRACTICE},
            "sign_in": {
                "client_id": draft.client_id,
                "app_known": "app" in draft.found,
                "has_secret": await asyncio.to_thread(self._sign_in.has_secret, draft.base_url),
                "redirect_uri": draft.redirect_uri or place.redirect_uri,
            },
            "choice": await choice_among(draft, self._sign_in)
            if asks_for_store
            else choice_of(draft),
            "till": await self._till.show(
                draft, adapter, all_adapters=bool(adapter) or not running
            ),
            "storefront": await self._storefront(draft),
            "address": {
                "listen": draft.listen or LISTEN,
                "public_url": draft.public_url,
                "practice": is_practice(draft.base_url),
            },
            "written": {
                "lines": list(proposal.lines),
                "faults": list(proposal.faults),
                "digest": proposal.digest,
            },
        }

    # -- the steps

    async def service(self, base_url: str) -> Answer:
        """Test whether the service answers there."""
        url = checked_url(base_url)
        found = await reached(url)
        draft = await self._place.draft()
        if found.done:
            await self._place.keep(draft.passed("service", found.text, base_url=url))
        else:
            await self._keep_failed(draft.failed("service", base_url=url))
        return _told(found)

    async def sign_in(self, client_id: str, client_secret: str) -> Answer:
        """Test the app's id and secret; the secret goes into the vault."""
        draft = await self._draft_with("base_url")
        secret = client_secret.strip()
        if not client_id.strip() or not (secret or self._sign_in.has_secret(draft.base_url)):
            raise ConfigError(
                _("The client id or its secret is missing."),
                fix=_("Both are in the service's console."),
            )
        uri = draft.redirect_uri or self._place.redirect_uri
        draft = replace(draft, client_id=client_id.strip(), redirect_uri=uri)
        before = self._sign_in.stored_secret()
        if secret:
            self._sign_in.keep_secret(secret, draft.base_url)
            draft = replace(draft, secret_given=True)
        try:
            app, audience = self._sign_in.app(draft), ASSUMED.community_audience
            await known(app, draft.base_url, audience, self._place.clock)
        except BridgeError:
            if secret:
                self._sign_in.restore_secret(before)  # the one that works stays
            raise
        await self._sign_in.close()
        text = _("The service knows this app.")
        draft = draft.passed("app", text)
        if self._standing is not None:
            draft = draft.passed("sign_in", text)
        await self._place.keep(draft)
        return {"ok": True, "text": text}

    async def allow(self, email: str) -> Answer:
        """Begin the merchant's consent; return the `url` that the merchant opens."""
        draft = await self._draft_with_found("app")
        request = await self._sign_in.begin(draft, email.strip())
        return {"ok": True, "url": request.url, "text": _("Let the merchant open this address.")}

    async def sign_up(self, form: Mapping[str, str]) -> Answer:
        """Make a merchant and a store at the service; return the `url` to go on."""
        draft = await self._draft_with_found("app")
        request = await self._sign_in.sign_up(draft, form)
        text = (
            _("A merchant with this e-mail exists already, and signs in instead.")
            if request.as_login
            else _("Let the merchant open this address, and finish there.")
        )
        return {"ok": True, "url": request.url, "text": text}

    async def choose(self, store: str, *, store_id: str, location_id: str, currency: str) -> Answer:
        """Say which of the merchant's stores this is, and what it is called here."""
        draft = await self._draft_with_found("sign_in")
        told = await chosen(
            draft,
            self._sign_in,
            store=store,
            store_id=store_id,
            location_id=location_id,
            currency=currency,
        )
        self._sign_in.rename(draft.store, told.store, draft.base_url)
        await self._place.keep(told)
        return {"ok": True, "text": told.found["store"]}

    async def till(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Try an adapter with these options, and keep them where it reads what it should."""
        draft = await self._draft_with("currency")
        said = await self._till.said(adapter, form, draft.pos)
        preview = await self._till.look(said, draft)
        found = finding_of(adapter, preview)
        if not found.done:
            return _told(found)
        if preview["takes_orders"]:
            await self._place.keep(draft.passed("adapter", found.text, pos=said, orders={}))
        elif draft.orders and await takes_orders(draft.orders, draft, self._place.base_dir):
            await self._place.keep(draft.passed("adapter", found.text, pos=said))
        else:
            await self._place.keep(draft.passed("menu", found.text, pos=said))
            fix = _("It takes no orders: say below where they go.")
            return {"ok": True, "text": found.text, "fix": fix}
        return {"ok": True, "text": found.text}

    async def orders(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Let another adapter write the orders, where that of the till does not."""
        draft = await self._draft_with("pos")
        said = await self._till.said(adapter, form, draft.orders)
        if not await takes_orders(said, draft, self._place.base_dir):
            raise ConfigError(
                _("As configured, {adapter} takes no orders.").format(adapter=adapter),
                fix=_("Tell it where orders go, or choose another one."),
            )
        menu = draft.found.get("menu") or draft.found.get("adapter", "")
        text = _("{menu} {adapter} writes the orders.").format(menu=menu, adapter=adapter).strip()
        await self._place.keep(draft.passed("adapter", text, orders=said))
        return {"ok": True, "text": text}

    async def address(self, listen: str, public_url: str, *, anyway: bool) -> Answer:
        """Send a nonce through the public address; `anyway` goes on where nobody can tell."""
        draft = await self._draft_with("pos")
        url = public_url.strip().rstrip("/")
        told = replace(draft, listen=listen.strip() or LISTEN, public_url=url)
        proposal = await self._file.proposal(told)
        if proposal.faults:
            raise ConfigError(proposal.faults[0], fix=_("Correct it."))
        judgement = await judged(self._file.loaded(proposal), self._listening(told))
        if not (judgement.reachable or (judgement.reachable is None and anyway)):
            await self._keep_failed(told.failed("address"))
            return {"ok": False, "text": judgement.text, "fix": judgement.fix}
        await self._place.keep(told.passed("address", judgement.text))
        if judgement.reachable:
            # As the bridge's own probing does.
            at = self._place.clock.now_ms()
            fact = {"ok_at": at, "cause": judgement.cause}
            await self._place.ledger.write(lambda db: put_fact(db, "", ADDRESS_FACT, fact, at=at))
        return {"ok": True, "text": judgement.text}

    async def order(self) -> Answer:
        """Place an order at the practice service, as a guest would."""
        # Only where somebody practises.
        from tillbridge.setup.service import place_order  # noqa: PLC0415 -- see above

        draft = await self._place.draft()
        if self._standing is None:
            raise ConfigError(_("The bridge does not run yet."), fix=_("Finish the steps before."))
        if not is_practice(draft.base_url):
            raise ConfigError(
                _("That would be a real order."), fix=_("Order something small at the storefront.")
            )
        return _told(await place_order(draft.base_url, await self._store_id(draft)))

    # -- the file

    async def write(self, digest: str) -> Answer:
        """Write what was agreed to, and begin anew with it."""
        draft = await self._place.draft()
        return await self._file.write(draft, digest, connect=self._to_connect(draft))

    async def text(self) -> Answer:
        """Return the whole file as it would be, for a command whose user may write it."""
        return await self._file.text(await self._place.draft())

    async def written(self, digest: str) -> Answer:
        """Take note that such a command has written what `text` told, and begin anew with it."""
        draft = await self._place.draft()
        return await self._file.written(draft, digest, connect=self._to_connect(draft))

    async def forget(self) -> Answer:
        """Forget what was said here and is not written."""
        await self._place.forget()
        self._till.forget()
        return {"ok": True, "text": _("Forgotten: everything is as the file says.")}

    # -- inside

    async def _storefront(self, draft: Draft) -> str:
        """Return where a guest orders at the practice service; "" where it is a real one."""
        if self._standing is None or not is_practice(draft.base_url):
            return ""
        from tillbridge.setup.service import storefront_of  # noqa: PLC0415 -- as `order`

        store_id = await self._store_id(draft)
        return storefront_of(draft.base_url, store_id) if store_id else ""

    async def _store_id(self, draft: Draft) -> str:
        found = draft.store_id or await self._place.ledger.read(
            lambda db: get_fact(db, draft.store, "service_store_id")
        )
        return str(found or "")

    def _listening(self, told: Draft) -> SetupContext:
        """Return the place; without the receiver that runs where it is to listen elsewhere."""
        _text, document = self._place.document()
        now = draft_of(document).listen or LISTEN
        return self._place if told.listen == now else replace(self._place, echo=None)

    def _to_connect(self, draft: Draft) -> str:
        return draft.store if self._standing is None else ""

    async def _keep_failed(self, draft: Draft) -> None:
        """Remember what was typed; beside a running bridge only what could be written is."""
        if self._standing is None:
            await self._place.keep(draft)

    async def _draft_with(self, answer: str) -> Draft:
        """Return the draft; raises ConfigError where an earlier step has not given this answer."""
        draft = await self._place.draft()
        return _in_order(draft, getattr(draft, answer))

    async def _draft_with_found(self, step: str) -> Draft:
        """Return the draft; raises ConfigError where this step is not passed."""
        draft = await self._place.draft()
        return _in_order(draft, draft.found.get(step))


def _in_order(draft: Draft, there: object) -> Draft:
    if not there:
        raise ConfigError(
            _("An earlier step is not done yet."), fix=_("Take the steps in their order.")
        )
    return draft


def _told(found: Finding) -> Answer:
    return {"ok": found.done, "text": found.text, "fix": found.fix}
