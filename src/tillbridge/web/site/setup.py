"""Set-up: from nothing to the first order, each step tested before the next opens.

The form of a step is sent to an action that tests it; what was tested is kept, and at the end one
action shows what changes in bridge.toml and writes it. Everything works without a script.
"""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.web.site.book import Do, Done, Filled, Page, Visit, performs, subject

TITLES: Mapping[str, str] = {
    "service": _("The ordering service"),
    "sign_in": _("Sign-in"),
    "store": _("The store"),
    "adapter": _("The till"),
    "address": _("The public address"),
    "order": _("The first order"),
}
_CHANGEABLE = ("service", "sign_in", "adapter", "address")
_SIGNUP: Mapping[str, str] = {
    "store-name": _("Name of the store, as guests know it"),
    "email": _("E-mail of the merchant, who will sign in with it"),
    "first-name": _("First name"),
    "last-name": _("Last name"),
    "phone": _("Business phone, with the country's code"),
    "street": _("Street and number"),
    "city": _("City"),
    "state": _("State or province"),
    "zip": _("Postal code"),
    "country": _("Country"),
    "locale": _("Language and region (en-US)"),
}


async def _fill(visit: Visit) -> Filled:
    adapter = visit.query.get("adapter", "")
    answer = await visit.perform("setup.show", adapter=adapter)
    arrived: list[Mapping[str, Any]] = []  # the latest orders of the store, the newest first
    if answer["running"]:
        arrived = (await visit.perform("orders.list", store=answer["store"]))["orders"][:3]
    return {
        "setup": answer,
        "titles": TITLES,
        "changeable": _CHANGEABLE if answer["running"] else (*_CHANGEABLE, "store"),
        # Choosing an adapter loads the page again: its form stays in sight.
        "opened": "adapter" if adapter else "",
        "signup": _SIGNUP,
        "arrived": arrived,
    }


async def _service(visit: Visit) -> Done:
    url = visit.form.get("practice") or visit.form.get("base_url", "")
    return Done.of(await visit.perform("setup.service", base_url=url))


async def _allow(visit: Visit) -> Done:
    return _to_open(await visit.perform("setup.allow", email=visit.form.get("email", "")))


async def _sign_up(visit: Visit) -> Done:
    form = {name: visit.form.get(name, "") for name in _SIGNUP}
    return _to_open(await visit.perform("setup.sign_up", form=form))


def _to_open(answer: Mapping[str, Any]) -> Done:
    return Done(
        str(answer["text"]),
        fix=_("Open it on this machine: the answer comes back to it."),
        link=str(answer["url"]),
        link_text=_("Open the ordering service's page"),
    )


def _trying(operation: str) -> Do:
    """Return what tries an adapter with the options of its form."""
    prefix = "option-"

    async def do(visit: Visit) -> Done:
        options = {
            name.removeprefix(prefix): text
            for name, text in visit.form.items()
            if name.startswith(prefix)
        }
        adapter = visit.form.get("adapter", "")
        return Done.of(await visit.perform(operation, adapter=adapter, form=options))

    return do


SUBJECT = subject(
    Page("/setup", _("Set-up"), "setup.html", _fill, role=Role.TECHNICIAN),
    performs("/setup/service", _("Test it"), "setup.service", do=_service),
    performs("/setup/sign-in", _("Test it"), "setup.sign_in"),
    performs("/setup/allow", _("Let the merchant allow it"), "setup.allow", do=_allow),
    performs("/setup/sign-up", _("Sign the merchant up"), "setup.sign_up", do=_sign_up),
    performs("/setup/store", _("This is the store"), "setup.choose"),
    performs("/setup/till", _("Try it"), "setup.till", do=_trying("setup.till")),
    performs("/setup/orders", _("Try it"), "setup.orders", do=_trying("setup.orders")),
    performs("/setup/address", _("Test it"), "setup.address"),
    performs("/setup/write", _("Write it and start"), "setup.write"),
    performs("/setup/forget", _("Forget what is not written"), "setup.forget"),
    performs("/setup/order", _("Place a practice order"), "setup.order"),
    home="/setup",
)
