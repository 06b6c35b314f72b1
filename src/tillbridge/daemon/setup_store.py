"""The store: which of the merchant's it is, and what it is called here."""

import asyncio
import re

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.daemon.setup_sign_in import SignIn
from tillbridge.setup.draft import Draft
from tillbridge.web.ports import Answer

_WITHIN_S = 10.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_SOMETHING = re.compile(r".{1,200}")


def choice_of(draft: Draft) -> Answer:
    """Return what the form holds, without asking the service."""
    return {
        "store": draft.store,
        "store_id": draft.store_id,
        "location_id": draft.location_id,
        "currency": draft.currency,
        "stores": [],
        "trouble": None,
    }


async def choice_among(draft: Draft, sign_in: SignIn) -> Answer:
    """Return what the form holds, with the merchant's stores, or the trouble with them."""
    told = choice_of(draft)
    try:
        async with asyncio.timeout(_WITHIN_S):
            stores = await sign_in.stores(draft)
    except BridgeError as failure:
        return {**told, "trouble": {"text": failure.text, "fix": failure.fix}}
    except TimeoutError:
        slow = {"text": _("The service does not answer."), "fix": _("Load this page again.")}
        return {**told, "trouble": slow}
    if not stores:
        none = {
            "text": _("The merchant has no store yet."),
            "fix": _("Let the merchant make one at the ordering service; load this again."),
        }
        return {**told, "trouble": none}
    rows = [
        {
            "store_id": each.store_id,
            "name": each.name or "",
            "status": each.status or "",
            "integration_status": each.integration_status or "",
        }
        for each in stores
    ]
    return {**told, "stores": rows}


async def chosen(
    draft: Draft, sign_in: SignIn, *, store: str, store_id: str, location_id: str, currency: str
) -> Draft:
    """Return the draft with the store that was chosen. Raises ConfigError, ServiceError."""
    stores = await sign_in.stores(draft)
    found = next((each for each in stores if each.store_id == store_id), None)
    if found is None:
        raise ConfigError(
            _("The merchant has no such store."), fix=_("Choose one of those listed.")
        )
    name = store.strip()
    text = _("{store} is {name} at the service.").format(store=name, name=found.name or store_id)
    told = draft.passed(
        "store",
        text,
        store=name,
        store_id=store_id,
        store_name=found.name or "",
        location_id=location_id.strip(),
        currency=currency.strip().upper(),
    )
    _check(told)
    return told


def _check(draft: Draft) -> None:
    """Raise ConfigError where what was said of the store cannot stand in the file."""
    checks = (
        (_NAME, draft.store, _("The local name takes small letters, digits, - and _.")),
        (_CURRENCY, draft.currency, _("The currency is three letters, for example EUR.")),
        (_SOMETHING, draft.location_id, _("Your own id of the location is missing.")),
    )
    for pattern, text, words in checks:
        if not pattern.fullmatch(text):
            raise ConfigError(words, fix=_("Correct it."))
