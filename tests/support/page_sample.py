"""A bad evening at a restaurant, for tests that look at pages: everything there is to show.

Texts from outside say `PLANT`; see tests/support/hostile.py.
"""

from dataclasses import replace

from tests.support.hostile import PLANT
from tests.support.pretend_control import PretendControl
from tillbridge.ledger.day import HOUR_MS, Day, Hour, WaitingOrder
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.problem_history import PastProblem
from tillbridge.ledger.snapshot import Held, StoreSnapshot
from tillbridge.stores.standing import Causes, Pause, to_json

_MINUTE = 60_000


def busy(control: PretendControl, text: str = PLANT) -> None:
    """Fill a `PretendControl`; `text` stands where text from outside would."""
    now = control.now_ms
    problems = (
        OpenProblem("pos.offline", "main", "", now - 4 * _MINUTE, {"detail": text}),
        OpenProblem(
            "order.not_written", "main", text, now - _MINUTE, {"order": text, "detail": text}
        ),
        OpenProblem("menu.held", "main", "menu", now - HOUR_MS, {"detail": text}),
        OpenProblem("consent.ending", "main", "", now - 2 * HOUR_MS, {"left": "1 day"}),
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
                Causes(person=Pause(now - HOUR_MS, now + HOUR_MS, text, text), told="inactive")
            ),
            "tax": {"checked_at": now - HOUR_MS, "differences": [text]},
            "store_settings": {"pending": [text], "sent_at": now - HOUR_MS},
        },
    )
    control.facts = replace(
        control.facts,
        problems=problems,
        stores={"main": store},
        started_at=now - 72 * HOUR_MS,
        pos_seen={"main": now - 4 * _MINUTE},
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
    control.plan = {"kind": "full", "calls": [], "held": [text], "lines": [text, text]}


def _day(now: int, text: str) -> Day:
    day = Day(now - 24 * HOUR_MS)
    for place, count in enumerate(
        [0, 0, 1, 0, 0, 0, 0, 0, 2, 5, 9, 14, 12, 6, 3, 4, 8, 15, 22, 18, 11, 5, 2, 1]
    ):
        day.hours[place] = Hour(count, 2 if place in {12, 18} else 0)
    day.past.append(
        PastProblem("service.unreachable", "main", "", now - 9 * HOUR_MS, now - 8 * HOUR_MS)
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
