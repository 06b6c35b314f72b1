"""The first two steps: the ordering service answers, and knows this app."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from pydantic import SecretStr, TypeAdapter, ValidationError

from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.secrets import Secret, SecretSource, resolve_secret
from tillbridge.config.values import HttpUrl, currency_fix, is_loopback, origin_of
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, Refused
from tillbridge.core.files import is_own
from tillbridge.core.i18n import _
from tillbridge.core.log import learn_secret
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import Level
from tillbridge.diagnostics.checks.service import answer_verdict
from tillbridge.diagnostics.network import exchange
from tillbridge.ledger.vault import StoredClientSecret
from tillbridge.service.answers import BAD_CLIENT
from tillbridge.service.client import ServiceLink, StoreLink
from tillbridge.service.oauth import App
from tillbridge.service.types import Store
from tillbridge.setup.draft import Draft, Finding, done, not_done
from tillbridge.setup.pos import SAMPLE_MENU
from tillbridge.setup.proposal import SetupContext
from tillbridge.stores.consent import (
    CallbackAnswer,
    ConsentFlow,
    ConsentRequest,
    VaultTokenStore,
    faults_of,
    missing,
    request_of,
)

PRACTICE = "http://127.0.0.1:9000/v2"  # where `tillbridge sandbox` listens


def checked_url(text: str) -> str:
    """Return a base URL as it is written in the file. Raises ConfigError."""
    typed = text.strip().rstrip("/")
    host = urlsplit(typed if "://" in typed else f"//{typed}").hostname or ""
    if "://" not in typed and host:
        typed = f"{'http' if is_loopback(host) else 'https'}://{typed}"
    try:
        url = TypeAdapter(HttpUrl).validate_python(typed)
    except ValidationError:
        raise _no_address(text) from None
    parts = urlsplit(url)
    if not (is_loopback(host) or "." in host or ":" in host):
        raise _no_address(text)
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            _("That is unencrypted http to another machine: others could read the tokens."),
            fix=_("Use https://."),
            field="base_url",
        )
    return url


def _no_address(text: str) -> ConfigError:
    return ConfigError(
        _("“{text}” is not a web address.").format(text=text.strip()[:80]),
        fix=_("Copy it from the service's console: it begins with https:// and ends in /v2."),
        field="base_url",
    )


def is_practice(base_url: str) -> bool:
    """Whether a service is on this very machine, as the sandbox is."""
    return is_loopback(urlsplit(base_url).hostname or "")


def left_of_practice(draft: Draft) -> dict[str, Finding]:
    """Return the steps whose answers are good for the practice service alone, beside a real one."""
    found: dict[str, Finding] = {}
    if not draft.base_url or is_practice(draft.base_url):
        return found
    if draft.pos.get("menu") == SAMPLE_MENU:
        text = _("The till is still the sample till.")
        found["adapter"] = not_done(text, _("Choose your own till below."))
    if is_practice(draft.public_url):
        text = _("The public address is still the one for practising: {url}")
        fix = _("Enter the address at which the internet reaches this machine.")
        found["address"] = not_done(text, fix, url=draft.public_url)
    return found


async def reached(base_url: str) -> Finding:
    """Ask the service without any credential, and return what came of it."""
    found = answer_verdict(await in_thread(lambda: exchange(f"{base_url}/pos/stores")))
    is_well, fix = found.level is Level.OK, found.fix
    if not is_well and is_practice(base_url):
        fix = _(
            "Start the practice service in another terminal: "
            "tillbridge sandbox --state sandbox.json"
        )
    text, fix = (each.replace("base_url", base_url) for each in (found.text, fix))
    return Finding(is_well, text, fix, field="base_url")


async def reached_below(base_url: str) -> str:
    """Return the address with /v2 behind it where the service answers there; "" for nothing."""
    below = f"{base_url}/v2"
    is_there = not urlsplit(base_url).path and (await reached(below)).done
    return below if is_there else ""


async def practice_app(base_url: str) -> tuple[str, str]:
    """Return id and secret of the practice service's app. Raises ConfigError."""
    try:
        async with _session() as session, session.get(f"{_origin(base_url)}/_control/apps") as got:
            (first, *_more) = (await got.json())["apps"]
            return str(first["client_id"]), str(first["client_secret"])
    except (aiohttp.ClientError, TimeoutError, KeyError, TypeError, ValueError):
        raise ConfigError(
            _("The service at {url} is not the practice service.").format(url=base_url),
            fix=_(
                "Start the practice service in another terminal: "
                "tillbridge sandbox --state sandbox.json"
            ),
            field="base_url",
        ) from None


