"""`/control/...`: commands ask a running bridge, with the token that only this user can read."""

import hmac
import re
from json import JSONDecodeError
from typing import Any

from aiohttp import web

from tillbridge.core.actor import Actor, Role, acting_as
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.operation import Answer, BadRequest, Dispatcher
from tillbridge.web.asking import Ask, Body, Route, flag, text, texts
from tillbridge.web.ports import Control
from tillbridge.web.setup_routes import setup_routes


def control_routes(control: Control, dispatcher: Dispatcher, token: str) -> list[web.RouteDef]:
    """Return the routes; each wants `Authorization: Bearer <token>` and answers JSON.

    A `BridgeError` is answered 409 with `error: {kind, text, fix}`.
    """

    def route(method: str, path: str, ask: Ask) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not _allowed(request, token):
                return web.json_response(_error("Unauthorised", "No.", ""), status=401)
            try:
                body = await _body(request)
                with acting_as(_actor(request)):
                    return web.json_response(await ask(request, body))
            except BadRequest as failure:
                told = _error("BadRequest", failure.text, failure.fix)
                return web.json_response(told, status=400)
            except BridgeError as failure:
                told = _error(_kind(failure), failure.text, failure.fix)
                return web.json_response(told, status=409)
            except (KeyError, TypeError, ValueError) as slip:
                told = _error("BadRequest", f"The request is not understood: {slip}", "")
                return web.json_response(told, status=400)

        return web.route(method, f"/control/{path}", handle)

    async def perform(request: web.Request, body: Body) -> Answer:
        name = request.match_info["operation"]
        return await dispatcher.perform(name, body, _actor(request))

    return [
        route("POST", r"{operation:\w+\.[\w.]+}", perform),
        route("GET", "status", lambda _request, _body: control.status()),
        *_connect_routes(control, route),
        *setup_routes(control, route),
    ]


def _connect_routes(control: Control, route: Route) -> list[web.RouteDef]:
    return [
        route(
            "POST",
            "connect",
            lambda _request, body: control.connect(
                text(body, "store"),
                reintegrate=flag(body, "reintegrate"),
                store_id=str(body.get("store_id") or ""),
                email=str(body.get("email") or ""),
            ),
        ),
        route(
            "POST",
            "connect/choose",
            lambda _request, body: control.connect_choose(
                text(body, "store"),
                store_id=text(body, "store_id"),
                reintegrate=flag(body, "reintegrate"),
            ),
        ),
        route(
            "POST",
            "signup",
            lambda _request, body: control.signup(
                text(body, "store"),
                form=texts(body, "form"),
                flow_type=str(body.get("flow_type") or ""),
            ),
        ),
        route(
            "GET",
            "connect/{state}",
            lambda request, _body: control.connect_result(request.match_info["state"]),
        ),
    ]


def _kind(failure: BridgeError) -> str:
    """Return the name by which a command knows what to end with."""
    return "ConfigError" if isinstance(failure, ConfigError) else type(failure).__name__


def _allowed(request: web.Request, token: str) -> bool:
    given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    return hmac.compare_digest(given, f"Bearer {token}".encode())


def _actor(request: web.Request) -> Actor:
    """Return who gave the command: as it says itself; only the bridge's user has the token."""
    name = re.sub(r"[^\w.@-]", "", request.headers.get("X-Tillbridge-User", ""))[:64]
    return Actor(f"command:{name or '?'}", Role.TECHNICIAN)


async def _body(request: web.Request) -> Body:
    if not request.can_read_body:
        return {}
    try:
        body = await request.json()
    except (JSONDecodeError, UnicodeDecodeError):
        msg = "the body is not JSON"
        raise ValueError(msg) from None
    if not isinstance(body, dict):
        msg = "the body is not an object"
        raise TypeError(msg)
    return body


def _error(kind: str, text: str, fix: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "text": text, "fix": fix}}
