"""A store's catalogue flow between a made-up POS and a sandbox, with a real ledger."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection

from tests.support.service_link import Linked, linked
from tests.support.store_context import store_context
from tillbridge.adapter import AvailabilityReading, TablesReading
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.menu.flow import MenuFlow
from tillbridge.model.catalogue import Availability, Catalogue, CatalogueChanges
from tillbridge.model.restaurant import Table
from tillbridge.sandbox import SandboxSettings

T = TypeVar("T")


class ShelfPos:
    """A POS whose readings a test puts on the shelf; an exception there is raised."""

    def __init__(self) -> None:
        self.menu: Catalogue | Exception = Catalogue()
        self.words: dict[str, Availability] | Exception = {}
        self.tables: tuple[Table, ...] | Exception = ()
        self.read = 0
        self.reads_catalogue = True
        self.reads_changes = False
        self.reads_availability = True
        self.reads_tables = True

    async def read_catalogue(self) -> Catalogue:
        self.read += 1
        if isinstance(self.menu, Exception):
            raise self.menu
        return self.menu

    async def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        raise AssertionError("read_changes, where reads_changes is False")

    async def read_availability(self) -> AvailabilityReading:
        if isinstance(self.words, Exception):
            raise self.words
        return AvailabilityReading(dict(self.words))

    async def read_tables(self) -> TablesReading:
        if isinstance(self.tables, Exception):
            raise self.tables
        return TablesReading(self.tables)


class WallClock(Clock):
    """The real clock, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@dataclass(slots=True)
class Tracker:
    """A problem tracker that only remembers."""

    opened: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)

    def report(self, scope: Scope, found: Iterable[Found]) -> None:
        for code, subject in tuple(self.opened):
            if scope.covers(code, scope.store, subject):
                del self.opened[code, subject]
        for each in found:
            self.opened[each.code, each.subject] = dict(each.detail)

    @property
    def codes(self) -> set[str]:
        return {code for code, _subject in self.opened}


@dataclass(slots=True)
class CatalogueHarness:
    """Everything together."""

    pos: ShelfPos
    flow: MenuFlow
    ledger: Ledger
    tracker: Tracker
    clock: WallClock
    linked: Linked
    rebuild: Callable[..., MenuFlow]

    async def integrated(self, integration_id: str, store_id: str = "st_main") -> None:
        """Take note of an integration, as connecting does."""

        def note(connection: Connection) -> None:
            put_fact(connection, "main", "service_store_id", store_id, at=1)
            put_fact(connection, "main", "integration", {"integration_id": integration_id}, at=1)

        await self.ledger.write(note)

    async def calls(self) -> list[str]:
        """The menu writes since the last time this was asked."""
        log = (await self.linked.driver.control("GET", "/requests")).body["requests"]
        await self.linked.driver.control("DELETE", "/requests")
        return [
            f"{each['method']} {each['path'].split('/st_main/')[1]}"
            for each in log
            if "/stores/st_main/" in each["path"] and each["method"] != "GET"
        ]

    async def on_sale(self) -> dict[str, Mapping[str, Any]]:
        """What the service has, by external id."""
        catalogue = await self.linked.driver.catalogue()
        items: dict[str, Mapping[str, Any]] = catalogue["items"]
        return items

    async def ask(self, query: Callable[..., T], *arguments: object) -> T:
        """Ask the ledger about the store."""
        return await self.ledger.read(lambda connection: query(connection, "main", *arguments))


def store_settings(**menu: object) -> StoreSettings:
    return StoreSettings.model_validate(
        {
            "location_id": "loc-1",
            "currency": "USD",
            "timezone": "UTC",
            "pos": {"adapter": "folder"},
            "menu": menu,
        }
    )


@asynccontextmanager
async def catalogue_harness(
    tmp_path: Path, sandbox: SandboxSettings | None = None, **assumptions: object
) -> AsyncIterator[CatalogueHarness]:
    """A connected store whose flow a test drives round by round."""
    clock, tracker, pos = WallClock(), Tracker(), ShelfPos()
    async with linked(sandbox) as bench:
        await bench.integrate()
        ledger = await Ledger.open(tmp_path / "data", clock=clock)
        try:
            await ledger.write(_connected)

            def build(
                base_url: str = bench.driver.running.base_url,
                service: object = bench.client,
                **menu: object,
            ) -> MenuFlow:
                return MenuFlow(
                    store_context(
                        store_settings(**menu),
                        assumptions=AssumptionSettings.model_validate(assumptions),
                        pos=pos,
                        service=service,
                        ledger=ledger,
                        problems=tracker,
                        clock=clock,
                        base_url=base_url,
                    )
                )

            harness = CatalogueHarness(pos, build(), ledger, tracker, clock, bench, build)
            await harness.calls()
            yield harness
        finally:
            await ledger.close()


def _connected(connection: Connection) -> None:
    put_fact(connection, "main", "service_store_id", "st_main", at=1)
