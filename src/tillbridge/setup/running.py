"""How far a bridge that runs is set up, read off its own overview. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import _, ngettext
from tillbridge.setup.draft import Finding

_Part = Mapping[str, Any]

_STARTING_S = 15


def findings_of(
    overview: _Part, store: str, *, base_url: str, delivered: bool = False
) -> dict[str, Finding]:
    """Return a finding for each step, for the store of that name.

    `overview` is the status document with its chain (docs/page.md); `delivered`: a signed delivery
    has arrived, of whatever kind.
    """
    part = overview["stores"][store]
    links = {link["key"]: link for link in overview["chain"][store]}
    return {
        "service": _service(links["service"], base_url, overview["bridge"]["uptime_s"]),
        "sign_in": _sign_in(part["service"], store),
        "store": _store(part["service"], store),
        "adapter": _adapter(part, store),
        "address": _address(links["address"], part["service"]),
        "order": _order(part["orders"], delivered=delivered),
    }


def _service(link: _Part, base_url: str, uptime_s: int | None) -> Finding:
    if link["at"] is not None:
        return Finding(done=True, text=_("The service answers at {url}.").format(url=base_url))
    if uptime_s is not None and uptime_s < _STARTING_S:
        return Finding(
            done=False,
            text=_("The bridge is starting. It asks the service at {url}.").format(url=base_url),
        )
    return Finding(
        done=False,
        text=_("The service has not answered at {url} yet.").format(url=base_url),
        fix=_("Look whether this machine is on the internet, and whether base_url is right."),
    )


def _sign_in(service: _Part, store: str) -> Finding:
    left = service["consent_days_left"]
    if left and service["consent"] in {"ok", "ending"}:
        days = ngettext("{n} day", "{n} days", int(left)).format(n=left)
        return Finding(
            done=True, text=_("The merchant allows it, for another {days}.").format(days=days)
        )
    return Finding(
        done=False,
        text=_("The merchant has not allowed this bridge to work for {store}.").format(store=store),
        fix=_("Let the merchant allow it."),
    )


def _store(service: _Part, store: str) -> Finding:
    if service["integrated"]:
        name = service["store_name"] or service["store_id"] or "?"
        text = _("{store} is {name} at the service, and is connected.")
        return Finding(done=True, text=text.format(store=store, name=name))
    return Finding(
        done=False,
        text=_("{store} is not connected at the service.").format(store=store),
        fix=_("Connect it."),
    )


def _adapter(part: _Part, store: str) -> Finding:
    adapter, items = part["pos"]["adapter"], part["menu"]["acknowledged_items"]
    if part["pos"]["online"] is False:
        return Finding(
            done=False,
            text=_("The till is away: {detail}").format(detail=part["pos"]["detail"] or adapter),
            fix=_("Look whether it runs and writes its export, and try its settings below."),
        )
    if items:
        on_sale = ngettext("{n} item", "{n} items", items).format(n=items)
        text = _("{adapter} is read, and the storefront has {items}.")
        return Finding(done=True, text=text.format(adapter=adapter, items=on_sale))
    if part["menu"]["held"]:
        return Finding(
            done=False,
            text=_("The first menu of {store} waits for you: guests have not seen it yet.").format(
                store=store
            ),
            fix=_("Review it on the page Menu, and release it."),
        )
    return Finding(
        done=False,
        text=_("The storefront has no menu of {store} yet.").format(store=store),
        fix=_("See the page Menu for what holds it up."),
    )


def _address(link: _Part, service: _Part) -> Finding:
    if link["state"] == "down":
        return Finding(
            done=False,
            text=_("The public address does not lead here."),
            fix=_("See what is wrong on the overview; tillbridge doctor looks at every link."),
        )
    if link["at"] is not None and service["webhook_url"]:
        text = _("Deliveries reach this bridge at {url}.")
        return Finding(done=True, text=text.format(url=service["webhook_url"]))
    return Finding(
        done=False,
        text=_("Nothing has come through the public address yet."),
        fix=_("Test it, or place an order."),
    )


def _order(orders: _Part, *, delivered: bool) -> Finding:
    count = sum(orders["by_state"].values())
    if count:
        text = ngettext("{n} order has arrived.", "{n} orders have arrived.", count)
        return Finding(done=True, text=text.format(n=count))
    text = (
        _("A signed delivery has arrived, and no order yet.")
        if delivered
        else _("No order has arrived yet.")
    )
    return Finding(done=False, text=text, fix=_("Place a test order."))
