"""What every API call passes through: the log, the faults, the rate limit, the envelope."""

import itertools
import json
import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.errors import ServiceError, error_response
from tillbridge.sandbox.faults import Faults, Handler, spoil
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.settings import SandboxSettings

_log = structlog.get_logger("tillbridge.sandbox.api")


_HIDDEN = ("client_secret", "refresh_token", "code")


@dataclass(slots=True)
class Entry:
    """One call.

    `applied` says that it reached its endpoint; `fault` names the rule that spoiled it.
    """

    seq: int
    at: str
    method: str
    path: str
    query: str
    body: Any = None
    status: int | None = None
    code: str | None = None
    fault: str | None = None
    applied: bool = False


#: Where the middlewares of one call find its entry.
ENTRY: web.RequestKey[Entry] = web.RequestKey("entry", Entry)


class RequestLog:
    """The last calls, in memory."""

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._body_bytes = settings.request_log_body_bytes
        self._entries: deque[Entry] = deque(maxlen=settings.request_log_size)
        self._numbers = itertools.count(1)

    def open(self, method: str, path: str, query: str) -> Entry:
        """Begin the entry of a call."""
        entry = Entry(next(self._numbers), self._clock.timestamp(), method, path, query)
        self._entries.append(entry)
        return entry

    def keep_body(self, entry: Entry, raw: bytes) -> None:
        """The parsed body without its secrets, or the size of one too large or no JSON."""
        if not raw:
            return
        if len(raw) > self._body_bytes:
            entry.body = {"bytes": len(raw)}
            return
        try:
            body = json.loads(raw)
        except ValueError:
            entry.body = {"bytes": len(raw)}
            return
        if isinstance(body, dict):
            body = {name: "(hidden)" if name in _HIDDEN else value for name, value in body.items()}
        entry.body = body

    def clear(self) -> None:
        """Forget all entries; their numbers go on."""
        self._entries.clear()

    def since(self, cursor: int) -> list[Entry]:
        """Entries with a number above `cursor`, oldest first."""
        return [entry for entry in self._entries if entry.seq > cursor]


class RateLimit:
    """At most `limit` calls in any `window_s` seconds of sandbox time, all callers together."""

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._calls: deque[int] = deque()
        self.reset()

    def reset(self) -> None:
        """Back to the setting, which is none: the specification shows no numbers."""
        self.set(self._settings.rate_limit, self._settings.rate_window_s)

    def set(self, limit: int | None, window_s: float) -> None:
        """Another limit from now on; None is none."""
        self.limit = limit
        self.window_s = window_s
        self._calls.clear()

    def admit(self) -> None:
        """Count a call. Raises rate.limited with the seconds until there is room."""
        if self.limit is None:
            return
        now = self._clock.now_ms()
        window_ms = self.window_s * 1000
        while self._calls and self._calls[0] <= now - window_ms:
            self._calls.popleft()
        if len(self._calls) >= self.limit:
            wait_ms = (self._calls[0] + window_ms - now) if self._calls else window_ms
            raise ServiceError(
                "rate.limited",
                f"More than {self.limit} calls in {self.window_s:g} s; "
                "wait as long as Retry-After says",
                retry_after_s=max(1, math.ceil(wait_ms / 1000)),
            )
        self._calls.append(now)


def api_middlewares(
    prefix: str, log: RequestLog, faults: Faults, limit: RateLimit
) -> list[Middleware]:
    """In the order in which a call meets them."""

    def below(request: web.Request) -> str:
        return request.rel_url.raw_path.removeprefix(prefix)

    @web.middleware
    async def logged(request: web.Request, handler: Handler) -> web.StreamResponse:
        entry = log.open(request.method, below(request), request.query_string)
        request[ENTRY] = entry
        response = await handler(request)
        transport = request.transport
        # A connection that was dropped has answered nothing.
        entry.status = (
            response.status if transport is not None and not transport.is_closing() else None
        )
        if entry.status is not None and entry.status >= 400:
            entry.code = _code_of(response)
        return response

    @web.middleware
    async def faulty(request: web.Request, handler: Handler) -> web.StreamResponse:
        rule = faults.pick(request.method, below(request))
        if rule is None:
            return await handler(request)
        request[ENTRY].fault = rule.rule_id
        return await spoil(rule, request, handler)

    @web.middleware
    async def enveloped(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            log.keep_body(request[ENTRY], await request.read())
            limit.admit()
            request[ENTRY].applied = True
            return await handler(request)
        except ServiceError as error:
            return error_response(error)
        except web.HTTPRedirection as redirect:
            return _plain_redirect(redirect)
        except web.HTTPException as error:
            return error_response(_translated(error, request))
        except Exception:  # noqa: BLE001 (the last line of defence: answered and logged)
            _log.exception("sandbox.internal_error", method=request.method, path=below(request))
            return error_response(
                ServiceError("internal.error", "The sandbox has a defect; its log says more")
            )

    return [logged, faulty, enveloped]


def _plain_redirect(redirect: web.HTTPRedirection) -> web.Response:
    return web.Response(status=redirect.status, headers={"Location": redirect.headers["Location"]})


def _translated(error: web.HTTPException, request: web.Request) -> ServiceError:
    where = f"{request.method} {request.path}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return ServiceError("request.method_not_allowed", f"{where}: only {allowed}")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ServiceError("request.too_large", "The body is larger than this sandbox takes")
    if error.status == 404:
        return ServiceError("request.not_found", f"{where}: no such endpoint")
    return ServiceError("request.validation", error.reason, status=error.status)


def _code_of(response: web.StreamResponse) -> str | None:
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return None
    try:
        code = json.loads(response.body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(code)


# The pages and the control API


def same_origin(api_prefix: str) -> Middleware:
    """Other sites' pages must not push this one's buttons."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        reading = request.method in ("GET", "HEAD")
        if reading or origin is None or request.path.startswith(api_prefix + "/"):
            return await handler(request)
        if origin not in (f"http://{request.host}", f"https://{request.host}"):
            return error_response(
                ServiceError("request.validation", "Origin: must be this site", status=403)
            )
        return await handler(request)

    return guarded


@web.middleware
async def control_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The control API answers with the service's error envelope."""
    if not request.path.startswith("/_control/"):
        return await handler(request)
    try:
        return await handler(request)
    except ServiceError as error:
        return error_response(error)
    except web.HTTPException as error:
        return error_response(_translated(error, request))


def page_errors(pages: Pages, api_prefix: str) -> Middleware:
    """The pages say what went wrong in a page."""

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(("/_control/", api_prefix + "/")):
            return await handler(request)
        try:
            return await handler(request)
        except ServiceError as error:
            return pages.message("That did not work", f"{error.message}.", status=error.status)
        except web.HTTPNotFound:
            return pages.message("Nothing here", "There is no such page.", status=404)

    return answered
