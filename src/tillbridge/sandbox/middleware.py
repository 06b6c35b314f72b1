"""What every API call passes through: log, faults on demand, rate limit, error envelope."""

import asyncio
import itertools
import json
import math
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from pydantic import Field

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import new_id
from tillbridge.sandbox.validation import (
    CODE_FOR_STATUS,
    Body,
    Count,
    Id,
    Number,
    OptionalText,
    Regex,
    ServiceError,
    Text,
    Url,
    error_response,
)

_log = structlog.get_logger("tillbridge.sandbox.api")


Action = Literal["error", "drop", "delay", "garbage", "redirect", "drip"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FaultRule(Body):
    """Which calls, and what happens to them.

    Which: `method` (None is any, WRITE any but GET), `path` (a regular expression, searched in the
    path below the API's root), `after` calls are let through first, then `count` are spoiled (None
    is all), each with a chance of `percent`. What: `action`; `when` "after" lets the call take
    effect before its answer is spoiled. `delay_s` is real time.
    """

    action: Action
    rule_id: Id = Field(default_factory=lambda: new_id("flt"))
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "WRITE"] | None = None
    path: Regex = ""
    percent: Number = 100
    count: Annotated[int, Field(ge=1)] | None = None
    after: Count = 0
    when: Literal["before", "after"] = "before"
    status: Annotated[int, Field(ge=200)] = 503
    code: Text | None = None
    message: Text = "Fault injected by the sandbox"
    retry_after_s: Count | None = None
    delay_s: Number = 0
    body: OptionalText = "<!doctype html><title>It works!</title>"
    location: Url = "https://elsewhere.example/stolen"


@dataclass(slots=True)
class _Armed:
    rule: FaultRule
    seen: int = 0
    hit: int = 0

    def picks(self, method: str, path: str) -> bool:
        """Whether the rule is about such calls."""
        wanted = self.rule.method
        fits = method != "GET" if wanted == "WRITE" else wanted in (None, method)
        return fits and re.search(self.rule.path, path) is not None


class Faults:
    """The rules in force, oldest first; the first one that picks a call has it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Switch everything off, and start the chances anew."""
        self._armed: list[_Armed] = []
        self._chance = random.Random(self._seed)  # noqa: S311 (repeatable faults, no secret)

    def add(self, rule: FaultRule) -> FaultRule:
        """Put a rule in force."""
        self._armed.append(_Armed(rule))
        return rule

    def remove(self, rule_id: str) -> bool:
        """Switch one rule off; False when it is not in force."""
        before = len(self._armed)
        self._armed = [armed for armed in self._armed if armed.rule.rule_id != rule_id]
        return len(self._armed) < before

    def pick(self, method: str, path: str) -> FaultRule | None:
        """The rule for this call, counted."""
        for armed in list(self._armed):
            rule = armed.rule
            if not armed.picks(method, path):
                continue
            armed.seen += 1
            if armed.seen <= rule.after or self._chance.uniform(0, 100) >= rule.percent:
                continue
            armed.hit += 1
            if rule.count is not None and armed.hit >= rule.count:
                self._armed.remove(armed)
            return rule
        return None

    def in_force(self) -> list[tuple[FaultRule, int]]:
        """Each rule, and how many calls it has spoiled."""
        return [(armed.rule, armed.hit) for armed in self._armed]


async def spoil(rule: FaultRule, request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a call as the rule says."""
    if rule.delay_s and rule.action != "drip":
        await asyncio.sleep(rule.delay_s)
    if rule.action == "delay":
        return await handler(request)
    if rule.action == "drip":
        return await _drip(request, await handler(request), rule.delay_s or 0.5)
    if rule.when == "after":
        await handler(request)
    if rule.action == "drop":
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)  # written to a connection that is gone
    if rule.action == "redirect":
        status = rule.status if 300 <= rule.status < 400 else 307
        return web.Response(status=status, headers={"Location": rule.location})
    if rule.action == "garbage":
        return web.Response(text=rule.body, content_type="application/json")
    code = rule.code or CODE_FOR_STATUS.get(rule.status, "internal.error")
    wait = rule.retry_after_s if rule.retry_after_s is not None or rule.status != 429 else 1
    return error_response(ServiceError(code, rule.message, status=rule.status, retry_after_s=wait))


async def _drip(
    request: web.Request, answer: web.StreamResponse, pause_s: float
) -> web.StreamResponse:
    """The answer, a byte at a time."""
    if not isinstance(answer, web.Response) or not isinstance(answer.body, bytes):
        return answer
    slow = web.StreamResponse(
        status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
    )
    slow.content_length = len(answer.body)
    await slow.prepare(request)
    for index in range(len(answer.body)):
        await slow.write(answer.body[index : index + 1])
        await asyncio.sleep(pause_s)
    await slow.write_eof()
    return slow


# The request log

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
        entry.body = {"bytes": len(raw)}
        if len(raw) <= self._body_bytes:
            with suppress(ValueError):
                entry.body = json.loads(raw)
        if isinstance(entry.body, dict):
            entry.body |= {name: "(hidden)" for name in _HIDDEN if name in entry.body}

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
            headers = {"Location": redirect.headers["Location"]}
            return web.Response(status=redirect.status, headers=headers)
        except web.HTTPException as error:
            return error_response(_translated(error, request))
        except Exception:  # noqa: BLE001 (the last line of defence: answered and logged)
            _log.exception("sandbox.internal_error", method=request.method, path=below(request))
            return error_response(
                ServiceError("internal.error", "The sandbox has a defect; its log says more")
            )

    return [logged, faulty, enveloped]


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
