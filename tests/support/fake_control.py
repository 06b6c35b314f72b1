"""A `Control` that remembers what it was asked, and answers what a test put there."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, tzinfo
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import tillbridge.operations  # noqa: F401 -- declares what it performs
from tests.support.fake_settings import FakeSettings
from tests.support.fake_setup import FakeSetup
from tillbridge.core.actor import current_actor
from tillbridge.core.operation import Dispatcher, Operation
from tillbridge.ledger.day import Day
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.search import fold, rank_of
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.menu.board import MOST_AT_ONCE, MOST_LINES, PER_PAGE
from tillbridge.menu.review import NOTHING, review_view
from tillbridge.model.instant import to_iso
from tillbridge.model.order import OrderState
from tillbridge.orders.sentences import timeline
from tillbridge.orders.views import log_view, order_view, possible_actions
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.overview import Overview, overview
from tillbridge.status.views import StatusDocument

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge

Answer = dict[str, Any]


class FakeTables:
    """Its part for tables."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told

        self.rows: list[Answer] = []
        self.told = True  # by the till
        self.title = ""
        self.held: list[str] = []
        self.lines: list[str] = []

    async def list(self, store: str) -> Answer:
        told = self._told("tables", store)
        return {
            **told,
            "title": self.title,
            "told": self.told,
            "held": self.held,
            "tables": self.rows,
        }

    async def plan(self, store: str) -> Answer:
        return {**self._told("tables plan", store), "held": self.held, "lines": self.lines}

    async def push(self, store: str) -> Answer:
        return self._told("tables push", store)

    async def approve(self, store: str) -> Answer:
        return self._told("tables approve", store)

    async def printed(self, store: str, codes: Mapping[str, str]) -> Answer:
        return self._told("tables printed", store, dict(codes))


class FakeAudit:
    """Its part for the audit trail."""

    def __init__(self) -> None:
        self.entries: list[Answer] = []

    async def list(
        self,
        *,
        limit: int,
        before: int | None = None,
        who: str = "",
        action: str = "",
        store: str = "",
    ) -> Answer:
        older = [
            each
            for each in self.entries
            if (before is None or each["id"] < before)
            and who in {"", each["who"]}
            and each["action"].startswith(action)
            and store in {"", each["store"]}
        ]
        actors = sorted({each["who"] for each in self.entries})
        return {"entries": older[:limit], "more": len(older) > limit, "actors": actors}

    async def verify(self) -> Answer:
        return {"ok": True, "text": "Whole.", "entries": 0, "head": "", "broken": None}


class FakeDiagnostics:
    """Its part for the bridge's own health."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.report: Answer = {
            "ok": True,
            "level": "ok",
            "text": "Everything works.",
            "counts": {"ok": 1, "warning": 0, "failed": 0, "skipped": 0},
            "results": [],
            "done": True,
            "running": [],
            "took_ms": 5,
        }
        self.began_at: str | None = None
        self.begins_at: str | None = None  # when somebody asks; None: `began_at` stays
        self.lines: list[Answer] = []
        self.kept = True
        self.bundled: Answer = {"state": "none"}
        self.ways: Answer = {
            "public_url": "https://store.example.com",
            "receiver": "http://127.0.0.1:8088",
            "path": "/webhooks/",
            "cautions": [],
            "fits": "caddy",
            "next": "tillbridge doctor",
            "ways": [],
        }

    async def begin(self) -> Answer:
        self._told("doctor")
        self.began_at = self.begins_at or self.began_at
        return {"run": "r1"}

    async def result(self, run: str) -> Answer:
        self._told("doctor result", run)
        return self.report

    async def latest(self) -> Answer:
        report = None if self.began_at is None else self.report
        return {"began_at": self.began_at, "report": report, "versions": {"tillbridge": "0.1"}}

    async def logs(self, *, limit: int = 200, **asked: str) -> Answer:
        self._told("logs", {name: value for name, value in asked.items() if value})
        text, level = asked.get("text", ""), asked.get("level", "")
        fits = [each for each in self.lines if text in str(each) and level in {"", each["level"]}]
        return {"lines": fits[:limit], "kept": self.kept}

    async def bundle(self) -> Answer:
        self.bundled = {"state": "making"}
        return self._told("bundle")

    async def bundle_state(self) -> Answer:
        return self.bundled

    async def bundle_file(self) -> Answer:
        self._told("bundle file")
        return {"name": "tillbridge-support-1.zip", "base64": "UEsFBg=="}

    async def reach(self) -> Answer:
        self._told("reach")
        return self.ways


class FakeProblems:
    """Its part for problems."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told

    async def list(self) -> Answer:
        return {**self._told("problems"), "verdict": {"level": "ok", "text": ""}, "problems": []}

    async def show(self, code: str, *, store: str) -> Answer:
        words = {
            "title": "Title",
            "text": "Text.",
            "fix": "Fix.",
            "means": "Meaning.",
            "restaurant": ["Look at `the till`."],
            "technician": [f"Type `tillbridge connect {store}`."],
            "why": "Cause.",
            "ends": "By itself.",
            "docs": "docs",
        }
        return {
            **self._told("problem", code, store),
            "code": code,
            "severity": "warning",
            **words,
            "open": [],
        }

    async def acknowledge(self, code: str, *, store: str | None) -> Answer:
        return {**self._told("acknowledge", code, store), "acknowledged": 1}