async def known(app: App, base_url: str, audience: str, clock: Clock) -> None:
    """Let the service look at the app's id and secret. Raises ServiceError.

    A token for the app itself is asked for. Where the service gives none for that audience it
    has recognised the app anyway; only its word that it does not know the app counts.
    """
    async with ServiceLink(base_url, app, clock=clock) as link:
        try:
            await link.oauth.mint(audience)
        except Refused as failure:
            if failure.code == BAD_CLIENT:
                raise


ASSUMED = AssumptionSettings()
_NOW = "/setup#now"  # the step to take now


@dataclass(frozen=True, slots=True)
class _Session:
    """What is open at the service, for one app, service and store."""

    of: tuple[str, ...]
    link: ServiceLink
    access: StoreLink
    consents: ConsentFlow


class SignIn:
    """One consent at a time, with the app and service of the answers so far."""

    def __init__(self, place: SetupContext) -> None:
        self._place = place
        self._session: _Session | None = None
        self._request: ConsentRequest | None = None  # what the merchant is to open

    def app(self, draft: Draft) -> App:
        """Return the app; its secret is read from the vault when it is sent."""
        secret = partial(self._secret, draft.base_url)
        return App(draft.client_id, secret, draft.redirect_uri, ASSUMED.scope_field)

    def has_secret(self, base_url: str) -> bool:
        """Whether the app's secret for this service is known: in the vault, or by the file."""
        try:
            return bool(self._secret(base_url))
        except ConfigError:
            return False

    def stored_secret(self) -> StoredClientSecret:
        """Return the app's secret in the vault, to be put back."""
        return StoredClientSecret.of(self._place.ledger.vault)

    def store_secret(self, secret: str, base_url: str) -> None:
        """Put the app's secret for this service into the vault. Raises LedgerError."""
        learn_secret(secret)
        self.restore_secret(StoredClientSecret(secret, origin_of(base_url)))

    def restore_secret(self, stored: StoredClientSecret) -> None:
        """Put back what `stored_secret` returned. Raises LedgerError."""
        stored.put(self._place.ledger.vault)

    async def address(self, draft: Draft) -> str:
        """Return where the merchant signs in: the consent under way, or a new one."""
        session = await self._opened(draft)
        if self._request is None or not session.consents.waits_for(self._request):
            self._request = session.consents.begin(draft.store)
        return self._request.url

    async def begin(self, draft: Draft, email: str) -> ConsentRequest:
        """Begin the consent of a merchant with this e-mail."""
        session = await self._opened(draft)
        self._request = session.consents.begin(draft.store, email=email or None)
        return self._request

    async def sign_up(self, draft: Draft, form: Mapping[str, str]) -> ConsentRequest:
        """Create a merchant and a store; return the address to continue. Raises BridgeError."""
        if left_out := missing(form):
            raise ConfigError(_("This field is required."), fix=_("Fill it in."), field=left_out[0])
        if faults := faults_of(form):
            text = _("This {what}").format(what=faults[0].text)
            raise ConfigError(text, fix=faults[0].fix, field=faults[0].field)
        session = await self._opened(draft)
        request = request_of(form, location_id=draft.location_id or draft.store, flow_type="")
        self._request = await session.consents.sign_up(draft.store, request)
        return self._request

    async def returned(self, query: Mapping[str, str]) -> CallbackAnswer:
        """Take the merchant's return; the tokens are then in the vault."""
        if self._session is None:
            text = _("This sign-in was not started here.")
            return CallbackAnswer(ok=False, text=text, to=_NOW)
        try:
            await self._session.consents.returned(query)
        except BridgeError as failure:
            return CallbackAnswer(ok=False, text=failure.text, to=_NOW)
        draft = await self._place.draft()
        text = _("Your restaurant is signed in at the ordering service.")
        await self._place.store(draft.passed("sign_in", text))
        return CallbackAnswer(ok=True, text=text, to=_NOW)

    async def stores(self, draft: Draft) -> list[Store]:
        """Return the merchant's stores. Raises BridgeError."""
        return await (await self._opened(draft)).access.client.stores()

    def rename(self, before: str, now: str, base_url: str) -> None:
        """Let the tokens belong to the store's new local name. Raises LedgerError."""
        vault = self._place.ledger.vault
        tokens = VaultTokenStore(vault, before, base_url).load()
        if before != now and tokens is not None:
            VaultTokenStore(vault, now, base_url).save(tokens)
            vault.drop(f"{before}/tokens")

    async def close(self) -> None:
        """Let go of the service."""
        session, self._session, self._request = self._session, None, None
        if session is not None:
            await session.link.close()

    async def _opened(self, draft: Draft) -> _Session:
        """Return the service and app of the draft; one under way continues if they stay."""
        of = (draft.base_url, draft.client_id, draft.redirect_uri, draft.store)
        if self._session is None or self._session.of != of:
            with suppress(BridgeError):
                await self.close()
            place = self._place
            link = ServiceLink(draft.base_url, self.app(draft), clock=place.clock)
            access = link.store(VaultTokenStore(place.ledger.vault, draft.store, draft.base_url))
            consents = ConsentFlow(
                link, lambda _store: access.tokens, place.ledger, clock=place.clock
            )
            self._session = _Session(of, link, access, consents)
        return self._session

    def _secret(self, base_url: str) -> str:
        """Return the app's secret, where it is for the service at `base_url`. Raises ConfigError.

        A secret that is stored here goes to no other address: whoever may type one on the page
        could have it sent to a machine of theirs.
        """
        _text, document = self._place.document()
        service = document.get("service", {})
        configured = origin_of(str(service.get("base_url") or base_url))
        stored = self.stored_secret()
        reference = service.get("client_secret")
        origin = (stored.origin if stored.secret is not None else None) or configured
        if (stored.secret is None and reference is None) or origin != origin_of(base_url):
            raise ConfigError(
                _("The bridge does not have the app's secret for this service."),
                fix=_("Enter it under “Sign-in”."),
            )
        if stored.secret is not None:
            return stored.secret
        try:
            source = TypeAdapter[SecretStr | SecretSource](Secret).validate_python(reference)
        except ValidationError:
            raise ConfigError(
                _("client_secret in the file is not right."), fix=_("Enter it under “Sign-in”.")
            ) from None
        base_dir = self._place.base_dir
        found = resolve_secret(
            source, key="service.client_secret", base_dir=base_dir, from_vault=lambda: None
        ).get_secret_value()
        learn_secret(found)
        return found


