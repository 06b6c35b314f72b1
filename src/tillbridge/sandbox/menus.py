"""Menus, items, availability and tables: the endpoints that a POS pushes to, and menu sync jobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tillbridge.sandbox.bodies import (
    AvailabilityBatch,
    Batch,
    FlatPush,
    ItemPatch,
    MenusPush,
    Tables,
    menu_push,
)
from tillbridge.sandbox.bodies import Table as TableBody
from tillbridge.sandbox.catalogue import (
    Applied,
    Push,
    apply_push,
    check_item,
    check_push,
    delete_item,
    find_sellable,
    patch_item,
    read_batch,
    read_push,
    refuse_duplicates,
    set_available,
    wake,
)
from tillbridge.sandbox.clock import Timer, as_timestamp
from tillbridge.sandbox.endpoints import API, connected, in_force, origin, pushing
from tillbridge.sandbox.state import Job, Link, Table, World, new_id, plain
from tillbridge.sandbox.validation import Json, ServiceError, wrong

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


@dataclass(frozen=True, slots=True)
class NextJob:
    """How the next job shall go: `fail` is its error message, `duration_s` how long it takes."""

    fail: str | None = None
    duration_s: float | None = None


class Jobs:
    """Jobs of all stores, and the timers of those that run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._clock = world.clock
        self._settings = world.settings
        self._timers: dict[str, Timer] = {}
        self.next_job = NextJob()

    def reset(self) -> None:
        """Stop the running ones, without their work."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.next_job = NextJob()

    def start(self, link: Link, *, menus: int, items: int, work: Callable[[], Applied]) -> Job:
        """Accept a push; `work` is done when the job's time is over."""
        plan, self.next_job = self.next_job, NextJob()
        now = self._clock.now_ms()
        job = Job(
            new_id("job"),
            link.app_id,
            link.store.store_id,
            self._settings.job_running_status,
            menus,
            items,
            created_at_ms=now,
            updated_at_ms=now,
        )
        self._world.jobs[job.job_id] = job
        duration = self._settings.job_duration_s if plan.duration_s is None else plan.duration_s
        self._timers[job.job_id] = self._clock.call_later(
            duration, lambda: self._finish(job, link, work, plan.fail)
        )
        return job

    def _finish(
        self, job: Job, link: Link, work: Callable[[], Applied], failure: str | None
    ) -> None:
        self._timers.pop(job.job_id, None)
        job.updated_at_ms = self._clock.now_ms()
        if failure is None and link.active is None:
            failure = "The integration ended before the job did"
        if failure is not None:
            job.status = "failed"
            job.error = {"code": "menu.forward_failed", "message": failure}
            return
        applied = work()
        job.status = "success"
        job.result = {name: count for name, count in applied.counts.items() if name != "menus"}
        if applied.rejected:
            job.result |= {"status": "partial", "message": applied.message}

    def find(self, link: Link, job_id: str) -> Job:
        """A job of this store that has not been forgotten yet. Raises menu.job_not_found."""
        job = self._world.jobs.get(job_id)
        retained_ms = self._settings.job_retention_s * 1000
        if (
            job is not None
            and job.updated_at_ms + retained_ms <= self._clock.now_ms()
            and job_id not in self._timers
        ):
            del self._world.jobs[job_id]
            job = None
        if job is None or job.store_id != link.store.store_id or job.app_id != link.app_id:
            raise ServiceError(
                "menu.job_not_found", f"No menu job {job_id}; jobs are kept for a limited time"
            )
        return job

    def lose(self, *, keep_work: bool) -> list[str]:
        """Forget every job; with `keep_work` those that run still apply their push."""
        lost = list(self._world.jobs)
        self._world.jobs.clear()
        if not keep_work:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
        return lost


def job_body(job: Job) -> dict[str, Any]:
    """The job as its endpoint shows it; `error` (not in the specification) if it failed."""
    return plain(job, "app_id", *(() if job.error else ("error",)))  # type: ignore[no-any-return]  # of a dataclass


# Menus


def _writing(sandbox: "Sandbox", request: web.Request) -> Link:
    """A link whose menu may be pushed to, as customers see it now."""
    link = pushing(sandbox, request)
    wake(link.catalogue, sandbox.clock.now_ms())
    return link


_STORE = "/pos/stores/{store_id}"


@API.serves("POST", f"{_STORE}/menus", _writing, model=lambda _settings: menu_push)
def _push(sandbox: "Sandbox", link: Link, body: MenusPush | FlatPush) -> Json:
    push = read_push(body.sent())
    check_push(link.catalogue, push)
    if len(push.items) > sandbox.settings.sync_item_limit:
        return _accept_job(sandbox, link, push)
    applied = _apply(sandbox, link, push)
    return {
        "status": "partial" if applied.rejected else "success",
        "message": applied.message or "Menu synced",
        "data": applied.counts,
    }


def _accept_job(sandbox: "Sandbox", link: Link, push: Push) -> web.Response:
    items = len(push.items)
    job = sandbox.jobs.start(
        link, menus=len(push.menus), items=items, work=lambda: _apply(sandbox, link, push)
    )
    body = {
        "status": "accepted",
        "job_id": job.job_id,
        "message": f"{items} items are being synced in the background",
        "poll_url": f"/pos/stores/{link.store.store_id}/menus/jobs/{job.job_id}",
    }
    return web.json_response(body, status=202)


