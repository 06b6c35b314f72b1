"""Reading requests and writing answers, the same way for every endpoint."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.bodies import EMPTY
from tillbridge.sandbox.schema import Check, Json, parse


async def read_body(request: web.Request, check: Check) -> dict[str, Any]:
    """The JSON body, checked. Raises the service's 400."""
    return parse(await request.read(), request.content_type, check)


async def read_no_body(request: web.Request) -> None:
    """For calls whose body the specification does not show: nothing, or an empty object."""
    raw = await request.read()
    if raw.strip():
        parse(raw, request.content_type, EMPTY)


def reply(body: Json, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.json_response(body, status=status)


async def read_control(request: web.Request, check: Check) -> dict[str, Any]:
    """A control call's JSON body.

    No body is an empty object, and curl's default content type will do.
    """
    return parse(await request.read() or b"{}", "application/json", check)
