"""A bad evening at a restaurant, for tests that look at pages: everything there is to show.

Texts from outside say `PLANT`; see tests/support/hostile.py.
"""

from dataclasses import replace
from datetime import UTC
from pathlib import Path

from tests.support.fake_control import FakeControl
from tests.support.fake_settings import full_settings
from tests.support.fake_setup import beside_a_bridge, everything_open
from tests.support.hostile import PLANT
from tests.support.sample_menu import differing, menu_page
from tillbridge.core.problems import PROBLEMS, OpenProblem
from tillbridge.diagnostics.reach import Place, Seen, guidance
from tillbridge.ledger.day import DAYS, HOUR_MS, Day, WaitingOrder
from tillbridge.ledger.figures import (
    SPANS,
    Figures,
    OrderCourse,
    StoreFigures,
    Times,
    sales_of,
)
from tillbridge.ledger.models import Delivery, LogEntry, OrderRow, PastProblem, TicketState
from tillbridge.ledger.snapshot import Held, StoreSnapshot
from tillbridge.menu.browse import PER_PAGE
from tillbridge.model.instant import day_of, to_iso
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.sentences import timeline
from tillbridge.orders.views import log_view, order_view, possible_actions
from tillbridge.stores.closure import ClosureReasons, Pause, to_json

_MINUTE = 60_000


def busy(control: FakeControl, text: str = PLANT) -> None:
    """Fill a `FakeControl`; `text` stands where text from outside would."""
    now = control.now_ms
    problems = (
        OpenProblem("pos.offline", "main", "", now - 4 * _MINUTE, {"detail": text}),
        OpenProblem(
            "order.not_written", "main", text, now - _MINUTE, {"order": text, "detail": text}
        ),
        OpenProblem("menu.held", "main", "menu", now - HOUR_MS, {"detail": text}),
        OpenProblem("consent.ending", "main", "", now - 2 * HOUR_MS, {"left": "33 hours"}),
    )
    store = StoreSnapshot(
        waiting=2,
        oldest_waiting_at=now - 3 * _MINUTE,
        by_state={"accepted": 131, "cancelled": 2},
        acknowledged_items=1204,
        held=Held(now - HOUR_MS, (text,)),
        facts={
            "pos_health": {"online": False, "since_ms": now - 4 * _MINUTE, "detail": text},
            "service_contact": {"ok_at": now - 20_000},
            "consent": {"expires_at": now + 33 * HOUR_MS},
            "integration": {"status": "active"},
            "last_synced_at": now - HOUR_MS,
            "service_store_id": "st_main",
            "standing": to_json(
                ClosureReasons(
                    person=Pause(now - HOUR_MS, now + HOUR_MS, text, text),
                    service_status="inactive",
                )
            ),
            "tax": {"checked_at": now - HOUR_MS, "differences": [text]},
            "store_settings": {"pending": [text], "sent_at": now - HOUR_MS},
        },
    )
    control.facts = replace(
        control.facts,
        problems=problems,
        stores={"main": store, "communities/hall": _hall(now)},
        communities={"hall": "com_1"},
        started_at=now - 72 * HOUR_MS,
        pos_seen={"main": now - 4 * _MINUTE},
        figures={"main": figures(now)},
        pos_took_ms={"main": 3},
    )
    control.day = _day(now, text)
    control.tables.rows = [
        {
            "external_id": "t1",
            "name": text,
            "zone": text,
            "seats": 4,
            "qr_url": "https://order.example/t/1",
            "code": "c1",
            "print_again": True,
        },
        {
            "external_id": "t2",
            "name": text,
            "zone": "",
            "seats": None,
            "qr_url": "",
            "code": "",
            "print_again": False,
        },
    ]
    control.tables.held = [text]
    control.tables.lines = [text]
    control.store.lines = [text]
    control.store.differences = [text]
    fill_orders(control, text)
    fill_board(control, text)
    fill_menu(control, text)
    fill_diagnostics(control, text)
    fill_audit(control, text)
    fill_community(control, text)
    fill_fleet(control, text)
    control.setup.shown = everything_open(text)
    full_settings(control.settings, text)
    control.menu.planned |= {"kind": "full", "held": [text], "lines": [text, text]}
    fill_reach(control, text)


