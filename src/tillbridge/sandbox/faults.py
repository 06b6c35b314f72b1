"""Faults on demand: rules that pick calls and say how they go wrong."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field

from tillbridge.sandbox.errors import CODE_FOR_STATUS, ServiceError, error_response
from tillbridge.sandbox.state import new_id
from tillbridge.sandbox.validation import (
    Body,
    Count,
    Id,
    Number,
    OptionalText,
    Regex,
    Text,
    Url,
)

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
            if not _picks(rule, method, path):
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


def _picks(rule: FaultRule, method: str, path: str) -> bool:
    wanted = method != "GET" if rule.method == "WRITE" else rule.method in (None, method)
    return wanted and re.search(rule.path, path) is not None


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