class FakeAlerts:
    """Its part for alerts."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told

    async def test(self) -> Answer:
        told = {"way": "email", "ok": True, "text": "sent", "fix": ""}
        return {**self._told("alerts test"), "ways": [told]}


class FakeCommunities:
    """Its part for communities."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.rows: list[Answer] = []
        self.off: list[Answer] = []

    async def availability(self, community: str) -> Answer:
        told = [each["told_at"] for each in self.off if each["told_at"]]
        last = max(told, default=None)
        return {"items": self.off, "waiting": len(self.off) - len(told), "last_told_at": last}

    async def items(self, community: str) -> Answer:
        return {**self._told("community items", community), "items": []}

    async def sync(self, community: str, *, full: bool) -> Answer:
        return self._told("community sync", community, full)

    async def item_86(self, community: str, item: str, *, until: str | None) -> Answer:
        return self._told("community 86", community, item, until)

    async def item_restore(self, community: str, item: str) -> Answer:
        return self._told("community restore", community, item)

    async def orders(self, community: str, limit: int) -> Answer:
        return {**self._told("community orders", community, limit), "orders": self.rows}

    async def hours(self, community: str) -> Answer:
        return {**self._told("community hours", community), "stores": []}

    async def push_hours(self, community: str) -> Answer:
        return {**self._told("community push hours", community), "stores": []}

    async def webhook_test(self, community: str) -> Answer:
        return self._told("community webhook test", community)

    async def webhook_deliveries(self, community: str) -> Answer:
        return {**self._told("community webhook deliveries", community), "deliveries": []}

    async def webhook_remake(self, community: str) -> Answer:
        return self._told("community webhook remake", community)