def _day(now: int, text: str) -> Day:
    day = Day(now - DAYS * 24 * HOUR_MS, handled_ms=11)
    day.past.append(
        PastProblem(
            code="service.unreachable",
            store="main",
            subject="",
            since=now - 9 * HOUR_MS,
            until=now - 8 * HOUR_MS,
        )
    )
    day.waiting.extend(
        [
            WaitingOrder("main", text, text, now - 3 * _MINUTE, 2, text),
            WaitingOrder("main", "ord_2", "A-105", now - _MINUTE, 0, ""),
        ]
    )
    day.last_delivery["main"] = now - _MINUTE
    day.last_ticket["main"] = now - 5 * _MINUTE
    return day


def fill_orders(control: FakeControl, text: str = PLANT) -> None:
    """Fill the pages of orders: one of each kind, and the first of them whole."""
    now = control.now_ms
    row = OrderRow(
        store="main",
        order_id=text,
        received_at=now - 3 * _MINUTE,
        payload="{}",
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
        ticket=TicketState.WRITING,
        order_number=text,
        placed_at=now - 3 * _MINUTE - 900,
        attempts=4,
        last_failure=text,
    )
    done = row.replace(
        order_id="ord_2",
        order_number="A-103",
        received_at=now - 9 * _MINUTE,
        ticket=TicketState.WRITTEN,
        ticket_reference=text,
        written_at=now - 9 * _MINUTE + 700,
        desired_state=OrderState.READY,
        service_state=OrderState.READY,
        last_failure="",
    )
    cancelled = done.replace(
        order_id="ord_3",
        order_number="A-102",
        desired_state=OrderState.CANCELLED,
        service_state=OrderState.CANCELLED,
        reason_code=ReasonCode.ITEM_OUT_OF_STOCK,
        message=text,
        closed_at=now - 8 * _MINUTE,
    )
    handled = LogEntry(
        at=now - _MINUTE,
        event="order.handled",
        detail={"by": f"page:{text}", "how": "typed"},
        store="main",
        order_id="ord_1",
    )
    by_hand = done.replace(order_id="ord_4", order_number="A-101")
    entries = [
        LogEntry(
            at=row.received_at + 40,
            event="order.received",
            detail={"lines": 2},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 50,
            event="order.check_found",
            detail={"unknown_items": [text]},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 900,
            event="order.wait",
            detail={"reason": text},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 64_000,
            event="order.retried",
            detail={"by": f"page:{text}"},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 70_000,
            event="order.untold",
            detail={"call": "accept", "code": text},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 80_000,
            event="order.written",
            detail={"reference": text},
            store="main",
            order_id="ord_1",
        ),
        LogEntry(
            at=row.received_at + 80_900,
            event="order.accepted",
            detail={"ms": 212},
            store="main",
            order_id="ord_1",
        ),
    ]
    worth = {
        "items": 3,
        "total": 2450,
        "currency": "EUR",
        "kind": "dine_in",
        "table": text,
        "dishes": [{"name": text, "quantity": "2"}, {"name": "Cola", "quantity": "?"}],
        "more": 1,
        "day": day_of(now).isoformat(),
    }
    control.orders.rows = [
        {**order_view(row), "new": True, **worth},
        {**order_view(done), "new": False, **worth},
        {**order_view(by_hand, handled), "new": False, **worth},
        {**order_view(cancelled), "new": False, **worth},
    ]
    options = [{"name": text, "quantity": 1, "unit_price": 150}]
    control.orders.whole = {
        **order_view(row),
        "may": {**possible_actions(row)},
        "life": log_view(
            row,
            entries,
            Delivery(
                store="main",
                delivery_id=text,
                event_id="evt_1",
                event_type="order.created",
                received_at=row.received_at,
                handled_at=row.received_at + 40,
                body=b"",
            ),
        ),
        "timeline": timeline(row, entries),
        "guest_text": text,
        "same_number": [
            {"id": text, "store": text, "received_at": to_iso(now - 90 * HOUR_MS), "open": False}
        ],
        "delivery": {"event_id": "evt_1", "delivery_id": text, "received_at": ""},
        "ordered": {
            "lines": [
                {
                    "name": text,
                    "quantity": 2,
                    "unit_price": 950,
                    "external_id": "p1",
                    "variant": None,
                    "options": options,
                    "menu": {"name": f"{text}!", "size": text, "price": 900, "on_sale": False},
                }
            ],
            "total": 2450,
            "currency": "EUR",
            "instructions": text,
            "order_type": "dine_in",
            "kind": "dine_in",
            "table": text,
            "bill": {
                "subtotal": 2200,
                "tax": 190,
                "taxes": [{"name": text, "rate": text, "amount": 190}],
                "delivery_fee": 300,
                "discount": 400,
                "tip": 160,
                "total": 2450,
                "includes_tax": False,
            },
        },
        "order": {"id": text, "customer": {"name": text}, "note": text},
        "community_order": None,
    }


