"""The status as one JSON document: `status --json`, `/api/status`, what the page shows. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tillbridge import compatibility
from tillbridge.core.formats import clock_time, waiting
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.core.problems import PROBLEMS, OpenProblem, Severity
from tillbridge.ledger.figures import StoreFigures, sales_of
from tillbridge.ledger.snapshot import ACKNOWLEDGED, FailedStart, StoreSnapshot, acknowledgement
from tillbridge.model.instant import iso_of, to_iso
from tillbridge.status.views import (
    CommunityView,
    Level,
    MemberView,
    OpeningView,
    ProblemView,
    ServiceView,
    StatusDocument,
    StoreView,
    TablesView,
    Verdict,
)
from tillbridge.stores.closure import StoreClosure, Who, closure_of, from_json

_RANK = {Severity.DOWN: 0, Severity.WARNING: 1}
_DAY_MS = 86_400_000
# While one of these is open guests cannot order, though nothing is broken.
_CLOSED = {
    "integration.removed",
    "store.paused",
    "store.closed_in_till",
    "store.paused_by_staff",
    "store.paused_elsewhere",
}
_NOTHING_ARRIVES_STARTS = ("public_address.", "reach.")
# How a consent stands, by the problem that is open.
_CONSENTS = {
    "consent.missing": "none",
    "consent.revoked": "withdrawn",
    "consent.expired": "ended",
    "consent.ending": "ending",
}
_NOT_INTEGRATED = {"removed", "disabled", "pending", "not_integrated"}
# Problems that keep orders from arriving at all, and how the verdict says why.
_NOTHING_ARRIVES: Mapping[str, str] = {
    "bridge.stopped": _("the bridge is not running"),
    "receiver.all_refused": _("the signature of every delivery is refused"),
    "integration.missing": _("the store is not connected to this bridge"),
    "integration.disabled": _("the ordering service has disabled the store's connection"),
    "integration.pending": _("the store's connection is not active yet"),
    "integration.secret_missing": _("the webhook secret is missing"),
    "ledger.unwritable": _("the database cannot be written"),
    "receiver.certificate_expired": _("the receiver's certificate has expired"),
}

# -- what it is made of


@dataclass(frozen=True, slots=True)
class BridgeFacts:
    """The bridge and its stores at one moment. Instants are ms since the epoch.

    `adapters` names the configured stores, each with its adapter; `stores` is what the ledger
    knows of them. `communities` names the configured ones, each with its id; the ledger has them
    among the stores, by their keys. `pid` and `started_at` count only while the bridge is running,
    `stopped_at` only while it is not. `facts` are those of the bridge itself; `pos_seen` says, by
    store, when the till was last found there, `pos_took_ms` how long that took; `figures`, by
    store, how well its orders go; `tills`, by store, its adapters: `name`, `level`, and `part`
    where it has one of two.
    `failed_start` is the last start, where that failed; `last_delivery_at` of any store.
    """

    version: str
    running: bool
    adapters: Mapping[str, str]
    stores: Mapping[str, StoreSnapshot] = field(default_factory=dict)
    problems: Sequence[OpenProblem] = ()
    pid: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    pos_seen: Mapping[str, int] = field(default_factory=dict)
    pos_took_ms: Mapping[str, int] = field(default_factory=dict)
    communities: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, StoreFigures] = field(default_factory=dict)
    tills: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    failed_start: FailedStart | None = None
    last_delivery_at: int | None = None
    bridges: Mapping[str, MemberView] = field(default_factory=dict)


class Evidence:
    """What was seen of a store's links, which counts only for the address it was seen at.

    `addresses` is the bridge's fact of that name.
    """

    def __init__(self, addresses: object, store: str) -> None:
        known = addresses if isinstance(addresses, Mapping) else {}
        self._since_ms = {
            name: each["since_ms"]
            for name, each in known.items()
            if isinstance(each, Mapping) and isinstance(each.get("since_ms"), int)
        }
        public = known.get("public_url")
        self._public_url = public.get("value") if isinstance(public, Mapping) else None
        self._store_id = f"store_id/{store}"

    def of_service(self, at_ms: object) -> int | None:
        """Return when the service was seen, None for a time before it or the store was this one."""
        return self._counted(at_ms, "base_url", self._store_id)

    def of_public_address(self, found: Mapping[str, Any]) -> int | None:
        """Return when the public address was seen to lead here; None as above.

        The page Set-up tests an address before it is this one: then its own name counts.
        """
        if "url" not in found:
            return self._counted(found.get("ok_at"), "public_url")
        return self._counted(found.get("ok_at")) if found["url"] == self._public_url else None

    def of_delivery(self, at_ms: object) -> int | None:
        """Return when the service delivered through the public address; None as above."""
        return self._counted(at_ms, "public_url", "base_url", self._store_id)

    def _counted(self, at_ms: object, *bound_to: str) -> int | None:
        since = max((self._since_ms.get(name, 0) for name in bound_to), default=0)
        return at_ms if isinstance(at_ms, int) and at_ms >= since else None


def document(facts: BridgeFacts, now_ms: int) -> StatusDocument:
    """Return the document of the contract at `now_ms`; the worst problem comes first."""
    problems = [problem for problem in facts.problems if problem.code in PROBLEMS]
    if not facts.running:
        problems.append(_not_running(facts, now_ms))
    noted = facts.facts.get(ACKNOWLEDGED)
    problems.sort(key=lambda each: (acknowledgement(noted, each) is not None, *_badness(each)))
    known = {name: facts.stores.get(name) or StoreSnapshot() for name in facts.adapters}
    uptime = None
    if facts.running and facts.started_at is not None:
        uptime = max(0, now_ms - facts.started_at) // 1000
    answer: StatusDocument = {
        "verdict": _verdict(problems, noted, known, facts.last_delivery_at, now_ms),
        "problems": [_problem(problem, noted) for problem in problems],
        "stores": {
            name: _store(
                store,
                facts.adapters[name],
                now_ms,
                (facts.pos_seen.get(name), facts.pos_took_ms.get(name)),
                facts.figures.get(name) or StoreFigures(),
                facts.tills.get(name, ()),
                Evidence(facts.facts.get("addresses"), name),
                {each.code for each in problems if each.store == name},
            )
            for name, store in known.items()
        },
        "bridge": {
            "version": facts.version,
            "compatibility": compatibility(),
            "running": facts.running,
            "uptime_s": uptime,
            "pid": facts.pid if facts.running else None,
        },
    }
    if facts.communities:
        answer["communities"] = {
            name: _community(each, facts.stores.get(f"communities/{name}") or StoreSnapshot())
            for name, each in facts.communities.items()
        }
    if facts.bridges:
        answer["bridges"] = dict(facts.bridges)
    return answer


def _badness(problem: OpenProblem) -> tuple[int, bool, int, str]:
    """Return how bad a problem is, the worst first: where nobody can order little else matters."""
    rank = _RANK[problem.kind.severity]
    away = _blocks_orders(problem) or problem.code in _CLOSED
    return rank, not away, problem.since, problem.code


def _not_running(facts: BridgeFacts, now_ms: int) -> OpenProblem:
    """Return why no bridge runs: its last start failed, or nobody has started it."""
    stopped_at = now_ms if facts.stopped_at is None else facts.stopped_at
    failed = facts.failed_start
    if failed is None or failed.at_ms < (facts.stopped_at or 0):
        running = facts.facts.get("running")
        start = running.get("start") if isinstance(running, Mapping) else None
        return OpenProblem("bridge.stopped", "", "", stopped_at, {"start": start} if start else {})
    detail = {"at": clock_time(failed.at_ms, now_ms), "detail": failed.text}
    if failed.fix:
        detail["remedy"] = failed.fix
    since = failed.at_ms if facts.stopped_at is None else facts.stopped_at
    return OpenProblem("bridge.not_started", "", "", since, detail)


def _blocks_orders(problem: OpenProblem) -> bool:
    reached = not problem.code.startswith(_NOTHING_ARRIVES_STARTS)
    down = problem.kind.severity is Severity.DOWN
    return problem.code in _NOTHING_ARRIVES or (down and not reached)


def _verdict(
    problems: Sequence[OpenProblem],
    noted: object,
    stores: Mapping[str, StoreSnapshot],
    last_delivery_at: int | None,
    now_ms: int,
) -> Verdict:
    """Return the verdict: what is worst of that which nobody handles yet; then what is handled."""
    count = sum(store.waiting for store in stores.values())
    since = [s.oldest_waiting_at for s in stores.values() if s.oldest_waiting_at is not None]
    orders = waiting(count, (now_ms - min(since)) / 1000 if since else None)
    if not problems:
        effect = _all_well(stores, now_ms)
        text = joined(" ", filter(None, [effect, orders]))
        return {"level": "ok", "text": text, "handled": False, "effect": effect}
    worst = problems[0]
    if len(problems) == 1 and (until := _pause_ends_at(worst, stores, now_ms)) is not None:
        return _paused_on_purpose(worst, until, orders, now_ms)
    # What says that no order comes is wrong once one has come since.
    came = (
        last_delivery_at is not None
        and last_delivery_at > worst.since
        and (not worst.store or len(stores) == 1)
    )
    text = _sentence(worst) if came else _nothing_arrives(worst, now_ms)
    if worst.store and len(stores) > 1:
        text = f"{worst.store}: {text}"
    level: Level = "down" if worst.kind.severity is Severity.DOWN else "warning"
    by = acknowledgement(noted, worst)
    if by is not None:
        level = "warning"
        text = _("{who} is handling this: {text}").format(who=by["by"], text=text)
    more = len(problems) - 1
    others = ngettext("(And {n} more problem.)", "(And {n} more problems.)", more).format(n=more)
    text = joined(" ", filter(None, [text, others if more else "", orders]))
    effect = ""
    if _blocks_orders(worst) and not came:
        at = clock_time(worst.since, now_ms)
        effect = _("No orders can arrive since {time}.").format(time=at)
    return {"level": level, "text": text, "handled": by is not None, "effect": effect}


def _pause_ends_at(
    problem: OpenProblem, stores: Mapping[str, StoreSnapshot], now_ms: int
) -> int | None:
    """Return when a pause ends that a person began with an end; None for any other problem."""
    if problem.code != "store.paused_by_staff" or problem.store not in stores:
        return None
    until = _closure_in(stores[problem.store].facts).until_ms
    return until if until is not None and until > now_ms else None


def _paused_on_purpose(problem: OpenProblem, until_ms: int, orders: str, now_ms: int) -> Verdict:
    """Return the verdict where all that is open is a pause that ends by itself."""
    effect = _("{who} paused the store until {time}.").format(
        who=problem.detail["by"], time=clock_time(until_ms, now_ms)
    )
    text = joined(" ", filter(None, [effect, orders]))
    return {"level": "warning", "text": text, "handled": True, "effect": effect}


def _all_well(stores: Mapping[str, StoreSnapshot], now_ms: int) -> str:
    """Return that orders are taken, or that the schedule keeps every store closed."""
    closed = [_closure_in(store.facts) for store in stores.values()]
    if not closed or any(each.status == "active" for each in closed):
        return _("Taking orders.")
    ends = [each.until_ms for each in closed if each.until_ms is not None]
    if any(each.who is Who.BUSY for each in closed) and ends:
        return _("Busy mode: guests can order again at {time}.").format(
            time=clock_time(min(ends), now_ms)
        )
    if not ends:
        return _("Closed by the schedule.")
    return _("Closed by the schedule until {time}.").format(time=clock_time(min(ends), now_ms))


def _nothing_arrives(problem: OpenProblem, now_ms: int) -> str:
    """Return the problem as a sentence, which begins with what it means where no order comes."""
    text = _sentence(problem)
    if not _blocks_orders(problem):
        return text
    shown = str(text)
    reason = _NOTHING_ARRIVES.get(problem.code, shown[:1].lower() + shown[1:].rstrip("."))
    return _("No orders can arrive since {time}: {reason}.").format(
        time=clock_time(problem.since, now_ms), reason=reason
    )


def _sentence(problem: OpenProblem) -> str:
    # A list of several things is on lines of its own, which the problem itself shows.
    first = str(problem.text).partition("\n")[0].rstrip(": ")
    return first if first.endswith((".", "!", "?")) else f"{first}."


def _problem(problem: OpenProblem, noted: object) -> ProblemView:
    by = acknowledgement(noted, problem)
    return {
        "code": problem.code,
        "severity": str(problem.kind.severity),
        "store": problem.store,
        "subject": problem.subject,
        "text": problem.text,
        "fix": problem.fix,
        "since": to_iso(problem.since),
        "acknowledged": None if by is None else {"at": to_iso(by["at"]), "by": by["by"]},
    }


def _store(
    store: StoreSnapshot,
    adapter: str,
    now_ms: int,
    pos_seen: tuple[int | None, int | None],  # when, and how long it took (ms)
    figures: StoreFigures,
    tills: Sequence[Mapping[str, str]],
    evidence: Evidence,
    codes: Collection[str],
) -> StoreView:
    held = store.held
    unwanted = _mapping(store.facts.get("menu_dismissed")).get("digest")
    dismissed = held is not None and unwanted is not None and held.digest == unwanted
    if dismissed:
        held = None
    oldest, health = store.oldest_waiting_at, _mapping(store.facts.get("pos_health"))
    return {
        "service": _service(store.facts, now_ms, evidence, codes),
        "pos": {
            "adapter": adapter,
            "online": health.get("online"),
            "since": iso_of(health.get("since_ms")),
            "detail": health.get("detail") or "",
            "last_seen_at": iso_of(pos_seen[0]),
            "latency_ms": pos_seen[1],
            "adapters": [dict(each) for each in tills],
        },
        "menu": {
            "acknowledged_items": store.acknowledged_items,
            "off_sale": figures.off_sale,
            "pending": _pending(store),
            "refused_items": store.refused_items,
            "held": held is not None,
            "dismissed": dismissed,
            "held_reasons": list(held.reasons) if held else [],
            "held_since": to_iso(held.since) if held else None,
            "last_synced_at": iso_of(store.facts.get("last_synced_at")),
        },
        "orders": {
            "waiting": store.waiting,
            "by_state": dict(store.by_state),
            "oldest_waiting_s": None if oldest is None else max(0, now_ms - oldest) // 1000,
            "untold": store.untold,
            "figures": figures.to_json(),
            "today": (figures.sales or sales_of((), None, now_ms)).to_json(),
        },
        "tables": _tables(store),
        "store": _store_part(store.facts, now_ms),
    }


def _tables(store: StoreSnapshot) -> TablesView:
    hold = _mapping(store.facts.get("tables_hold"))
    held = bool(hold) and not hold.get("approved")
    return {
        "active": store.tables,
        "held": held,
        "held_reasons": list(hold.get("reasons", ())) if held else [],
        "held_since": iso_of(hold.get("since")) if held else None,
        "last_synced_at": iso_of(store.facts.get("tables_synced_at")),
        # the names of the tables whose printed QR code is dead
        "codes_changed": list(store.facts.get("tables_dead") or ()),
    }


def _pending(store: StoreSnapshot) -> int:
    """Changes the service has not accepted yet; without a count, the pushes that are under way."""
    counted = store.facts.get("menu_pending")
    return counted if isinstance(counted, int) else store.pushes_running


def _service(
    facts: Mapping[str, Any], now_ms: int, evidence: Evidence, codes: Collection[str]
) -> ServiceView:
    consent = _mapping(facts.get("consent"))
    integration = _mapping(facts.get("integration"))
    closure = _closure_in(facts)
    contact = _mapping(facts.get("service_contact"))
    expires = None if "consent.missing" in codes else consent.get("expires_at")
    left = round(max(0, expires - now_ms) / _DAY_MS, 1) if isinstance(expires, int) else None
    consent_is = _consent(left, codes)
    removed = _mapping(facts.get("integration_removed"))
    secret = _mapping(facts.get("webhook_secret"))
    plan = _mapping(facts.get("integration_plan"))
    # As the service has it: what was accepted, but for what was found otherwise since.
    found = {each["field"]: each["now"] for each in plan.get("changes", ())}
    has = {**integration, **found}
    status = "removed" if removed else integration.get("status")
    old_until = secret.get("old_until_ms")
    return {
        "store_id": facts.get("service_store_id"),
        "store_name": facts.get("service_store_name"),
        # What the ledger knows may be of the service before: none has let the bridge in here.
        "integrated": bool(integration) and status not in _NOT_INTEGRATED and consent_is != "none",
        "integration_status": status,
        "menu_sync_direction": has.get("menu_sync_direction"),
        "webhook_url": has.get("webhook_url"),
        "auto_accept_orders": has.get("auto_accept_orders"),
        "location_id": has.get("external_store_id"),
        "connected_at": iso_of(integration.get("connected_at")),
        "removed_since": iso_of(removed.get("at")),
        "integration_checked_at": iso_of(_mapping(facts.get("integration_checked")).get("at")),
        # what differs from the configuration and is not applied yet, as lines for people
        "pending_changes": list(plan.get("lines", ())),
        "integration_under_way": _mapping(facts.get("integration_intent")).get("kind"),
        "secret_since": iso_of(secret.get("since_ms")),
        "old_secret_until": iso_of(old_until) if (old_until or 0) > now_ms else None,
        "last_contact_at": iso_of(evidence.of_service(contact.get("ok_at"))),
        "latency_ms": contact.get("took_ms"),
        "consent": consent_is,
        "consent_expires_at": iso_of(expires),
        "consent_days_left": 0.0 if consent_is in {"ended", "withdrawn"} else left,
        "paused": closure.status == "inactive",
        "paused_since": iso_of(closure.since_ms),
    }


def _closure_in(facts: Mapping[str, Any]) -> StoreClosure:
    """Return whether the store is open, as the ledger's facts have it."""
    return closure_of(from_json(facts.get("standing")))


