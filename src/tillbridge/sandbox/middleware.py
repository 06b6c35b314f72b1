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
    Json,
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
class Armed:
    """A rule in force: how many calls it was about, and how many it has spoiled."""

    rule: FaultRule
    seen: int = 0
    hits: int = 0


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


_HIDDEN = ("client_secret", "refresh_token", "code")


class Traffic:
    """The calls to the API: the last of them, which go wrong, and how many may come.

    `rules` are in force, oldest first: the first one that picks a call has it. At most `limit`
    calls in any `window_s` seconds of sandbox time are taken, all callers together.
    """

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self.requests: deque[Entry] = deque(maxlen=settings.request_log_size)
        self._numbers = itertools.count(1)
        self.reset()

    def reset(self) -> None:
        """Back to the settings; numbers of the log go on. The specification shows no limit."""
        self.requests.clear()
        self.clear_faults()
        self.set_rate(self._settings.rate_limit, self._settings.rate_window_s)

    def clear_faults(self) -> None:
        """Switch every rule off, and start the chances anew."""
        self.rules: list[Armed] = []
        self._chance = random.Random(self._settings.fault_seed)  # noqa: S311 (repeatable faults, no secret)

    def set_rate(self, limit: int | None, window_s: float) -> None:
        """Another limit from now on; None is none."""
        self.limit, self.window_s = limit, window_s
        self._calls: deque[int] = deque()

    def _pick(self, method: str, path: str) -> FaultRule | None:
        """The rule for this call, counted."""
        for armed in list(self.rules):
            rule = armed.rule
            fits = method != "GET" if rule.method == "WRITE" else rule.method in (None, method)
            if not fits or re.search(rule.path, path) is None:
                continue
            armed.seen += 1
            if armed.seen <= rule.after or self._chance.uniform(0, 100) >= rule.percent:
                continue
            armed.hits += 1
            if rule.count is not None and armed.hits >= rule.count:
                self.rules.remove(armed)
            return rule
        return None

    def _admit(self) -> None:
        """Count a call. Raises rate.limited with the seconds until there is room."""
        if self.limit is None:
            return
        now, window_ms = self._clock.now_ms(), self.window_s * 1000
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

    def middleware(self) -> Middleware:
        """What every call to the API passes through."""

        @web.middleware
        async def passed(request: web.Request, handler: Handler) -> web.StreamResponse:
            path = request.rel_url.raw_path.removeprefix(self._settings.api_prefix)
            at, query = self._clock.timestamp(), request.query_string
            entry = Entry(next(self._numbers), at, request.method, path, query)
            self.requests.append(entry)

            async def honest(request: web.Request) -> web.StreamResponse:
                return await self._answered(entry, request, handler)

            rule = self._pick(request.method, path)
            if rule is None:
                response = await honest(request)
            else:
                entry.fault = rule.rule_id
                response = await spoil(rule, request, honest)
            # A connection that was dropped has answered nothing.
            if request.transport is not None and not request.transport.is_closing():
                entry.status = response.status
                entry.code = _code_of(response)
            return response

        return passed

    async def _answered(
        self, entry: Entry, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """The honest answer; whatever goes wrong is in the error envelope."""
        try:
            entry.body = self._logged(await request.read())
            self._admit()
            entry.applied = True
            return await handler(request)
        except ServiceError as error:
            return error_response(error)
        except web.HTTPRedirection as redirect:
            headers = {"Location": redirect.headers["Location"]}
            return web.Response(status=redirect.status, headers=headers)
        except web.HTTPException as error:
            return error_response(translated(error, request))
        except Exception:  # noqa: BLE001 (the last line of defence: answered and logged)
            _log.exception("sandbox.internal_error", method=entry.method, path=entry.path)
            return error_response(
                ServiceError("internal.error", "The sandbox has a defect; its log says more")
            )

    def _logged(self, raw: bytes) -> Json:
        """The parsed body without its secrets, or the size of one too large or no JSON."""
        body: Json = {"bytes": len(raw)} if raw else None
        if raw and len(raw) <= self._settings.request_log_body_bytes:
            with suppress(ValueError):
                body = json.loads(raw)
        if isinstance(body, dict):
            body |= {name: "(hidden)" for name in _HIDDEN if name in body}
        return body


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


def translated(error: web.HTTPException, request: web.Request) -> ServiceError:
    """What aiohttp refuses, in the service's words."""
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
    body = response.body if isinstance(response, web.Response) else None
    if response.status < 400 or not isinstance(body, bytes):
        return None
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(code)