def fill_board(control: FakeControl, text: str = PLANT) -> None:
    """Fill the 86 board: items of each kind that are off sale, and some that are found."""
    now = control.now_ms
    control.items.ends = {"opening_ms": now + 13 * HOUR_MS, "hour_ms": now + HOUR_MS}
    base = {"external_id": text, "name": text, "variant": text, "by": text}
    control.items.stopped = [
        {
            **base,
            "how": "staff",
            "since": to_iso(now - 60_000),
            "until": to_iso(now + 13 * HOUR_MS),
            "reached_at": None,
            "reached_ms": None,
        },
        {
            **base,
            "external_id": "b2",
            "how": "staff",
            "since": to_iso(now - HOUR_MS),
            "until": None,
            "reached_at": to_iso(now - HOUR_MS + 900),
            "reached_ms": 900,
        },
        {
            **base,
            "external_id": "b3",
            "variant": "",
            "how": "till",
            "since": None,
            "until": None,
            "reached_at": None,
            "reached_ms": None,
        },
    ]
    found = {"price": "9.50", "currency": "EUR", "item_id": text, "stopped": False}
    size = {"name": text, "state": "on", "until": None}
    sizes = [
        {**size, "external_id": f"{text}-{number}", "state": state}
        for number, state in enumerate(("on", "hiding", "off", "till", "returning"))
    ]
    control.items.menu = [
        {**base, **found, "on_sale": True, "pos_on_sale": True, "sizes": sizes},
        {**base, **found, "external_id": "b2", "on_sale": False, "pos_on_sale": True},
    ]
    states = ("hiding", "off", "till", "returning")
    control.items.menu += [
        {**base, **found, "external_id": f"b{3 + number}", "on_sale": False, "pos_on_sale": True}
        | {"state": state, "until": to_iso(now + HOUR_MS), "category": text, "category_name": text}
        for number, state in enumerate(states)
    ]


def fill_reach(control: FakeControl, text: str = PLANT) -> None:
    """Fill the page of the ways in, with what the real guidance says of a store called so."""
    place = Place(
        host="store.example.com",
        port=443,
        prefix=f"/{text}",
        https=True,
        named=False,
        listens_on="127.0.0.1",
        at_host="127.0.0.1",
        at_port=8088,
        tls=True,
        certificate=text,
        key=text,
        max_body_bytes=1_048_576,
        config=Path(text),
        store=text,
    )
    control.diagnostics.ways = guidance(place, look_for=lambda name: Seen(name, running=False))


def fill_menu(control: FakeControl, text: str = PLANT) -> None:
    """Fill the pages of the menu: a change that waits, refused items, pushes of each kind."""
    now = control.now_ms
    control.menu.shown = {
        "export": {"items": 49, "read_at": to_iso(now - 30_000)},
        "accepted": 80,
        "pending": 33,
        "last_synced_at": to_iso(now - HOUR_MS),
        "hold": {
            "since": to_iso(now - HOUR_MS),
            "reasons": [text],
            "counts": {"removed": 31, "added": 0, "changed": 2},
            "approved": False,
            "dismissed": None,
        },
        "refused": [{"external_id": text, "name": text, "reason": text}],
        "refused_count": 1,
        "first_import": {"at": to_iso(now - HOUR_MS), "lines": [text, "2 are free: Water"]},
    }
    control.menu.differing = differing(text, reasons=(text,))
    control.menu.page = menu_page(control.menu.differing, text)
    push = {"state": "success", "took_ms": 840, "message": "", "job_id": None}
    control.menu.pushes = [
        {
            **push,
            "id": 4,
            "kind": "availability",
            "summary": {"items": 1},
            "started_at": to_iso(now - 600_000),
        },
        {
            **push,
            "id": 3,
            "kind": "patch",
            "state": "failed",
            "summary": {
                "item": text,
                "details": [
                    {"kind": "changed", "name": text, "fields": ["price"], "was": 950, "price": 990}
                ],
            },
            "message": text,
            "started_at": to_iso(now - HOUR_MS),
        },
        {
            **push,
            "id": 2,
            "kind": "batch",
            "summary": {"add": 1, "update": 2, "delete": 0},
            "started_at": to_iso(now - 2 * HOUR_MS),
        },
        {
            **push,
            "id": 1,
            "kind": "full",
            "summary": {"items": 80},
            "started_at": to_iso(now - 3 * HOUR_MS),
        },
    ]
    row = {"external_id": text, "name": text, "variant": text, "price": "9.50"}
    control.menu.rows = [
        {**row, "on_sale": True, "pos_on_sale": True},
        {**row, "external_id": "b2", "on_sale": False, "pos_on_sale": True},
        {**row, "external_id": "b3", "on_sale": False, "pos_on_sale": False},
    ]


