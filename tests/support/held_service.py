"""A service in memory whose menu and table calls stand still until a test lets them go on.

A held call stops twice: before it is applied, and after that, before it is answered. Availability
calls are never held.
"""

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tillbridge.model.restaurant import Table
from tillbridge.service.types import (
    AvailabilityResult,
    BatchResult,
    MenuJob,
    MenuStatus,
    PatchResult,
    PushAccepted,
    PushAnswer,
    PushCounts,
    PushDone,
    TableQr,
)


@dataclass(slots=True)
class HeldService:
    """The menu calls of `ServiceClient`. `held` are the gates at which calls stand, oldest first.

    `background` makes the next full push a job, which is applied when it is let go on.
    `calls` counts those that arrived; `said` are the availabilities that they gave for items.
    """

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    held: list[asyncio.Event] = field(default_factory=list)
    holds: bool = False
    background: bool = False
    calls: int = 0
    unanswered_at: float = -math.inf
    said: list[tuple[str, bool]] = field(default_factory=list)
    _job: tuple[list[Mapping[str, Any]], asyncio.Task[None]] | None = None

    def open_oldest(self) -> None:
        """Let the call go on that stands still for longest."""
        if self.held:
            self.held.pop(0).set()

    def open_newest(self) -> None:
        """Let the call go on that stands still for the shortest time."""
        if self.held:
            self.held.pop().set()

    def open_all(self) -> None:
        """Let every call go on, from now on too."""
        self.holds = False
        while self.held:
            self.open_oldest()

    async def gate(self) -> None:
        """Stand still, where calls are held."""
        if self.holds:
            gate = asyncio.Event()
            self.held.append(gate)
            await gate.wait()

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> PushAnswer:
        pushed = [item for menu in body["menus"] for item in menu["items"]]
        if self.background:
            self.background = False
            self._hear(pushed)
            self._job = pushed, asyncio.create_task(self._held_then_applied(pushed))
            return PushAccepted("job_1", "")
        self._hear(pushed)
        await self._held_then_applied(pushed)
        await self.gate()
        return PushDone("success", counts=PushCounts(items=len(pushed)))

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> MenuJob:
        assert self._job is not None
        pushed, applied = self._job
        status = "success" if applied.done() else "running"
        return MenuJob(job_id, status, counts=PushCounts(items=len(pushed)))

    async def menu_status(self, store_id: str) -> MenuStatus:
        return MenuStatus()

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> BatchResult:
        put = [*body["add"], *body["update"]]
        self._hear(put)
        await self._held_then_applied(put)
        for external_id in body["delete"]:
            self.items.pop(external_id, None)
        await self.gate()
        return BatchResult("success", "", len(body["add"]), len(body["update"]), 0)

    async def patch_item(
        self,
        store_id: str,
        external_id: str,
        fields: Mapping[str, Any],
    ) -> PatchResult:
        body = {**fields, "external_id": external_id}
        self._hear([body])
        await self._held_then_applied([body])
        await self.gate()
        return PatchResult("success")

    async def set_availability(
        self,
        store_id: str,
        items: Sequence[Mapping[str, Any]],
    ) -> AvailabilityResult:
        self._hear(items)
        self._apply(items)
        await asyncio.sleep(0)
        return AvailabilityResult("success", updated=len(items))

    async def push_tables(
        self,
        store_id: str,
        tables: Sequence[Table],
        *,
        cleared: Collection[str] = (),
    ) -> list[TableQr]:
        await self.gate()
        self.tables = {each.external_id: each for each in tables}
        await self.gate()
        return [TableQr(each, each, each, f"https://qr/{each}") for each in self.tables]

    async def _held_then_applied(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        await self.gate()
        self._apply(bodies)

    def _hear(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        self.calls += 1
        self.said += [
            (each["external_id"], each["available"]) for each in bodies if "available" in each
        ]

    def _apply(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        for body in bodies:
            self.items.setdefault(body["external_id"], {}).update(body)
