"""The overview as data: the status document with the chain, the charts and what waits. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import Any, TypedDict

from tillbridge.core.i18n import N_, _, ngettext
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.day import Day, WaitingOrder
from tillbridge.ledger.figures import Totals, sales_of
from tillbridge.model.instant import to_iso
from tillbridge.orders.sentences import failure_text
from tillbridge.status.document import BridgeFacts, Evidence
from tillbridge.status.views import PosView, ProblemView, StatusDocument, StoreView

# While one of these is open, no order can go that way; what the page calls it.
OUTAGES: Mapping[str, str] = {
    "bridge.stopped": N_("Bridge not running"),
    "integration.missing": N_("Store not connected"),
    "ledger.unwritable": N_("Orders could not be saved"),
    "pos.offline": N_("Till offline"),
    "receiver.certificate_expired": N_("Certificate expired"),
    "service.unreachable": N_("Ordering service unreachable"),
    "store.paused": N_("Ordering paused"),
    "reach.": N_("Public address unreachable"),
    "public_address.": N_("Public address unreachable"),
}
# Problems that sit at a link of the chain, by the beginning of their codes.
_LINKS = {
    "service": ("service.", "consent.", "integration."),
    "address": ("reach.", "public_address.", "receiver."),
    "bridge": ("bridge.", "ledger."),
    "pos": ("pos.", "adapter."),
}
# A link's name, and its state in words: while it works, is down, is not known yet. One that needs a
# look is the same for all.
LINKS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "service": (
        N_("Ordering service"),
        {"ok": N_("Connected"), "down": N_("Not connected"), "unknown": N_("Connecting")},
    ),
    "address": (
        N_("Public address"),
        {
            "ok": N_("Reachable"),
            "down": N_("Unreachable"),
            "unknown": N_("Ready for the first order"),
        },
    ),
    "bridge": (
        N_("Bridge"),
        {"ok": N_("Running"), "down": N_("Not working"), "unknown": N_("Starting")},
    ),
    "pos": (N_("Till"), {"ok": N_("Online"), "down": N_("Offline"), "unknown": N_("Connecting")}),
}


class ChainLink(TypedDict):
    """A link between service and till.

    `state` is ok, warning, down or unknown, `since` when it has been so (None: not known), `at`
    when it was last seen to work; `latency_ms` how long it took then; `codes` those of its
    problems.
    """

    key: str
    state: str
    since: str | None
    at: str | None
    latency_ms: int | None
    codes: list[str]


class Span(TypedDict):
    """A time in which no order could go that way; instants are ms."""

    code: str
    store: str
    since: int
    until: int
    ended: bool


class Bar(TypedDict):
    """An hour or a day from `from_ms` on, of all stores; revenue in minor units by currency."""

    from_ms: int
    orders: int
    cancelled: int
    revenue: dict[str, int]


class Charts(TypedDict):
    """The last hours and days, in the time zone of the first store; `until_ms` ends the last."""

    hours: list[Bar]
    days: list[Bar]
    outages: list[Span]
    until_ms: int
    zone: tzinfo | None


class Overview(StatusDocument):
    """The status; the chain by store; `waiting` orders of `ledger.day`, and `why`.

    `practice`: orders come from a practice service.
    """

    practice: bool
    chain: dict[str, list[ChainLink]]
    waiting: list[dict[str, Any]]
    charts: Charts


def overview(
    document: StatusDocument, facts: BridgeFacts, day: Day, now_ms: int, *, practice: bool = False
) -> Overview:
    """Return the overview of these facts."""
    return {
        **document,
        "practice": practice,
        "chain": {
            name: _chain(name, store, document, facts, day)
            for name, store in document["stores"].items()
        },
        "waiting": [{**asdict(each), "why": _why(each, document)} for each in day.waiting],
        "charts": _charts(facts, day, now_ms),
    }


def _why(order: WaitingOrder, document: StatusDocument) -> str:
    """Return why an order waits: why its last try failed, or what delays the first one.

    Why a till is offline stands once, with its problem.
    """
    store = document["stores"].get(order.store)
    is_offline = store is not None and store["pos"]["online"] is False
    if is_offline and order.failure.partition(": ")[0] in {"", "offline"}:
        return _("the till is offline")
    if order.failure:
        tries = ngettext("{n} try", "{n} tries", order.attempts).format(n=order.attempts)
        return f"{failure_text(order.failure)} ({tries})"
    return _("on its way")


# -- the chain


def _chain(
    name: str, store: StoreView, document: StatusDocument, facts: BridgeFacts, day: Day
) -> list[ChainLink]:
    """Return each link: when it was seen last, and the earliest since when it can have worked."""
    evidence = Evidence(facts.facts.get("addresses"), name)
    reached = evidence.of_public_address(_address(facts, name))
    delivered = evidence.of_delivery(day.last_delivery.get(name))
    started = to_iso(facts.started_at if facts.running else None)
    service, pos = store["service"], store["pos"]
    seen = _later(facts.pos_seen.get(name), day.last_ticket.get(name))
    links: list[tuple[str, str | None, str | None, int | None]] = [
        ("service", service["last_contact_at"], service["connected_at"], service["latency_ms"]),
        ("address", _later(reached, delivered), None, None),
        ("bridge", started, started, day.handled_ms),
        ("pos", seen, pos["since"], pos["latency_ms"]),
    ]
    problems = [each for each in document["problems"] if each["store"] in {"", name}]
    past = [each for each in day.past if each.store in {"", name}]
    return [
        _link(
            {"key": key, "state": "", "since": since, "at": at, "latency_ms": took, "codes": []},
            [each for each in problems if each["code"].startswith(_LINKS[key])],
            [each.until for each in past if each.code.startswith(_LINKS[key])],
            pos,
        )
        for key, at, since, took in links
    ]


def _link(
    link: ChainLink, here: Sequence[ProblemView], over: Sequence[int], pos: PosView
) -> ChainLink:
    """Fill in how a link is and since when, by the problems open there, and when others ended."""
    is_down = any(each["severity"] == "down" for each in here)
    is_down |= link["key"] == "pos" and pos["online"] is False
    state, since = "unknown", None
    if is_down or here:
        state = "down" if is_down else "warning"
        since = min((each["since"] for each in here), default=pos["since"])
    elif link["at"] is not None:
        state = "ok"
        since = max(filter(None, [_later(*over), link["since"]]), default=None)
    return {**link, "state": state, "since": since, "codes": [each["code"] for each in here]}


def _address(facts: BridgeFacts, store: str) -> Mapping[str, Any]:
    """Return what probing the public address from outside found; empty where nobody probes it."""
    known = facts.stores.get(store)
    found = known.facts.get("public_address") if known is not None else None
    found = found or facts.facts.get("public_address")
    return found if isinstance(found, Mapping) else {}


def _later(*instants: int | None) -> str | None:
    return to_iso(max((at for at in instants if at is not None), default=None))


# -- the charts


def _charts(facts: BridgeFacts, day: Day, now_ms: int) -> Charts:
    counted = (each.sales for name in facts.adapters if (each := facts.figures.get(name)))
    sales = [each for each in counted if each] or [sales_of((), None, now_ms)]
    return {
        "hours": _together([each.hours for each in sales]),
        "days": _together([each.days for each in sales]),
        "outages": _outages(facts.problems, day, now_ms),
        "until_ms": now_ms,
        "zone": sales[0].zone,
    }


def _together(rows: Sequence[Sequence[Totals]]) -> list[Bar]:
    """Return the bars of several stores as those of one; a day is each store's own."""
    bars: list[Bar] = []
    for tallies in zip(*rows, strict=True):
        revenue: Counter[str] = Counter()
        for each in tallies:
            revenue.update(each.revenue)
        bars.append(
            {
                "from_ms": tallies[0].from_ms,
                "orders": sum(each.orders for each in tallies),
                "cancelled": sum(each.cancelled for each in tallies),
                "revenue": dict(revenue),
            }
        )
    return bars


def outage_kind(code: str) -> str:
    """Return the key of `OUTAGES` for a problem's code; "" where orders go their way."""
    if code in OUTAGES:
        return code
    start = code.partition(".")[0] + "."
    return start if start in OUTAGES else ""


def _outages(problems: Sequence[OpenProblem], day: Day, now_ms: int) -> list[Span]:
    spans = [(each.code, each.store, each.since, each.until, True) for each in day.past]
    spans += [(each.code, each.store, each.since, now_ms, False) for each in problems]
    return [
        {"code": kind, "store": store, "since": since, "until": until, "ended": ended}
        for code, store, since, until, ended in sorted(spans, key=lambda each: (each[2], each[0]))
        if (kind := outage_kind(code))
    ]
