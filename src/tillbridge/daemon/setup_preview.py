"""The till as the page shows it: the form, and what the adapter that was tried reads, live."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tillbridge.core.errors import ConfigError
from tillbridge.daemon.setup_place import SetupPlace
from tillbridge.daemon.setup_till import (
    adapters,
    form_of,
    refuse_own_places,
    said_of,
    tried,
)
from tillbridge.setup.draft import Draft
from tillbridge.setup.preview import nothing_seen
from tillbridge.web.ports import Answer

_LOOK_AGAIN_S = 2.0
_WATCHED_S = 90.0  # a page that is open asks at least every 30 seconds
_USUAL = "folder"


class TillPreview:
    """What was tried last, and what it reads for as long as somebody looks."""

    def __init__(self, place: SetupPlace) -> None:
        self._place = place
        self._tried: Answer = {}  # the adapter and its options
        self._seen: Answer | None = None
        self._shown_at = 0.0  # monotonic seconds
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def forget(self) -> None:
        """Forget what was tried."""
        self._tried, self._seen = {}, None

    async def said(
        self, adapter: str, form: Mapping[str, str], kept: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return an adapter and its options, as they are to stand in the file."""
        data_dir, base_dir = self._place.ledger.data_dir, self._place.base_dir

        def read() -> dict[str, Any]:
            said = said_of(adapter, form, kept, data_dir / "secrets")
            refuse_own_places(said, form, base_dir=base_dir)
            return said

        return await asyncio.to_thread(read)

    async def look(self, said: Answer, draft: Draft) -> Answer:
        """Return what an adapter reads, and go on looking. Raises ConfigError."""
        self._tried, self._seen = said, None
        self._seen = await tried(said, draft, self._place.base_dir)
        self._shown_at = self._place.clock.monotonic()
        await self.close()
        self._looking = asyncio.create_task(self._look_on(said, draft), name="setup.preview")
        return self._seen

    async def show(self, draft: Draft, adapter: str, *, all_adapters: bool) -> Answer:
        """Return what the form holds, for the adapter that is chosen or was tried.

        Looking at all adapters imports them: beside a running bridge only who asks for it pays.
        """
        said = self._tried or dict(draft.pos)
        if adapter and adapter != said.get("adapter"):
            said = {"adapter": adapter}
        name = str(said.get("adapter") or _USUAL)
        menu_only = "menu" in draft.found and "adapter" not in draft.found
        self._shown_at = self._place.clock.monotonic()
        return {
            "adapters": await asyncio.to_thread(adapters, () if all_adapters else (name,)),
            "all_adapters": all_adapters,
            "adapter": name,
            "fields": await asyncio.to_thread(form_of, {**said, "adapter": name}),
            "preview": self._seen if self._tried.get("adapter") == name else None,
            "needs_orders": menu_only,
            "orders_adapter": str(draft.orders.get("adapter") or _USUAL),
            "orders_fields": await asyncio.to_thread(form_of, dict(draft.orders))
            if menu_only
            else [],
        }

    async def _look_on(self, said: Mapping[str, Any], draft: Draft) -> None:
        clock = self._place.clock
        while clock.monotonic() - self._shown_at < _WATCHED_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            try:
                seen = await tried(said, draft, self._place.base_dir)
            except ConfigError as failure:
                seen = {**nothing_seen(), "troubles": [{"text": failure.text, "fix": failure.fix}]}
            if seen != self._seen:
                self._seen = seen
                self._place.bell.ring()
