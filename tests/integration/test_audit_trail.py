"""The audit trail: who did what, and any change of it afterwards shows."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from tests.support.fake_control import FakeControl
from tests.support.ledger_harness import StoppedClock, opened
from tillbridge import operations
from tillbridge.core.actor import Actor, Role, acting_as
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.operation import Dispatcher, Forbidden
from tillbridge.daemon.store_services import StoreServices
from tillbridge.ledger import audit
from tillbridge.ledger.audit import AuditTrail
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import metadata
from tillbridge.operations.bridge import Bridge

pytestmark = pytest.mark.usefixtures("each_database")

ACTS = [
    audit.Act("order.retry", "page:anna", "staff", "main", "ord_1", {"ok": True}),
    audit.Act("menu.push", "command:root", "technician", "main", "", {"ok": True, "full": True}),
    audit.Act("store.pause", "bridge", "", "main", "", {"ok": False}),
]


ROOT = Actor("command:root", Role.TECHNICIAN)


def bridge_of(ledger: Ledger) -> Bridge:
    return cast("Bridge", SimpleNamespace(ledger=ledger, is_set_up=True))


async def listed_of(ledger: Ledger) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = (await operations.audit.entries(bridge_of(ledger)))["entries"]
    return entries


async def filled(ledger: Ledger, count: int = 3) -> None:
    for number in range(count):
        act = ACTS[number % 3]
        await ledger.write(partial(audit.append, act=act, at=1000 + number))


async def test_entries_are_chained_and_read_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await filled(ledger)
        checked = await ledger.read(audit.check)
        assert checked.broken is None
        assert checked.entries == 3
        newest, *_rest = await ledger.read(audit.latest)
        assert (newest.action, newest.who, newest.store, newest.details) == (
            "store.pause",
            "bridge",
            "main",
            {"ok": False},
        )
        assert newest.hash == checked.head


@pytest.mark.parametrize(
    ("tampering", "entry"),
    [
        ("UPDATE audit SET who = 'page:ben' WHERE id = 2", 2),
        ("UPDATE audit SET at = at + 1 WHERE id = 1", 1),
        ("UPDATE audit SET detail = '{\"ok\":false}' WHERE id = 1", 1),
        ("UPDATE audit SET detail = 'x' WHERE id = 3", 3),
        ("DELETE FROM audit WHERE id = 1", 2),
        ("DELETE FROM audit WHERE id = 2", 3),
        ("DELETE FROM audit WHERE id = 3", 3),
        ("DELETE FROM audit", 1),
        ("UPDATE audit SET hash = previous WHERE id = 2", 2),
        (
            "UPDATE audit SET id = 9 WHERE id = 3",
            9,
        ),
    ],
)
async def test_whatever_is_changed_breaks_the_chain_there(
    tmp_path: Path, tampering: str, entry: int
) -> None:
    async with opened(tmp_path) as ledger:
        await filled(ledger)
        await ledger.write(lambda db: db.exec_driver_sql(tampering).rowcount)
        checked = await ledger.read(audit.check)
        assert checked.broken is not None
        assert checked.broken.entry == entry
        answer = await operations.audit.verify(bridge_of(ledger))
        assert answer["ok"] is False
        assert f"entry {entry}" in answer["text"]


_VALUE = st.one_of(st.text(max_size=20), st.integers(-(2**53), 2**53), st.booleans(), st.none())


@given(
    st.lists(
        st.builds(
            audit.Act,
            st.text(max_size=20),
            st.text(max_size=20),
            st.text(max_size=5),
            st.text(max_size=10),
            st.text(max_size=30),
            st.dictionaries(st.text(max_size=8), _VALUE, max_size=4),
        ),
        max_size=6,
    )
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_entries_make_a_whole_chain(acts: list[audit.Act]) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        metadata.create_all(connection)
        for act in acts:
            try:
                audit.append(connection, act, at=5)
            except UnicodeEncodeError:
                return  # a lone surrogate never leaves JSON or a path
        assert audit.check(connection) == audit.Checked(
            len(acts), audit.FIRST if not acts else audit.latest(connection)[0].hash
        )
    engine.dispose()


async def test_every_operation_that_acts_leaves_an_entry_and_no_reading_does(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as ledger:
        dispatcher = FakeControl().dispatcher(AuditTrail(ledger, StoppedClock()))
        for name, given in (
            ("items.off", {"store": "main"}),
            ("menu.plan", {"store": "main"}),
            ("tables.plan", {"store": "main"}),
            ("menu.push", {"store": "main", "full": True}),
            ("item.86", {"store": "main", "item": "B1", "until": "18:30"}),
            ("order.cancel", {"order": "ord_1", "reason_code": "OTHER"}),
            ("tables.push", {"store": "main"}),
        ):
            await dispatcher.perform(name, given, ROOT)
        listed = await listed_of(ledger)
        assert [(e["action"], e["store"], e["target"], e["detail"]) for e in reversed(listed)] == [
            ("menu.push", "main", "", {"ok": True, "full": True}),
            ("item.86", "main", "B1", {"ok": True, "until_ms": "18:30"}),
            ("order.cancel", "", "ord_1", {"ok": True, "reason_code": "OTHER"}),
            ("tables.push", "main", "", {"ok": True}),
        ]
        assert {each["who"] for each in listed} == {"command:root"}


async def test_what_failed_is_written_down_as_failed(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        inner = FakeControl()
        inner.failure = BridgeError("No.")
        dispatcher = inner.dispatcher(AuditTrail(ledger, StoppedClock()))
        with pytest.raises(BridgeError):
            await dispatcher.perform("order.retry", {"order": "ord_1"}, ROOT)
        (entry,) = await listed_of(ledger)
        assert entry["detail"] == {"ok": False, "failure": "BridgeError"}
        assert entry["who"] == "command:root"


async def test_what_a_defect_ended_is_written_down_as_failed(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        inner = FakeControl()
        inner.failure = ValueError("row 7")
        dispatcher = inner.dispatcher(AuditTrail(ledger, StoppedClock()))
        with pytest.raises(ValueError, match="row 7"):
            await dispatcher.perform("order.retry", {"order": "ord_1"}, ROOT)
        (entry,) = await listed_of(ledger)
        assert entry["detail"] == {"ok": False, "failure": "ValueError"}


async def test_the_list_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await filled(ledger, 5)
        bridge = bridge_of(ledger)
        first = await operations.audit.entries(bridge, limit=3)
        assert [each["id"] for each in first["entries"]] == [5, 4, 3]
        assert first["more"] is True
        rest = await operations.audit.entries(bridge, limit=3, before=3)
        assert [each["id"] for each in rest["entries"]] == [2, 1]
        assert rest["more"] is False


async def test_what_the_bridge_does_by_itself_is_there_too(tmp_path: Path) -> None:
    class Menu:
        out: list[str] = []  # noqa: RUF012 -- one menu, one test

        async def out_of_stock(self, external_ids: Sequence[str]) -> None:
            self.out += external_ids

    async with opened(tmp_path) as ledger:
        trail = AuditTrail(ledger, StoppedClock())
        store = cast("Any", SimpleNamespace(name="main", menu=Menu(), _trail=trail))
        with acting_as(Actor("page:anna", Role.STAFF)):
            await StoreServices.items_out(store, ["B1", "B2"])
        listed = await listed_of(ledger)
    assert Menu.out == ["B1", "B2"]
    assert [(each["who"], each["action"], each["target"]) for each in listed] == [
        ("bridge", "item.86", "B2"),
        ("bridge", "item.86", "B1"),
    ]


async def test_before_it_is_set_up_only_the_trail_can_be_read(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        trail = AuditTrail(ledger, StoppedClock())
        nothing = cast("Bridge", SimpleNamespace(ledger=ledger, is_set_up=False))
        dispatcher = Dispatcher(nothing, trail)
        assert (await dispatcher.perform("audit.list", {}, ROOT))["entries"] == []
        with pytest.raises(ConfigError, match="Nothing is set up yet"):
            await dispatcher.perform("menu.plan", {"store": "main"}, ROOT)


async def test_a_role_that_may_not_does_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        inner = FakeControl()
        dispatcher = inner.dispatcher(AuditTrail(ledger, StoppedClock()))
        for role in (None, Role.ANYBODY, Role.LOOK):
            with pytest.raises(Forbidden):
                await dispatcher.perform("order.retry", {"order": "ord_1"}, Actor("page:lou", role))
        assert inner.asked == []
        assert await listed_of(ledger) == []
