"""Menus, items, availability and tables: the endpoints that a POS pushes to."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.bodies import AVAILABILITY, BATCH, ITEM_PATCH, menu_push
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
    set_available,
    wake,
)
from tillbridge.sandbox.clock import Clock, as_timestamp, parse_timestamp
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.jobs import Jobs, job_body
from tillbridge.sandbox.requests import read_body, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Link, World


class MenuRoutes:
    """The endpoints under "Menus and items", tables aside."""

    def __init__(
        self, world: World, gate: Gate, jobs: Jobs, clock: Clock, settings: SandboxSettings
    ) -> None:
        self._world = world
        self._gate = gate
        self._jobs = jobs
        self._clock = clock
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        store = "/pos/stores/{store_id}"
        return [
            web.post(f"{store}/menus", self._push),
            web.get(f"{store}/menus/jobs/{{job_id}}", self._job, allow_head=False),
            web.get(f"{store}/menus/status", self._status, allow_head=False),
            web.post(f"{store}/menus/batch", self._batch),
            web.post(f"{store}/items/availability", self._availability),
            web.patch(f"{store}/items/{{ext_item_id}}", self._patch),
        ]

    def _writing(self, request: web.Request) -> Link:
        link = self._gate.pushing(request)
        wake(link.catalogue, self._clock.now_ms())
        return link

    async def _push(self, request: web.Request) -> web.Response:
        link = self._writing(request)
        push = read_push(await read_body(request, menu_push))
        check_push(link.catalogue, push)
        if len(push.items) > self._settings.sync_item_limit:
            return self._accept_job(link, push)
        applied = self._apply(link, push)
        return reply(
            {
                "status": "partial" if applied.rejected else "success",
                "message": applied.message or "Menu synced",
                "data": applied.counts,
            }
        )

    def _accept_job(self, link: Link, push: Push) -> web.Response:
        job = self._jobs.start(
            link, menus=len(push.menus), items=len(push.items), work=lambda: self._apply(link, push)
        )
        body = {
            "status": "accepted",
            "job_id": job.job_id,
            "message": f"{len(push.items)} items are being synced in the background",
            "poll_url": f"/pos/stores/{link.store.store_id}/menus/jobs/{job.job_id}",
        }
        return reply(body, 202)

    def _apply(self, link: Link, push: Push) -> Applied:
        wake(link.catalogue, self._clock.now_ms())
        applied = apply_push(link.catalogue, push, self._world.rejected_items)
        link.last_synced_at_ms = self._clock.now_ms()
        return applied

    async def _job(self, request: web.Request) -> web.Response:
        link, _ = self._gate.integrated(request)
        return reply(job_body(self._jobs.find(link, request.match_info["job_id"])))

    async def _status(self, request: web.Request) -> web.Response:
        link, integration = self._gate.integrated(request)
        synced = link.last_synced_at_ms
        return reply(
            {
                "store_id": link.store.store_id,
                "menu_sync_direction": integration.menu_sync_direction,
                "integration_status": integration.status,
                "last_synced_at": as_timestamp(synced) if synced is not None else None,
            }
        )

    async def _batch(self, request: web.Request) -> web.Response:
        link = self._writing(request)
        body = await read_body(request, BATCH)
        push = read_batch(body)
        check_push(link.catalogue, push)
        self._check_batch(link, body)
        items = link.catalogue.items
        known = {
            record["external_id"] for _, record in push.items if record["external_id"] in items
        }
        applied = apply_push(link.catalogue, push, self._world.rejected_items)
        updated = len(known - applied.rejected.keys())
        deleted = sum(
            delete_item(link.catalogue, external_id) for external_id in body.get("delete", ())
        )
        link.last_synced_at_ms = self._clock.now_ms()
        added = applied.counts["items"] - updated
        return reply(
            {
                "status": "partial" if applied.rejected else "success",
                "message": applied.message
                or f"{added} added, {updated} updated, {deleted} deleted",
                "added": added,
                "updated": updated,
                "deleted": deleted,
            }
        )

    def _check_batch(self, link: Link, body: dict[str, Any]) -> None:
        written = {
            record["external_id"] for part in ("add", "update") for record in body.get(part, ())
        }
        for index, external_id in enumerate(body.get("delete", ())):
            if external_id in written:
                raise wrong(
                    f"delete[{index}]", f"{external_id!r} is added or updated by the same call"
                )
        if self._settings.batch_update_unknown == "upsert":
            return
        unknown = [
            record["external_id"]
            for record in body.get("update", ())
            if record["external_id"] not in link.catalogue.items
        ]
        if unknown:
            raise _item_not_found(*unknown)

    async def _availability(self, request: web.Request) -> web.Response:
        link = self._writing(request)
        body = await read_body(request, AVAILABILITY)
        not_found = []
        for entry in body["items"]:
            thing = find_sellable(link.catalogue, entry["external_id"])
            if thing is None:
                not_found.append(entry["external_id"])
                continue
            until = entry.get("snooze_until") if self._settings.snooze_returns else None
            until_ms = parse_timestamp(until) if until is not None else None
            set_available(
                link.catalogue, thing, available=entry["available"], snooze_until_ms=until_ms
            )
        link.catalogue.revision += 1
        updated = len(body["items"]) - len(not_found)
        message = f"{updated} updated, {len(not_found)} not found"
        return reply(
            {"status": "success", "message": message, "updated": updated, "not_found": not_found}
        )

    async def _patch(self, request: web.Request) -> web.Response:
        link = self._writing(request)
        external_id = request.match_info["ext_item_id"]
        body = await read_body(request, ITEM_PATCH)
        if body.get("external_id", external_id) != external_id:
            raise wrong("external_id", f"must be {external_id!r}, as in the path")
        item = link.catalogue.items.get(external_id)
        if item is None:
            raise _item_not_found(external_id)
        check_item("body", body, link.catalogue.categories, link.catalogue.addon_groups)
        patch_item(link.catalogue, item, body)
        return reply({"status": "success", "message": f"Item {external_id} updated"})


def _item_not_found(*external_ids: str) -> ServiceError:
    shown = ", ".join(external_ids[:20]) + (", ..." if len(external_ids) > 20 else "")
    return ServiceError("menu.item_not_found", f"Not pushed by this app for this store: {shown}")
