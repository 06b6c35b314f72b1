"""What the page asks about setting the bridge up, in either of its lives.

While nothing is set up the steps are what was said and tested here. Beside a bridge that runs they
are how that bridge does, and what is said here changes its configuration.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tillbridge.configfile import LoadedSettings
from tillbridge.configfile.loaded import loaded_from
from tillbridge.configfile.writing import (
    difference,
    edited,
    may_be_replaced,
    put_back,
    replace_file,
)
from tillbridge.daemon.lives import Undo
from tillbridge.daemon.probing import FACT as ADDRESS_FACT
from tillbridge.daemon.setup_address import judged
from tillbridge.daemon.setup_place import SetupPlace, digest_of, parsed
from tillbridge.daemon.setup_service import PRACTICE, checked_url, is_practice, known, reached
from tillbridge.daemon.setup_sign_in import ASSUMED, SignIn
from tillbridge.daemon.setup_till import adapters, form_of, said_of, takes_orders, tried
from tillbridge.errors import BridgeError, ConfigError
from tillbridge.i18n import _
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.vault import CLIENT_SECRET
from tillbridge.log import get_logger
from tillbridge.onboarding.checking import faults_in
from tillbridge.onboarding.draft import Draft, changes_of
from tillbridge.onboarding.preview import finding_of, nothing_seen
from tillbridge.onboarding.steps import Finding, next_step, steps_of
from tillbridge.status.ports import CallbackAnswer

Answer = dict[str, Any]

_STORES_WITHIN_S = 10.0
_LOOK_AGAIN_S = 2.0
_WATCHED_S = 90.0  # a page that is open asks at least every 30 seconds
_LISTEN = "127.0.0.1:8088"
_STORE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_SOMETHING = re.compile(r".{1,200}")

log = get_logger()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be written: the new text, what changes, and why it cannot be."""

    old: str
    new: str
    lines: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What a person agrees to."""
        return digest_of(self.old, self.new)


class SetupOperations:
    """The operations. `standing` tells how the running bridge does; None: nothing runs yet."""

    def __init__(
        self,
        place: SetupPlace,
        desk: ProblemDesk,
        standing: Callable[[Draft], Awaitable[Mapping[str, Finding]]] | None = None,
    ) -> None:
        self._place = place
        self._desk = desk
        self._standing = standing
        self._sign_in = SignIn(place)
        self._preview: Answer | None = None
        self._looked_at = 0.0  # monotonic seconds: when a page last showed the preview
        self._looking: asyncio.Task[None] | None = None
        self._tried: Answer = {}  # the adapter and options of the form, as they were tried last

    async def close(self) -> None:
        """Let go of the service."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._sign_in.close()

    async def returned(self, query: Mapping[str, str]) -> CallbackAnswer:
        """Take the merchant's return from the service."""
        return await self._sign_in.returned(query)

    async def show(self, adapter: str = "") -> Answer:
        """Return how far it is, what the forms hold, and what would be written."""
        draft = await self._place.draft()
        findings = dict(draft.findings())
        if self._standing is not None:
            findings = {**await self._standing(draft), **findings}
        steps = steps_of(findings)
        now = next_step(steps)
        proposal = await self._proposal(draft)
        refused = self._place.lives.refused
        return {
            "file": str(self._place.path),
            "writable": await asyncio.to_thread(may_be_replaced, self._place.path),
            "running": self._standing is not None,
            "restarting": self._place.lives.again,
            "refused": None if refused is None else {"text": refused.text, "fix": refused.fix},
            "store": draft.store,
            "steps": [step.to_json() for step in steps],
            "next": now,
            "service": {"base_url": draft.base_url, "practice": PRACTICE},
            "sign_in": {
                "client_id": draft.client_id,
                "app_known": "app" in draft.found,
                "has_secret": await asyncio.to_thread(self._sign_in.has_secret),
                "redirect_uri": draft.redirect_uri or self._place.redirect_uri,
            },
            "choice": await self._choice(draft, now),
            "till": await self._till(draft, adapter),
            "address": {
                "listen": draft.listen or _LISTEN,
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
        if found.done:
            draft = await self._place.draft()
            await self._place.keep(draft.passed("service", found.text, base_url=url))
        return _told(found)

    async def sign_in(self, client_id: str, client_secret: str) -> Answer:
        """Test the app's id and secret; the secret goes into the vault."""
        draft = await self._place.draft()
        self._need(draft, "service", draft.base_url)
        if not client_id.strip():
            raise ConfigError(
                _("The client id is missing."), fix=_("It is in the service's console.")
            )
        uri = draft.redirect_uri or self._place.redirect_uri
        draft = replace(draft, client_id=client_id.strip(), redirect_uri=uri)
        before = self._place.ledger.vault.get(CLIENT_SECRET)
        if client_secret.strip():
            self._sign_in.keep_secret(client_secret.strip())
            draft = replace(draft, secret_given=True)
        elif not self._sign_in.has_secret():
            raise ConfigError(
                _("The client secret is missing."), fix=_("It is in the service's console.")
            )
        try:
            await known(
                self._sign_in.app(draft),
                draft.base_url,
                ASSUMED.community_audience,
                self._place.clock,
            )
        except BridgeError:
            if client_secret.strip():
                self._sign_in.keep_secret(before)  # the one that works stays
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
        draft = await self._with_app()
        request = await self._sign_in.begin(draft, email.strip())
        return {"ok": True, "url": request.url, "text": _("Let the merchant open this address.")}

    async def sign_up(self, form: Mapping[str, str]) -> Answer:
        """Make a merchant and a store at the service; return the `url` to go on."""
        draft = await self._with_app()
        request = await self._sign_in.sign_up(draft, form)
        text = (
            _("A merchant with this e-mail exists already, and signs in instead.")
            if request.as_login
            else _("Let the merchant open this address, and finish there.")
        )
        return {"ok": True, "url": request.url, "text": text}

    async def choose(self, store: str, *, store_id: str, location_id: str, currency: str) -> Answer:
        """Say which of the merchant's stores this is, and what it is called here."""
        draft = await self._place.draft()
        self._need(draft, "sign_in", draft.found.get("sign_in"))
        stores = await self._sign_in.stores(draft)
        chosen = next((each for each in stores if each.store_id == store_id), None)
        if chosen is None:
            raise ConfigError(
                _("The merchant has no such store."), fix=_("Choose one of those listed.")
            )
        name = store.strip()
        said = {
            "store": name,
            "store_id": store_id,
            "store_name": chosen.name or "",
            "location_id": location_id.strip(),
            "currency": currency.strip().upper(),
        }
        text = _("{store} is {name} at the service.").format(
            store=name, name=chosen.name or store_id
        )
        told = draft.passed("store", text, **said)
        _check_store(told)
        self._sign_in.rename(draft.store, name)
        await self._place.keep(told)
        return {"ok": True, "text": text}

    async def till(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Try an adapter with these options, and keep them where it reads what it should."""
        draft = await self._place.draft()
        self._need(draft, "store", draft.currency)
        said = await self._said(adapter, form, draft.pos)
        self._tried, self._preview = said, None
        self._preview = preview = await tried(said, draft, self._place.base_dir)
        self._look_on(draft)
        found = finding_of(adapter, preview)
        if not found.done:
            return _told(found)
        text = found.text
        if preview["takes_orders"]:
            await self._place.keep(draft.passed("adapter", text, pos=said, orders={}))
            return {"ok": True, "text": text}
        if draft.orders and await takes_orders(draft.orders, draft, self._place.base_dir):
            await self._place.keep(draft.passed("adapter", text, pos=said))
            return {"ok": True, "text": text}
        await self._place.keep(draft.passed("menu", text, pos=said))
        return {"ok": True, "text": text, "fix": _("It takes no orders: say below where they go.")}

    async def orders(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Let another adapter write the orders, where that of the till does not."""
        draft = await self._place.draft()
        self._need(draft, "adapter", draft.pos)
        said = await self._said(adapter, form, draft.orders)
        if not await takes_orders(said, draft, self._place.base_dir):
            raise ConfigError(
                _("As configured, {adapter} takes no orders.").format(adapter=adapter),
                fix=_("Tell it where orders go, or choose another one."),
            )
        menu = draft.found.get("menu") or draft.found.get("adapter", "")
        text = _("{menu} {adapter} writes the orders.").format(menu=menu, adapter=adapter)
        await self._place.keep(draft.passed("adapter", text.strip(), orders=said))
        return {"ok": True, "text": text.strip()}

    async def address(self, listen: str, public_url: str, *, anyway: bool) -> Answer:
        """Send a nonce through the public address; `anyway` goes on where nobody can tell."""
        draft = await self._place.draft()
        self._need(draft, "adapter", draft.pos)
        url = public_url.strip().rstrip("/")
        told = replace(draft, listen=listen.strip() or _LISTEN, public_url=url)
        proposal = await self._proposal(told)
        if proposal.faults:
            raise ConfigError(proposal.faults[0], fix=_("Correct it."))
        loaded = self._loaded(proposal.new)
        judgement = await judged(loaded, self._place, self._desk)
        if judgement.reachable or (judgement.reachable is None and anyway):
            await self._place.keep(told.passed("address", judgement.text))
            if judgement.reachable:
                await self._note_reached(judgement.cause)
            return {"ok": True, "text": judgement.text}
        return {"ok": False, "text": judgement.text, "fix": judgement.fix}

    # -- the file

    async def write(self, digest: str) -> Answer:
        """Write what was agreed to, and begin anew with it."""
        draft = await self._place.draft()
        proposal = await self._proposal(draft)
        if proposal.digest != digest:
            raise ConfigError(
                _("The configuration has changed since this was shown."),
                fix=_("Look at the difference again."),
            )
        if proposal.faults:
            raise ConfigError("\n".join(proposal.faults), fix=_("Mend it in the steps above."))
        copy = await asyncio.to_thread(replace_file, self._place.path, proposal.new)
        log.info("setup.written", file=str(self._place.path), copy=str(copy))
        await self._begin_anew(draft, proposal.new, partial(self._take_back, copy))
        return {
            "ok": True,
            "text": _("{file} is written, and the bridge starts anew with it.").format(
                file=self._place.path.name
            ),
            "fix": _("The file as it was is kept as {copy}.").format(copy=copy.name)
            if copy
            else "",
        }

    async def text(self) -> Answer:
        """Return the whole file as it would be, for a command whose user may write it."""
        proposal = await self._proposal(await self._place.draft())
        return {
            "file": str(self._place.path.resolve()),
            "text": proposal.new,
            "lines": list(proposal.lines),
            "faults": list(proposal.faults),
            "digest": digest_of(proposal.new),
        }

    async def written(self, digest: str) -> Answer:
        """Take note that such a command has written what `text` told, and begin anew with it."""
        text, _said = await asyncio.to_thread(self._place.document)
        if digest_of(text) != digest:
            raise ConfigError(
                _("The file is not what was to be written."), fix=_("Look at it, and try again.")
            )
        await self._begin_anew(await self._place.draft(), text, _cannot_take_back)
        return {"ok": True, "text": _("It is written, and the bridge starts anew with it.")}

    async def forget(self) -> Answer:
        """Forget what was said here and is not written."""
        await self._place.forget()
        self._preview, self._tried = None, {}
        return {"ok": True, "text": _("Forgotten: everything is as the file says.")}

    async def order(self) -> Answer:
        """Place an order at the practice service, as a guest would."""
        # Only where somebody practises.
        from tillbridge.daemon.setup_order import place_order  # noqa: PLC0415 -- see above

        draft = await self._place.draft()
        if self._standing is None:
            raise ConfigError(_("The bridge does not run yet."), fix=_("Finish the steps before."))
        if not is_practice(draft.base_url):
            raise ConfigError(
                _("That would be a real order."), fix=_("Order something small at the storefront.")
            )
        found = await place_order(draft.base_url, draft.store_id)
        return _told(found)

    # -- inside

    async def _said(
        self, adapter: str, form: Mapping[str, str], kept: Mapping[str, Any]
    ) -> dict[str, Any]:
        folder = self._place.ledger.data_dir / "secrets"
        return await asyncio.to_thread(said_of, adapter, form, kept, folder)

    async def _with_app(self) -> Draft:
        """Return the draft; raises ConfigError where the service does not know the app yet."""
        draft = await self._place.draft()
        self._need(draft, "sign_in", draft.found.get("app"))
        return draft

    def _need(self, _draft: Draft, _step: str, there: object) -> None:
        """Raise ConfigError unless what this step begins with is there."""
        if not there:
            raise ConfigError(
                _("An earlier step is not done yet."), fix=_("Take the steps in their order.")
            )

    async def _choice(self, draft: Draft, now: str) -> Answer:
        """Return what the form of the store holds; the merchant's stores while it is to be said."""
        told: Answer = {
            "store": draft.store,
            "store_id": draft.store_id,
            "location_id": draft.location_id,
            "currency": draft.currency,
            "stores": [],
            "trouble": None,
        }
        if self._standing is not None or not draft.found.get("sign_in") or now == "sign_in":
            return told
        try:
            async with asyncio.timeout(_STORES_WITHIN_S):
                stores = await self._sign_in.stores(draft)
        except BridgeError as failure:
            return {**told, "trouble": {"text": failure.text, "fix": failure.fix}}
        except TimeoutError:
            slow = {"text": _("The service does not answer."), "fix": _("Load this page again.")}
            return {**told, "trouble": slow}
        rows = [
            {
                "store_id": each.store_id,
                "name": each.name or "",
                "status": each.status or "",
                "integration_status": each.integration_status or "",
            }
            for each in stores
        ]
        if not rows:
            none = {
                "text": _("The merchant has no store yet."),
                "fix": _("Let the merchant make one at the ordering service; load this again."),
            }
            return {**told, "trouble": none}
        return {**told, "stores": rows}

    async def _till(self, draft: Draft, adapter: str) -> Answer:
        """Return what the form of the till holds, for the adapter that is chosen or was tried."""
        said = self._tried or dict(draft.pos)
        if adapter and adapter != said.get("adapter"):
            said = {"adapter": adapter}
        found = await asyncio.to_thread(adapters)
        menu_only = "menu" in draft.found and "adapter" not in draft.found
        name = str(said.get("adapter") or "folder")
        self._looked_at = self._place.clock.monotonic()
        return {
            "adapters": found,
            "adapter": name,
            "fields": await asyncio.to_thread(form_of, {**said, "adapter": name}),
            "preview": self._preview if self._tried.get("adapter") == name else None,
            "needs_orders": menu_only,
            "orders_adapter": str(draft.orders.get("adapter") or "folder"),
            "orders_fields": await asyncio.to_thread(form_of, dict(draft.orders))
            if menu_only
            else [],
        }

    async def _note_reached(self, cause: str) -> None:
        """Write down, as the bridge's own probing does, that the public address leads here."""
        at = self._place.clock.now_ms()
        fact = {"ok_at": at, "cause": cause}
        await self._place.ledger.write(lambda db: put_fact(db, "", ADDRESS_FACT, fact, at=at))

    def _look_on(self, draft: Draft) -> None:
        """Read again and again what is shown, for as long as a page shows it."""
        self._looked_at = self._place.clock.monotonic()
        if self._looking is not None:
            self._looking.cancel()
        work = self._keep_looking(self._tried, draft)
        self._looking = asyncio.create_task(work, name="setup.preview")

    async def _keep_looking(self, said: Mapping[str, Any], draft: Draft) -> None:
        clock = self._place.clock
        while clock.monotonic() - self._looked_at < _WATCHED_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            try:
                seen = await tried(said, draft, self._place.base_dir)
            except ConfigError as failure:
                seen = {**nothing_seen(), "troubles": [{"text": failure.text, "fix": failure.fix}]}
            if seen != self._preview:
                self._preview = seen
                self._place.bell.ring()

    async def _begin_anew(self, draft: Draft, text: str, undo: Undo) -> None:
        await self._place.keep(replace(draft, written=digest_of(text)))
        self._place.lives.restart(undo, connect="" if self._standing else draft.store)

    def _take_back(self, copy: Path | None, _failure: BridgeError) -> None:
        if copy is not None:
            put_back(self._place.path, copy)

    async def _proposal(self, draft: Draft) -> Proposal:
        return await asyncio.to_thread(self._proposed, draft)

    def _proposed(self, draft: Draft) -> Proposal:
        old, document = self._place.document()
        changes = changes_of(draft, document)
        if not changes:
            return Proposal(old, old, (), ())
        try:
            new = edited(old, changes)
        except ConfigError as fault:
            return Proposal(old, old, (), (str(fault),))
        try:
            faults = [str(each) for each in self._faults(self._loaded(new))]
        except ConfigError as fault:
            faults = [str(fault)]
        return Proposal(old, new, tuple(difference(old, new)), tuple(faults))

    def _loaded(self, text: str) -> LoadedSettings:
        return loaded_from(self._place.path, text, dict(parsed(text)))

    def _faults(self, loaded: LoadedSettings) -> list[ConfigError]:
        vault = self._place.ledger.vault
        return faults_in(loaded, lambda: vault.get(CLIENT_SECRET), [])


def _cannot_take_back(failure: BridgeError) -> None:
    """Raise it: what another user has written this one cannot put back."""
    raise failure


def _told(found: Finding) -> Answer:
    return {"ok": found.done, "text": found.text, "fix": found.fix}


def _check_store(draft: Draft) -> None:
    """Raise ConfigError where what was said of the store cannot stand in the file."""
    checks = (
        (_STORE_NAME, draft.store, _("The local name takes small letters, digits, - and _.")),
        (_CURRENCY, draft.currency, _("The currency is three letters, for example EUR.")),
        (_SOMETHING, draft.location_id, _("Your own id of the location is missing.")),
    )
    for pattern, text, words in checks:
        if not pattern.fullmatch(text):
            raise ConfigError(words, fix=_("Correct it."))