def crowded(control: FakeControl, text: str = PLANT) -> None:
    """Fill a `FakeControl` with more of everything than any page shows at once."""
    busy(control, text)
    now = control.now_ms
    problems = [
        OpenProblem(code, "main", text, now - place * _MINUTE, {"detail": text, "order": text})
        for place, code in enumerate(PROBLEMS)
    ]
    names = ("main", *(f"store-{number}" for number in range(2, 6)))
    known = control.facts.stores
    control.facts = replace(
        control.facts,
        problems=tuple(problems),
        adapters=dict.fromkeys(names, "folder"),
        stores={
            **dict.fromkeys(names, known["main"]),
            "communities/hall": known["communities/hall"],
        },
        figures=dict.fromkeys(names, control.facts.figures["main"]),
    )
    control.practice = True
    control.day.waiting[:] = [
        WaitingOrder("main", f"ord_{number}", f"{text} {number}", now - _MINUTE, 2, text)
        for number in range(50)
    ]
    control.orders.rows = [{**control.orders.rows[0], "id": f"o{n}"} for n in range(120)]
    control.orders.whole["life"] = control.orders.whole["life"] * 20
    control.items.menu = [{**control.items.menu[0], "external_id": f"p{n}"} for n in range(120)]
    control.items.stopped = [
        {**control.items.stopped[n % 3], "external_id": f"b{n}"} for n in range(60)
    ]
    control.menu.rows = [{**control.menu.rows[n % 3], "external_id": f"p{n}"} for n in range(50)]
    control.menu.pushes = [{**control.menu.pushes[n % 4], "id": n} for n in range(30)]
    control.menu.differing = differing(text, reasons=(text,), count=3000)
    control.menu.page = menu_page(control.menu.differing, text, count=PER_PAGE)
    control.menu.page |= {"pages": 556, "items": 20_000, "sizes": 20_000}
    control.menu.under_way |= {"phase": "sending", "since": to_iso(now), "done": 9, "total": 3000}
    control.setup.shown = beside_a_bridge(text)
    control.menu.shown["refused"] = control.menu.shown["refused"] * 50
    control.menu.shown["refused_count"] = 1000
    control.menu.planned |= {
        "kind": "full",
        "held": [text],
        "lines": [f"- {text}"] * 1200,
    }
    control.tables.rows = [
        {**control.tables.rows[n % 2], "external_id": f"t{n}"} for n in range(80)
    ]


# Orders of an evening that ends now, by the hour, and those of the days before.
_BY_THE_HOUR = (0, 0, 1, 0, 0, 0, 0, 0, 2, 5, 9, 14, 12, 6, 3, 4, 8, 15, 22, 18, 11, 5, 2, 1)
_BY_THE_DAY = (118, 92, 0, 101, 124, 163, 181)


def figures(now: int) -> StoreFigures:
    """The figures of a store that has sold for more than a week."""
    week = Figures(812, Times(0.64, 1.9, 4.2, 811), Times(0.98, 65.4, 90.0, 811), 4, 1)
    courses = [
        _course(now - (len(_BY_THE_HOUR) - hour) * HOUR_MS + number, number + hour)
        for hour, count in enumerate(_BY_THE_HOUR)
        for number in range(count)
    ]
    courses += [
        _course(now - (len(_BY_THE_DAY) - day + 1) * 24 * HOUR_MS + 60_000 * number, number)
        for day, count in enumerate(_BY_THE_DAY)
        for number in range(count)
    ]
    sales = sales_of(courses, UTC, now, now - 90 * 24 * HOUR_MS)
    return StoreFigures(dict.fromkeys(SPANS, week), sales, off_sale=3)


def _course(received_at: int, number: int) -> OrderCourse:
    lost = number % 19 == 18
    return OrderCourse(
        received_at,
        None if lost else received_at + 640,
        None if lost else received_at + 980,
        cancelled=lost,
        reason_code=("POS_OFFLINE", "ITEM_OUT_OF_STOCK")[number % 2] if lost else None,
        amount=1450 + 135 * (number % 11),
        currency="EUR",
    )


