"""What strangers send, a target each: takes any bytes, and raises only what is a finding.

The inputs of `exports` begin with a line that names the export, whose file the rest stands for.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from pydantic import ValidationError
from sqlalchemy import Connection, create_engine
from yarl import URL

from tests.fuzz.exports import ROOT, Export, as_sheets, exports, read
from tests.support.full_menus import totals_of
from tests.support.ledger_harness import delivery
from tests.support.page_harness import PageHarness, page_harness
from tests.support.receiver_harness import ReceiverHarness, event, receiving, sign
from tillbridge.adapter.conformance.cases import reading_json
from tillbridge.adapter.values import AvailabilityReading, TablesReading
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.loading import load
from tillbridge.config.store import MenuSettings, StoreSettings
from tillbridge.core.errors import BridgeError
from tillbridge.ledger.ledger import published
from tillbridge.ledger.models import Delivery, NewDelivery, metadata
from tillbridge.ledger.recover import restore
from tillbridge.ledger.sqlite import find_damage
from tillbridge.ledger.vault import WebhookSecret
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import Rules, findings
from tillbridge.model.catalogue import Catalogue
from tillbridge.orders.intake import OrderCreated, order_of, process_delivery, read_event
from tillbridge.pos.process.program import Limits, ProgramSupervisor
from tillbridge.pos.process.wire import METHODS, MissingResult, Result
from tillbridge.pos.validation import (
    valid_availability,
    valid_catalogue,
    valid_health,
    valid_listed,
    valid_tables,
    valid_updates,
)
from tillbridge.receiver.deliveries import NotAnEnvelope, read_envelope, signer_of
from tillbridge.web.site.book import Action
from tillbridge.web.site.registry import EVERYTHING

CORPUS = Path(__file__).with_name("corpus")
_NOW = 1_800_000_000_000
_RULES = Rules(MenuSettings(), AssumptionSettings(), "EUR")


class Finding(AssertionError):
    """Something other than the documented answer."""


@dataclass(frozen=True, slots=True)
class Target:
    """`play` takes an input; `seeds` are inputs to begin with, beside those of the corpus.

    `slow`: an input takes tens of milliseconds.
    """

    name: str
    play: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    slow: bool = False

    def __str__(self) -> str:
        return self.name

    def corpus(self) -> list[Path]:
        """Return the inputs that were once a finding, or that go where others do not."""
        return sorted(each for each in (CORPUS / self.name).glob("*") if each.is_file())

    def inputs(self) -> list[bytes]:
        """Return the seeds and the corpus."""
        return [*self.seeds(), *(each.read_bytes() for each in self.corpus())]

    def keep(self, data: bytes) -> Path:
        """Write an input into the corpus."""
        path = CORPUS / self.name / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


@cache
def _home() -> Path:
    """Return a folder for this process, in memory where there is such a place."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    kept = tempfile.TemporaryDirectory(prefix="fuzz-", dir=where)
    _kept.append(kept)
    return Path(kept.name)


_kept: list[Any] = []


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """Return an empty folder, in memory where there is such a place."""
    folder = _home() / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield folder


# -- exports


def _export_for(data: bytes, kind: Sequence[Export]) -> tuple[Export, bytes]:
    name, _newline, content = data.partition(b"\n")
    known = {each.name.encode(): each for each in kind}
    return known.get(name) or kind[zlib.crc32(name) % len(kind)], content


def _play_export(kind: Sequence[Export], data: bytes) -> None:
    export, content = _export_for(data, kind)
    with work_folder() as home:
        readings = read(export, content, home)
    for found in readings.values():
        match found:
            case Catalogue():
                _push(valid_catalogue(found))
            case AvailabilityReading():
                valid_availability(found)
            case TablesReading():
                valid_tables(found)
        json.dumps(reading_json(found)).encode()


def _push(catalogue: Catalogue) -> None:
    """Judge the menu as the first one and as one that takes the place of half of it."""
    json.dumps(reading_json(catalogue), ensure_ascii=False).encode()
    half = dict(list(catalogue.items.items())[::2])
    for before in (Catalogue(), Catalogue.of(half.values())):
        changes = diff(before, catalogue)
        findings(changes, totals_of(before, changes), _RULES)


def _export_seeds(kind: Sequence[Export]) -> list[bytes]:
    return [
        each.name.encode()
        + b"\n"
        + (as_sheets(each.content) if each.kind == "xlsx" else each.content)
        for each in kind
    ]


