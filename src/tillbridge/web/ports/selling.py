"""What is asked about what a store sells: its menu, its items, its tables."""

from collections.abc import Mapping
from typing import Protocol

from tillbridge.web.ports.answer import Answer


class MenuControl(Protocol):
    """What is asked about a store's menu, and done about it."""

    async def show(self, store: str) -> Answer:
        """Return how it stands.

        `export` {items, read_at}, `accepted`, `pending`, `last_synced_at`, `hold` (None, or
        `since`, `reasons`, `counts`, `categories`, `approved`, `dismissed`), `refused` and
        `refused_count`.
        """
        ...

    async def items(
        self, store: str, *, text: str = "", page: int = 1, at_ms: int | None = None
    ) -> Answer:
        """Return `items` that the storefront has, or had at `at_ms`; `count`, `page`, `pages`."""
        ...

    async def history(self, store: str, *, before: int | None = None) -> Answer:
        """Return `pushes` before the one with that id, newest first; whether there are `more`."""
        ...

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now; pushes nothing.

        As `PlanReport.to_json()`, and `lines`: each change as a line for people.
        """
        ...

    async def push(self, store: str, *, full: bool) -> Answer:
        """Push now: what differs, or everything."""
        ...

    async def approve(self, store: str) -> Answer:
        """Release the plan that is held."""
        ...

    async def dismiss(self, store: str) -> Answer:
        """Leave the menu as it is: the plan that is held is not offered again."""
        ...


class ItemsControl(Protocol):
    """What the kitchen asks about items, and does about one."""

    async def off(self, store: str) -> Answer:
        """Return `items` that are off sale, the latest first, and `ends` in ms.

        An item has `external_id`, `name`, `variant`, `how` (staff, order, till), `by`, `since`,
        `until`, `reached_at`, `reached_ms` (how long it took to reach the storefront). `ends` are
        `opening_ms` (the store's next day) and `hour_ms`.
        """
        ...

    async def find(self, store: str, text: str, *, limit: int = 40, offset: int = 0) -> Answer:
        """Return `items` and variants whose name, initials or id fit, best first; `count`."""
        ...

    async def take_off(
        self, store: str, external_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale, whatever the POS says."""
        ...

    async def restore(self, store: str, external_id: str) -> Answer:
        """Lift the staff's word on an item: what the POS says counts again."""
        ...


class TablesControl(Protocol):
    """What commands ask about a store's tables; as `Control`."""

    async def list(self, store: str) -> Answer:
        """Return `tables` (as accepted, each with `qr_url` and `code`), `title`, `held`, `told`."""
        ...

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now, as `FloorPlan.to_json()`; pushes nothing."""
        ...

    async def push(self, store: str) -> Answer:
        """Push the floor plan whole, whether it has changed or not."""
        ...

    async def approve(self, store: str) -> Answer:
        """Release the floor plan that is held."""
        ...

    async def printed(self, store: str, codes: Mapping[str, str]) -> Answer:
        """Take note that these codes (as `list` names them, by external id) are printed."""
        ...
