"""A store's menu: how it stands, its items now and then, its pushes; pushed and released."""

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom, current_actor
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.problems import OpenProblem
from tillbridge.daemon.rooms import House, StoreRooms
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import item_count, items_by_id, refused_items
from tillbridge.ledger.menu_past import ids_ever, items_then
from tillbridge.ledger.models import Hold, Push
from tillbridge.ledger.pushes import DISMISSED, get_hold, push_page
from tillbridge.ledger.search import find_items, fold, rank_of
from tillbridge.menu.describe import counted
from tillbridge.menu.flow import PlanReport
from tillbridge.menu.report import FIRST_IMPORT
from tillbridge.model.catalogue import Item
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major
from tillbridge.web.ports import Answer

_IN_THE_WAY = (
    "export.unreadable",
    "menu.push_not_allowed",
    "menu.push_failed",
    "menu.held",
    "menu.items_refused",
    "menu.taken_in_part",
)
_PER_PAGE = 50
_PUSHES = 30
_REFUSED_SHOWN = 50


class MenuOperations:
    """The operations."""

    def __init__(
        self, rooms_of: Callable[[str], StoreRooms], house: House, later: Callable[[str], str]
    ) -> None:
        self._rooms_of = rooms_of
        self._ledger = house.ledger
        self._desk = house.desk
        self._later = later

    async def show(self, store: str) -> Answer:
        """Return how the menu stands: what the till says, what the service has, what waits."""
        self._rooms_of(store)

        def read(connection: Connection) -> Answer:
            export = get_fact(connection, store, "export")
            known = export if isinstance(export, Mapping) else {}
            refused = refused_items(connection, store)
            shown = list(refused.items())[:_REFUSED_SHOWN]
            names = items_by_id(connection, store, [key for key, _refusal in shown])
            hold = get_hold(connection, store)
            return {
                "export": {"items": known.get("items"), "read_at": _iso(known.get("read_at"))},
                "accepted": item_count(connection, store),
                "pending": get_fact(connection, store, "menu_pending") or 0,
                "last_synced_at": _iso(get_fact(connection, store, "last_synced_at")),
                "hold": None
                if hold is None
                else _hold(hold, get_fact(connection, store, DISMISSED)),
                "refused": [
                    {
                        "external_id": key,
                        "name": names[key].item.name if key in names else refusal.name,
                        "reason": refusal.reason,
                    }
                    for key, refusal in shown
                ],
                "refused_count": len(refused),
                "first_import": _first(get_fact(connection, store, FIRST_IMPORT)),
            }

        return await self._ledger.read(read)

    async def items(
        self, store: str, *, text: str = "", page: int = 1, at_ms: int | None = None
    ) -> Answer:
        """Return a page of what the storefront has, or had at `at_ms`."""
        currency = self._rooms_of(store).settings.currency
        offset = (max(1, page) - 1) * _PER_PAGE

        def read(connection: Connection) -> Answer:
            if at_ms is None:
                found = find_items(connection, store, text, limit=_PER_PAGE, offset=offset)
                rows = [
                    {
                        "external_id": each.external_id,
                        "name": each.name,
                        "variant": each.variant,
                        "price": to_major(each.price, currency),
                        "on_sale": each.on_sale,
                        "pos_on_sale": each.pos_on_sale,
                    }
                    for each in found.items
                ]
                count, items_count = found.count, found.items_count
            else:
                then = _then(connection, store, text, at_ms)
                count = items_count = len(then)
                rows = [_row(each, currency) for each in then[offset : offset + _PER_PAGE]]
            return {
                "items": rows,
                "count": count,
                "items_count": items_count,
                "page": max(1, page),
                "pages": max(1, -(-count // _PER_PAGE)),
                "currency": currency,
                "at": _iso(at_ms),
            }

        return await self._ledger.read(read)

    async def history(self, store: str, *, before: int | None = None) -> Answer:
        """Return the pushes before that one, newest first."""
        self._rooms_of(store)
        found = await self._ledger.read(
            lambda connection: push_page(connection, store, _PUSHES + 1, before=before)
        )
        return {
            "pushes": [_push(each) for each in found[:_PUSHES]],
            "more": len(found) > _PUSHES,
        }

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now, as JSON and in words."""
        report = await self._rooms_of(store).catalogue.plan_only()
        return {**report.to_json(), "lines": list(report.lines)}

    async def push(self, store: str, *, full: bool) -> Answer:
        """Push now: what differs, or everything."""
        rooms = self._rooms_of(store)
        if rooms.service_store_id is None:
            raise BridgeError(
                _("The store {store} is not connected to the service yet.").format(store=store),
                fix=_("Run: tillbridge connect {store}").format(store=store),
            )
        push = rooms.catalogue.push_full if full else rooms.catalogue.push_again
        return _pushed(await push(), self._open_problem(store))

    async def approve(self, store: str) -> Answer:
        """Release the plan that is held."""
        hold = await self._rooms_of(store).catalogue.approve()
        if hold is None:
            return {"ok": False, "text": _("No menu change waits for approval.")}
        counts = hold.summary.get("counts", {})
        what = ", ".join(text for _kind, text in counted(counts)) or _("no item changes")
        text = self._later(_("The menu change of {since} is released: it {what}."))
        return {
            "ok": True,
            "text": text.format(since=to_iso(hold.since), what=what),
            "counts": dict(counts),
        }

    async def dismiss(self, store: str) -> Answer:
        """Leave the menu as it is: the plan that is held is not offered again."""
        hold = await self._rooms_of(store).catalogue.dismiss(by=current_actor().who)
        if hold is None:
            return {"ok": False, "text": _("No menu change waits for approval.")}
        text = _(
            "The menu change is dismissed: the storefront stays as it is until the till tells "
            "something else."
        )
        return {"ok": True, "text": text}

    def _open_problem(self, store: str) -> OpenProblem | None:
        """Return what stands in the way of the store's menu, the worst first."""
        found = {
            each.code: each
            for each in self._desk.current()
            if each.store == store and each.subject in {"", "menu"}
        }
        return next((found[code] for code in _IN_THE_WAY if code in found), None)


def _pushed(report: PlanReport | None, problem: OpenProblem | None) -> Answer:
    """Tell what came of a push."""
    if problem is not None:
        return {"ok": False, "text": problem.text, "fix": problem.fix}
    if report is None:
        return {
            "ok": False,
            "text": _("The menu was not pushed."),
            "fix": _("See what is wrong with: tillbridge status"),
        }
    if report.calls:
        return {"ok": True, "text": _("The menu is pushed.")}
    return {
        "ok": True,
        "text": _("Nothing had to be pushed: the service has what the till says."),
    }


def _then(connection: Connection, store: str, text: str, at_ms: int) -> list[Item]:
    items = items_then(connection, store, ids_ever(connection, store), at_ms)
    wanted = fold(text.strip()[:60])
    ranked = [
        (rank, fold(item.name), key, item)
        for key, item in items.items()
        if (rank := rank_of(wanted, fold(item.name), key)) is not None
    ]
    return [each[3] for each in sorted(ranked, key=lambda each: each[:3])]


def _row(item: Item, currency: str) -> Answer:
    return {
        "external_id": item.external_id,
        "name": item.name,
        "variant": ", ".join(each.variant_name for each in item.variants),
        "price": to_major(item.price, currency),
        "on_sale": item.available,
        "pos_on_sale": item.available,
    }


def _first(kept: object) -> Answer | None:
    if not isinstance(kept, Mapping):
        return None
    return {"at": _iso(kept.get("at")), "lines": list(kept.get("lines", ()))}


def _hold(hold: Hold, dismissed: object) -> Answer:
    by_category = hold.summary.get("by_category", {})
    gone = None
    if isinstance(dismissed, Mapping) and dismissed.get("digest") == hold.digest:
        gone = {"by": by_whom(dismissed.get("by")), "at": _iso(dismissed.get("at"))}
    return {
        "since": to_iso(hold.since),
        "reasons": list(hold.reasons),
        "counts": dict(hold.summary.get("counts", {})),
        # the items that made it wait, as lines, the worst first
        "suspects": list(hold.summary.get("suspects", ())),
        "suspects_count": hold.summary.get("suspects_count", 0),
        "categories": [
            {
                "name": name,
                "removed": list(changes.get("removed", ())),
                "added": list(changes.get("added", ())),
                "changed": list(changes.get("changed", ())),
            }
            for name, changes in by_category.items()
        ],
        "approved": hold.approved,
        "dismissed": gone,
    }


def _push(push: Push) -> Answer:
    return {
        "id": push.id,
        "kind": push.kind,
        "state": push.state,
        "started_at": to_iso(push.started_at),
        "took_ms": None if push.finished_at is None else max(0, push.finished_at - push.started_at),
        "summary": dict(push.summary),
        "message": push.message,
        "job_id": push.job_id,
    }


def _iso(at_ms: object) -> str | None:
    return to_iso(at_ms) if isinstance(at_ms, int) else None