def _of_exports() -> Iterator[Target]:
    kinds: dict[str, list[Export]] = {}
    for each in exports().values():
        kind = {"tsv": "csv", "txt": "csv"}.get(each.kind, each.kind)
        kinds.setdefault(f"{each.adapter}-{kind}", []).append(each)
    for name, found in kinds.items():
        yield Target(name, partial(_play_export, found), partial(_export_seeds, found))


# -- deliveries


def _order(**more: object) -> dict[str, object]:
    option = {"product_id": "o", "product_name": "Oil", "quantity": 1, "unit_price": 50}
    line = {
        "product_id": "p",
        "product_variant_id": None,
        "product_name": "Crème ½",
        "quantity": 2,
        "unit_price": 450,
        "subtotal": 900,
        "tax_amount": 90,
        "external_id": "1",
        "variant_external_id": None,
        "options": [{**option, "external_id": "x"}],
    }
    return {
        "id": "ord_1",
        "order_number": "1042",
        "order_type": "delivery",
        "status": "pending",
        "payment_status": "paid",
        "currency": "EUR",
        "subtotal": 900,
        "tax": 90,
        "total_amount": 990,
        "prices_include_tax": False,
        "tax_breakdown": [{"name": "VAT", "rate": 10, "amount": 90}],
        "special_instructions": "ring twice",
        "created_at": "2026-11-21T19:02:00.000Z",
        "items": [line],
        **more,
    }


def _body_seeds() -> list[bytes]:
    return [
        event(event_id="evt_1", data=_order()),
        event(event_id="evt_2", data=_order(items=[], created_at="x", currency=None)),
        event(event_id="evt_3", event_type="order.delivered", data={"order": {"id": "ord_1"}}),
        event(event_id="evt_4", event_type="store.status_changed", data={"status": "inactive"}),
    ]


@cache
def _ledger() -> Connection:
    connection = create_engine("sqlite://").connect()
    metadata.create_all(connection)
    connection.commit()
    return connection


_STORE = StoreSettings.model_validate(
    {"location_id": "loc-1", "currency": "EUR", "pos": {"adapter": "folder", "menu": "menu.csv"}}
)


def _play_body(data: bytes) -> None:
    """Take in what a signed body says, as far as the order's row and its ticket."""
    try:
        envelope = read_envelope(data)
    except NotAnEnvelope:
        return
    for kind in ("order.created", "order.delivered"):
        read_found = read_event(kind, data)
        if isinstance(read_found, OrderCreated):
            written = order_of(read_found.order.id, read_found.payload)
            if written.id != read_found.order.id:
                raise Finding("another order")
        connection = _ledger()
        with connection.begin():
            sent = delivery(envelope.event_id, event_type=kind, body=data)
            connection.execute(
                metadata.tables["inbox"].insert(),
                [{**sent._asdict(), "id": 1}],
            )
            process_delivery(connection, "main", _STORE, Delivery(**sent._asdict(), id=1), _NOW)
            connection.rollback()
        published(connection).clear()  # the ledger does so; an hour of changes fills the memory


# -- the process protocol


def _wire_seeds() -> list[bytes]:
    answers: Sequence[Mapping[str, object]] = (
        {"items": [{"external_id": "1", "name": "Soup", "price": 450}], "categories": []},
        {"items": {"1": {"available": False, "until": None}}},
        {"tables": [{"external_id": "t1", "name": "1", "seats": 4, "zone": ""}]},
        {"record": "7", "reference": "7"},
        {"tickets": [{"key": "k", "record": "7", "reference": "7", "state": "open"}]},
        {"updates": [{"key": "u", "order_id": "ord_1", "status": "ready"}]},
        {"bad_rows": [{"place": "x", "text": "y", "fix": "z"}]},
        {"online": True, "detail": ""},
    )
    hello = {"type": "hello", "protocol": 1, "name": "till", "capabilities": ["catalogue"]}
    update = {"key": "u", "order_id": "ord_1", "status": "rejected", "reason": "capacity"}
    failure = {"kind": "ItemUnavailable", "message": "no", "external_ids": ["1"]}
    messages = (
        hello,
        {"type": "refuse", "message": "no folder"},
        {"type": "event", "event": "order_status", "update": update},
        *({"type": "answer", "id": 1, "result": each} for each in answers),
        {"type": "answer", "id": 1, "error": failure},
    )
    return [json.dumps(each).encode() for each in messages]


