"""Control API, what happens to stores elsewhere: new ones, their status, taxes, QR tokens."""

from aiohttp import web

from tillbridge.sandbox import control_bodies as bodies
from tillbridge.sandbox.bodies import STORE_STATUS
from tillbridge.sandbox.communities import Communities
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.requests import read_control, reply
from tillbridge.sandbox.state import Store, World, new_id


class ControlStores:
    """Endpoints of the control API."""

    def __init__(self, world: World, communities: Communities) -> None:
        self._world = world
        self._communities = communities

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.post("/_control/stores", self._add),
            web.post("/_control/stores/{store_id}/status", self._status),
            web.put("/_control/stores/{store_id}/tax-config", self._tax_config),
            web.post("/_control/tables/{store_id}/rotate", self._rotate),
        ]

    async def _add(self, request: web.Request) -> web.Response:
        """Another store of a merchant and, if asked for, a member of a community."""
        body = await read_control(request, bodies.STORE)
        email = body.get("email") or next(iter(self._world.merchants.values())).email
        merchant = self._world.merchant(email)
        if merchant is None or body.get("store_id") in self._world.stores:
            raise ServiceError("control.refused", "No such merchant, or the store exists already")
        community_id = body.get("community_id")
        community = self._communities.find(community_id) if community_id else None
        store = self._world.add_store(merchant, body["name"], body.get("store_id"))
        if community is not None:
            community.store_ids.append(store.store_id)
        return reply({"store_id": store.store_id, "name": store.name, "email": merchant.email}, 201)

    async def _status(self, request: web.Request) -> web.Response:
        """Somebody else opens or closes the store: no event tells of it."""
        store = self._store(request)
        store.status = (await read_control(request, STORE_STATUS))["status"]
        return reply({"store_id": store.store_id, "store_status": store.status})

    async def _tax_config(self, request: web.Request) -> web.Response:
        """The merchant changes the taxes."""
        store = self._store(request)
        store.tax_config = await read_control(request, bodies.TAX_CONFIG)
        return reply(store.tax_config)

    async def _rotate(self, request: web.Request) -> web.Response:
        """New QR tokens, for some tables or all: printed codes are dead from now on."""
        store = self._store(request)
        body = await read_control(request, bodies.ROTATE)
        link = self._world.active_link(store.store_id)
        tables = link.tables if link else {}
        wanted = body.get("external_ids", list(tables))
        for external_id in wanted:
            if external_id not in tables:
                raise ServiceError("control.refused", f"No table {external_id} was pushed")
        for external_id in wanted:
            tables[external_id].qr_token = new_id("qrt")
        return reply({"rotated": {key: tables[key].qr_token for key in wanted}})

    def _store(self, request: web.Request) -> Store:
        store_id = request.match_info["store_id"]
        if store_id not in self._world.stores:
            raise ServiceError(
                "store.not_found", f"No store {store_id}; GET /_control/state lists them"
            )
        return self._world.stores[store_id]
