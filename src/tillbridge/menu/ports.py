"""What the catalogue's flow needs of others: the POS, the service, and the problems desk.

The daemon hands in `adapters.runner.PosRunner`, `service.client.ServiceClient` and
`ledger.desk.ProblemDesk`; tests hand in something small.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from tillbridge.adapter import AvailabilityReading, TablesReading
from tillbridge.model.catalogue import Catalogue, CatalogueChanges
from tillbridge.model.table import Table
from tillbridge.service.types import (
    AvailabilityResult,
    BatchResult,
    MenuJob,
    MenuStatus,
    PatchResult,
    PushAnswer,
    TableQr,
)


class CataloguePos(Protocol):
    """A store's POS, as far as its menu goes. Reads raise ExportUnreadable or PosFailure."""

    @property
    def reads_catalogue(self) -> bool:
        """Whether there is a menu to read."""
        ...

    @property
    def reads_changes(self) -> bool:
        """Whether a large menu can be read as its difference."""
        ...

    @property
    def reads_availability(self) -> bool:
        """Whether the POS tells apart from the menu what is sold out."""
        ...

    @property
    def reads_tables(self) -> bool:
        """Whether the POS tells its floor plan."""
        ...

    async def read_catalogue(self) -> Catalogue:
        """Return what the POS sells now."""
        ...

    async def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return what differs from the records whose fingerprints are `known`."""
        ...

    async def read_availability(self) -> AvailabilityReading:
        """Return what the POS says is sold out or on sale."""
        ...

    async def read_tables(self) -> TablesReading:
        """Return the floor plan."""
        ...


class CatalogueService(Protocol):
    """The menu calls of the service (specification: Menus and items); they raise ServiceError."""

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> PushAnswer:
        """POST menus."""
        ...

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> MenuJob:
        """GET the job."""
        ...

    async def menu_status(self, store_id: str) -> MenuStatus:
        """GET menus/status."""
        ...

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> BatchResult:
        """POST menus/batch."""
        ...

    async def set_availability(
        self, store_id: str, items: Sequence[Mapping[str, Any]]
    ) -> AvailabilityResult:
        """POST items/availability."""
        ...

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> PatchResult:
        """PATCH the item."""
        ...

    async def push_tables(
        self, store_id: str, tables: Sequence[Table], *, cleared: Collection[str] = ()
    ) -> list[TableQr]:
        """POST tables; `cleared` have lost their zone."""
        ...


class Desk(Protocol):
    """Where problems are opened and closed; opening an open one again changes its words."""

    def open(self, code: str, store: str = "", subject: str = "", **detail: object) -> None:
        """Open the problem."""
        ...

    def close(self, code: str, store: str = "", subject: str = "") -> None:
        """Close the problem, if it is open."""
        ...
