"""Set-up: from nothing to the first order, each step tested before the next opens.

The form of a step is sent to an action that tests it; what was tested is kept, and at the end one
action shows what changes in bridge.toml and writes it. Everything works without a script.
"""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.web.site.book import Action, Done, Filled, Page, Subject, Visit

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
    answer = await visit.control.setup.show(adapter=adapter)
    running = answer["running"]
    steps = [
        {
            **step,
            "number": number,
            "title": TITLES[step["name"]],
            "shown": step["state"] == "open" and step["name"] != "order",
            "changeable": step["state"] == "done"
            and (step["name"] in _CHANGEABLE or (step["name"] == "store" and not running)),
            # Choosing an adapter loads the page again: its form stays in sight.
            "opened": step["name"] == "adapter" and bool(adapter),
        }
        for number, step in enumerate(answer["steps"], 1)
    ]
    return {
        "setup": answer,
        "steps": steps,
        "signup": [{"name": name, "label": label} for name, label in _SIGNUP.items()],
        "arrived": await _arrived(visit, answer) if running else [],
    }


async def _arrived(visit: Visit, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the latest orders of the store, the newest first."""
    found = await visit.perform("orders.list", store=answer["store"])
    return list(found["orders"][:3])


async def _service(visit: Visit) -> Done:
    practice = visit.form.get("practice", "")
    url = practice or visit.form.get("base_url", "")
    return Done.of(await visit.control.setup.service(url))


async def _sign_in(visit: Visit) -> Done:
    form = visit.form
    return Done.of(
        await visit.control.setup.sign_in(form.get("client_id", ""), form.get("client_secret", ""))
    )


async def _allow(visit: Visit) -> Done:
    return _to_open(await visit.control.setup.allow(visit.form.get("email", "")))


async def _sign_up(visit: Visit) -> Done:
    form = {name: visit.form.get(name, "") for name in _SIGNUP}
    return _to_open(await visit.control.setup.sign_up(form))


def _to_open(answer: Mapping[str, Any]) -> Done:
    return Done(
        str(answer["text"]),
        fix=_("Open it on this machine: the answer comes back to it."),
        link=str(answer["url"]),
        link_text=_("Open the ordering service's page"),
    )


async def _choose(visit: Visit) -> Done:
    form = visit.form
    return Done.of(
        await visit.control.setup.choose(
            form.get("store", ""),
            store_id=form.get("store_id", ""),
            location_id=form.get("location_id", ""),
            currency=form.get("currency", ""),
        )
    )


async def _till(visit: Visit) -> Done:
    return Done.of(await visit.control.setup.till(visit.form.get("adapter", ""), _options(visit)))


async def _orders(visit: Visit) -> Done:
    return Done.of(await visit.control.setup.orders(visit.form.get("adapter", ""), _options(visit)))


def _options(visit: Visit) -> dict[str, str]:
    prefix = "option-"
    return {
        name.removeprefix(prefix): text
        for name, text in visit.form.items()
        if name.startswith(prefix)
    }


async def _address(visit: Visit) -> Done:
    form = visit.form
    return Done.of(
        await visit.control.setup.address(
            form.get("listen", ""),
            form.get("public_url", ""),
            anyway=form.get("anyway") == "yes",
        )
    )


async def _write(visit: Visit) -> Done:
    return Done.of(await visit.control.setup.write(visit.form.get("digest", "")))


async def _forget(visit: Visit) -> Done:
    return Done.of(await visit.control.setup.forget())


async def _order(visit: Visit) -> Done:
    return Done.of(await visit.control.setup.order())


def _action(path: str, title: str, audit: str, do: Any) -> Action:  # noqa: ANN401 -- a coroutine function
    return Action(
        f"/setup/{path}", title, audit, Role.TECHNICIAN, do, back="/setup", section="/setup"
    )


SUBJECT = Subject(
    pages=(Page("/setup", _("Set-up"), "setup.html", _fill, role=Role.TECHNICIAN),),
    actions=(
        _action("service", _("Test it"), "setup.service", _service),
        _action("sign-in", _("Test it"), "setup.sign_in", _sign_in),
        _action("allow", _("Let the merchant allow it"), "setup.allow", _allow),
        _action("sign-up", _("Sign the merchant up"), "setup.sign_up", _sign_up),
        _action("store", _("This is the store"), "setup.choose", _choose),
        _action("till", _("Try it"), "setup.till", _till),
        _action("orders", _("Try it"), "setup.orders", _orders),
        _action("address", _("Test it"), "setup.address", _address),
        _action("write", _("Write it and start"), "setup.write", _write),
        _action("forget", _("Forget what is not written"), "setup.forget", _forget),
        _action("order", _("Place a practice order"), "setup.order", _order),
    ),
)
