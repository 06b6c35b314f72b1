"""What the status says of a store in words: for the page and for commands."""

from collections.abc import Iterator, Mapping
from typing import Any

from tillbridge.core.formats import money, short_span
from tillbridge.core.i18n import N_, _, joined, ngettext
from tillbridge.ledger.figures import TodayView
from tillbridge.model.instant import from_iso

# Why an order was cancelled, by its reason code; "" where the service gave none.
CAUSES: Mapping[str, str] = {
    "ITEM_OUT_OF_STOCK": N_("sold out"),
    "STORE_CLOSED": N_("store closed"),
    "POS_OFFLINE": N_("till offline"),
    "CAPACITY": N_("kitchen too busy"),
    "PRICE_MISMATCH": N_("price changed"),
    "OTHER": N_("other reasons"),
    "": N_("by the guest or the ordering service"),
}


def causes(today: TodayView) -> str:
    """Return why orders were cancelled today, the commonest first: `till offline 2, sold out 1`."""
    counted = sorted(today["cancelled"].items(), key=lambda each: (-each[1], each[0]))
    return joined(
        ", ",
        [
            _("{cause} {n}").format(cause=_(CAUSES.get(code, CAUSES["OTHER"])), n=count)
            for code, count in counted
        ],
    )


def cancelled(today: TodayView) -> int:
    """Return how many orders were cancelled today."""
    return sum(today["cancelled"].values())


def amounts(revenue: Mapping[str, int]) -> str:
    """Return what was sold, by currency; "" where nobody knows it."""
    return joined(", ", [money(amount, currency) for currency, amount in sorted(revenue.items())])


def medians(today: TodayView) -> Iterator[str]:
    """Yield how long it took to the till and until an order was accepted, as far as is known."""
    if today["median_to_till_s"] is not None:
        yield _("{span} to the till").format(
            span=short_span(round(today["median_to_till_s"] * 1000))
        )
    if today["median_to_accept_s"] is not None:
        yield _("{span} until accepted").format(
            span=short_span(round(today["median_to_accept_s"] * 1000))
        )


def today_line(today: TodayView) -> str:
    """Return the day in one line: `12 orders, $180.50; last week by now 10 orders, $150.00`."""
    sold = _sold(today["orders"], amounts(today["revenue"]))
    then = today["last_week"]
    if then is None:
        return sold
    return _("{sold}; last week by this time {then}").format(
        sold=sold, then=_sold(then["orders"], amounts(then["revenue"]))
    )


def _sold(orders: int, amount: str) -> str:
    text = ngettext("{n} order", "{n} orders", orders).format(n=orders)
    return _("{orders}, {amount}").format(orders=text, amount=amount) if amount else text


def store_names(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what people call each store: its name at the service, else its key."""
    stores = document["stores"].items()
    return {key: part["service"]["store_name"] or key for key, part in stores}


def opening_of(key: str, part: Mapping[str, Any], now_ms: int) -> Mapping[str, Any] | None:
    """Return a store of the status document as `opening.html` shows it; None: not connected."""
    store = part.get("store") or {}
    if not part["service"]["integrated"] or not store:
        return None
    until = store["until"]
    return {
        "key": key,
        "name": part["service"]["store_name"] or key,
        "open": store["status"] != "inactive",
        "why": why_closed(store),
        "since": store["since"],
        "until": until,
        "left_s": max(0, from_iso(until) - now_ms) / 1000 if until else None,
        # What a person may end: the till's absence ends by itself.
        "reopens": store["paused_by"] not in {"bridge", "till"},
        "busy": busy_text(store),
        "busy_until": store["busy"]["until"] if store["busy"] else None,
    }


# -- why a store takes no orders, and busy mode

_WHY = {
    "person": N_("Paused by {by}."),
    "somebody else": N_("Somebody closed it at the ordering service."),
    "bridge": N_(
        "Paused by the bridge: the till is offline. The store reopens when the till is back."
    ),
    "till": N_("The till takes no orders now. The store reopens when the till does."),
    "busy mode": N_(
        "Busy mode: the kitchen has all the orders it can take. The store reopens automatically."
    ),
    "schedule": N_("Closed by the schedule."),
}
# The same as one sentence with the reason that was given.
_WHY_AS = {
    "person": N_("Paused by {by}: {reason}."),
    "somebody else": N_("Somebody closed it at the ordering service: {reason}."),
    "schedule": N_("Closed by the schedule: {reason}."),
}
_NOT_STEADY = N_("Paused by the bridge until the till stays connected.")


def why_closed(closure: Mapping[str, Any]) -> str:
    """Return why a store takes no orders (a `ClosureView`); "" where it does."""
    who, reason = closure.get("paused_by"), closure.get("reason") or ""
    if who == "bridge" and reason:
        return f"{_(_NOT_STEADY)} ({reason})"
    if who not in _WHY:
        return ""
    by = closure.get("by") or "?"
    if reason and who in _WHY_AS:
        return _(_WHY_AS[who]).format(by=by, reason=reason.rstrip("."))
    text = _(_WHY[who]).format(by=by)
    return f"{text} ({reason})" if reason and who != "busy mode" else text


def busy_text(closure: Mapping[str, Any]) -> str:
    """Return what busy mode lets through; "" where it is off."""
    busy = closure.get("busy")
    if not busy:
        return ""
    return ngettext(
        "Busy mode: {n} order every {minutes} minutes.",
        "Busy mode: {n} orders every {minutes} minutes.",
        busy["orders"],
    ).format(n=busy["orders"], minutes=busy["minutes"])
