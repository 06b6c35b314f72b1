"""The menu calls. Specification: Menus and items; Menu sync job; Menu sync status.

Patches and availability are upserts keyed on external ids, so that repeating one does no harm. Of a
push or a batch of unknown outcome the sync status tells whether it was applied: it is not repeated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tillbridge.core.errors import Refused
from tillbridge.core.log import get_logger
from tillbridge.model.table import Table
from tillbridge.service import types
from tillbridge.service.caller import Outcome, Settle, Write
from tillbridge.service.calls import Calls
from tillbridge.service.encoding import encode, encode_small
from tillbridge.service.gate import Priority
from tillbridge.service.transport import Answer

log = get_logger()

# Seconds between looks at the sync status after a push whose answer was lost: the service may have
# taken it as a job, which moves the status only at its end, and must not be given a second one.
_JOB_LOOKS_S = (0.0, 2.0, 4.0, 8.0)


class MenuCalls(Calls):
    """Tells the service what is on the menu, the availability of it before the rest."""

    _warned_of = ""  # the job whose poll_url was a stranger's
    _writes = 0  # begun or ended: whether another call may have moved last_synced_at

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> types.PushAnswer:
        """Push the whole menu; done at once, or accepted as a background job.

        Should the answer be lost, a `last_synced_at` that has moved shows that the push was applied
        (`settled_by` "status").
        """
        operation = "menus.push"
        before, outcome = await self._write_once(
            store_id,
            (operation, "POST", ("pos", "stores", store_id, "menus")),
            body,
            looks_after_s=_JOB_LOOKS_S,
        )
        if outcome.settled:
            return types.PushDone("success", settled_by="status")
        answer = types.parse_push(
            outcome.answer.body, status=outcome.answer.status, operation=operation
        )
        if isinstance(answer, types.PushAccepted):
            return replace(answer, synced_before=before)
        return answer

    async def _write_once(
        self,
        store_id: str,
        request: tuple[str, str, tuple[str, ...]],
        body: Mapping[str, Any],
        *,
        looks_after_s: Sequence[float] = (0.0,),
    ) -> tuple[int | None, Outcome]:
        """Write what is not to be repeated once it was applied; return when the last sync was.

        The sync status is read first: should the answer be lost, a `last_synced_at` that has moved
        shows that the write was applied. One that has not moved shows nothing where another write
        of this bridge was under way. `looks_after_s` are the pauses before each look.
        """
        data = await encode(body)
        before = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
        others = self._writes

        async def settle() -> Answer | None:
            for pause in looks_after_s:
                if pause:
                    await self._caller.pause(pause)
                now = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
                if now is not None and now != before and self._writes == others:
                    return Answer(200, None)
            return None

        try:
            outcome = await self._write(request, data, priority=Priority.MENU, write=Write(settle))
        finally:
            self._writes += 1
        return before, outcome

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> types.MenuJob:
        """Return the state of a background push; Refused `menu.job_not_found` once it is gone.

        A `poll_url` that is not the service's own is never called: the job is asked for under the
        path that the specification gives it.
        """
        operation = "menus.job"
        url = self._job_url(store_id, job_id, poll_url)
        answer = await self._read_url(operation, url, priority=Priority.POLL)
        return types.parse_job(answer.body, operation)

    def _job_url(self, store_id: str, job_id: str, poll_url: str) -> str:
        origin = self._caller.origin
        if poll_url:
            try:
                return origin.poll_url(poll_url)
            except Refused:
                if self._warned_of != job_id:
                    log.warning("menu.poll_url_foreign", store_id=store_id, job=job_id)
                self._warned_of = job_id
        return origin.url("pos", "stores", store_id, "menus", "jobs", job_id)

    async def menu_status(
        self, store_id: str, *, priority: Priority = Priority.POLL
    ) -> types.MenuStatus:
        """Return the menu sync status."""
        operation = "menus.status"
        path = ("pos", "stores", store_id, "menus", "status")
        answer = await self._read(operation, *path, priority=priority)
        return types.parse_menu_status(answer.body, operation)

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> types.BatchResult:
        """Add, update and delete several items in one call; a lost answer is as in `push_menus`.

        An add that is repeated names an item that is there already, a delete one that is gone.
        """
        operation = "menus.batch"
        path = ("pos", "stores", store_id, "menus", "batch")
        _before, outcome = await self._write_once(store_id, (operation, "POST", path), body)
        if outcome.settled:
            return types.BatchResult("success")
        return types.parse_batch(outcome.answer.body, operation)

    async def set_availability(
        self, store_id: str, items: Iterable[Mapping[str, Any]]
    ) -> types.AvailabilityResult:
        """Take items off sale or back on: `{external_id, available, snooze_until?}` each.

        `not_found` in the answer names external ids that the service does not know.
        """
        operation = "items.availability"
        path = ("pos", "stores", store_id, "items", "availability")
        body = await encode({"items": list(items)})
        answer = await self._upsert(operation, "POST", path, body, priority=Priority.AVAILABILITY)
        return types.parse_availability(answer.body, operation)

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> types.PatchResult:
        """Change one item; Refused `menu.item_not_found` where the service does not know it."""
        operation = "items.patch"
        path = ("pos", "stores", store_id, "items", external_id)
        answer = await self._upsert(
            operation, "PATCH", path, encode_small(fields), priority=Priority.MENU
        )
        return types.parse_patch(answer.body, operation)

    async def push_tables(
        self, store_id: str, tables: Sequence[Table], *, cleared: Collection[str] = ()
    ) -> list[types.TableQr]:
        """Push the floor plan whole: tables that are missing from it are deactivated.

        `cleared` are the external ids of tables that have lost their zone: an upsert without the
        field may leave the old one, so theirs is sent empty.
        """
        operation = "tables.push"
        body = await encode(
            {"tables": [_table(each, cleared=each.external_id in cleared) for each in tables]}
        )
        # No call reads tables; the repeat's answer is the state.
        outcome = await self._write(
            (operation, "POST", ("pos", "stores", store_id, "tables")),
            body,
            priority=Priority.MENU,
        )
        return types.parse_tables(outcome.answer.body, operation)

    async def _upsert(
        self, operation: str, method: str, path: tuple[str, ...], body: bytes, *, priority: Priority
    ) -> Answer:
        self._writes += 1
        write = Write(self._read_before_repeat(path[2], priority))
        try:
            outcome = await self._write(
                (operation, method, path), body, priority=priority, write=write
            )
        finally:
            self._writes += 1
        return outcome.answer

    def _read_before_repeat(self, store_id: str, priority: Priority) -> Settle:
        async def settle() -> None:
            # The status does not say which items were taken, only whether it makes sense to go on
            # (it fails where the integration is gone); the repeat then gives the answer.
            await self.menu_status(store_id, priority=priority)

        return settle


def _table(table: Table, *, cleared: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"external_id": table.external_id, "name": table.name}
    if table.seats is not None:
        body["seats"] = table.seats
    if table.zone or cleared:
        body["zone"] = table.zone
    return body