_VALID: Mapping[str, Callable[[Any], object]] = {
    "read_catalogue": valid_catalogue,
    "read_availability": valid_availability,
    "read_tables": valid_tables,
    "list_tickets": valid_listed,
    "read_updates": valid_updates,
    "health": valid_health,
}


_LIMITS = Limits(start_s=1, restart_cap_s=1, steady_s=1)


def _play_wire(data: bytes) -> None:
    """Read a line as the supervisor does, and as the answer to each question."""
    program = ProgramSupervisor(
        ["till"], cwd=Path(), env={}, hello={}, limits=_LIMITS, store="main"
    )
    program._deadline = SimpleNamespace(cancel=lambda: None)  # type: ignore[assignment]  # no timer
    child: Any = SimpleNamespace(pid=1, kill=str)
    program._line(child, data)
    for name, method in METHODS.items():
        try:
            found = method.result_of(data)
        except (ValidationError, MissingResult):
            continue
        value = found.value() if isinstance(found, Result) else found
        if name in _VALID and value.__class__.__name__ != "Failure":
            with contextlib.suppress(TypeError):  # it is broken as a whole
                _VALID[name](value)


# -- settings


def _settings_seeds() -> list[bytes]:
    samples = sorted((ROOT / "config").glob("*.toml"))
    return [each.read_bytes() for each in samples]


def _play_settings(data: bytes) -> None:
    with work_folder() as home:
        path = home / "bridge.toml"
        path.write_bytes(data)
        with (
            mock.patch.dict(os.environ, {"TILLBRIDGE_DATA_DIR": str(home / "data")}),
            contextlib.suppress(BridgeError),
        ):
            load(path)


# -- backups


def _backup_seeds() -> list[bytes]:
    found = []
    for script in sorted((ROOT / "tests/data/ledgers").glob("*.sql")):
        path = _home() / f"{script.stem}.db"
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(script.read_text("utf-8"))
        found.append(path.read_bytes())
    return found


def _play_backup(data: bytes) -> None:
    """Restore a file over nothing; what is taken has to be a sound ledger."""
    with work_folder() as home:
        saved = home / "ledger-20261121T190200.000Z.db"
        saved.write_bytes(data)
        try:
            restore(home / "data", saved, at=_NOW, who="fuzz")
        except BridgeError:
            return
        if damage := find_damage(home / "data" / "ledger.db"):
            raise Finding(damage)


# -- over connections: heads of deliveries, and forms of the page


