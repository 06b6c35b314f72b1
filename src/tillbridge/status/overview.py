"""The overview as data: the status document with the chain, the day and what waits. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.day import Day, WaitingOrder
from tillbridge.model.instant import to_iso
from tillbridge.status.document import BridgeFacts, Evidence
from tillbridge.status.views import StatusDocument, StoreView

# While one of these is open, no order can go that way: the strip shows it.
_SPANS = (
    "bridge.stopped",
    "integration.missing",
    "ledger.unwritable",
    "pos.offline",
    "receiver.certificate_expired",
    "service.unreachable",
    "store.paused",
)
_SPAN_STARTS = ("reach.", "public_address.")
# Problems that sit at a link of the chain, by the beginning of their codes.
_LINKS = {
    "service": ("service.", "consent.", "integration."),
    "address": ("reach.", "public_address.", "receiver."),
    "bridge": ("bridge.", "ledger."),
    "pos": ("pos.", "adapter."),
}


class ChainLink(TypedDict):
    """A link between service and till: `what` happened last, `at` when; the problems' `codes`."""

    key: str
    name: str
    at: str | None
    what: str
    note: str
    state: str  # ok, warning, down, unknown
    codes: list[str]


class Span(TypedDict):
    """A time in which no order could go that way; instants are ms."""

    code: str
    store: str
    since: int
    until: int
    ended: bool


class DayView(TypedDict):
    """The last 24 hours `from_ms` on; `hours` have `orders` and `failed`."""

    from_ms: int
    hours: list[dict[str, int]]
    spans: list[Span]
    failed_pushes: dict[str, int]


class Overview(StatusDocument):
    """The status; what it is made of by store; `waiting` orders of `ledger.day`, and `why`."""

    chain: dict[str, list[ChainLink]]
    waiting: list[dict[str, Any]]
    day: DayView


def overview(document: StatusDocument, facts: BridgeFacts, day: Day, now_ms: int) -> Overview:
    """Return the overview of these facts."""
    return {
        **document,
        "chain": {
            name: _chain(name, store, document, facts, day)
            for name, store in document["stores"].items()
        },
        "waiting": [{**asdict(each), "why": _why(each, document)} for each in day.waiting],
        "day": {
            "from_ms": day.from_ms,
            "hours": [asdict(each) for each in day.hours],
            "spans": _spans(facts.problems, day, now_ms),
            "failed_pushes": day.failed_pushes,
        },
    }


def _why(order: WaitingOrder, document: StatusDocument) -> str:
    """Return why an order waits: what its last try said, or what holds it up before the first."""
    if order.failure:
        tries = ngettext("{n} try", "{n} tries", order.attempts).format(n=order.attempts)
        return f"{order.failure} ({tries})"
    store = document["stores"].get(order.store)
    if store is not None and store["pos"]["online"] is False:
        return store["pos"]["detail"] or _("the till takes no orders now")
    return _("on its way")


def _chain(
    name: str, store: StoreView, document: StatusDocument, facts: BridgeFacts, day: Day
) -> list[ChainLink]:
    links = [
        ChainLink(key=key, name=title, at=at, what=what, note=note, state="unknown", codes=[])
        for key, title, at, what, note in _last_seen(name, store, facts, day)
    ]
    for link in links:
        if link["at"] is not None:
            link["state"] = "ok"
        if link["key"] == "pos" and store["pos"]["online"] is False:
            link["state"] = "down"
        for problem in document["problems"]:
            if problem["store"] in {"", name} and problem["code"].startswith(_LINKS[link["key"]]):
                is_down = "down" in {problem["severity"], link["state"]}
                link["state"] = "down" if is_down else "warning"
                link["codes"].append(problem["code"])
    return links


def _last_seen(
    name: str, store: StoreView, facts: BridgeFacts, day: Day
) -> Iterator[tuple[str, str, str | None, str, str]]:
    """Yield each link: its key and name, when it was last seen to work, by what; and a note."""
    evidence = Evidence(facts.facts.get("addresses"), name)
    reached = evidence.of_public_address(_address(facts, name))
    delivered = evidence.of_delivery(day.last_delivery.get(name))
    started = facts.started_at if facts.running else None
    adapter = store["pos"]["adapter"]
    yield "service", _("Service"), store["service"]["last_contact_at"], _("answered"), ""
    yield (
        "address",
        _("Public address"),
        _later(reached, delivered),
        _("reached") if reached is not None else _("a delivery came"),
        "" if delivered or reached is not None else _("no delivery has come yet"),
    )
    yield "bridge", _("Bridge"), to_iso(started), _("started"), ""
    yield (
        "pos",
        _("Till"),
        _later(facts.pos_seen.get(name), day.last_ticket.get(name)),
        _("answered"),
        _("adapter {name}").format(name=adapter) if adapter else "",
    )


def _address(facts: BridgeFacts, store: str) -> Mapping[str, Any]:
    """Return what probing the public address from outside found; empty where nobody probes it."""
    known = facts.stores.get(store)
    found = known.facts.get("public_address") if known is not None else None
    found = found or facts.facts.get("public_address")
    return found if isinstance(found, Mapping) else {}


def _later(*instants: int | None) -> str | None:
    return to_iso(max((at for at in instants if at is not None), default=None))


def _spans(problems: Sequence[OpenProblem], day: Day, now_ms: int) -> list[Span]:
    spans = [(each.code, each.store, each.since, each.until, True) for each in day.past]
    spans += [(each.code, each.store, each.since, now_ms, False) for each in problems]
    return [
        {"code": code, "store": store, "since": since, "until": until, "ended": ended}
        for code, store, since, until, ended in sorted(spans, key=lambda each: (each[2], each[0]))
        if code in _SPANS or code.startswith(_SPAN_STARTS)
    ]