_WITHIN_S = 10.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def choice_of(draft: Draft) -> dict[str, Any]:
    """Return what the form holds, without asking the service."""
    typed = ("store", "store_id", "location_id", "currency", "hours_file")
    return {**{name: getattr(draft, name) for name in typed}, "stores": [], "trouble": None}


async def choice_among(draft: Draft, sign_in: SignIn) -> dict[str, Any]:
    """Return what the form holds, with the merchant's stores, or the trouble with them."""
    rows: list[dict[str, str]] = []
    trouble = None
    try:
        async with asyncio.timeout(_WITHIN_S):
            stores = await sign_in.stores(draft)
    except BridgeError as failure:
        trouble = {"text": failure.text, "fix": failure.fix}
    except TimeoutError:
        trouble = {"text": _("The service does not answer."), "fix": _("Reload this page.")}
    else:
        names = ("store_id", "name", "status", "integration_status")
        rows = [{name: getattr(each, name) or "" for name in names} for each in stores]
        if not rows:
            trouble = {
                "text": _("You have no store at the ordering service yet."),
                "fix": _("Create one there, then reload this page."),
            }
    return {**choice_of(draft), "stores": rows, "trouble": trouble}


async def chosen(draft: Draft, sign_in: SignIn, *, store: str, store_id: str) -> Draft:
    """Return the draft with the store that was chosen. Raises ConfigError, ServiceError."""
    stores = await sign_in.stores(draft)
    found = next((each for each in stores if each.store_id == store_id), None)
    if found is None:
        raise ConfigError(
            _("You have no store with this id."),
            fix=_("Choose one from the list."),
            field="store_id",
        )
    name = store.strip() or draft.store
    if not _NAME.fullmatch(name):
        raise ConfigError(
            _("“{name}” cannot be a short name.").format(name=name[:63]),
            fix=_("Use lower-case letters, digits, - and _."),
            field="store",
        )
    text = _("{name}, in {currency}.").format(name=found.name or store_id, currency=draft.currency)
    return draft.passed("store", text, store=name, store_id=store_id)