def _store_part(facts: Mapping[str, Any], now_ms: int) -> OpeningView:
    """Return `stores.NAME.store` of the status document, from the store's facts."""
    closure = _closure_in(facts)
    state = _mapping(facts.get("standing"))
    settings = _mapping(facts.get("store_settings"))
    tax = _mapping(facts.get("tax"))
    return {
        "status": closure.status,
        "told": state.get("told"),  # what was last sent to the service; None: not known
        **closure.to_json(),
        "next_change_at": iso_of(state.get("next_change_ms")),
        "settings": {
            "pending": list(settings.get("pending", ())),
            "last_sent_at": iso_of(settings.get("sent_at")),
        },
        "hours_today": _hours_today(facts.get("store_hours"), now_ms),
        "tax": {
            "checked_at": iso_of(tax.get("checked_at")),
            "differences": list(tax.get("differences", ())),
        },
    }


def _hours_today(stored: object, now_ms: int) -> list[str] | None:
    """Return today's spans; None if no file has hours."""
    if stored is None:
        return None
    from tillbridge.model.restaurant import hours_from_json, zone_of  # noqa: PLC0415 -- few stores have

    hours = hours_from_json(stored)
    if hours is None:
        return None
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return [str(span) for span in hours.on(now.astimezone(zone_of(hours.timezone)).date())]