class FakeIntegration:
    """Its part for integrations."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.shown: Answer = {
            "state": "integrated",
            "secret": "known",
            "secret_since": None,
            "old_secret_until": None,
            "service": {"webhook_url": "https://old.example/webhooks/main"},
            "configured": {"webhook_url": "https://new.example/webhooks/main"},
            "plan": {"kind": "nothing", "lines": [], "costs": []},
            "removed_since": None,
            "open_orders": 2,
            "rotation_costs": ["It is made anew."],
        }

    async def show(self, store: str) -> Answer:
        return {**self._told("integration", store), **self.shown}

    async def plan(self, store: str) -> Answer:
        plan: Answer = self.shown["plan"]
        return {**self._told("integration plan", store), **plan}

    async def apply(self, store: str) -> Answer:
        return self._told("integration apply", store)

    async def rotate_secret(self, store: str) -> Answer:
        return self._told("integration rotate-secret", store)

    async def remove(self, store: str) -> Answer:
        return self._told("integration remove", store)

    async def reintegrate(self, store: str) -> Answer:
        return self._told("integration reintegrate", store)


class FakeOrders:
    """Its part for orders."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.now_ms: Callable[[], int] = lambda: 0
        self.sound = False
        self.unseen = 0
        self.rows: list[Answer] = []
        row = OrderRow(
            store="main",
            order_id="ord_1",
            received_at=0,
            payload="",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        self.whole: Any = {
            **order_view(row),
            "may": possible_actions(row),
            "life": log_view(row, (), None),
            "timeline": timeline(row, ()),
            "guest_text": "",
            "same_number": [],
            "delivery": None,
            "ordered": None,
            "order": None,
            "community_order": None,
        }

    async def list(
        self,
        *,
        text: str = "",
        state: str = "",
        store: str = "",
        kind: str = "",
        day: str = "",
        page: int = 1,
    ) -> Answer:
        found = [
            each
            for each in self.rows
            if text.lower() in f"{each['id']} {each['order_number']}".lower()
            and (state != "by_hand" or each["handled"])
            and day in {"", each["day"]}
            and kind in {"", each["kind"]}
        ]
        pages = max(1, -(-len(found) // 50))
        return {
            "orders": found[(page - 1) * 50 : page * 50],
            "count": len(found),
            "page": page,
            "pages": pages,
            "days": [
                {
                    "day": each,
                    "count": len(found),
                    "cancelled": 1,
                    "revenue": {"EUR": 2450 * len(found)},
                    "amounts": False,
                }
                for each in sorted({one["day"] for one in found}, reverse=True)
            ],
            "today": to_iso(self.now_ms())[:10],
            "unseen": self.unseen,
            "sound": self.sound,
        }

    async def show(self, order_id: str) -> Answer:
        self._told("order", order_id)
        return self.whole

    async def seen(self) -> Answer:
        self.unseen = 0
        return self._told("orders seen")

    async def retry(self, order_id: str) -> Answer:
        return self._told("retry", order_id)

    async def cancel(self, order_id: str, *, reason_code: str) -> Answer:
        return self._told("cancel", order_id, reason_code)

    async def done(self, order_id: str, *, how: str) -> Answer:
        return self._told("done", order_id, how)


class FakeItems:
    """Its part for items."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.stopped: list[Answer] = []
        self.menu: list[Answer] = []
        self.ends = {"opening_ms": 1_795_330_800_000, "hour_ms": 1_795_291_320_000}

    async def off(self, store: str) -> Answer:
        return {"items": self.stopped, "ends": self.ends}

    async def board(self, store: str, *, text: str, category: str, page: int) -> Answer:
        found: Answer = await self.find(store, text)
        names = {each["category"]: each["category_name"] for each in self.tiles}
        fits = {each["external_id"] for each in found["items"]}
        asked = [each for each in self.tiles if not text or each["external_id"] in fits]
        lines = len(self.tiles) + sum(len(each["sizes"]) for each in self.tiles)
        is_whole = len(self.tiles) <= MOST_AT_ONCE and lines <= MOST_LINES
        per_page = MOST_AT_ONCE if is_whole else PER_PAGE
        category = category if category in names and not text else ""
        sections = [
            self._section(key, name, asked)
            for key, name in names.items()
            if not text and (is_whole or key == category)
        ]
        if text:
            sections = [{"id": "", "name": "", "count": len(asked), "tiles": asked}]
        board = {
            "sections": [
                {**each, "tiles": each["tiles"][(page - 1) * per_page :][:per_page]}
                for each in sections
            ],
            "categories": [
                {name: value for name, value in each.items() if name != "tiles"}
                for each in (self._section(key, name, self.tiles) for key, name in names.items())
            ],
            "is_whole": is_whole,
            "category": category,
            "count": len(self.tiles),
            "found": len(asked),
            "page": page,
            "pages": max([1, *(-(-each["count"] // per_page) for each in sections)]),
            "currency": "EUR",
            "off": self.stopped[:48],
            "off_count": len(self.stopped),
        }
        return {"board": board, "ends": self.ends}

    def _section(self, key: str, name: str, tiles: "list[Answer]") -> Answer:
        own = [each for each in tiles if each["category"] == key]
        return {"id": key, "name": name, "count": len(own), "tiles": own}

    @property
    def tiles(self) -> "list[Answer]":
        """The items as tiles of the board; an item says what of a tile is not as usual."""
        usual = {"price": 950, "state": "on", "until": None, "sizes": []}
        usual |= {"category": "c1", "category_name": "Pizza"}
        known = (*usual, "external_id", "name")
        return [
            {name: value for name, value in {**usual, **each}.items() if name in known}
            | {"price": 950}
            for each in self.menu
        ]

    async def find(self, store: str, text: str) -> Answer:
        found = [
            each
            for each in self.menu
            if rank_of(fold(text), fold(f"{each['name']} {each['variant']}"), each["external_id"])
            is not None
        ]
        return {"items": found[:40], "count": len(found)}

    async def take_off(self, store: str, item: str, *, until: str | None) -> Answer:
        return self._told("86", store, item, until)

    async def restore(self, store: str, item: str) -> Answer:
        return self._told("restore", store, item)


class FakeMenu:
    """Its part for menus."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.rows: list[Answer] = []
        self.pushes: list[Answer] = []
        self.planned: Answer = {
            "kind": "nothing",
            "calls": [],
            "held": [],
            "lines": [],
            "bad_rows": [],
            "first_import_lines": [],
        }
        self.shown: Answer = {
            "export": {"items": None, "read_at": None},
            "accepted": 0,
            "pending": 0,
            "last_synced_at": None,
            "hold": None,
            "refused": [],
            "refused_count": 0,
            "first_import": None,
        }
        self.page: Answer = {
            "categories": [],
            "category": "",
            "item": "",
            "groups": [],
            "count": 0,
            "page": 1,
            "pages": 1,
            "items": 0,
            "sizes": 0,
            "differing": 0,
            "held": False,
            "currency": "EUR",
        }
        self.differing = NOTHING
        self.under_way: Answer = {"phase": "", "since": None, "done": 0, "total": 0}

    async def show(self, store: str) -> Answer:
        return self.shown

    async def browse(self, store: str, **asked: object) -> Answer:
        return {**self.page, "item": asked.get("item", "")}

    async def review(self, store: str, *, page: int = 1, read: bool = True) -> Answer:
        return {**review_view(self.differing, page, "EUR")}

    async def progress(self, store: str) -> Answer:
        return self.under_way

    async def items(
        self, store: str, *, text: str = "", page: int = 1, at: str | None = None
    ) -> Answer:
        found = [each for each in self.rows if text.lower() in each["name"].lower()]
        return {
            "items": found,
            "count": len(found),
            "items_count": len(found),
            "page": page,
            "pages": 1,
            "currency": "EUR",
            "at": None if at is None else to_iso(_ms(at)),
        }

    async def history(self, store: str, *, before: int | None = None) -> Answer:
        return {"pushes": self.pushes, "more": False, "currency": "EUR"}

    async def plan(self, store: str) -> Answer:
        self._told("plan", store)
        return self.planned

    async def push(self, store: str, *, full: bool) -> Answer:
        return self._told("push", store, full)

    async def dismiss(self, store: str) -> Answer:
        return self._told("dismiss", store)

    async def approve(self, store: str) -> Answer:
        return self._told("approve", store)


def _ms(typed: str) -> int:
    return round(datetime.fromisoformat(typed).timestamp() * 1000)


class FakeStore:
    """Its part for a store itself."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.lines: list[str] = []
        self.differences: list[str] = []

    async def show(self, store: str) -> Answer:
        return self._told("store", store)

    async def plan(self, store: str, *, full: bool) -> Answer:
        return {**self._told("settings plan", store, full), "lines": self.lines, "notes": []}

    async def push(self, store: str, *, full: bool) -> Answer:
        return self._told("settings push", store, full)

    async def pause(self, store: str, *, by: str | None, reason: str, until: str | None) -> Answer:
        return self._told("pause", store, by or current_actor().name, reason, until)

    async def resume(self, store: str, *, by: str | None) -> Answer:
        return self._told("resume", store, by or current_actor().name)

    async def busy(self, store: str, *, orders: int, by: str | None, until: str | None) -> Answer:
        return self._told("busy", store, by or current_actor().name, orders, until)

    async def busy_off(self, store: str, *, by: str | None) -> Answer:
        return self._told("busy off", store, by or current_actor().name)

    async def tax(self, store: str) -> Answer:
        return {**self._told("tax", store), "differences": self.differences}


class FakeFleet:
    """Its part for reports to whoever looks after many bridges."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.is_set_up = False
        self.rows: list[Answer] = []

    async def key(self) -> Answer:
        return {**self._told("fleet key"), "name": "corner", "key": "RW"}

    async def list(self) -> Answer:
        text = f"{len(self.rows)} bridges." if self.rows else ""
        return {"is_set_up": self.is_set_up, "text": text, "bridges": self.rows}


class NoTrail:
    """Where nothing is written down."""

    async def note(self, action: str, **_entry: object) -> None:
        """Do nothing."""


class FakeDispatcher(Dispatcher):
    """Checks as the bridge does, and asks a `FakeControl` instead of one."""

    def __init__(self, control: "FakeControl", trail: Any) -> None:  # noqa: ANN401 -- (as above)
        super().__init__(cast("Bridge", SimpleNamespace(is_set_up=True)), trail)
        self.control = control
        self.zones: dict[str, tzinfo | None] = {}  # of stores, by name; "": that of all

    def zone(self, store: str = "") -> tzinfo | None:
        return self.zones.get(store)

    async def _run(self, found: Operation, arguments: dict[str, Any]) -> Answer:
        return await PERFORMED[found.name](self.control, **arguments)


PERFORMED: dict[str, Callable[..., Awaitable[Answer]]] = {
    "items.off": lambda control, **given: control.items.off(**given),
    "items.board": lambda control, **given: control.items.board(**given),
    "items.find": lambda control, **given: control.items.find(**given),
    "item.86": lambda control, **given: control.items.take_off(**given),
    "item.restore": lambda control, **given: control.items.restore(**given),
    "alerts.test": lambda control: control.alerts.test(),
    "config.show": lambda control, **given: control.settings.show(**given),
    "config.change": lambda control, **given: control.settings.change(**given),
    "hours.change": lambda control, **given: control.settings.change_hours(**given),
    "users.save": lambda control, **given: control.settings.save_user(**given),
    "users.remove": lambda control, user: control.settings.remove_user(user),
    "ledger.backup": lambda control: control.settings.back_up(),
    "ledger.contents": lambda control, **given: control.settings.contents(**given),
    "ledger.restore": lambda control, **given: control.settings.restore(**given),
    "connect": lambda control, store, reintegrate, store_id, email: control.connect(
        store, reintegrate=reintegrate, store_id=store_id, email=email
    ),
    "connect.choose": lambda control, **given: control.connect_choose(**given),
    "connect.result": lambda control, state: control.connect_result(state),
    "setup.address": lambda control, **given: control.setup.address(**given),
    "setup.allow": lambda control, email: control.setup.allow(email),
    "setup.choose": lambda control, **given: control.setup.choose(**given),
    "setup.forget": lambda control: control.setup.forget(),
    "setup.order": lambda control: control.setup.order(),
    "setup.orders": lambda control, **given: control.setup.orders(**given),
    "setup.restart": lambda control: control.setup.restart(),
    "setup.sample_till": lambda control: control.setup.sample_till(),
    "setup.service": lambda control, **given: control.setup.service(**given),
    "setup.show": lambda control, adapter: control.setup.show(adapter),
    "setup.sign_in": lambda control, **given: control.setup.sign_in(**given),
    "setup.sign_up": lambda control, form: control.setup.sign_up(form),
    "setup.text": lambda control: control.setup.text(),
    "setup.till": lambda control, **given: control.setup.till(**given),
    "setup.write": lambda control, digest: control.setup.write(digest),
    "setup.written": lambda control, digest: control.setup.written(digest),
    "signup": lambda control, **given: control.signup(**given),
    "status": lambda control: control.status(),
    "status.measures": lambda control: control.measures(),
    "status.overview": lambda control: control.overview(),
    "fleet.bridges": lambda control: control.fleet.list(),
    "fleet.key": lambda control: control.fleet.key(),
    "reporting.token": lambda control, scope: control.reporting_token(scope),
    "communities.items": lambda control, **given: control.communities.items(given["community"]),
    "integration.show": lambda control, **given: control.integration.show(**given),
    "integration.plan": lambda control, **given: control.integration.plan(**given),
    "integration.apply": lambda control, **given: control.integration.apply(**given),
    "integration.rotate_secret": lambda control, **given: control.integration.rotate_secret(
        **given
    ),
    "integration.remove": lambda control, **given: control.integration.remove(**given),
    "integration.reintegrate": lambda control, **given: control.integration.reintegrate(**given),
    "communities.availability": lambda control, **given: control.communities.availability(**given),
    "communities.sync": lambda control, **given: control.communities.sync(**given),
    "communities.item_86": lambda control, **given: control.communities.item_86(**given),
    "communities.item_restore": lambda control, **given: control.communities.item_restore(**given),
    "communities.orders": lambda control, **given: control.communities.orders(**given),
    "communities.hours": lambda control, **given: control.communities.hours(**given),
    "communities.push_hours": lambda control, **given: control.communities.push_hours(**given),
    "communities.webhook_test": lambda control, **given: control.communities.webhook_test(**given),
    "communities.webhook_deliveries": lambda control, **given: (
        control.communities.webhook_deliveries(**given)
    ),
    "communities.webhook_remake": lambda control, **given: control.communities.webhook_remake(
        **given
    ),
    "orders.list": lambda control, **given: control.orders.list(**given),
    "orders.show": lambda control, order: control.orders.show(order),
    "orders.seen": lambda control: control.orders.seen(),
    "order.retry": lambda control, order: control.orders.retry(order),
    "order.cancel": lambda control, order, reason_code: control.orders.cancel(
        order, reason_code=reason_code
    ),
    "order.done": lambda control, order, how: control.orders.done(order, how=how),
    "menu.show": lambda control, **given: control.menu.show(**given),
    "menu.browse": lambda control, **given: control.menu.browse(**given),
    "menu.review": lambda control, **given: control.menu.review(**given),
    "menu.progress": lambda control, **given: control.menu.progress(**given),
    "menu.plan": lambda control, **given: control.menu.plan(**given),
    "menu.push": lambda control, **given: control.menu.push(**given),
    "menu.approve": lambda control, **given: control.menu.approve(**given),
    "menu.dismiss": lambda control, **given: control.menu.dismiss(**given),
    "menu.history": lambda control, **given: control.menu.history(**given),
    "menu.items": lambda control, **given: control.menu.items(**given),
    "store.show": lambda control, **given: control.store.show(**given),
    "store.plan": lambda control, **given: control.store.plan(**given),
    "store.push": lambda control, **given: control.store.push(**given),
    "store.pause": lambda control, **given: control.store.pause(**given),
    "store.busy": lambda control, **given: control.store.busy(**given),
    "store.busy_off": lambda control, **given: control.store.busy_off(**given),
    "store.resume": lambda control, **given: control.store.resume(**given),
    "store.tax": lambda control, **given: control.store.tax(**given),
    "tables.list": lambda control, **given: control.tables.list(**given),
    "tables.plan": lambda control, **given: control.tables.plan(**given),
    "tables.push": lambda control, **given: control.tables.push(**given),
    "tables.approve": lambda control, **given: control.tables.approve(**given),
    "tables.printed": lambda control, **given: control.tables.printed(**given),
    "audit.list": lambda control, **given: control.audit.list(**given),
    "audit.verify": lambda control: control.audit.verify(),
    "diagnostics.begin": lambda control: control.diagnostics.begin(),
    "diagnostics.result": lambda control, **given: control.diagnostics.result(**given),
    "diagnostics.latest": lambda control: control.diagnostics.latest(),
    "diagnostics.logs": lambda control, **given: control.diagnostics.logs(**given),
    "diagnostics.reach": lambda control: control.diagnostics.reach(),
    "diagnostics.bundle": lambda control: control.diagnostics.bundle(),
    "diagnostics.bundle_state": lambda control: control.diagnostics.bundle_state(),
    "diagnostics.bundle_file": lambda control: control.diagnostics.bundle_file(),
    "problems.list": lambda control: control.problems.list(),
    "problems.show": lambda control, **given: control.problems.show(**given),
    "problems.acknowledge": lambda control, **given: control.problems.acknowledge(**given),
}


class FakeControl:
    """Stands for the daemon behind the status listener."""

    def __init__(self) -> None:
        self.tables = FakeTables(self._told)
        self.integration = FakeIntegration(self._told)
        self.store = FakeStore(self._told)
        self.orders = FakeOrders(self._told)
        self.orders.now_ms = lambda: self.now_ms
        self.items = FakeItems(self._told)
        self.menu = FakeMenu(self._told)
        self.audit = FakeAudit()
        self.day = Day(1_795_287_720_000 - 86_400_000)
        self.communities = FakeCommunities(self._told)
        self.diagnostics = FakeDiagnostics(self._told)
        self.problems = FakeProblems(self._told)
        self.alerts = FakeAlerts(self._told)
        self.setup = FakeSetup(self._told)
        self.settings = FakeSettings(self._told)
        self.fleet = FakeFleet(self._told)
        self.asked: list[tuple[object, ...]] = []
        self.failure: Exception | None = None
        self.practice = False
        self.facts = BridgeFacts(
            version="1.2.3",
            running=True,
            adapters={"main": "folder"},
            stores={"main": StoreSnapshot()},
            pid=7,
            started_at=0,
            tills={"main": [{"name": "folder", "level": "silver", "part": ""}]},
        )
        self.now_ms = 1_795_287_720_000
        self.answer = ""
        self.connect_url = "http://127.0.0.1:9/authorize?state=st4te"
        self.connected: list[Answer] = [{"done": False}]

    def _told(self, *asked: object) -> Answer:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        return {"text": self.answer or f"Did {asked[0]}.", "ok": True}

    def dispatcher(self, trail: Any = None) -> FakeDispatcher:  # noqa: ANN401 -- what remembers entries
        """Return what performs the operations by asking this."""
        return FakeDispatcher(self, trail or NoTrail())

    async def status(self) -> StatusDocument:
        if self.failure is not None:
            raise self.failure
        return document(self.facts, self.now_ms)

    async def measures(self) -> Answer:
        return {
            "status": await self.status(),
            "pushes": [("main", "success", 3)],
            "ledger_bytes": 4096,
            "ledger_writable": True,
        }

    async def overview(self) -> Overview:
        return overview(
            await self.status(), self.facts, self.day, self.now_ms, practice=self.practice
        )

    async def connect(
        self, store: str, *, reintegrate: bool, store_id: str = "", email: str = ""
    ) -> Answer:
        self._told("connect", store, reintegrate)
        return {"url": self.connect_url, "state": "st4te"}

    async def connect_choose(self, store: str, *, store_id: str, reintegrate: bool) -> Answer:
        self._told("connect_choose", store, store_id, reintegrate)
        return {"done": True, "ok": True, "text": f"{store} is connected."}

    async def signup(self, store: str, *, form: Mapping[str, str], flow_type: str) -> Answer:
        self._told("signup", store, dict(form), flow_type)
        return {"url": self.connect_url, "state": "st4te", "as_login": False}

    async def connect_result(self, state: str) -> Answer:
        self._told("connect_result", state)
        return self.connected.pop(0) if len(self.connected) > 1 else self.connected[0]

    async def reporting_token(self, scope: str) -> Answer:
        return {**self._told("reporting token", scope), "access_token": "t0ken"}
