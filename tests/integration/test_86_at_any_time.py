"""An 86 during a reading, a push or a table push never waits, and has the last word.

Over interleavings: the till and staff change things in any order, while readings and calls stand
still at any point and go on in any order.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.catalogue_harness import ShelfPos, Tracker, WallClock, store_settings
from tests.support.catalogues import dishes
from tests.support.held_service import HeldService
from tests.support.store_context import store_context
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.menu.flow import MenuFlow
from tillbridge.model.catalogue import Availability, Catalogue
from tillbridge.model.restaurant import Table

OFF = Availability(available=False)
DISHES = 5
PATIENCE_S = 20

ITEMS = st.sampled_from(["p1", "p2", "p5"])
ACTIONS = st.one_of(
    st.tuples(st.just("sells_out"), ITEMS),
    st.tuples(st.just("is_back"), ITEMS),
    st.tuples(st.just("staff_86"), ITEMS),
    st.tuples(st.just("staff_restore"), ITEMS),
    st.tuples(st.just("one_price"), ITEMS),
    st.tuples(
        st.sampled_from(
            [
                "all_prices",
                "full_push",
                "full_push_as_a_job",
                "tables",
                "read_slowly",
                "go_on_oldest",
                "go_on_newest",
            ]
        ),
        st.just(""),
    ),
)


class SlowPos(ShelfPos):
    """A till that takes its time to export the menu, where the service holds calls too."""

    def __init__(self, service: HeldService) -> None:
        super().__init__()
        self._service = service
        self.slow = False

    async def read_catalogue(self) -> Catalogue:
        found = await super().read_catalogue()
        if self.slow:
            self.slow = False
            await self._service.gate()
        return found


class Store:
    """A running flow, and what its till and its staff do."""

    def __init__(self, flow: MenuFlow, pos: SlowPos, service: HeldService) -> None:
        self.flow = flow
        self.pos = pos
        self.service = service
        self.words: dict[str, Availability] = {}
        self.overrides: set[str] = set()
        self._prices: dict[str, dict[str, object]] = {}
        self._pushes: list[asyncio.Task[object]] = []
        self._version = 0

    def on_sale(self, external_id: str) -> bool:
        """Whether the till and staff want the item sold."""
        return external_id not in self.words and external_id not in self.overrides

    async def act(self, action: str, external_id: str) -> None:
        """Do one thing; an 86 has to be at the service before this returns."""
        self._version += 1
        match action:
            case "sells_out":
                self._say({**self.words, external_id: OFF})
                await self.off_sale(external_id)
            case "is_back":
                self._say({key: each for key, each in self.words.items() if key != external_id})
            case "staff_86":
                self.overrides.add(external_id)
                await self.flow.take_off_sale(external_id, until=None, by="staff")
                await self.off_sale(external_id)
            case "staff_restore":
                self.overrides.discard(external_id)
                await self.flow.restore(external_id)
            case "one_price":
                self._price([external_id])
            case "all_prices":
                self._price([f"p{number}" for number in range(1, DISHES + 1)])
            case "full_push" | "full_push_as_a_job":
                self.service.background |= action == "full_push_as_a_job"
                self._pushes.append(asyncio.create_task(self.flow.push_again(full=True)))
            case "tables":
                self.pos.tables = (Table("t1", f"Table {self._version}"),)
                self.flow.tables_changed()
            case "read_slowly":
                self.pos.slow = True
            case "go_on_oldest":
                self.service.open_oldest()
            case "go_on_newest":
                self.service.open_newest()
        await asyncio.sleep(0.002)

    def _say(self, words: dict[str, Availability]) -> None:
        self.words = words
        self.pos.words = words
        self.flow.availability_changed()

    def _price(self, external_ids: list[str]) -> None:
        self._prices |= {each: {"price": 100 + self._version} for each in external_ids}
        self.pos.menu = dishes(DISHES, **self._prices)
        self.flow.export_changed()

    async def off_sale(self, external_id: str) -> None:
        """Wait until the service has the item off sale, while everything held stands still."""
        await until(lambda: not self.service.items[external_id]["available"])

    async def settled(self) -> None:
        """Let everything go on, and wait until the service has what till and staff want."""
        self.service.open_all()
        await asyncio.wait_for(asyncio.gather(*self._pushes), PATIENCE_S)
        calls = -1
        async with asyncio.timeout(PATIENCE_S):
            while calls != self.service.calls or not self._is_right():
                calls = self.service.calls
                await asyncio.sleep(0.08)

    def _is_right(self) -> bool:
        return all(
            self.service.items[key]["available"] == self.on_sale(key)
            and self.service.items[key]["price"] == item.price
            for key, item in dishes(DISHES, **self._prices).items.items()
        )


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not found():
            await asyncio.sleep(0.002)


@asynccontextmanager
async def running_store(folder: Path) -> AsyncIterator[Store]:
    """A store whose menu is on sale, and whose calls are held from now on."""
    clock, service = WallClock(), HeldService()
    pos = SlowPos(service)
    pos.menu = dishes(DISHES)
    ledger = await Ledger.open(folder, clock=clock)
    flow = MenuFlow(
        store_context(
            store_settings(max_price_change_percent=10_000, max_sold_out_percent=100),
            assumptions=AssumptionSettings.model_validate({"batch_max_items": 2}),
            pos=pos,
            service=service,
            ledger=ledger,
            problems=Tracker(),
            clock=clock,
            job_poll_s=0.002,
        )
    )
    await ledger.write(
        lambda connection: put_fact(connection, "main", "service_store_id", "st_main", at=1)
    )
    running = asyncio.create_task(flow.run())
    try:
        await until(lambda: len(service.items) == DISHES)
        service.holds = True
        yield Store(flow, pos, service)
    finally:
        service.open_all()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await ledger.close()


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(actions=st.lists(ACTIONS, min_size=4, max_size=14))
def test_an_86_never_waits_and_has_the_last_word(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str]]
) -> None:
    async def example() -> None:
        async with running_store(tmp_path_factory.mktemp("data")) as store:
            for action, external_id in actions:
                await store.act(action, external_id)
            await store.settled()
            await store.flow.push_again()
            await store.settled()
            calls = store.service.calls
            await store.flow.push_again()
            assert store.service.calls == calls  # the ledger knows what the service has

    asyncio.run(example())


@pytest.mark.parametrize("held", ["reading", "batch", "patch", "full", "job", "tables"])
@pytest.mark.parametrize("how", ["sells_out", "staff_86"])
async def test_an_86_goes_out_while_something_else_stands_still(
    tmp_path: Path, held: str, how: str
) -> None:
    actions = {
        "reading": [("read_slowly", ""), ("all_prices", "")],
        "batch": [("all_prices", "")],
        "patch": [("one_price", "p1")],
        "full": [("full_push", "")],
        "job": [("full_push_as_a_job", "")],
        "tables": [("tables", "")],
    }[held]
    async with running_store(tmp_path / "data") as store:
        for action, external_id in actions:
            await store.act(action, external_id)
        await until(lambda: bool(store.service.held))
        said = len(store.service.said)
        await store.act(how, "p5")
        assert store.service.said[said:] == [("p5", False)]
        later = len(store.service.said)
        await store.settled()
        # A call that was planned before it, and begins after it, says that it is off sale too.
        if held in {"reading", "batch"}:
            assert ("p5", True) not in store.service.said[later:]
        await store.flow.push_again()
        assert not store.service.items["p5"]["available"]


async def test_what_is_back_before_the_push_that_clashed_with_its_86_ends_is_sold_again(
    tmp_path: Path,
) -> None:
    async with running_store(tmp_path / "data") as store:
        await store.act("full_push", "")
        await until(lambda: bool(store.service.held))
        await store.act("go_on_oldest", "")  # the push is applied, and not answered yet
        await until(lambda: bool(store.service.held))
        await store.act("sells_out", "p1")
        await store.act("is_back", "p1")
        await store.settled()
        assert store.service.items["p1"]["available"]
