"""What a request under `/control/` asks: its route, and the values in its body.

What is not understood raises KeyError, TypeError or ValueError, which is answered 400.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from multidict import MultiDictProxy

from tillbridge.web.ports import Answer

Body = dict[str, Any]
Ask = Callable[[web.Request, Body], Awaitable[Answer]]
Route = Callable[[str, str, Ask], web.RouteDef]


def text(body: Body, name: str) -> str:
    """Return a text that must be there."""
    value = body[name]
    if not isinstance(value, str):
        msg = f"{name} is not text"
        raise TypeError(msg)
    return value


def texts(body: Body, name: str) -> dict[str, str]:
    """Return an object of texts that must be there."""
    value = body[name]
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        msg = f"{name} is not an object of texts"
        raise TypeError(msg)
    return value


def flag(body: Body, name: str) -> bool:
    """Return whether it is true; what is left out is not."""
    return body.get(name) is True


async def form_of(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    """Return what a form sent. Raises HTTPBadRequest for what no browser sends."""
    try:
        fields: MultiDictProxy[str | bytes | bytearray | web.FileField] = await request.post()
    except (ValueError, LookupError, AssertionError):  # no boundary, an unknown character set
        raise web.HTTPBadRequest from None
    return fields
