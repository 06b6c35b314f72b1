"""The floor plan: each table gets a QR ordering token (specification, "Table")."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.bodies import TABLES
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.requests import read_body, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Link, Table, new_id


class TableRoutes:
    """The endpoint of the floor plan."""

    def __init__(self, gate: Gate, settings: SandboxSettings) -> None:
        self._gate = gate
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Its endpoint."""
        return [web.post("/pos/stores/{store_id}/tables", self._push)]

    async def _push(self, request: web.Request) -> web.Response:
        """Upsert by external_id; a missing table is deactivated, and keeps its token for later."""
        link, _ = self._gate.integrated(request)
        body = await read_body(request, TABLES)
        records = body["tables"]
        seen: set[str] = set()
        for index, record in enumerate(records):
            if record["external_id"] in seen:
                raise wrong(
                    f"tables[{index}].external_id", f"{record['external_id']!r} stands twice"
                )
            seen.add(record["external_id"])
        for table in link.tables.values():
            table.active = False
        tables = [_upsert(link, record) for record in records]
        origin = (self._settings.public_url or str(request.url.origin())).rstrip("/")
        return reply(
            {"status": "success", "tables": [table_body(link, table, origin) for table in tables]}
        )


def _upsert(link: Link, record: dict[str, Any]) -> Table:
    external_id = record["external_id"]
    table = link.tables.get(external_id)
    if table is None:
        table = Table(external_id, new_id("tbl"), new_id("qrt"), record["name"], None, "")
        link.tables[external_id] = table
    table.name = record["name"]
    table.seats = record.get("seats")
    table.zone = record.get("zone", "")
    table.active = True
    return table


def table_body(link: Link, table: Table, origin: str) -> dict[str, Any]:
    """A table with its QR data."""
    return {
        "external_id": table.external_id,
        "table_id": table.table_id,
        "qr_token": table.qr_token,
        "qr_url": f"{origin}/store/{link.store.store_id}?table={table.qr_token}",
    }
