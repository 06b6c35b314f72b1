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
