"""The overview as data: the status document with the chain, the day and what waits. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.day import Day, WaitingOrder
from tillbridge.model.instant import to_iso
from tillbridge.status.document import BridgeFacts, Evidence

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


def overview(
    document: Mapping[str, Any], facts: BridgeFacts, day: Day, now_ms: int
) -> dict[str, Any]:
    """Return the status document and `chain`, `waiting`, `day`; of `day` instants are ms."""
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


def _why(order: WaitingOrder, document: Mapping[str, Any]) -> str:
    """Return why an order waits: what its last try said, or what holds it up before the first."""
    if order.failure:
        tries = ngettext("{n} try", "{n} tries", order.attempts).format(n=order.attempts)
        return f"{order.failure} ({tries})"
    store = document["stores"].get(order.store)
    if store is not None and store["pos"]["online"] is False:
        return str(store["pos"]["detail"]) or _("the till takes no orders now")
    return _("on its way")


def _chain(
    name: str,
    store: Mapping[str, Any],
    document: Mapping[str, Any],
    facts: BridgeFacts,
    day: Day,
) -> list[dict[str, Any]]:
    evidence = Evidence(facts.facts.get("addresses"), name)
    address = _address(facts, name)
    reached = evidence.of_public_address(address.get("ok_at"))
    delivered = evidence.of_delivery(day.last_delivery.get(name))
    seen = facts.pos_seen.get(name)
    ticket = day.last_ticket.get(name)
    links = [
        _link("service", _("Service"), store["service"]["last_contact_at"], _("answered")),
        _link(
            "address",
            _("Public address"),
            _later(reached, delivered),
            _("reached") if reached is not None else _("a delivery came"),
            note="" if delivered or reached is not None else _("no delivery has come yet"),
        ),
        _link(
            "bridge",
            _("Bridge"),
            to_iso(facts.started_at) if facts.running and facts.started_at is not None else None,
            _("started"),
        ),
        _link("pos", _("Till"), _later(seen, ticket), _("answered"), note=_adapter(store)),
    ]
    if store["pos"]["online"] is False:
        links[3]["state"] = "down"
    for problem in document["problems"]:
        if problem["store"] not in {"", name}:
            continue
        for link in links:
            if problem["code"].startswith(_LINKS[link["key"]]):
                worse = "down" if "down" in {problem["severity"], link["state"]} else "warning"
                link["state"] = worse
                link["codes"].append(problem["code"])
    return links


def _adapter(store: Mapping[str, Any]) -> str:
    name = store["pos"]["adapter"]
    return _("adapter {name}").format(name=name) if name else ""


def _link(key: str, name: str, at: str | None, what: str, *, note: str = "") -> dict[str, Any]:
    state = "unknown" if at is None else "ok"
    return {
        "key": key,
        "name": name,
        "at": at,
        "what": what,
        "note": note,
        "state": state,
        "codes": [],
    }


def _address(facts: BridgeFacts, store: str) -> Mapping[str, Any]:
    """Return what probing the public address from outside found; empty where nobody probes it."""
    known = facts.stores.get(store)
    told = known.facts.get("public_address") if known is not None else None
    told = told or facts.facts.get("public_address")
    return told if isinstance(told, Mapping) else {}


def _later(*instants: object) -> str | None:
    known = [at for at in instants if isinstance(at, int)]
    return to_iso(max(known)) if known else None


def _spans(problems: Sequence[OpenProblem], day: Day, now_ms: int) -> list[dict[str, Any]]:
    spans = [
        {
            "code": each.code,
            "store": each.store,
            "since": each.since,
            "until": each.until,
            "ended": True,
        }
        for each in day.past
        if _is_span(each.code)
    ]
    spans += [
        {
            "code": each.code,
            "store": each.store,
            "since": each.since,
            "until": now_ms,
            "ended": False,
        }
        for each in problems
        if _is_span(each.code)
    ]
    return sorted(spans, key=lambda each: (each["since"], each["code"]))


def _is_span(code: str) -> bool:
    return code in _SPANS or code.startswith(_SPAN_STARTS)