class _Loop:
    """An event loop with something that serves, made when it is first asked for."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.failures: list[Mapping[str, Any]] = []
        self.loop.set_exception_handler(lambda _loop, context: self.failures.append(context))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 -- what the coroutine returns
        self.failures.clear()
        result = self.loop.run_until_complete(work)
        if self.failures:
            raise Finding(str(self.failures[0]))
        return result

    def enter(self, context: contextlib.AbstractAsyncContextManager[Any]) -> Any:  # noqa: ANN401 -- (as above)
        _kept.append((self, context))
        return self.run(context.__aenter__())


class _Wire(asyncio.Transport):
    """The sender's end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__({"peername": ("203.0.113.7", 1), "sockname": ("127.0.0.1", 2)})
        self.sent = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        """There is no more to read than has been sent."""

    def resume_reading(self) -> None:
        """(As above.)"""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits."""


_SIGN = b"{sign}"


def _head_seeds() -> list[bytes]:
    body = event(event_id="evt_1")
    long = b"X-Padding: " + b"a" * 300 + b"\r\n"

    def post(*lines: bytes, path: bytes = b"/webhooks/main") -> bytes:
        return (
            b"POST " + path + b" HTTP/1.1\r\nHost: store.example\r\n" + b"\r\n".join(lines)
            + b"\r\n\r\n" + body
        )  # fmt: skip

    length, signed = f"Content-Length: {len(body)}".encode(), b"X-Service-Signature: {sign}"
    kind = b"Content-Type: application/json; charset=utf-8"
    return [
        post(length, signed, kind, b"X-Service-Delivery-Id: dlv_1", b"X-Service-Event: x"),
        post(length, signed, path=b"/webhooks/other"),
        post(length, b"X-Service-Signature: \xff\xfe", long[:-2]),
        post(b"Transfer-Encoding: chunked", signed),
        post(length, signed, b"Content-Encoding: gzip", b"Expect: 100-continue"),
        b"GET /healthz?nonce=abc HTTP/1.1\r\nHost: x\r\n\r\n" * 2,
        b"OPTIONS * HTTP/1.0\r\n\r\n",
    ]


@dataclass(slots=True)
class _Kept:
    """A ledger that remembers what it was to write."""

    deliveries: list[NewDelivery]

    async def write(self, sent: NewDelivery) -> bool:
        self.deliveries.append(sent)
        return True


@cache
def _receiver() -> tuple[_Loop, ReceiverHarness, _Kept]:
    loop, kept = _Loop(), _Kept([])
    harness = loop.enter(receiving(_home() / "receiver"))
    harness.receiver._deliveries.ledger = kept
    return loop, harness, kept


_TURNS = 60  # of the loop: an answer takes a dozen


def _play_head(data: bytes) -> None:
    """Send bytes over a connection, which then breaks off."""
    head, blank, body = data.partition(b"\r\n\r\n")
    sent = head.replace(_SIGN, sign(body).encode()) + blank + body
    loop, harness, kept = _receiver()
    kept.deliveries.clear()
    answer = loop.run(_sent(harness, sent))
    if b" 500 " in answer or (answer and not answer.startswith(b"HTTP/")):
        raise Finding(answer.decode("latin-1"))
    secrets = [WebhookSecret(f"whsec_{store}", 0) for store in ("main", "other")]
    for each in kept.deliveries:
        if all(signer_of(each.body, sign(each.body, s.secret), [s]) is None for s in secrets):
            raise Finding("a delivery without a right signature was taken")


async def _sent(harness: ReceiverHarness, data: bytes) -> bytes:
    server: Any = harness.receiver._server
    connection, wire = server(), _Wire()
    connection.connection_made(wire)
    connection.data_received(data)
    for _turn in range(_TURNS):
        await asyncio.sleep(0)
        if wire.closed:
            break
    connection.connection_lost(None)
    for _turn in range(10):
        await asyncio.sleep(0)
    return bytes(wire.sent)


@cache
def _page() -> tuple[_Loop, PageHarness]:
    loop = _Loop()
    harness: PageHarness = loop.enter(page_harness())
    return loop, harness


def _form_seeds() -> list[bytes]:
    fields = b"store=main&order=ord_1&item=1&until=2026-11-24T01%3A00&reason=OTHER&name=x&text="
    actions = sorted({each.path for each in EVERYTHING if isinstance(each, Action)})
    pages = sorted({each.path for each in EVERYTHING if not isinstance(each, Action)})
    return [
        *(f"POST {path}\n".encode() + fields for path in actions),
        *(f"GET {path}?page=2&q=x&day=2026-11-24\n".encode() for path in pages),
    ]


_FORM = "application/x-www-form-urlencoded"


def _play_form(data: bytes) -> None:
    """Send a form, or ask for a page: whatever is in it, the answer is no failure of the page."""
    loop, harness = _page()
    line, _newline, body = data.partition(b"\n")
    method, _blank, path = line.decode("latin-1").partition(" ")
    loop.run(_asked(harness, "POST" if method == "POST" else "GET", path, body))


async def _asked(harness: PageHarness, method: str, path: str, body: bytes) -> None:
    path = "/" + path.lstrip("/").encode("ascii", "ignore").decode()
    path = "".join(c for c in path if c.isprintable() and c not in " #\\")
    try:
        url = URL(harness.url + path, encoded=True)
    except ValueError:
        return
    headers = {"Origin": harness.url, "Sec-Fetch-Site": "same-origin", "Content-Type": _FORM}
    async with harness.session.request(
        method, url, data=body if method == "POST" else None, headers=headers, allow_redirects=False
    ) as answer:
        if answer.status == 500:  # others say what is wrong, and what to do
            raise Finding(f"{method} {path}: answered with 500")


TARGETS: Mapping[str, Target] = {
    each.name: each
    for each in (
        *_of_exports(),
        Target("webhook-head", _play_head, _head_seeds),
        Target("webhook-body", _play_body, _body_seeds),
        Target("process", _play_wire, _wire_seeds),
        Target("settings", _play_settings, _settings_seeds),
        Target("backup", _play_backup, _backup_seeds, slow=True),
        Target("forms", _play_form, _form_seeds),
    )
}