def described(
    draft: Draft, base_dir: Path, *, location_id: str, currency: str, hours_file: str
) -> Draft:
    """Return the draft with a store's answers except its id. Raises ConfigError."""
    location, hours = location_id.strip() or draft.location_id or draft.store, hours_file.strip()
    if len(location) > _LONGEST or not location.isprintable():
        raise ConfigError(_("This number is too long."), fix=_("Shorten it."), field="location_id")
    if hours and (is_own(base_dir / hours) or not (base_dir / hours).is_file()):
        raise ConfigError(
            _("The opening-hours file {path} does not exist.").format(path=hours),
            fix=_("Copy config/hours.toml there and write your hours into it; see docs/store.md."),
            field="hours_file",
        )
    currency = currency_in(currency)
    return draft.with_answers(location_id=location, currency=currency, hours_file=hours)


_LONGEST = 200


def currency_in(text: str) -> str:
    """Return the code of a currency that was typed. Raises ConfigError, with what was meant."""
    code = text.strip().upper()
    if fix := currency_fix(code):
        raise ConfigError(
            _("“{text}” is not a currency code.").format(text=text.strip()[:40]),
            fix=fix,
            field="currency",
        )
    return code


_MOST_TRIES = 25  # items that need a choice are not to be had without one


def storefront_of(base_url: str, store_id: str) -> str:
    """Return where guests order at the practice service."""
    return f"{_origin(base_url)}/store/{quote(store_id, safe='')}"


def _origin(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def _session() -> aiohttp.ClientSession:
    within = aiohttp.ClientTimeout(total=_WITHIN_S)
    return aiohttp.ClientSession(timeout=within, trust_env=False)


async def place_order(base_url: str, store_id: str) -> Finding:
    """Order one of the first item that can be ordered by itself."""
    origin = _origin(base_url)
    storefront = storefront_of(base_url, store_id)
    try:
        async with _session() as session:
            items = await _on_sale(session, origin, store_id)
            for external_id in items[:_MOST_TRIES]:
                line = {"external_id": external_id, "quantity": 1}
                body = {"store_id": store_id, "items": [line]}
                async with session.post(f"{origin}/_control/orders", json=body) as answer:
                    if answer.status < 300:
                        return done(_("Order placed. Watch it arrive below."))
    except (aiohttp.ClientError, TimeoutError, KeyError, TypeError, ValueError):
        return not_done(
            _("The service on this machine does not take practice orders from this page."),
            _("Order at its storefront: {url}"),
            url=storefront,
        )
    return not_done(
        _("Nothing on the storefront can be ordered yet."),
        _("Wait until the menu has arrived, or order at {url}"),
        url=storefront,
    )


async def _on_sale(session: aiohttp.ClientSession, origin: str, store_id: str) -> list[str]:
    async with session.get(f"{origin}/_control/state") as answer:
        state: Any = await answer.json()
    links = state["stores"][store_id]["integrations"]
    return [
        str(external_id)
        for link in links
        for external_id, item in link["items"].items()
        if item["available"]
    ]