def _apply(sandbox: "Sandbox", link: Link, push: Push) -> Applied:
    wake(link.catalogue, sandbox.clock.now_ms())
    applied = apply_push(link.catalogue, push, sandbox.world.rejected_items)
    link.last_synced_at_ms = sandbox.clock.now_ms()
    return applied


@API.serves("GET", f"{_STORE}/menus/jobs/{{job_id}}", connected)
def _job(sandbox: "Sandbox", link: Link, job_id: str) -> Json:
    return job_body(sandbox.jobs.find(link, job_id))


@API.serves("GET", f"{_STORE}/menus/status", connected)
def _status(_sandbox: "Sandbox", link: Link) -> Json:
    integration, synced = in_force(link), link.last_synced_at_ms
    return {
        "store_id": link.store.store_id,
        "menu_sync_direction": integration.menu_sync_direction,
        "integration_status": integration.status,
        "last_synced_at": as_timestamp(synced) if synced is not None else None,
    }


@API.serves("POST", f"{_STORE}/menus/batch", _writing)
def _batch(sandbox: "Sandbox", link: Link, body: Batch) -> Json:
    push = read_batch(body.sent())
    check_push(link.catalogue, push)
    _check_batch(sandbox, link, body)
    items = link.catalogue.items
    known = {record["external_id"] for _, record in push.items if record["external_id"] in items}
    applied = apply_push(link.catalogue, push, sandbox.world.rejected_items)
    updated = len(known - applied.rejected.keys())
    deleted = sum(delete_item(link.catalogue, external_id) for external_id in body.delete)
    link.last_synced_at_ms = sandbox.clock.now_ms()
    added = applied.counts["items"] - updated
    return {
        "status": "partial" if applied.rejected else "success",
        "message": applied.message or f"{added} added, {updated} updated, {deleted} deleted",
        "added": added,
        "updated": updated,
        "deleted": deleted,
    }


def _check_batch(sandbox: "Sandbox", link: Link, body: Batch) -> None:
    written = {item.external_id for item in (*body.add, *body.update)}
    for index, external_id in enumerate(body.delete):
        if external_id in written:
            raise wrong(f"delete[{index}]", f"{external_id!r} is added or updated by the same call")
    known = link.catalogue.items
    unknown = [item.external_id for item in body.update if item.external_id not in known]
    if unknown and sandbox.settings.batch_update_unknown != "upsert":
        raise _item_not_found(*unknown)


@API.serves("POST", f"{_STORE}/items/availability", _writing)
def _availability(sandbox: "Sandbox", link: Link, body: AvailabilityBatch) -> Json:
    catalogue = link.catalogue
    not_found = []
    for entry in body.items:
        thing = find_sellable(catalogue, entry.external_id)
        if thing is None:
            not_found.append(entry.external_id)
            continue
        until_ms = entry.snooze_until if sandbox.settings.snooze_returns else None
        set_available(catalogue, thing, available=entry.available, snooze_until_ms=until_ms)
    catalogue.revision += 1
    updated = len(body.items) - len(not_found)
    message = f"{updated} updated, {len(not_found)} not found"
    return {"status": "success", "message": message, "updated": updated, "not_found": not_found}


@API.serves("PATCH", f"{_STORE}/items/{{ext_item_id}}", _writing)
def _patch(_sandbox: "Sandbox", link: Link, ext_item_id: str, body: ItemPatch) -> Json:
    catalogue, external_id = link.catalogue, ext_item_id
    if body.external_id not in (None, external_id):
        raise wrong("external_id", f"must be {external_id!r}, as in the path")
    item = catalogue.items.get(external_id)
    if item is None:
        raise _item_not_found(external_id)
    changes = body.sent()
    check_item("body", changes, catalogue.categories, catalogue.addon_groups)
    patch_item(catalogue, item, changes)
    return {"status": "success", "message": f"Item {external_id} updated"}


def _item_not_found(*external_ids: str) -> ServiceError:
    shown = ", ".join(external_ids[:20]) + (", ..." if len(external_ids) > 20 else "")
    return ServiceError("menu.item_not_found", f"Not pushed by this app for this store: {shown}")


# The floor plan


@API.serves("POST", f"{_STORE}/tables", connected)
def _tables(sandbox: "Sandbox", link: Link, request: web.Request, body: Tables) -> Json:
    """Upsert by external_id; a missing table is deactivated, and keeps its token for later."""
    records = body.tables
    refuse_duplicates(
        (f"tables[{index}]", record.external_id) for index, record in enumerate(records)
    )
    for table in link.tables.values():
        table.active = False
    tables = [_upsert_table(link, record) for record in records]
    shop = f"{origin(sandbox, request)}/store/{link.store.store_id}"
    return {
        "status": "success",
        "tables": [
            {
                "external_id": table.external_id,
                "table_id": table.table_id,
                "qr_token": table.qr_token,
                "qr_url": f"{shop}?table={table.qr_token}",
            }
            for table in tables
        ],
    }


def _upsert_table(link: Link, record: TableBody) -> Table:
    key = record.external_id
    table = link.tables.setdefault(
        key, Table(key, new_id("tbl"), new_id("qrt"), record.name, None, "")
    )
    table.name, table.seats, table.zone = record.name, record.seats, record.zone
    table.active = True
    return table