def fill_diagnostics(control: FakeControl, text: str = PLANT) -> None:
    """An examination with every kind of result, a log, and a bundle that is ready."""
    now = to_iso(control.now_ms - _MINUTE)
    told = control.diagnostics
    told.began_at = now
    told.report = {
        "ok": False,
        "level": "failed",
        "text": "1 check failed.",
        "counts": {"ok": 2, "warning": 1, "failed": 1, "skipped": 1},
        "results": [
            _result("bridge", "", "ok", "The bridge is running."),
            _result("dns.service", "", "skipped", text),
            _result("consent", "main", "warning", text, "Connect again."),
            _result("till", "main", "failed", text, text),
            _result("disk", "", "ok", "3 GB are free."),
        ],
        "done": True,
        "running": [],
        "took_ms": 4210,
    }
    told.lines = [
        {"at": now, "level": "error", "event": "pos.failed", "store": "main", "detail": text,
         "exception": f"Traceback\n  {text}"},
        {"at": now, "level": "warning", "event": "order.late", "order": text},
        {"at": now, "level": "info", "event": "bridge.ready", "stores": ["main"], "logger": text},
    ]  # fmt: skip
    told.bundled = {
        "state": "ready",
        "name": "tillbridge-support-1.zip",
        "made_at": now,
        "size": 51_200,
        "files": [{"name": "log.jsonl", "size": 40_000, "first": [text, text]}],
    }


def fill_audit(control: FakeControl, text: str = PLANT) -> None:
    """A trail of more than one page, the newest first."""
    control.audit.entries = [
        {
            "id": number,
            "at": to_iso(control.now_ms - (60 - number) * _MINUTE),
            "who": f"page:{text}" if number % 2 else "bridge",
            "role": "staff" if number % 2 else "",
            "action": "order.done" if number % 2 else "menu.push",
            "store": "main",
            "target": text,
            "target_name": text,
            "detail": {"ok": number % 3 != 0, "how": text, "count": number},
            "hash": f"{number:064x}",
        }
        for number in range(60, 0, -1)
    ]


def fill_community(control: FakeControl, text: str = PLANT) -> None:
    """A food hall: two orders over several stores, and two items off sale there."""
    now = control.now_ms
    word = {"item_id": "it_1", "name": text, "at": to_iso(now - HOUR_MS), "by": text}
    control.communities.off = [
        {**word, "until": to_iso(now + HOUR_MS), "told_at": to_iso(now - _MINUTE)},
        {**word, "item_id": text, "name": "", "until": None, "told_at": None},
    ]
    part = {
        "order_id": "ord_1", "store_id": "st_main", "store_name": text, "status": "ready",
        "subtotal": 1250, "store": "main", "told": "accepted",
    }  # fmt: skip
    control.communities.rows = [
        {
            "order_id": text,
            "order_number": number,
            "status": "preparing",
            "received_at": to_iso(now - 5 * _MINUTE),
            "updated_at": None,
            "children": [part, {**part, "store": None, "told": None, "store_name": text}],
        }
        for number in ("P-1", text)
    ]


def fill_fleet(control: FakeControl, text: str = PLANT) -> None:
    """Reports of four bridges: one that does not work, a stranger's, none, and one that is well."""
    usual = {"age_s": 20.0, "version": "1.2.3", "problems": (), "stores": 2, "waiting": 0}
    usual |= {"orders_today": 42, "revenue_today": {"EUR": 98_050}, "text": text}
    silent = {"age_s": None, "stores": None, "waiting": None, "orders_today": None}
    silent |= {"revenue_today": None}
    control.fleet.is_set_up = True
    control.fleet.rows = [
        {**usual, "bridge": text, "level": "down", "problems": (text, text), "waiting": 3},
        {**usual, **silent, "bridge": "main", "level": "untrusted"},
        {**usual, **silent, "bridge": "hall", "level": "silent"},
        {**usual, "bridge": text, "level": "ok"},
    ]


def _hall(now: int) -> StoreSnapshot:
    return StoreSnapshot(
        facts={
            "mirror": {"stores": 4, "categories": 9, "items": 212, "read_at": now - _MINUTE},
            "subscription": {"webhook_id": "whk_1", "checked_at": now - HOUR_MS},
            "orders": {"preparing": 2, "delivered": 40},
            "hours": {"main": {"pushed_at": now - HOUR_MS}},
        }
    )


def _result(name: str, store: str, level: str, text: str, fix: str = "") -> dict[str, object]:
    return {
        "name": name, "store": store, "level": level, "text": text, "fix": fix, "took_ms": 12,
        "details": {},
    }  # fmt: skip
