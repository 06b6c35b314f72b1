"""`/control/...`: commands ask a running bridge, with the token that only this user can read."""

import hmac
import re
from collections.abc import Awaitable, Callable
from json import JSONDecodeError
from typing import Any

from aiohttp import web

from tillbridge.errors import BridgeError, ConfigError
from tillbridge.status.acting import acting_as
from tillbridge.status.community_routes import community_routes
from tillbridge.status.diagnostic_routes import diagnostic_routes
from tillbridge.status.ports import Answer, Control
from tillbridge.status.setup_routes import setup_routes

_Ask = Callable[[web.Request, dict[str, Any]], Awaitable[Answer]]


def control_routes(control: Control, token: str) -> list[web.RouteDef]:
    """Return the routes; each wants `Authorization: Bearer <token>` and answers JSON.

    A `BridgeError` is answered 409 with `error: {kind, text, fix}`.
    """

    def route(method: str, path: str, ask: _Ask) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not _allowed(request, token):
                return web.json_response(_error("Unauthorised", "No.", ""), status=401)
            try:
                body = await _body(request)
                with acting_as(_who(request), "technician"):
                    return web.json_response(await ask(request, body))
            except BridgeError as failure:
                told = _error(_kind(failure), failure.text, failure.fix)
                return web.json_response(told, status=409)
            except (KeyError, TypeError, ValueError) as slip:
                told = _error("BadRequest", f"The request is not understood: {slip}", "")
                return web.json_response(told, status=400)

        return web.route(method, f"/control/{path}", handle)

    return [
        route(
            "GET",
            "audit",
            lambda request, _body: control.audit.list(_count(request.query.get("limit", "100"))),
        ),
        route("GET", "fleet/key", lambda _request, _body: control.fleet.key()),
        route("GET", "audit/verify", lambda _request, _body: control.audit.verify()),
        route("GET", "problems", lambda _request, _body: control.problems.list()),
        route(
            "GET",
            "problems/{code}",
            lambda request, _body: control.problems.show(request.match_info["code"]),
        ),
        route(
            "POST",
            "problems/{code}/ack",
            lambda request, body: control.problems.acknowledge(
                request.match_info["code"],
                store=_text(body, "store") if body.get("store") is not None else None,
                by=_text(body, "by"),
            ),
        ),
        route("POST", "alerts/test", lambda _request, _body: control.alerts.test()),
        route("GET", "status", lambda _request, _body: control.status()),
        route(
            "POST",
            "connect",
            lambda _request, body: control.connect(
                _text(body, "store"),
                reintegrate=body.get("reintegrate") is True,
                store_id=str(body.get("store_id") or ""),
                email=str(body.get("email") or ""),
            ),
        ),
        route(
            "POST",
            "connect/choose",
            lambda _request, body: control.connect_choose(
                _text(body, "store"),
                store_id=_text(body, "store_id"),
                reintegrate=body.get("reintegrate") is True,
            ),
        ),
        route(
            "POST",
            "signup",
            lambda _request, body: control.signup(
                _text(body, "store"),
                form=_texts(body, "form"),
                flow_type=str(body.get("flow_type") or ""),
            ),
        ),
        route(
            "GET",
            "connect/{state}",
            lambda request, _body: control.connect_result(request.match_info["state"]),
        ),
        route(
            "GET",
            "stores/{store}/plan",
            lambda request, _body: control.menu.plan(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/push",
            lambda request, body: control.menu.push(
                request.match_info["store"], full=body.get("full") is True
            ),
        ),
        route(
            "POST",
            "stores/{store}/approve",
            lambda request, _body: control.menu.approve(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/dismiss",
            lambda request, _body: control.menu.dismiss(request.match_info["store"]),
        ),
        route(
            "GET",
            "stores/{store}/pushes",
            lambda request, _body: control.menu.history(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/items",
            lambda request, body: control.menu.items(
                request.match_info["store"],
                text=_text(body, "text"),
                page=_count(str(body.get("page", 1))),
                at_ms=_instant(body.get("at_ms")),
            ),
        ),
        route(
            "POST",
            "stores/{store}/86",
            lambda request, body: control.items.take_off(
                request.match_info["store"],
                _text(body, "external_id"),
                until_ms=_instant(body.get("until_ms")),
                by=_text(body, "by"),
            ),
        ),
        route(
            "POST",
            "stores/{store}/restore",
            lambda request, body: control.items.restore(
                request.match_info["store"], _text(body, "external_id")
            ),
        ),
        route(
            "GET",
            "stores/{store}/items/off",
            lambda request, _body: control.items.off(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/items/find",
            lambda request, body: control.items.find(
                request.match_info["store"], _text(body, "text")
            ),
        ),
        route(
            "GET",
            "stores/{store}/tables",
            lambda request, _body: control.tables.list(request.match_info["store"]),
        ),
        route(
            "GET",
            "stores/{store}/tables/plan",
            lambda request, _body: control.tables.plan(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/tables/push",
            lambda request, _body: control.tables.push(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/tables/approve",
            lambda request, _body: control.tables.approve(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/tables/printed",
            lambda request, body: control.tables.printed(
                request.match_info["store"], _texts(body, "codes")
            ),
        ),
        *_integration_routes(control, route),
        route(
            "GET",
            "stores/{store}/standing",
            lambda request, _body: control.store.show(request.match_info["store"]),
        ),
        route(
            "POST",
            "stores/{store}/settings/plan",
            lambda request, body: control.store.plan(
                request.match_info["store"], full=body.get("full") is True
            ),
        ),
        route(
            "POST",
            "stores/{store}/settings/push",
            lambda request, body: control.store.push(
                request.match_info["store"], full=body.get("full") is True
            ),
        ),
        route(
            "POST",
            "stores/{store}/pause",
            lambda request, body: control.store.pause(
                request.match_info["store"],
                by=_text(body, "by"),
                reason=_text(body, "reason"),
                until_ms=_instant(body.get("until_ms")),
            ),
        ),
        route(
            "POST",
            "stores/{store}/resume",
            lambda request, body: control.store.resume(
                request.match_info["store"], by=_text(body, "by")
            ),
        ),
        route(
            "POST",
            "stores/{store}/tax",
            lambda request, _body: control.store.tax(request.match_info["store"]),
        ),
        route(
            "POST",
            "orders/retry",
            lambda _request, body: control.orders.retry(_text(body, "order")),
        ),
        route(
            "POST",
            "orders/cancel",
            lambda _request, body: control.orders.cancel(
                _text(body, "order"), reason_code=_text(body, "reason_code")
            ),
        ),
        route(
            "POST",
            "orders/done",
            lambda _request, body: control.orders.done(
                _text(body, "order"), how=_text(body, "how")
            ),
        ),
        route(
            "POST",
            "token/reporting",
            lambda _request, body: control.reporting_token(_text(body, "scope")),
        ),
        *setup_routes(control, route),
        *diagnostic_routes(control.diagnostics, route),
        *community_routes(control, route),
    ]


def _integration_routes(
    control: Control, route: Callable[[str, str, _Ask], web.RouteDef]
) -> list[web.RouteDef]:
    def asks(name: str) -> _Ask:
        return lambda request, _body: getattr(control.integration, name)(
            request.match_info["store"]
        )

    path = "stores/{store}/integration"
    return [
        route("GET", path, asks("show")),
        route("GET", f"{path}/plan", asks("plan")),
        route("POST", f"{path}/apply", asks("apply")),
        route("POST", f"{path}/rotate-secret", asks("rotate_secret")),
        route("POST", f"{path}/remove", asks("remove")),
        route("POST", f"{path}/reintegrate", asks("reintegrate")),
    ]


def _kind(failure: BridgeError) -> str:
    """Return the name by which a command knows what to end with."""
    return "ConfigError" if isinstance(failure, ConfigError) else type(failure).__name__


def _allowed(request: web.Request, token: str) -> bool:
    given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    return hmac.compare_digest(given, f"Bearer {token}".encode())


def _who(request: web.Request) -> str:
    """Return who gave the command: as it says itself; only the bridge's user has the token."""
    name = re.sub(r"[^\w.@-]", "", request.headers.get("X-Tillbridge-User", ""))[:64]
    return f"command:{name or '?'}"


async def _body(request: web.Request) -> dict[str, Any]:
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


def _text(body: dict[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str):
        msg = f"{name} is not text"
        raise TypeError(msg)
    return value


def _texts(body: dict[str, Any], name: str) -> dict[str, str]:
    value = body[name]
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        msg = f"{name} is not an object of texts"
        raise TypeError(msg)
    return value


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 10_000:
        msg = "limit is not a number from 1 to 10000"
        raise ValueError(msg)
    return int(text)


def _instant(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    msg = "until_ms is not a whole number"
    raise TypeError(msg)


def _error(kind: str, text: str, fix: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "text": text, "fix": fix}}
