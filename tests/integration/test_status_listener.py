"""The status listener over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import aiohttp
import pytest

from tests.support.fake_control import FakeControl, FakeDispatcher
from tillbridge.cli.control import RunningBridge
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.i18n import in_zone, reader
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.operations import OPERATIONS
from tillbridge.stores.consent import CallbackAnswer
from tillbridge.web.authenticator import AccessRules, Authenticator
from tillbridge.web.listener import MerchantReturn, StatusListener

TOKEN = "control-token-0123456789"


class Site:
    def __init__(
        self, dispatcher: FakeDispatcher, session: aiohttp.ClientSession, url: str
    ) -> None:
        self.dispatcher = dispatcher
        self.control = dispatcher.control
        self.session = session
        self.url = url
        self.callbacks: list[Mapping[str, str]] = []

    async def get(self, path: str, **headers: str) -> tuple[int, str, Mapping[str, str]]:
        async with self.session.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers

    async def control_json(
        self, method: str, path: str, body: object = None, token: str = TOKEN
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.session.request(
            method, f"{self.url}/control/{path}", json=body, headers=headers
        ) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    dispatcher = FakeControl().dispatcher()

    async def on_callback(query: Mapping[str, str]) -> CallbackAnswer:
        made.callbacks.append(query)
        if "error" in query:
            return CallbackAnswer(ok=False, text="The merchant said <no>.", fix="Try again.")
        return CallbackAnswer(ok=True, text="The store is connected.")

    listener = StatusListener(
        dispatcher,
        Authenticator(AccessRules(), Clock()),
        token=TOKEN,
        metrics=Metrics(),
        merchant=MerchantReturn("/oauth/callback", on_callback),
    )
    host, port = await listener.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        made = Site(dispatcher, session, f"http://{host}:{port}")
        yield made
    await listener.close()


async def test_the_page_shows_the_verdict_and_what_to_do(site: Site) -> None:
    offline = OpenProblem("pos.offline", "main", "", 0, {"detail": "no heartbeat"})
    site.control.facts = replace(site.control.facts, problems=(offline,))
    status, page, headers = await site.get("/")
    assert status == 200
    assert "The till is not taking orders: no heartbeat" in page
    assert "Check that the till is on and connected." in page
    assert "pos.offline" in page
    assert headers["Content-Type"].startswith("text/html")


async def test_nothing_from_outside_is_markup(site: Site) -> None:
    evil = "<script>alert(1)</script>"
    problem = OpenProblem("pos.offline", "main", "", 0, {"detail": evil})
    store = StoreSnapshot(facts={"pos_health": {"online": False, "detail": evil}})
    site.control.facts = replace(site.control.facts, problems=(problem,), stores={"main": store})
    _status, page, _headers = await site.get("/")
    assert evil not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("path", ["/", "/api/status", "/metrics", "/healthz", "/nowhere"])
async def test_every_answer_carries_the_security_headers(site: Site, path: str) -> None:
    _status, _text, headers = await site.get(path)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe-inline" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


async def test_the_page_holds_nothing_inline(site: Site) -> None:
    _status, page, _headers = await site.get("/")
    assert "style=" not in page
    assert "<style" not in page
    status, style, _headers = await site.get("/static/style.css")
    assert status == 200
    assert "prefers-color-scheme: dark" in style


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("127.0.0.1", True),
        ("localhost:8089", True),
        ("LOCALHOST", True),
        ("[::1]:8089", True),
        ("evil.example.com", False),
        ("127.evil.example.com", False),
        ("127.0.0.1.evil.example.com:8089", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/status", "/metrics", "/control/status"])
async def test_only_this_machines_names_are_answered(
    site: Site, path: str, host: str, answered: bool
) -> None:
    headers = {"Host": host, "Authorization": f"Bearer {TOKEN}"}
    method = "POST" if path.startswith("/control/") else "GET"
    async with site.session.request(method, site.url + path, headers=headers) as answer:
        assert answer.status == (200 if answered else 421)


async def test_the_json_is_the_contracts_document(site: Site) -> None:
    async with site.session.get(site.url + "/api/status") as answer:
        told = await answer.json()
    assert set(told) == {"verdict", "problems", "stores", "bridge"}
    assert set(told["stores"]["main"]) >= {"service", "pos", "menu", "orders", "tables"}


async def test_metrics_are_for_prometheus(site: Site) -> None:
    _status, text, headers = await site.get("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'tillbridge_orders_waiting{store="main"} 0.0' in text


async def test_a_ledger_that_cannot_be_read_is_told(site: Site) -> None:
    site.control.failure = LedgerError("The ledger cannot be read.", fix="Look at the disk.")
    status, text, _headers = await site.get("/")
    assert status == 503
    assert "Look at the disk." in text
    assert (await site.get("/healthz"))[0] == 200


async def test_the_callback_is_handed_on_and_answered_with_a_page(site: Site) -> None:
    status, page, _headers = await site.get("/oauth/callback?code=c0de&state=st4te")
    assert status == 200
    assert "The store is connected." in page
    assert site.callbacks == [{"code": "c0de", "state": "st4te"}]
    assert "c0de" not in page


async def test_a_callback_that_failed_says_so_escaped(site: Site) -> None:
    status, page, _headers = await site.get("/oauth/callback?error=access_denied")
    assert status == 400
    assert "The merchant said &lt;no&gt;." in page


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", "\u017eluva"])
async def test_control_wants_the_token(site: Site, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with site.session.post(site.url + "/control/status", headers=headers) as answer:
        assert answer.status == 401
    async with site.session.post(site.url + "/control/menu.push") as answer:
        assert answer.status == 401
    assert site.control.asked == []


@pytest.mark.parametrize("zone", [ZoneInfo("Europe/Rome"), UTC, None])
async def test_a_command_shows_times_in_the_zone_of_its_answer(
    site: Site, zone: tzinfo | None
) -> None:
    site.dispatcher.zones[""] = zone
    address = urlsplit(site.url)

    def command() -> tzinfo | None:
        in_zone(None)
        bridge = RunningBridge(address.hostname or "", address.port or 0, TOKEN)
        bridge.perform("status", {})
        return reader().zone

    shown = await asyncio.to_thread(command)
    assert shown == (zone if isinstance(zone, ZoneInfo) else None)


@pytest.mark.parametrize("path", ["nothing", "status", "menu.push", "connect/st4te", ""])
async def test_what_no_command_asks_is_not_found(site: Site, path: str) -> None:
    status, _text, _headers = await site.get(f"/control/{path}", Authorization=f"Bearer {TOKEN}")
    assert status == 404
    assert site.control.asked == []


@pytest.mark.parametrize(
    ("method", "path", "body", "asked"),
    [
        ("POST", "connect", {"store": "main"}, ("connect", "main", False)),
        (
            "POST",
            "connect",
            {"store": "main", "reintegrate": True},
            ("connect", "main", True),
        ),
        ("POST", "connect.result", {"state": "st4te"}, ("connect_result", "st4te")),
        ("POST", "menu.plan", {"store": "main"}, ("plan", "main")),
        ("POST", "menu.push", {"store": "main", "full": True}, ("push", "main", True)),
        ("POST", "menu.push", {"store": "main"}, ("push", "main", False)),
        ("POST", "menu.approve", {"store": "main"}, ("approve", "main")),
        (
            "POST",
            "item.86",
            {"store": "main", "item": "B/1", "until": "18:30"},
            ("86", "main", "B/1", "18:30"),
        ),
        ("POST", "item.restore", {"store": "main", "item": "B1"}, ("restore", "main", "B1")),
        ("POST", "order.retry", {"order": "ord_1"}, ("retry", "ord_1")),
        (
            "POST",
            "reporting.token",
            {"scope": "reports.read"},
            ("reporting token", "reports.read"),
        ),
        ("POST", "communities.items", {"community": "hall"}, ("community items", "hall")),
        (
            "POST",
            "communities.sync",
            {"community": "hall", "full": True},
            ("community sync", "hall", True),
        ),
        (
            "POST",
            "communities.item_86",
            {"community": "hall", "item": "B/1", "until": "18:30"},
            ("community 86", "hall", "B/1", "18:30"),
        ),
        (
            "POST",
            "communities.item_restore",
            {"community": "hall", "item": "B1"},
            ("community restore", "hall", "B1"),
        ),
        (
            "POST",
            "communities.orders",
            {"community": "hall", "limit": 5},
            ("community orders", "hall", 5),
        ),
        ("POST", "communities.hours", {"community": "hall"}, ("community hours", "hall")),
        ("POST", "communities.push_hours", {"community": "hall"}, ("community push hours", "hall")),
        (
            "POST",
            "communities.webhook_test",
            {"community": "hall"},
            ("community webhook test", "hall"),
        ),
        (
            "POST",
            "communities.webhook_deliveries",
            {"community": "hall"},
            ("community webhook deliveries", "hall"),
        ),
        (
            "POST",
            "communities.webhook_remake",
            {"community": "hall"},
            ("community webhook remake", "hall"),
        ),
        (
            "POST",
            "order.cancel",
            {"order": "ord_1", "reason_code": "OTHER"},
            ("cancel", "ord_1", "OTHER"),
        ),
    ],
)
async def test_control_hands_on_what_is_asked(
    site: Site, method: str, path: str, body: object, asked: tuple[object, ...]
) -> None:
    status, answer = await site.control_json(method, path, body)
    assert status == 200
    assert isinstance(answer, dict)
    assert site.control.asked == [asked]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("connect", {}),
        ("connect", []),
        ("connect", {"store": 3}),
        ("item.86", {"store": "main", "item": "B1", "until": 3}),
        ("item.86", {"store": "main", "item": "B1", "until": True}),
        ("item.86", {"store": "main", "item": "B1", "until_ms": 1_795_334_400_000}),
        ("item.86", {"store": "main", "item": "B1", "by": "staff"}),
        ("item.86", {"store": "main"}),
        ("item.nothing", {}),
        ("store.pause", {"store": "main", "reason": "x", "until": 10**17}),
        ("communities.item_86", {"community": "hall", "item": "B/1", "until": 10**17}),
        # Numbers that no row has: more than SQLite takes.
        *(
            (name, {"store": "main"} | {each: number})
            for name, declared in OPERATIONS.items()
            for each, parameter in declared.parameters.items()
            if int in {parameter.type, *get_args(parameter.type)}
            for number in (10**30, -(10**30), 2**60)
        ),
    ],
)
async def test_control_refuses_what_it_does_not_understand(
    site: Site, path: str, body: object
) -> None:
    status, answer = await site.control_json("POST", path, body)
    assert status == 400
    assert answer["error"]["text"]
    assert site.control.asked == []
    assert site.control.asked == []


@pytest.mark.parametrize("defect", [ValueError("row 7"), json.JSONDecodeError("row 7", "", 0)])
async def test_a_defect_is_reported_as_one_and_not_as_a_request_that_is_not_understood(
    site: Site, defect: Exception
) -> None:
    site.control.failure = defect
    status, answer = await site.control_json("POST", "order.retry", {"order": "ord_1"})
    assert status == 500
    assert answer["error"]["kind"] == "Defect"
    assert "row 7" not in str(answer)  # what it says is for the log, which is masked
    assert "tillbridge logs" in answer["error"]["fix"]


async def test_control_tells_failures_with_their_kind_and_remedy(site: Site) -> None:
    site.control.failure = BridgeError("There is no order ord_1.", fix="See the list.")
    status, answer = await site.control_json("POST", "order.retry", {"order": "ord_1"})
    assert status == 409
    assert answer["error"] == {
        "kind": "BridgeError",
        "text": "There is no order ord_1.",
        "fix": "See the list.",
    }
