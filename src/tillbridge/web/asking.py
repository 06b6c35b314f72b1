"""What a request under `/control/` asks: its route, and the values in its body.

What is not understood raises KeyError, TypeError or ValueError, which is answered 400.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from multidict import MultiDictProxy

from tillbridge.model.instant import is_plausible
from tillbridge.web.ports import Answer

Body = dict[str, Any]
Ask = Callable[[web.Request, Body], Awaitable[Answer]]
Route = Callable[[str, str, Ask], web.RouteDef]


def below(
    route: Route, root: str
) -> Callable[[str, str, Callable[[str, Body], Awaitable[Answer]]], web.RouteDef]:
    """Return a route for what stands below `root`/{name}; it asks with that name and the body."""

    def made(method: str, path: str, ask: Callable[[str, Body], Awaitable[Answer]]) -> web.RouteDef:
        whole = f"{root}/{{name}}/{path}".rstrip("/")
        return route(method, whole, lambda request, body: ask(request.match_info["name"], body))

    return made


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


def count(value: object) -> int:
    """Return a number from 1 to 10000, which a query gives as text."""
    said = str(value)
    if not said.isdigit() or not 0 < int(said) <= 10_000:
        msg = "limit is not a number from 1 to 10000"
        raise ValueError(msg)
    return int(said)


def instant(body: Body, name: str) -> int | None:
    """Return milliseconds since the epoch; None where they are left out."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{name} is not a whole number"
        raise TypeError(msg)
    if not is_plausible(value):
        msg = f"{name} is not between the years 2000 and 2100; give milliseconds since 1970 (UTC)"
        raise ValueError(msg)
    return value


async def form_of(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    """Return what a form sent. Raises HTTPBadRequest for what no browser sends."""
    try:
        fields: MultiDictProxy[str | bytes | bytearray | web.FileField] = await request.post()
    except (ValueError, LookupError, AssertionError):  # no boundary, an unknown character set
        raise web.HTTPBadRequest from None
    return fields
