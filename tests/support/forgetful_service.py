"""A strict ordering service in memory that may lose all it was told, for simulations.

It takes the menu calls as the specification shows them, and refuses what refers to things it does
not know. `lose()` is what a service restored from a backup, or a store integrated anew, looks like.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tillbridge.core.errors import Refused, ServiceDown
from tillbridge.model.restaurant import Table
from tillbridge.service.types import (
    AvailabilityResult,
    BatchResult,
    MenuJob,
    MenuStatus,
    PatchResult,
    PushAnswer,
    PushCounts,
    PushDone,
    TableQr,
)


class ForgetfulService:
    """Holds items, categories and groups by external id."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.categories: set[str] = set()
        self.groups: set[str] = set()
        self.tables: dict[str, Table] = {}
        self.away = False
        self.calls: list[str] = []
        self.unanswered_at = -math.inf

    def lose(self) -> None:
        """Forget everything."""
        self.items.clear()
        self.categories.clear()
        self.groups.clear()
        self.tables.clear()

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> PushAnswer:
        self._called("full", store_id)
        for menu in body["menus"]:
            self._take_parts(menu)
            self._check(menu["items"], "items")
        told = [item for menu in body["menus"] for item in menu["items"]]
        self.items.update((each["external_id"], dict(each)) for each in told)
        return PushDone("success", counts=PushCounts(items=len(told)))

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> MenuJob:
        raise AssertionError("no push became a job")

    async def menu_status(self, store_id: str) -> MenuStatus:
        return MenuStatus(store_id)

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> BatchResult:
        self._called("batch", store_id)
        self._check(body["add"], "add", body)
        self._check(body["update"], "update", body)
        unknown = [
            each["external_id"] for each in body["update"] if each["external_id"] not in self.items
        ]
        if unknown:
            raise _not_found(*unknown)
        self._take_parts(body)
        for each in (*body["add"], *body["update"]):
            self.items[each["external_id"]] = dict(each)
        for external_id in body["delete"]:
            self.items.pop(external_id, None)
        return BatchResult(
            "success", "", len(body["add"]), len(body["update"]), len(body["delete"])
        )

    async def set_availability(
        self, store_id: str, items: Sequence[Mapping[str, Any]]
    ) -> AvailabilityResult:
        self._called("availability", store_id)
        missing = []
        for each in items:
            if each["external_id"] in self.items:
                self.items[each["external_id"]]["available"] = each["available"]
            else:
                missing.append(each["external_id"])
        return AvailabilityResult("success", "", len(items) - len(missing), tuple(missing))

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> PatchResult:
        self._called("patch", store_id)
        if external_id not in self.items:
            raise _not_found(external_id)
        self._check([fields], "body")
        self.items[external_id].update(fields)
        return PatchResult("success", "")

    async def push_tables(
        self, store_id: str, tables: Sequence[Table], *, cleared: Collection[str] = ()
    ) -> list[TableQr]:
        self._called("tables", store_id)
        self.tables = {each.external_id: each for each in tables}
        return []

    def _called(self, what: str, _store_id: str) -> None:
        if self.away:
            raise ServiceDown("away", status=503)
        self.calls.append(what)

    def _take_parts(self, body: Mapping[str, Any]) -> None:
        self.categories.update(each["external_id"] for each in body.get("categories", ()))
        self.groups.update(each["external_id"] for each in body.get("addon_groups", ()))

    def _check(
        self, items: Sequence[Mapping[str, Any]], where: str, body: Mapping[str, Any] | None = None
    ) -> None:
        categories = self.categories | {
            each["external_id"] for each in (body or {}).get("categories", ())
        }
        for index, item in enumerate(items):
            for category in item.get("categories", ()):
                if category not in categories:
                    raise Refused(
                        f"{where}[{index}]: {category!r} is no category that was pushed",
                        code="request.validation",
                        status=400,
                    )


def _not_found(*external_ids: str) -> Refused:
    return Refused(
        f"no such item: {', '.join(external_ids)}", code="menu.item_not_found", status=404
    )