def _community(community_id: str, known: StoreSnapshot) -> CommunityView:
    """Return a community's part; `known` is what the ledger has under its key."""
    mirror = _mapping(known.facts.get("mirror"))
    subscription = _mapping(known.facts.get("subscription"))
    hours = _mapping(known.facts.get("hours"))
    return {
        "community_id": community_id,
        "catalogue": {
            "stores": mirror.get("stores", 0),
            "categories": mirror.get("categories", 0),
            "items": mirror.get("items", 0),
            "as_of": mirror.get("as_of"),
            "read_at": iso_of(mirror.get("read_at")),
            "read_whole_at": iso_of(mirror.get("whole_at")),
        },
        "webhook": {
            "webhook_id": subscription.get("webhook_id"),
            "url": subscription.get("url"),
            "events": subscription.get("events", []),
            "checked_at": iso_of(subscription.get("checked_at")),
            "unhandled": known.unhandled,
        },
        "orders": {"by_status": dict(_mapping(known.facts.get("orders")))},
        "hours": {
            store: {"pushed_at": iso_of(_mapping(each).get("pushed_at"))}
            for store, each in hours.items()
        },
    }


def _consent(left: float | None, codes: Collection[str]) -> str:
    """Return how the consent stands: the open problems know more than the calendar."""
    for code, state in _CONSENTS.items():
        if code in codes:
            return state
    if left is None:
        return "none"
    return "ok" if left > 0 else "ended"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
